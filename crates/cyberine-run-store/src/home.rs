//! The store's part of the home directory: locks, wake-ups and the list of projects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, LockFile, PrivateDir};
use cyberine_types::RunId;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// Where the projects of the home are listed, one JSON object a line, for the day the database
/// is lost.
const PROJECTS: &str = "projects.jsonl";
/// The list holds one line a project; this much is some ten thousand of them.
const PROJECTS_MAX: usize = 4 << 20;
/// How long another writer of a run's files is waited for.
pub(crate) const FILES_PATIENCE: Duration = Duration::from_secs(2);
/// The database.
pub(crate) const DATABASE: &str = "state.db";

/// The opened home.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) root: PrivateDir,
    pub(crate) locks: PrivateDir,
    wake: PrivateDir,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    path: String,
}

impl Home {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let root = PrivateDir::open_or_create(path).map_err(StoreError::home)?;
        let locks = root.subdir("locks").map_err(StoreError::home)?;
        let wake = root.subdir("wake").map_err(StoreError::home)?;
        Ok(Self { root, locks, wake })
    }

    /// The directory to watch for changes of runs.
    pub(crate) fn wake_path(home: &Path) -> PathBuf {
        home.join("wake")
    }

    /// Tells followers in all processes that the run has changed. A failure costs them half a
    /// second at most, since they look that often anyway.
    pub(crate) fn tell(&self, run: RunId) {
        if let Err(error) = self.wake.touch(&run.to_string()) {
            tracing::warn!(%run, %error, "followers of the run will notice its change late");
        }
    }

    /// Tells followers for the last time: removing the file is a change like any other, and
    /// leaves nothing behind.
    pub(crate) fn tell_settled(&self, run: RunId) {
        if let Err(error) = self.wake.remove(&run.to_string()) {
            tracing::warn!(%run, %error, "followers of the run will notice its end late");
        }
    }

    /// The exclusive lock of a run, where nobody holds it.
    pub(crate) fn lock(&self, run: RunId) -> Result<Option<LockFile>, StoreError> {
        self.locks.try_lock(&lock_name(run)).map_err(StoreError::home)
    }

    /// The exclusive lock of a run's files in its project, waited for as long as `patience` says:
    /// each writer holds it for some milliseconds.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where somebody holds it longer: it may be stopped.
    pub(crate) fn lock_files(&self, run: RunId, patience: Duration) -> Result<LockFile, StoreError> {
        let since = Instant::now();
        loop {
            if let Some(held) = self.locks.try_lock(&files_lock_name(run)).map_err(StoreError::home)? {
                return Ok(held);
            }
            if since.elapsed() >= patience {
                return Err(StoreError::Busy { attempt: "write the run's files" });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Frees the lock of a run's files, and removes it where the run is over.
    pub(crate) fn unlock_files(&self, run: RunId, lock: LockFile, is_over: bool) {
        if is_over && let Err(error) = self.locks.remove(&files_lock_name(run)) {
            tracing::debug!(%run, %error, "the lock file of a finished run stays behind");
        }
        Self::unlock(lock);
    }

    /// Frees a lock by name, so that no child that is just being started keeps it for an instant.
    pub(crate) fn unlock(lock: LockFile) {
        if let Err(error) = lock.release() {
            tracing::debug!(%error, "a lock is freed by closing it");
        }
    }

    /// Removes the lock file of a run that is over, or was never recorded. Only for holders.
    pub(crate) fn forget_lock(&self, run: RunId) {
        if let Err(error) = self.locks.remove(&lock_name(run)) {
            tracing::debug!(%run, %error, "the lock file of a finished run stays behind");
        }
    }

    /// The runs that have a lock or wake-up file.
    pub(crate) fn locked_or_told(&self) -> Result<BTreeSet<RunId>, StoreError> {
        let locks = self.locks.list(usize::MAX).map_err(StoreError::home)?.names;
        let told = self.wake.list(usize::MAX).map_err(StoreError::home)?.names;
        let locked = locks.iter().filter_map(|name| {
            name.strip_prefix("run-").or_else(|| name.strip_prefix("files-"))?.strip_suffix(".lock")
        });
        Ok(locked.chain(told.iter().map(String::as_str)).filter_map(|id| id.parse().ok()).collect())
    }

    /// Writes the project down, unless it is listed. Not synced: the database knows it too, and
    /// a line that two processes write at once is read as one project.
    pub(crate) fn remember_project(&self, path: &str) -> Result<(), StoreError> {
        if self.projects()?.iter().any(|known| known == path) {
            return Ok(());
        }
        let listed = serde_json::to_string(&Listed { path: path.to_owned() }).unwrap_or_default();
        // The leading line feed ends a line that a killed writer left torn.
        let line = format!("\n{listed}\n");
        self.root.append(PROJECTS, line.as_bytes(), Durability::Fast).map_err(StoreError::home)
    }

    /// The projects that have had a run, in the order of their first one.
    pub(crate) fn projects(&self) -> Result<Vec<String>, StoreError> {
        let bytes = self.root.read(PROJECTS, PROJECTS_MAX).map_err(StoreError::home)?.unwrap_or_default();
        let mut paths: Vec<String> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(listed) = serde_json::from_slice::<Listed>(line)
                && !paths.contains(&listed.path)
            {
                paths.push(listed.path);
            }
        }
        Ok(paths)
    }
}

fn files_lock_name(run: RunId) -> String {
    format!("files-{run}.lock")
}

pub(crate) fn lock_name(run: RunId) -> String {
    format!("run-{run}.lock")
}
