//! How a store fails, and what to do about it.

use std::path::{Path, PathBuf};

use cyberine_fs::FsError;
use cyberine_types::{RunId, Usd};

use crate::fold::FoldError;
use crate::money::Cap;

/// An operation of a store that did not go well. Nothing was recorded, unless a variant says
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The money of a day, a provider or a caller leaves no room for another run.
    #[error("the daily cap of {cap}{of} leaves no room: {held} held, {spent} spent, {wanted} wanted")]
    CapReached {
        /// Whose cap it is.
        of: Cap,
        /// The cap.
        cap: Usd,
        /// What unsettled runs of the day hold under it.
        held: Usd,
        /// What settled runs of the day have spent under it.
        spent: Usd,
        /// What the refused run would hold under it.
        wanted: Usd,
    },
    /// The claim is no longer the run's present one, or the run is over.
    #[error("the claim of epoch {epoch} on run `{run}` no longer holds: {detail}")]
    Fenced {
        /// The run.
        run: RunId,
        /// The epoch of the claim that was shown.
        epoch: u64,
        /// Why it does not hold.
        detail: String,
    },
    /// The run's log has gone on since it was looked at.
    #[error("the log of run `{run}` has gone on: its last event is {last}, and {seen} was expected")]
    Moved {
        /// The run.
        run: RunId,
        /// Its last event.
        last: u64,
        /// What the caller took for it.
        seen: u64,
    },
    /// There is no run of that id.
    #[error("there is no run `{run}`")]
    NotFound {
        /// The id that was asked for.
        run: RunId,
    },
    /// A run of that id exists already.
    #[error("run `{run}` exists already")]
    AlreadyAdmitted {
        /// The id.
        run: RunId,
    },
    /// The key was not opened for the operation whose result is to be kept under it.
    #[error("the key {key:?} is not open for this operation")]
    KeyNotOpen {
        /// The key, as it was given.
        key: String,
    },
    /// A text is longer than it may be.
    #[error("the {what} is too long: {found} {unit}, and at most {limit} are kept")]
    TooLarge {
        /// What it is: `key`, `result`, `comment`.
        what: &'static str,
        /// How long it is.
        found: usize,
        /// How long it may be.
        limit: usize,
        /// What is counted: `bytes`, `characters`.
        unit: &'static str,
    },
    /// The lock that was handed over is not the run's, or somebody else holds it.
    #[error("the lock of run `{run}` was not handed over: {detail}")]
    ClaimRefused {
        /// The run.
        run: RunId,
        /// What is wrong with the lock.
        detail: String,
    },
    /// The event does not fit the run's log.
    #[error("the event does not fit the log of run `{run}`")]
    EventRefused {
        /// The run.
        run: RunId,
        /// What does not fit.
        #[source]
        source: FoldError,
    },
    /// What is stored of the run cannot be read.
    #[error("the record of run `{run}` is damaged: {detail}")]
    Corrupt {
        /// The run.
        run: RunId,
        /// What is wrong with it.
        detail: String,
    },
    /// The project's directory cannot hold the run's files, or is not the one it was.
    #[error("the project directory `{}` cannot be used: {detail}", .path.display())]
    ProjectUnusable {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The home directory, or a file in it, cannot be used.
    #[error("`{}` cannot be used: {detail}", .path.display())]
    HomeUnusable {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A file of a run could not be read or written.
    #[error("a file of the run could not be used")]
    Files {
        /// What the file system said; it names the path.
        #[source]
        source: FsError,
    },
    /// The file system under the home directory has no locks.
    #[error("the file system of `{}` has no locks", .path.display())]
    NoLocks {
        /// The file that could not be locked.
        path: PathBuf,
    },
    /// The database was written by a newer version of this program.
    #[error("the database `{}` has format {found}, and this program knows formats up to {known}", .path.display())]
    NewerDatabase {
        /// The database.
        path: PathBuf,
        /// The format it has.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// There is no database in a home that has had runs. A fresh one would know nothing of them,
    /// nor of the money they hold and have spent.
    #[error("the database `{}` is gone, and this home has had runs (known projects: {projects})", .path.display())]
    DatabaseLost {
        /// Where the database was.
        path: PathBuf,
        /// How many projects the home knows.
        projects: usize,
    },
    /// What the database holds cannot be read as one.
    #[error("the database `{}` is damaged: {detail}", .path.display())]
    DatabaseDamaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// There is a database where a lost one was to be rebuilt.
    #[error("the database `{}` is there already", .path.display())]
    DatabaseExists {
        /// The database.
        path: PathBuf,
    },
    /// Another process has held the database for longer than is waited for.
    #[error("the run database could not {attempt}: another process holds it")]
    Busy {
        /// What was attempted, as a verb phrase.
        attempt: &'static str,
    },
    /// The database refused or failed.
    #[error("the run database could not {attempt}")]
    Database {
        /// What was attempted, as a verb phrase.
        attempt: &'static str,
        /// What it said.
        #[source]
        source: rusqlite::Error,
    },
    /// The blocking work of the operation panicked or the runtime is shutting down.
    #[error("the storage worker stopped: {detail}")]
    Worker {
        /// What is known about it.
        detail: String,
    },
}

/// What kind of failure it is, for code to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The caller may not do this now: cap, fence, claim, duplicate, misfit.
    Refused,
    /// There is no such run.
    NotFound,
    /// The machine's set-up is wrong: directories, file systems, versions.
    Setup,
    /// What is stored is damaged.
    Damaged,
    /// Another process is in the way; it may not be the next time.
    Busy,
    /// Storage failed.
    Storage,
}

impl StoreError {
    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        match self {
            Self::CapReached { .. }
            | Self::Fenced { .. }
            | Self::Moved { .. }
            | Self::AlreadyAdmitted { .. }
            | Self::KeyNotOpen { .. }
            | Self::TooLarge { .. }
            | Self::ClaimRefused { .. }
            | Self::EventRefused { .. } => StoreErrorKind::Refused,
            Self::NotFound { .. } => StoreErrorKind::NotFound,
            Self::ProjectUnusable { .. }
            | Self::HomeUnusable { .. }
            | Self::NoLocks { .. }
            | Self::NewerDatabase { .. }
            | Self::DatabaseExists { .. } => StoreErrorKind::Setup,
            Self::Corrupt { .. } | Self::DatabaseLost { .. } | Self::DatabaseDamaged { .. } => {
                StoreErrorKind::Damaged
            }
            Self::Busy { .. } => StoreErrorKind::Busy,
            Self::Files { .. } | Self::Database { .. } | Self::Worker { .. } => StoreErrorKind::Storage,
        }
    }

    /// A stable code for people and programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::CapReached { .. } => "cap_reached",
            Self::Fenced { .. } => "fenced",
            Self::Moved { .. } => "run_moved",
            Self::NotFound { .. } => "run_not_found",
            Self::AlreadyAdmitted { .. } => "run_exists",
            Self::KeyNotOpen { .. } => "key_not_open",
            Self::TooLarge { .. } => "too_large",
            Self::ClaimRefused { .. } => "claim_refused",
            Self::EventRefused { .. } => "event_refused",
            Self::Corrupt { .. } => "run_corrupt",
            Self::ProjectUnusable { .. } => "project_unusable",
            Self::HomeUnusable { .. } => "home_unusable",
            Self::Files { .. } => "run_files",
            Self::NoLocks { .. } => "no_locks",
            Self::NewerDatabase { .. } => "newer_database",
            Self::DatabaseLost { .. } => "database_lost",
            Self::DatabaseDamaged { .. } => "database_damaged",
            Self::DatabaseExists { .. } => "database_exists",
            Self::Busy { .. } => "database_busy",
            Self::Database { .. } => "database",
            Self::Worker { .. } => "storage_worker",
        }
    }

    /// What to do next, in one sentence.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::CapReached { of, cap, wanted, .. } => cap_advice(of, wanted.micros() > cap.micros()),
            Self::Fenced { .. } => "Stop this runner: the run belongs to another one, or is over.",
            Self::Moved { .. } => "Read the run's events again, and decide anew.",
            Self::NotFound { .. } => "Look the run up with `query_runs` or `cyberine runs`.",
            Self::AlreadyAdmitted { .. } => "Look at the run that has the id, or draw another one.",
            Self::KeyNotOpen { .. } => "Open the key first; one is known for 30 days.",
            Self::TooLarge { .. } => "Shorten it.",
            Self::ClaimRefused { .. } => "Start the runner by dispatching the run; do not start it by hand.",
            Self::EventRefused { .. } => "Report this as a bug: the engine and the log disagree.",
            Self::Corrupt { .. } => "Run `cyberine doctor`; other runs are not affected.",
            Self::ProjectUnusable { .. } => {
                "Make the directory writable, free some space, or choose another one with `--project`."
            }
            Self::HomeUnusable { .. } => {
                "Make it yours alone (directories 0700, files 0600), or set `CYBERINE_HOME` elsewhere."
            }
            Self::Files { .. } => {
                "Make the run's directory under `.local/runs` writable, and free some space."
            }
            Self::NoLocks { .. } => "Set `CYBERINE_HOME` to a directory on a local file system.",
            Self::NewerDatabase { .. } => "Update this program, or set `CYBERINE_HOME` to another directory.",
            Self::DatabaseLost { .. } => {
                "Put the database back, or run `cyberine doctor --rebuild` to make it anew from the projects."
            }
            Self::DatabaseDamaged { .. } => {
                "Put a copy back; or move `state.db`, `state.db-wal` and `state.db-shm` aside and run `cyberine doctor --rebuild`: it makes the runs anew from the projects' files, without events that had not reached them, runs of projects that are gone, and idempotency keys."
            }
            Self::DatabaseExists { .. } => "Move the database aside first if it is really lost.",
            Self::Busy { .. } => {
                "Another process holds the database; try again, and close other programs that have it open."
            }
            Self::Database { .. } => "Check the disk's free space and health, then run `cyberine doctor`.",
            Self::Worker { .. } => "Try again; if it happens again, report it as a bug.",
        }
    }
}

/// What to do where a cap leaves no room. `alone`: one run wants more than the whole cap.
const fn cap_advice(of: &Cap, alone: bool) -> &'static str {
    match (of, alone) {
        (Cap::Day, true) => {
            "One run alone holds more than a whole day may cost: lower `[budget] run_usd` of the home to at most `daily_usd`, or raise `[budget] daily_usd`."
        }
        (Cap::Day, false) => {
            "Wait for running runs to settle or for the next UTC day, or raise `[budget] daily_usd`."
        }
        (Cap::Provider(_), true) => {
            "One run alone may cost more there than a whole day: lower `[budget] run_usd` of the home or the provider's `max_tokens`, raise its cap in `[budget.providers]`, or leave it out of `[orchestrate] candidates` and `judge_providers`."
        }
        (Cap::Provider(_), false) => {
            "Wait for running runs to settle or for the next UTC day, raise its cap in `[budget.providers]`, or leave it out of `[orchestrate] candidates` and `judge_providers`."
        }
        (Cap::Caller(_), true) => {
            "One run alone holds more than this caller may spend in a whole day: lower `[budget] run_usd` of the home, or raise its cap in `[budget.callers]`."
        }
        (Cap::Caller(_), false) => {
            "Wait for its running runs to settle or for the next UTC day, or raise its cap in `[budget.callers]`."
        }
    }
}

impl StoreError {
    /// A failure on a file of the home.
    pub(crate) fn home(error: FsError) -> Self {
        match error {
            FsError::NoLocks { path, .. } => Self::NoLocks { path },
            other => Self::HomeUnusable { path: other.path().to_owned(), detail: chain(&other) },
        }
    }

    /// A failure in a project's directory.
    pub(crate) fn project(path: &Path, error: &FsError) -> Self {
        Self::ProjectUnusable { path: path.to_owned(), detail: chain(error) }
    }
}

impl From<FsError> for StoreError {
    fn from(source: FsError) -> Self {
        Self::Files { source }
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_advised_only_where_it_helps() {
        let advice = |cap: f64, wanted: f64| {
            let (cap, wanted) = (Usd::from_dollars(cap), Usd::from_dollars(wanted));
            StoreError::CapReached { of: Cap::Day, cap, held: Usd::ZERO, spent: Usd::ZERO, wanted }.advice()
        };
        assert!(advice(1.0, 1.0).starts_with("Wait"));
        let never = advice(0.5, 1.0);
        assert!(never.contains("`[budget] run_usd`") && never.contains("`[budget] daily_usd`"), "{never}");
        assert!(!never.contains("Wait"), "{never}");
    }
}
