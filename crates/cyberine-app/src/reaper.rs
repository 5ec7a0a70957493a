//! The death of what a run has started.

use std::time::Duration;

use cyberine_orchestrator::Reaper;
use cyberine_process::KillReport;
use cyberine_run_store::ProcessCount;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

/// How long killing goes on before what is still there is reported as left.
const DEADLINE: Duration = Duration::from_secs(5);

/// Kills by the mark a run leaves in the environment of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkReaper {
    /// What a dead runner left behind, wherever it has moved to.
    Leftovers,
    /// From within the runner: also everything below this process.
    OwnTree,
}

impl Reaper for MarkReaper {
    fn reap(&self, run: RunId) -> BoxFuture<'_, ProcessCount> {
        let reaper = *self;
        Box::pin(async move {
            let killing = tokio::task::spawn_blocking(move || reaper.kill(&run.to_string()));
            match killing.await {
                Ok(report) => count(report),
                Err(error) => {
                    tracing::error!(%run, %error, "killing what the run left behind did not come to its end");
                    ProcessCount::default()
                }
            }
        })
    }
}

impl MarkReaper {
    fn kill(self, mark: &str) -> KillReport {
        match self {
            Self::Leftovers => cyberine_process::kill_marked(mark, DEADLINE),
            Self::OwnTree => cyberine_process::kill_below(mark, DEADLINE),
        }
    }
}

fn count(report: KillReport) -> ProcessCount {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ProcessCount { killed: number(report.killed), left: number(report.left) }
}
