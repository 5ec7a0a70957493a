//! Starting, stopping and burying runs, whichever process carries them out.

mod dispatch;
mod stuck;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cyberine_bus::{Bus, Sender};
use cyberine_run_store::{CancelOutcome, Claim, Reserve, RunEvent, RunState, RunStore, StoreError};
use cyberine_types::{Clock, RunId, SystemClock, Usd};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::label::{is_scripted, labelled};
use crate::news::Herald;
use crate::plan::Plan;
use crate::reaper::Reaper;

pub use dispatch::Unanswered;

/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 1 << 20;

/// Starts the process, or whatever else it is, that carries a run out.
pub trait Launcher: Send + Sync {
    /// Hands the claim to a runner and returns once it has started.
    ///
    /// # Errors
    /// [`LaunchError`]; the claim is given up then, so that the run can be adopted.
    fn launch(&self, claim: Claim, plan: Plan) -> BoxFuture<'_, Result<Launched, LaunchError>>;
}

/// A runner that has started.
pub struct Launched {
    /// Its process id.
    pub pid: u32,
    /// Resolves when it is gone, however it went. Dropping this leaves the runner alone.
    pub ended: BoxFuture<'static, ()>,
}

/// A runner that did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runner could not be started: {detail}")]
pub struct LaunchError {
    /// What went wrong.
    pub detail: String,
}

/// Starts, stops and buries runs. Cheap to clone; clones share their work.
#[derive(Clone)]
pub struct Supervisor {
    store: Arc<dyn RunStore>,
    launcher: Arc<dyn Launcher>,
    reaper: Arc<dyn Reaper>,
    clock: Arc<dyn Clock>,
    herald: Option<Herald>,
    work: Arc<Work>,
}

/// What is recorded of a run whose runner is gone.
struct Grave<'a> {
    state: RunState,
    detail: String,
    reason: &'a str,
}

/// What a supervisor has under way.
#[derive(Default)]
struct Work {
    /// Dispatches, cancellations that nobody waits for, and watches over runners.
    tasks: TaskTracker,
    /// Nobody is served any more.
    closing: CancellationToken,
    /// Runs that were started here and whose runners have not been seen to end.
    launched: Mutex<BTreeSet<RunId>>,
}

impl Work {
    /// A panic while it is held leaves a set that is still whole.
    fn launched(&self) -> MutexGuard<'_, BTreeSet<RunId>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An orchestration that somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchRequest {
    /// The run's id, drawn by who asks: [`RunId::random`].
    pub run: RunId,
    /// The prompt.
    pub prompt: String,
    /// The project's directory, absolute and canonical.
    pub cwd: String,
    /// Who asks: `name@version`, or `cli`.
    pub requested_by: String,
    /// What is to be done.
    pub plan: Plan,
    /// The money to hold until the run settles, and the caps it must fit under.
    pub reserve: Reserve,
}

/// A run that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatched {
    /// Its id.
    pub run: RunId,
    /// Its runner's process id.
    pub pid: u32,
}

/// A run that was not started.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// There is nothing to ask.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The prompt is beyond the limit.
    #[error("the prompt is longer than {MAX_PROMPT} bytes")]
    PromptTooLong,
    /// There is nobody to ask.
    #[error("no provider is configured, and none that costs nothing was found")]
    NoProvider,
    /// The run may not spend what it is likely to cost, where nobody knows what at most.
    #[error("the run is likely to cost {likely}, nobody knows what at most, and it may spend {cap}")]
    TooDear {
        /// What is likely.
        likely: Usd,
        /// What it may spend.
        cap: Usd,
    },
    /// The plan cannot be written down.
    #[error("the plan cannot be recorded")]
    Plan(#[from] serde_json::Error),
    /// The store refused or failed. Nothing was spent.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run is recorded and settled as failed: nobody carries it out.
    #[error("run `{run}` was not started: {source}")]
    Launch {
        /// The run.
        run: RunId,
        /// Why.
        source: LaunchError,
    },
}

impl DispatchError {
    /// What to do next, in one sentence.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::EmptyPrompt => "Give a prompt.",
            Self::PromptTooLong => "Shorten the prompt, or put the text into a file and name it.",
            Self::NoProvider => {
                "Run `cyberine init` to choose providers, or `cyberine doctor` to see what was found."
            }
            Self::TooDear { .. } => {
                "Raise `[budget] run_usd`, ask fewer candidates, shorten the prompt, or give the provider `prices` that hold for long prompts too."
            }
            Self::Plan(_) => "Use paths that are UTF-8 in the providers' configuration.",
            Self::Store(error) => error.advice(),
            Self::Launch { .. } => "Run `cyberine doctor`, then try again.",
        }
    }
}

impl Supervisor {
    /// A supervisor of the runs of `store`: `launcher` starts their runners, `reaper` kills what
    /// dead ones leave behind.
    #[must_use]
    pub fn new(store: Arc<dyn RunStore>, launcher: Arc<dyn Launcher>, reaper: Arc<dyn Reaper>) -> Self {
        let (clock, work) = (Arc::new(SystemClock), Arc::default());
        Self { store, launcher, reaper, clock, herald: None, work }
    }

    /// Tells the mailboxes of the runs it settles of their end, as `sender`.
    #[must_use]
    pub fn with_bus(mut self, bus: Arc<dyn Bus>, sender: Sender) -> Self {
        self.herald = Some(Herald { bus, sender });
        self
    }

    /// Tells by `clock` how long ago somebody wanted a run stopped.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The runs that were started here and, as far as is known, still go on.
    #[must_use]
    pub fn launched(&self) -> Vec<RunId> {
        self.work.launched().iter().copied().collect()
    }

    /// Says that nobody is served any more, and waits for dispatches to come to their end. What
    /// is cut off from here on was not taken back: its runs go on. Runners are left alone.
    ///
    /// # Cancel safety
    /// Dropping the future stops the waiting only.
    pub async fn close(&self) {
        self.work.closing.cancel();
        self.work.tasks.close();
        self.work.tasks.wait().await;
    }

    /// Records that somebody wants `run` stopped. A run whose runner is dead is settled instead,
    /// and so is one whose runner was asked long ago and has not stopped it.
    ///
    /// # Errors
    /// [`StoreError`] where the request could not be recorded.
    pub async fn cancel(
        &self,
        run: RunId,
        by: String,
        reason: Option<String>,
    ) -> Result<CancelOutcome, StoreError> {
        let outcome = self.store.request_cancel(run, by, reason).await?;
        if outcome == CancelOutcome::Requested && self.settle_if_dead(run).await? {
            let settled = self.store.load(run).await?;
            return Ok(CancelOutcome::AlreadyFinished(settled.map_or(RunState::Error, |run| run.state)));
        }
        Ok(outcome)
    }

    /// Settles every run whose runner is dead, and returns their ids. A run that cannot be
    /// settled is logged and left for the next who looks.
    ///
    /// # Errors
    /// [`StoreError`] where the runs could not be listed.
    pub async fn settle_dead_runs(&self) -> Result<Vec<RunId>, StoreError> {
        let mut settled = Vec::new();
        for run in self.store.unsettled().await? {
            match self.settle_if_dead(run).await {
                Ok(true) => settled.push(run),
                Ok(false) => {}
                Err(error) => tracing::warn!(%run, %error, "a run could not be looked at"),
            }
        }
        Ok(settled)
    }

    /// Settles `run` as interrupted where its runner is dead: its processes are killed, finished
    /// candidates are kept, and what was held is released. A runner that lives, and was asked to
    /// stop the run longer ago than it may take, is killed; its run is settled as cancelled.
    /// `false` where the run is over or its runner does what it should.
    ///
    /// # Errors
    /// [`StoreError`] where the run could not be adopted or settled.
    pub async fn settle_if_dead(&self, run: RunId) -> Result<bool, StoreError> {
        let Some(claim) = self.store.adopt(run).await? else {
            return self.settle_if_stuck(run).await;
        };
        let grave = self.grave(run).await?;
        self.bury(&claim, grave).await?;
        Ok(true)
    }

    async fn bury(&self, claim: &Claim, grave: Grave<'_>) -> Result<(), StoreError> {
        let processes = self.reaper.reap(claim.run()).await;
        let scripted = self.store.load(claim.run()).await?.is_some_and(|run| is_scripted(&run));
        let settled = RunEvent::Settled {
            state: grave.state,
            detail: labelled(grave.detail, scripted),
            reason: Some(grave.reason.to_owned()),
            processes,
        };
        self.settle(claim, settled).await
    }

    async fn settle(&self, claim: &Claim, settled: RunEvent) -> Result<(), StoreError> {
        self.store.append(claim, vec![settled.clone()]).await?;
        if let Some(herald) = &self.herald {
            herald.tell(claim.run(), &settled).await;
        }
        Ok(())
    }
}
