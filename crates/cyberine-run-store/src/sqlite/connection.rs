//! Two connections, one that writes and one that reads, opened at their first use and kept open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, Identity, LockFile, PrivateDir};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::database;
use crate::error::StoreError;
use crate::home::{DATABASE, Home};
use crate::schema::{self, FORMAT, Standing};

/// How long a transaction waits for those of other processes. Each takes about a millisecond, so
/// this is reached only where something is badly wrong.
const BUSY: Duration = Duration::from_secs(60);
/// The lock under which a database is created or brought to the present format.
const FORMAT_LOCK: &str = "state.lock";

/// The database of one home.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    home: Mutex<Option<Arc<Home>>>,
    writer: Mutex<Slot>,
    reader: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    open: Option<Open>,
    /// The last connection failed in a way that makes what it left behind doubtful.
    suspect: bool,
}

#[derive(Debug)]
struct Open {
    conn: Connection,
    /// Which file was opened.
    identity: Identity,
}

impl Database {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, home: Mutex::default(), writer: Mutex::default(), reader: Mutex::default() }
    }

    /// The home's path, as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The opened home.
    pub(crate) fn home(&self) -> Result<Arc<Home>, StoreError> {
        let mut slot = lock(&self.home);
        if let Some(home) = &*slot {
            return Ok(Arc::clone(home));
        }
        let home = Arc::new(Home::open(&self.path)?);
        *slot = Some(Arc::clone(&home));
        Ok(home)
    }

    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(&self.writer, work)
    }

    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(&self.reader, |conn| work(conn))
    }

    fn with<T>(
        &self,
        slot: &Mutex<Slot>,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut slot = lock(slot);
        let home = self.home()?;
        let mut open = match slot.open.take() {
            Some(open) => self.still_there(&home, open)?,
            None => self.open(&home, slot.suspect)?,
        };
        slot.suspect = false;
        let outcome = work(&mut open.conn);
        // After a failed sync the connection does not know what reached the disk. It is never
        // used again; the next one reads the files anew and checks them.
        match &outcome {
            Err(StoreError::Database { source, .. }) if is_doubtful(source) => slot.suspect = true,
            _ => slot.open = Some(open),
        }
        outcome
    }

    /// Refuses to write into a database that has been removed or replaced under its name: what
    /// is written there would be lost with the last process that has it open.
    fn still_there(&self, home: &Home, open: Open) -> Result<Open, StoreError> {
        let path = self.path.join(DATABASE);
        let there = std::fs::symlink_metadata(&path).ok().map(|found| {
            use std::os::unix::fs::MetadataExt as _;
            Identity { device: found.dev(), inode: found.ino() }
        });
        if there == Some(open.identity) {
            return Ok(open);
        }
        drop(open);
        tracing::error!(path = %path.display(), home = ?home.root, "the database was removed while it was open");
        *lock(&self.home) = None;
        Err(StoreError::HomeUnusable { path, detail: "it was removed while it was open".to_owned() })
    }

    fn open(&self, home: &Home, suspect: bool) -> Result<Open, StoreError> {
        let (path, identity) = database_file(&home.root)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Connection::open_with_flags(&path, flags).map_err(database("open the database"))?;
        conn.busy_timeout(BUSY).map_err(database("open the database"))?;
        prepare(home, &path, &mut conn)?;
        configure(&conn, &path)?;
        if suspect {
            check(&conn, &path)?;
        }
        Ok(Open { conn, identity })
    }
}

/// Creates the database's file where there is none, private from its first moment, and refuses
/// links, FIFOs and files of others in the place of any of its three files. The path returned
/// has no symbolic link in it.
fn database_file(root: &PrivateDir) -> Result<(PathBuf, Identity), StoreError> {
    root.append(DATABASE, b"", Durability::Fast).map_err(StoreError::home)?;
    for name in [DATABASE, "state.db-wal", "state.db-shm"] {
        root.read_from(name, 0, 0).map_err(StoreError::home)?;
    }
    let unusable = |source: std::io::Error| StoreError::HomeUnusable {
        path: root.path().to_owned(),
        detail: source.to_string(),
    };
    let path = std::fs::canonicalize(root.path()).map_err(unusable)?;
    let again = PrivateDir::open_existing(&path).and_then(|dir| dir.identity()).map_err(StoreError::home)?;
    if again != root.identity().map_err(StoreError::home)? {
        let detail = "another directory has taken its place".to_owned();
        return Err(StoreError::HomeUnusable { path, detail });
    }
    let path = path.join(DATABASE);
    let found = std::fs::symlink_metadata(&path).map_err(unusable)?;
    use std::os::unix::fs::MetadataExt as _;
    Ok((path, Identity { device: found.dev(), inode: found.ino() }))
}

/// Brings the database to the present format. One process does it, the others wait.
fn prepare(home: &Home, path: &Path, conn: &mut Connection) -> Result<(), StoreError> {
    let failed = database("read the database's format");
    if known(path, schema::standing(conn).map_err(&failed)?)? {
        return Ok(());
    }
    let _held = wait_for(&home.locks, FORMAT_LOCK)?;
    if known(path, schema::standing(conn).map_err(&failed)?)? {
        return Ok(());
    }
    write_ahead(conn, path)?;
    schema::migrate(conn).map_err(database("bring the database to the present format"))
}

/// Whether the database has the present format.
fn known(path: &Path, standing: Standing) -> Result<bool, StoreError> {
    match standing {
        Standing::Present => Ok(true),
        Standing::Older => Ok(false),
        Standing::Newer(found) => {
            Err(StoreError::NewerDatabase { path: path.to_owned(), found, known: FORMAT })
        }
        Standing::Foreign => Err(StoreError::HomeUnusable {
            path: path.to_owned(),
            detail: "it is a database of some other program".to_owned(),
        }),
    }
}

fn wait_for(locks: &PrivateDir, name: &str) -> Result<LockFile, StoreError> {
    let since = Instant::now();
    loop {
        if let Some(held) = locks.try_lock(name).map_err(StoreError::home)? {
            return Ok(held);
        }
        if since.elapsed() > BUSY {
            let detail = "another process has held it for a minute".to_owned();
            return Err(StoreError::HomeUnusable { path: locks.path().join(name), detail });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn write_ahead(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(database("turn write-ahead logging on"))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(StoreError::NoLocks { path: path.to_owned() })
}

fn configure(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    // Every commit is on the disk before it returns; on macOS that takes `fullfsync`.
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;
         PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216;",
    )
    .map_err(database("set the database up"))?;
    let mode: String = conn
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .map_err(database("set the database up"))?;
    if mode.eq_ignore_ascii_case("wal") { Ok(()) } else { write_ahead(conn, path) }
}

/// `PRAGMA quick_check`.
fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(database("check the database after a failure"))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(StoreError::HomeUnusable { path: path.to_owned(), detail: verdict })
}

/// Failures after which a connection is not used again.
fn is_doubtful(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::DiskFull
                | ErrorCode::CannotOpen
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// A panic while a slot is locked leaves it empty: `with` takes the connection out first.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
