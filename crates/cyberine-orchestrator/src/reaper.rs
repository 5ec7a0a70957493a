//! Killing what a run has started.

use cyberine_run_store::ProcessCount;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

/// Kills every process that carries a run's mark (`CYBERINE_RUN=<runId>` in its environment) and
/// counts.
pub trait Reaper: Send + Sync {
    /// Kills what is left of `run` and says how many were killed and how many are still there.
    fn reap(&self, run: RunId) -> BoxFuture<'_, ProcessCount>;

    /// Kills the runner of `run`: the process `pid` where it is the runner for certain, which it
    /// may have been only once. Without a number, of a runner that never came to record its own,
    /// it is looked for. `false` where there is none, or that cannot be told.
    fn kill_runner(&self, run: RunId, pid: Option<u32>) -> BoxFuture<'_, bool>;
}

/// For providers that start no processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProcesses;

impl Reaper for NoProcesses {
    fn reap(&self, _run: RunId) -> BoxFuture<'_, ProcessCount> {
        Box::pin(std::future::ready(ProcessCount::default()))
    }

    fn kill_runner(&self, _run: RunId, _pid: Option<u32>) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }
}
