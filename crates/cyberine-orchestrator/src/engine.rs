//! Carries a run out: a thin shell around the step machine.

mod expiry;
mod log;
mod mail;
mod shell;

use std::path::PathBuf;
use std::sync::Arc;

use cyberine_bus::{Bus, Sender};
use cyberine_run_store::{Claim, RunState, RunStore, Share, Steer, StoreError};
use cyberine_types::{RunId, Usd};
use tokio_util::sync::CancellationToken;

use crate::control::ControlSource;
use crate::plan::Plan;
use crate::reaper::Reaper;
use crate::team::Team;
use crate::ticks::TickSink;
use crate::trial::Trials;
use shell::Shell;

/// Carries runs out. It holds ports only.
#[derive(Clone)]
pub struct Engine {
    /// Where the run's events go.
    pub store: Arc<dyn RunStore>,
    /// Kills what a run leaves behind.
    pub reaper: Arc<dyn Reaper>,
    /// Tries answers for the judge `command`.
    pub trials: Arc<dyn Trials>,
    /// Where fast news goes.
    pub ticks: Arc<dyn TickSink>,
    /// Where guidance for the run comes in, and news of it goes out.
    pub bus: Arc<dyn Bus>,
    /// Who publishes that news.
    pub sender: Sender,
}

/// A run that could not be carried to a settlement of its own.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store holds no run for the claim.
    #[error("the store has no run `{run}`")]
    Missing {
        /// The run the claim is on.
        run: RunId,
    },
    /// The plan and the providers handed over do not belong together.
    #[error("the plan has {planned} candidates, and {built} providers were built")]
    TeamMismatch {
        /// Candidates in the plan.
        planned: usize,
        /// Providers handed over.
        built: usize,
    },
    /// The store failed. Every turn has been stopped; the run has been settled if the store
    /// still took that.
    #[error("the run store failed")]
    Store(#[from] StoreError),
}

impl Engine {
    /// Asks every candidate of `plan`, lets the judges decide, and settles the run `claim` is on.
    /// Returns the state it settled in. `cancel` stops the run like any other request to stop it,
    /// in the name of `shutdown`; requests recorded in the store and those of `control` are
    /// watched for as long as the run lives.
    ///
    /// A candidate is recorded as asked before its turn begins, and what it says is recorded
    /// before anything else is done with it. The last event is appended after every turn has
    /// ended and what they left behind has been killed and counted.
    ///
    /// Messages of the topic `steer` in the mailboxes of the run and of its candidates are
    /// recorded and shown to every judge that is asked after them; the run acknowledges them as
    /// the reader `run`. The run's own mailbox is told of its state as it changes. A bus that is
    /// off or fails changes nothing else.
    ///
    /// Where the plan asks for an approval, the run is suspended before anything is judged, until
    /// a decision on it or on its step is in its log, or the time for one is over.
    ///
    /// # Errors
    /// [`EngineError`]; nothing more is spent from then on.
    ///
    /// # Cancel safety
    /// Dropping the future kills the turns without settling the run: whoever looks next settles
    /// it as interrupted. Use `cancel`.
    pub async fn run(
        &self,
        claim: Claim,
        plan: &Plan,
        team: Team,
        control: Box<dyn ControlSource>,
        cancel: CancellationToken,
    ) -> Result<RunState, EngineError> {
        let id = claim.run();
        let run = self.store.load(id).await?.ok_or(EngineError::Missing { run: id })?;
        if team.candidates.len() != plan.candidates.len() {
            return Err(EngineError::TeamMismatch {
                planned: plan.candidates.len(),
                built: team.candidates.len(),
            });
        }
        let (begun, cwd) = (run.engine_pid.is_some(), PathBuf::from(run.cwd));
        let (task, steers) = (run.task, run.steers);
        let order = Order { task, cwd, begun, steers, reserved: run.reserved, shares: run.shares };
        Shell::new(self, claim, plan, team, order).run(control, cancel).await
    }
}

/// What is to be done, from the run's first event.
struct Order {
    task: String,
    cwd: PathBuf,
    /// Whether `Started` is in the log already.
    begun: bool,
    /// The guidance that is in the log already.
    steers: Vec<Steer>,
    /// The money that is held for it, and what of it at which provider.
    reserved: Usd,
    shares: Vec<Share>,
}
