//! Homes, projects and runs for tests.

use std::path::PathBuf;
use std::sync::Arc;

use cyberine_run_store::{NewRun, Reserve, SqliteRunStore};
use cyberine_types::{Clock, ManualClock, RunId, Timestamp, Usd};
use serde_json::json;
use tempfile::TempDir;

/// A home and a project of one test, removed with it.
pub(crate) struct Place {
    /// Removes the rest when it is dropped.
    pub(crate) root: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        // Noon, so that no test meets midnight unless it wants to.
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        Self { root, clock }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn store(&self) -> SqliteRunStore {
        SqliteRunStore::new(self.home(), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    pub(crate) fn run(&self, prompt: &str) -> NewRun {
        NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".to_owned(),
            prompt: prompt.to_owned(),
            cwd: self.project().to_str().unwrap().to_owned(),
            requested_by: "test@1".to_owned(),
            spec: json!({}),
        }
    }

    pub(crate) fn run_dir(&self, id: RunId) -> PathBuf {
        self.project().join(".local/runs").join(id.to_string())
    }
}

/// A dollar held, without a cap.
pub(crate) fn dollar() -> Reserve {
    Reserve { amount: Usd::from_dollars(1.0), daily_cap: None }
}

/// Runs a future on a runtime like the server's.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
