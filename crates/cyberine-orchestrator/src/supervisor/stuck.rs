//! Runners that live and do not hear: stopped, maybe before they began, or stuck in the kernel.

use std::time::Duration;

use cyberine_run_store::{Claim, Run, RunEvent, RunState, StoreError};
use cyberine_types::RunId;

use super::{Grave, Supervisor};

/// How long a runner may take to stop its run, in milliseconds. One that does as it should gives
/// turns 10 seconds to end, and their processes 5 to die.
const PATIENCE_MS: i64 = 20_000;
/// How long the lock of a runner that was killed is waited for.
const DYING: Duration = Duration::from_secs(5);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(20);

impl Supervisor {
    /// Kills the runner of a run that was to stop long ago and has not, and settles the run as
    /// cancelled. `false` where nothing of the kind is so, or the runner cannot be told for sure.
    pub(super) async fn settle_if_stuck(&self, run: RunId) -> Result<bool, StoreError> {
        let Some(standing) = self.store.load(run).await? else { return Ok(false) };
        if standing.state.is_terminal() || !self.is_overdue(&standing).await? {
            return Ok(false);
        }
        if !self.reaper.kill_runner(run, standing.engine_pid).await {
            return Ok(false);
        }
        tracing::warn!(%run, pid = standing.engine_pid, "the runner did not stop its run when it was asked to, and was killed");
        // Another who looks may be the one who settles it.
        let Some(claim) = self.adopt_from_dying(run).await? else { return Ok(false) };
        let grave = self.grave(run).await?;
        self.bury(&claim, grave).await?;
        Ok(true)
    }

    /// What is to be recorded of a run whose runner is gone. It depends on the run alone: who
    /// killed the runner and who settles the run may be two.
    pub(super) async fn grave(&self, run: RunId) -> Result<Grave<'static>, StoreError> {
        if let Some(standing) = self.store.load(run).await?
            && let Some(by) = &standing.cancel_requested_by
            && self.is_overdue(&standing).await?
        {
            let detail = format!(
                "cancelled by {by}; its runner did not react and is gone; what had been answered is kept"
            );
            return Ok(Grave { state: RunState::Cancelled, detail, reason: "unresponsive" });
        }
        let detail =
            "the process that carried the run out is gone; what had been answered is kept".to_owned();
        Ok(Grave { state: RunState::Error, detail, reason: "interrupted" })
    }

    /// Whether the first request to stop `run` is older than any runner needs.
    async fn is_overdue(&self, run: &Run) -> Result<bool, StoreError> {
        if run.cancel_requested_by.is_none() {
            return Ok(false);
        }
        let events = self.store.events(run.run_id, 0).await?;
        let asked = events.iter().find(|event| matches!(event.body, RunEvent::CancelRequested { .. }));
        let now = self.clock.now().unix_ms();
        Ok(asked.is_some_and(|event| now.saturating_sub(event.at.unix_ms()) > PATIENCE_MS))
    }

    async fn adopt_from_dying(&self, run: RunId) -> Result<Option<Claim>, StoreError> {
        let looking = async {
            loop {
                if let Some(claim) = self.store.adopt(run).await? {
                    return Ok(claim);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(DYING, looking).await.ok().transpose()
    }
}
