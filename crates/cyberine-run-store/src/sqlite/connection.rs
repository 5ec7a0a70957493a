//! Two connections, one that writes and one that reads, opened at their first use and kept open.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, Identity, LockFile, PrivateDir};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::database;
use crate::error::StoreError;
use crate::home::{DATABASE, Home};
use crate::schema::{self, FORMAT, Standing};

/// How long a transaction waits for those of other processes. Each takes about a millisecond, so
/// this is reached only where something is badly wrong; hosts give a call up after a minute.
const BUSY: Duration = Duration::from_secs(20);
/// The lock under which a database is created or brought to the present format.
const FORMAT_LOCK: &str = "state.lock";

/// The database of one home.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    /// How long others are waited for.
    patience: Duration,
    home: Mutex<Option<Arc<Home>>>,
    writer: Mutex<Slot>,
    reader: Mutex<Slot>,
    /// Whether a home that has had runs may get a fresh database.
    renewed: AtomicBool,
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
        Self::with_patience(path, BUSY)
    }

    fn with_patience(path: PathBuf, patience: Duration) -> Self {
        let (home, writer, reader) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { path, patience, home, writer, reader, renewed: AtomicBool::new(false) }
    }

    /// Lets a lost database be made anew, empty, for whoever fills it.
    pub(crate) fn renew(&self) {
        self.renewed.store(true, Ordering::Relaxed);
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
        // One snapshot for all of it: other processes write between any two statements.
        self.with(&self.reader, |conn| {
            let snapshot = conn.transaction().map_err(database("begin to read"))?;
            work(&snapshot)
        })
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
            None => self.open(&home, slot.suspect).map_err(|error| damaged(&home, error))?,
        };
        slot.suspect = false;
        let outcome = work(&mut open.conn);
        // After a failed sync the connection does not know what reached the disk. It is never
        // used again; the next one reads the files anew and checks them.
        match &outcome {
            Err(StoreError::Database { source, .. }) if is_doubtful(source) => slot.suspect = true,
            _ => slot.open = Some(open),
        }
        outcome.map_err(|error| damaged(&home, error))
    }

    /// Refuses to write into a database that has been removed or replaced under its name: what
    /// is written there would be lost with the last process that has it open.
    fn still_there(&self, home: &Home, open: Open) -> Result<Open, StoreError> {
        let path = self.path.join(DATABASE);
        if look_at(&path)? == Some(open.identity) {
            return Ok(open);
        }
        drop(open);
        tracing::error!(path = %path.display(), home = ?home.root, "the database was removed while it was open");
        *lock(&self.home) = None;
        Err(StoreError::HomeUnusable { path, detail: "it was removed while it was open".to_owned() })
    }

    /// Refuses where the database of a home that has had runs is gone: in a fresh one the day's
    /// spending would begin at nothing.
    fn refuse_to_forget(&self, home: &Home) -> Result<(), StoreError> {
        let path = self.path.join(DATABASE);
        if !is_missing(&path)? {
            return Ok(());
        }
        let projects = home.projects()?.len();
        // Another process may just have made the database and recorded its first run: a project is
        // listed only after the database is there, so a second look tells.
        if projects == 0 || !is_missing(&path)? {
            return Ok(());
        }
        Err(StoreError::DatabaseLost { path, projects })
    }

    fn open(&self, home: &Home, suspect: bool) -> Result<Open, StoreError> {
        // One at a time in the whole process: a new file is closed before any connection opens it.
        static OPENING: Mutex<()> = Mutex::new(());
        let _opening = lock(&OPENING);
        if !self.renewed.load(Ordering::Relaxed) {
            self.refuse_to_forget(home)?;
        }
        let (path, identity) = database_file(&home.root)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Connection::open_with_flags(&path, flags).map_err(database("open the database"))?;
        conn.busy_timeout(self.patience).map_err(database("open the database"))?;
        prepare(home, &path, &mut conn, self.patience)?;
        configure(&conn, &path, self.patience)?;
        if suspect {
            check(&conn, &path)?;
        }
        Ok(Open { conn, identity })
    }
}

/// Whether there is no database: no file, or one in which nothing has ever been written.
fn is_missing(path: &Path) -> Result<bool, StoreError> {
    if look_at(path)?.is_none() {
        return Ok(true);
    }
    let size = std::fs::symlink_metadata(path).map(|found| found.len());
    size.map(|bytes| bytes == 0)
        .map_err(|error| StoreError::HomeUnusable { path: path.to_owned(), detail: error.to_string() })
}

/// Creates the database's file where there is none, private from its first moment, and refuses
/// links, FIFOs and files of others in the place of any of its three files. The path returned
/// has no symbolic link in it.
///
/// A file that exists is looked at and never opened here: SQLite's locks belong to the process,
/// and closing any descriptor of the file, whoever opened it, would drop those of every
/// connection of this process.
fn database_file(root: &PrivateDir) -> Result<(PathBuf, Identity), StoreError> {
    let unusable = |source: std::io::Error| StoreError::HomeUnusable {
        path: root.path().to_owned(),
        detail: source.to_string(),
    };
    let home = std::fs::canonicalize(root.path()).map_err(unusable)?;
    let again = PrivateDir::open_existing(&home).and_then(|dir| dir.identity()).map_err(StoreError::home)?;
    if again != root.identity().map_err(StoreError::home)? {
        let detail = "another directory has taken its place".to_owned();
        return Err(StoreError::HomeUnusable { path: home, detail });
    }
    let path = home.join(DATABASE);
    if look_at(&path)?.is_none() {
        root.append(DATABASE, b"", Durability::Fast).map_err(StoreError::home)?;
    }
    for name in ["state.db-wal", "state.db-shm"] {
        look_at(&home.join(name))?;
    }
    let missing = || unusable(std::io::ErrorKind::NotFound.into());
    let identity = look_at(&path)?.ok_or_else(missing)?;
    Ok((path, identity))
}

/// Which file lies there, if any; refused where it is not a file of ours alone.
fn look_at(path: &Path) -> Result<Option<Identity>, StoreError> {
    let unusable = |detail: String| StoreError::HomeUnusable { path: path.to_owned(), detail };
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(error.to_string())),
    };
    let me = rustix::process::geteuid().as_raw();
    if !found.is_file() {
        return Err(unusable("it is not a regular file; move it away".to_owned()));
    }
    if found.uid() != me {
        return Err(unusable(format!("it belongs to user {}, not to user {me}", found.uid())));
    }
    if found.nlink() > 1 {
        return Err(unusable(format!("it has {} names (hard links); remove the others", found.nlink())));
    }
    Ok(Some(Identity { device: found.dev(), inode: found.ino() }))
}

/// Brings the database to the present format. One process does it, the others wait.
fn prepare(home: &Home, path: &Path, conn: &mut Connection, patience: Duration) -> Result<(), StoreError> {
    if is_present(conn, path)? {
        return Ok(());
    }
    let _held = wait_for(&home.locks, FORMAT_LOCK, patience)?;
    if is_present(conn, path)? {
        return Ok(());
    }
    write_ahead(conn, path, patience)?;
    schema::migrate(conn).map_err(database("bring the database to the present format"))
}

/// Whether the database has the present format.
fn is_present(conn: &Connection, path: &Path) -> Result<bool, StoreError> {
    let unusable =
        |detail: &str| StoreError::HomeUnusable { path: path.to_owned(), detail: detail.to_owned() };
    match schema::standing(conn) {
        Ok(Standing::Present) => Ok(true),
        Ok(Standing::Older) => Ok(false),
        Ok(Standing::Newer(found)) => {
            Err(StoreError::NewerDatabase { path: path.to_owned(), found, known: FORMAT })
        }
        Ok(Standing::Foreign) => Err(unusable("it is a database of some other program")),
        Err(error) => Err(database("read the database's format")(error)),
    }
}

fn wait_for(locks: &PrivateDir, name: &str, patience: Duration) -> Result<LockFile, StoreError> {
    let since = Instant::now();
    loop {
        if let Some(held) = locks.try_lock(name).map_err(StoreError::home)? {
            return Ok(held);
        }
        if since.elapsed() > patience {
            return Err(StoreError::Busy { attempt: "be brought to the present format" });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Turning it on takes the whole database for an instant, and unlike a transaction does not wait
/// for others.
fn write_ahead(conn: &Connection, path: &Path, patience: Duration) -> Result<(), StoreError> {
    let since = Instant::now();
    let mode = loop {
        match conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && since.elapsed() < patience =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => break outcome.map_err(database("turn write-ahead logging on"))?,
        }
    };
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(StoreError::NoLocks { path: path.to_owned() })
}

fn configure(conn: &Connection, path: &Path, patience: Duration) -> Result<(), StoreError> {
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
    if mode.eq_ignore_ascii_case("wal") { Ok(()) } else { write_ahead(conn, path, patience) }
}

/// `PRAGMA quick_check`.
fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(database("check the database after a failure"))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(StoreError::DatabaseDamaged { path: path.to_owned(), detail: verdict })
}

/// Tells a database that cannot be read as one from a disk that fails.
fn damaged(home: &Home, error: StoreError) -> StoreError {
    match error {
        StoreError::Database { source, .. }
            if matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ) =>
        {
            StoreError::DatabaseDamaged { path: home.root.path().join(DATABASE), detail: source.to_string() }
        }
        other => other,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_another_process_is_told_so_and_not_about_the_disk() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("home");
        Database::new(path.clone()).read(|_| Ok(())).unwrap();
        let other = Connection::open(path.join(DATABASE)).unwrap();
        other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE t(a);").unwrap();
        let waiting = Database::with_patience(path, Duration::from_millis(50));
        let refused = [waiting.read(|_| Ok(())), waiting.write(|_| Ok(()))];
        for error in refused.map(Result::unwrap_err) {
            assert_eq!((error.kind(), error.code()), (crate::StoreErrorKind::Busy, "database_busy"));
            assert!(error.advice().contains("try again"), "{}", error.advice());
        }
        other.execute_batch("ROLLBACK").unwrap();
        drop(other);
        waiting.read(|_| Ok(())).unwrap();
        waiting.write(|_| Ok(())).unwrap();
    }
}
