//! Killing what a run has started.

use cyberine_run_store::ProcessCount;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

/// Kills every process that carries a run's mark (`CYBERINE_RUN=<runId>` in its environment) and
/// counts.
pub trait Reaper: Send + Sync {
    /// Kills what is left of `run` and says how many were killed and how many are still there.
    fn reap(&self, run: RunId) -> BoxFuture<'_, ProcessCount>;
}

/// For providers that start no processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProcesses;

impl Reaper for NoProcesses {
    fn reap(&self, _run: RunId) -> BoxFuture<'_, ProcessCount> {
        Box::pin(std::future::ready(ProcessCount::default()))
    }
}
