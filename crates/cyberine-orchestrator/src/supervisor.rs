//! Starting, stopping and burying runs, whichever process carries them out.

use std::sync::Arc;

use cyberine_run_store::{CancelOutcome, Claim, NewRun, Reserve, RunEvent, RunState, RunStore, StoreError};
use cyberine_types::{RunId, Usd};
use futures_util::future::BoxFuture;

use crate::label::{is_scripted, labelled};
use crate::plan::{Plan, WORKFLOW};
use crate::reaper::Reaper;

/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 1 << 20;

/// Starts the process, or whatever else it is, that carries a run out.
pub trait Launcher: Send + Sync {
    /// Hands the claim to a runner and returns the runner's process id once it has started.
    ///
    /// # Errors
    /// [`LaunchError`]; the claim is given up then, so that the run can be adopted.
    fn launch(&self, claim: Claim, plan: Plan) -> BoxFuture<'_, Result<u32, LaunchError>>;
}

/// A runner that did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runner could not be started: {detail}")]
pub struct LaunchError {
    /// What went wrong.
    pub detail: String,
}

/// Starts, stops and buries runs. Cheap to clone.
#[derive(Clone)]
pub struct Supervisor {
    /// The runs.
    pub store: Arc<dyn RunStore>,
    /// Starts runners.
    pub launcher: Arc<dyn Launcher>,
    /// Kills what dead runners leave behind.
    pub reaper: Arc<dyn Reaper>,
}

/// An orchestration that somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchRequest {
    /// The prompt.
    pub prompt: String,
    /// The project's directory, absolute and canonical.
    pub cwd: String,
    /// Who asks: `name@version`, or `cli`.
    pub requested_by: String,
    /// What is to be done.
    pub plan: Plan,
    /// How much money to hold until the run settles.
    pub hold: Usd,
    /// The most that may be held and spent in one UTC day; `None`: no cap.
    pub daily_cap: Option<Usd>,
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
            Self::Plan(_) => "Use paths that are UTF-8 in the providers' configuration.",
            Self::Store(error) => error.advice(),
            Self::Launch { .. } => "Run `cyberine doctor`, then try again.",
        }
    }
}

impl Supervisor {
    /// Admits a run (its first event and the money it holds, in one transaction) and has it
    /// carried out. Returns once the run is durable and its runner has started.
    ///
    /// # Errors
    /// [`DispatchError`]. Where the runner did not start the run is settled as failed and its
    /// reservation released; in every other case there is no run.
    ///
    /// # Cancel safety
    /// Dropped half way, the run may exist without a runner; whoever looks next settles it.
    pub async fn dispatch(&self, request: DispatchRequest) -> Result<Dispatched, DispatchError> {
        let DispatchRequest { prompt, cwd, requested_by, plan, hold, daily_cap } = request;
        check(&prompt, &plan)?;
        let run = RunId::random();
        let spec = plan.to_spec()?;
        let new = NewRun { id: run, workflow: WORKFLOW.to_owned(), prompt, cwd, requested_by, spec };
        let claim = self.store.admit(new, Reserve { amount: hold, daily_cap }).await?;
        match self.launcher.launch(claim, plan).await {
            Ok(pid) => Ok(Dispatched { run, pid }),
            Err(source) => {
                self.settle_unlaunched(run, &source).await?;
                Err(DispatchError::Launch { run, source })
            }
        }
    }

    async fn settle_unlaunched(&self, run: RunId, why: &LaunchError) -> Result<(), StoreError> {
        if let Some(claim) = self.store.adopt(run).await? {
            self.bury(&claim, why.to_string(), "launch").await?;
        }
        Ok(())
    }

    /// Records that somebody wants `run` stopped. A run whose runner is dead is settled instead.
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
            return Ok(CancelOutcome::AlreadyFinished(RunState::Error));
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
    /// candidates are kept, and what was held is released. `false` where the run is over or alive.
    ///
    /// # Errors
    /// [`StoreError`] where the run could not be adopted or settled.
    pub async fn settle_if_dead(&self, run: RunId) -> Result<bool, StoreError> {
        let Some(claim) = self.store.adopt(run).await? else {
            return Ok(false);
        };
        let detail = "the process that carried the run out is gone; what had been answered is kept";
        self.bury(&claim, detail.to_owned(), "interrupted").await?;
        Ok(true)
    }

    async fn bury(&self, claim: &Claim, detail: String, reason: &str) -> Result<(), StoreError> {
        let processes = self.reaper.reap(claim.run()).await;
        let scripted = self.store.load(claim.run()).await?.is_some_and(|run| is_scripted(&run));
        let settled = RunEvent::Settled {
            state: RunState::Error,
            detail: labelled(detail, scripted),
            reason: Some(reason.to_owned()),
            processes,
        };
        self.store.append(claim, vec![settled]).await.map(drop)
    }
}

fn check(prompt: &str, plan: &Plan) -> Result<(), DispatchError> {
    if prompt.trim().is_empty() {
        return Err(DispatchError::EmptyPrompt);
    }
    if prompt.len() > MAX_PROMPT {
        return Err(DispatchError::PromptTooLong);
    }
    if plan.candidates.is_empty() {
        return Err(DispatchError::NoProvider);
    }
    Ok(())
}
