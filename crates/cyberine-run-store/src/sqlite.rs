//! The store over one SQLite database, shared by every process of a home.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cyberine_fs::LockFile;
use cyberine_types::{Clock, RunId};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::Semaphore;

use crate::claim::{Claim, Hold};
use crate::error::{StoreError, chain};
use crate::event::RunEvent;
use crate::fold;
use crate::home::Home;
use crate::money::Reserve;
use crate::port::{CancelOutcome, DecideOutcome, NewRun, Wish};
use crate::projection::{self, Projector, RunDir};
use crate::run::Run;

pub(crate) mod connection;
mod files;
mod keys;
pub(crate) mod money;
mod ports;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod write;

use connection::Database;
use write::{Addition, Changed, Project};

/// How many folded runs a process remembers, so that an append or a look reads only what is new.
const REMEMBERED: usize = 16;

/// How long another process that is just admitting the same run is waited for.
const ADMISSION: Duration = Duration::from_secs(10);

/// Runs in `<home>/state.db`, with their projections in the projects. Many processes may use one
/// home at once. Clones share their connections.
///
/// Making one does no I/O; the database is opened, and created where there is none, at the first
/// call. Calls need a tokio runtime: the work itself is done on its blocking threads, and goes on
/// to its end when the future is dropped.
#[derive(Clone)]
pub struct SqliteRunStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) database: Database,
    clock: Arc<dyn Clock>,
    remembered: Mutex<VecDeque<Run>>,
    /// Turns of those who wait for changes: however many do, a few threads look for them.
    looks: Semaphore,
}

/// How many of those who wait for changes look at the same time.
const LOOKS: usize = 4;

impl SqliteRunStore {
    /// A store in the directory `home`.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        let (database, looks) = (Database::new(home.into()), Semaphore::new(LOOKS));
        Self { inner: Arc::new(Inner { database, clock, remembered: Mutex::default(), looks }) }
    }

    /// The home's directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.inner.database.path()
    }

    /// Takes the claim on a run whose lock was handed to this process (see
    /// [`Claim::into_lock`]), and records that process `pid` carries the run out from here on. The
    /// claim under which the run was admitted holds no longer.
    ///
    /// # Errors
    /// [`StoreError::ClaimRefused`] where `lock` is not the run's lock or somebody else holds it;
    /// [`StoreError::Fenced`] where the run is over.
    pub async fn claim_handed_over(&self, id: RunId, lock: OwnedFd, pid: u32) -> Result<Claim, StoreError> {
        self.blocking(move |inner| inner.claim_handed_over(id, lock, pid)).await
    }

    /// The run's directory in its project, for ticks, control and outputs.
    ///
    /// # Errors
    /// [`StoreError::ProjectUnusable`] where the project's directory cannot be used or is no
    /// longer the one in which the run was admitted.
    pub async fn run_dir(&self, id: RunId) -> Result<RunDir, StoreError> {
        self.blocking(move |inner| inner.run_dir(id)).await
    }

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(outcome) => outcome,
            Err(error) => Err(StoreError::Worker { detail: error.to_string() }),
        }
    }

    /// As [`SqliteRunStore::blocking`], in turn with the others who wait for changes.
    pub(crate) async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _turn = self.inner.looks.acquire().await;
        self.blocking(work).await
    }
}

impl std::fmt::Debug for SqliteRunStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SqliteRunStore").field("home", &self.home()).finish_non_exhaustive()
    }
}

impl Inner {
    fn admit(&self, new: &NewRun, reserve: &Reserve) -> Result<Claim, StoreError> {
        let first = write::first_event(self.clock.now(), new, reserve);
        let run =
            fold::begin(new.id, &first).map_err(|source| StoreError::EventRefused { run: new.id, source })?;
        let home = self.database.home()?;
        // A look beforehand, so that most refusals leave nothing to be cleared away.
        self.database.read(|conn| {
            refuse_recorded(conn, new.id)?;
            money::check(conn, first.at.day(), reserve)
        })?;
        let (project, identity) = projection::open_project(&new.cwd, None)?;
        let lock = self.lock_unrecorded(&home, new.id)?;
        let projector = match self.prepare_project(&home, &project, &run, &first) {
            Ok(Some(projector)) => projector,
            refused => {
                home.forget_lock(new.id);
                return Err(refused.err().unwrap_or(StoreError::AlreadyAdmitted { run: new.id }));
            }
        };
        let place = Project { path: new.cwd.clone(), dev: identity.device, ino: identity.inode };
        if let Err(error) = self.database.write(|conn| write::admit(conn, &first, &run, &place, reserve)) {
            projector.into_dir().discard();
            home.forget_lock(new.id);
            return Err(error);
        }
        self.remember(run);
        home.tell(new.id);
        Ok(Claim::new(new.id, 1, Hold::File(lock)).with_projector(Some(projector)))
    }

    /// The lock of a run that is not recorded. Whoever is just admitting it is waited for: then it
    /// is recorded, or nobody is at it.
    fn lock_unrecorded(&self, home: &Home, id: RunId) -> Result<LockFile, StoreError> {
        let since = Instant::now();
        loop {
            let lock = home.lock(id)?;
            if let Err(error) = self.database.read(|conn| refuse_recorded(conn, id)) {
                lock.into_iter().for_each(Home::unlock);
                return Err(error);
            }
            if let Some(lock) = lock {
                return Ok(lock);
            }
            if since.elapsed() > ADMISSION {
                return Err(StoreError::Busy { attempt: "admit the run" });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn append(&self, addition: Addition, projector: Option<&Mutex<Projector>>) -> Result<u64, StoreError> {
        let home = self.database.home()?;
        let known = self.recall(addition.run);
        let changed = self.database.write(|conn| write::append(conn, &*self.clock, known, addition))?;
        if let Some(projector) = projector {
            self.project(&home, &mut lock_of(projector), &changed);
        }
        self.after_commit(&home, &changed);
        Ok(changed.last_seq())
    }

    fn adopt(&self, id: RunId) -> Result<Option<Claim>, StoreError> {
        let home = self.database.home()?;
        let open = |row: Option<read::Row>| row.is_some_and(|row| !row.settled);
        if !open(self.database.read(|conn| read::row(conn, id))?) {
            return Ok(None);
        }
        let Some(lock) = home.lock(id)? else { return Ok(None) };
        let (clock, known) = (&*self.clock, self.recall(id));
        let Some(changed) = self.database.write(|conn| write::claim(conn, clock, id, known, Vec::new()))?
        else {
            home.forget_lock(id);
            return Ok(None);
        };
        let projector = self.after_claim(&home, &changed);
        Ok(Some(Claim::new(id, changed.epoch, Hold::File(lock)).with_projector(projector)))
    }

    fn claim_handed_over(&self, id: RunId, lock: OwnedFd, pid: u32) -> Result<Claim, StoreError> {
        let home = self.database.home()?;
        let lock = home
            .locks
            .take_over_lock(&crate::home::lock_name(id), lock)
            .map_err(|error| StoreError::ClaimRefused { run: id, detail: chain(&error) })?;
        let (clock, known) = (&*self.clock, self.recall(id));
        let started = vec![RunEvent::Started { pid }];
        let Some(changed) = self.database.write(|conn| write::claim(conn, clock, id, known, started))? else {
            home.forget_lock(id);
            return Err(StoreError::Fenced { run: id, epoch: 1, detail: "the run is over".to_owned() });
        };
        let projector = self.after_claim(&home, &changed);
        Ok(Claim::new(id, changed.epoch, Hold::File(lock)).with_projector(projector))
    }

    fn request_cancel(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> Result<CancelOutcome, StoreError> {
        let home = self.database.home()?;
        let clock = &*self.clock;
        let outcome = self.database.write(|conn| write::request_cancel(conn, clock, id, by, reason))?;
        if outcome == CancelOutcome::Requested {
            home.tell(id);
        }
        Ok(outcome)
    }

    fn decide(&self, id: RunId, wish: Wish) -> Result<DecideOutcome, StoreError> {
        wish.check()?;
        let home = self.database.home()?;
        let clock = &*self.clock;
        let (outcome, changed) = self.database.write(|conn| write::decide(conn, clock, id, wish))?;
        if let Some(run) = changed {
            let is_over = run.state.is_terminal();
            self.remember(run);
            self.show(&home, id);
            home.tell(id);
            if is_over {
                home.tell_settled(id);
            }
        }
        Ok(outcome)
    }

    fn load(&self, id: RunId) -> Result<Option<Run>, StoreError> {
        let known = self.recall(id);
        let run = self.database.read(|conn| match read::row(conn, id)? {
            Some(row) => read::run_of(conn, &row, known).map(Some),
            None => Ok(None),
        })?;
        if let Some(run) = &run {
            self.remember(run.clone());
        }
        Ok(run)
    }

    /// A new holder writes the projections anew: the last one may have died while it wrote them.
    fn after_claim(&self, home: &Home, changed: &Changed) -> Option<Projector> {
        let id = changed.run.run_id;
        let projector = match self.run_dir(id) {
            Ok(dir) => {
                let mut projector = Projector::new(dir);
                self.project(home, &mut projector, changed);
                Some(projector)
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(run = %id, error, "the run goes on without its files in the project");
                None
            }
        };
        self.after_commit(home, changed);
        projector
    }

    /// What follows a commit. None of it can take the commit back, so failures are only told.
    fn after_commit(&self, home: &Home, changed: &Changed) {
        let id = changed.run.run_id;
        self.remember(changed.run.clone());
        if changed.run.state.is_terminal() {
            home.tell_settled(id);
            home.forget_lock(id);
        } else {
            home.tell(id);
        }
    }

    fn recall(&self, id: RunId) -> Option<Run> {
        lock_of(&self.remembered).iter().find(|run| run.run_id == id).cloned()
    }

    /// Keeps the run, unless a later state of it is kept already.
    fn remember(&self, run: Run) {
        let mut remembered = lock_of(&self.remembered);
        if let Some(place) = remembered.iter().position(|known| known.run_id == run.run_id) {
            if remembered[place].next_seq > run.next_seq {
                return;
            }
            remembered.remove(place);
        }
        remembered.push_front(run);
        remembered.truncate(REMEMBERED);
    }
}

/// Refuses a run that is recorded already.
fn refuse_recorded(conn: &Connection, id: RunId) -> Result<(), StoreError> {
    match read::row(conn, id)? {
        Some(_) => Err(StoreError::AlreadyAdmitted { run: id }),
        None => Ok(()),
    }
}

/// A panic while one of these is held leaves a collection that is still whole.
fn lock_of<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what was attempted where the database fails.
pub(crate) fn database(attempt: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { attempt },
        _ => StoreError::Database { attempt, source },
    }
}

/// SQLite's integers are signed. Counts and micro-dollars beyond its range stop at its end.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count that was stored with [`int`].
pub(crate) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}
