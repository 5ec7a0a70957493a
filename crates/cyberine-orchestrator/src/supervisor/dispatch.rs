//! From a request to a run that is under way, whatever becomes of who asked.

use std::time::Duration;

use cyberine_run_store::{Claim, NewRun, ProcessCount, Reserve, RunEvent, RunState, StoreError};
use cyberine_types::RunId;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    DispatchError, DispatchRequest, Dispatched, Grave, LaunchError, Launched, MAX_PROMPT, Supervisor,
    labelled,
};
use crate::estimate::Estimate;
use crate::plan::{Plan, WORKFLOW};

/// Why a run is cancelled of which nobody was told.
const UNANSWERED: &str = "the request was cancelled before its reply had left";
/// How long after a request was dropped it may become known that everything ends: a server that
/// winds down drops its requests first. It takes less than a second, on a busy machine more.
const ENDING: Duration = Duration::from_secs(2);

/// How often a runner that was started here is looked at.
const ATTEND: Duration = Duration::from_secs(5);

type Reply = Result<(Dispatched, Unanswered), DispatchError>;

impl Supervisor {
    /// Admits a run (its first event and the money it holds, in one transaction) and has it
    /// carried out. Returns once the run is durable and its runner has started. Where the day's
    /// money leaves no room, dead runs are settled first: they may hold some of it.
    ///
    /// # Errors
    /// [`DispatchError`]. Where the runner did not start the run is settled as failed and its
    /// reservation released; in every other case there is no run.
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back: nothing is admitted, or the run is cancelled
    /// in the name of who asked. Once [`close`](Self::close) has been called, or a moment before,
    /// a run that was admitted goes on instead.
    pub async fn dispatch(&self, request: DispatchRequest) -> Result<Dispatched, DispatchError> {
        Self::check(&request.prompt, &request.plan)?;
        Self::afford(&request.plan, &Estimate::of(&request.plan, request.prompt.len()))?;
        let (reply, answer) = oneshot::channel();
        let this = self.clone();
        self.work.tasks.spawn(async move { this.dispatch_for(request, reply).await });
        let stopped = |_| StoreError::Worker { detail: "the dispatch did not come to its end".to_owned() };
        let (dispatched, unanswered) = answer.await.map_err(stopped)??;
        unanswered.answered();
        Ok(dispatched)
    }

    /// Whether there is something to ask, and somebody.
    ///
    /// # Errors
    /// [`DispatchError`], as [`dispatch`](Self::dispatch) would refuse it.
    pub fn check(prompt: &str, plan: &Plan) -> Result<(), DispatchError> {
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

    /// Whether the run may spend what it is likely to cost where nobody knows what at most.
    ///
    /// # Errors
    /// [`DispatchError::TooDear`], as [`dispatch`](Self::dispatch) would refuse it.
    pub fn afford(plan: &Plan, estimate: &Estimate) -> Result<(), DispatchError> {
        match (estimate.beyond(plan.run_cap), plan.run_cap) {
            (Some(likely), Some(cap)) => Err(DispatchError::TooDear { likely, cap }),
            _ => Ok(()),
        }
    }

    /// Takes `dispatching` to its end, also where the returned future is dropped: the request for
    /// it is not taken back then. [`close`](Self::close) waits for it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn kept<T: Send + 'static>(
        &self,
        dispatching: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.work.tasks.spawn(dispatching)
    }

    /// Guards a run of which its requester is about to be told.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn unanswered(&self, run: RunId, requested_by: String) -> Unanswered {
        Unanswered { supervisor: self.clone(), runtime: Handle::current(), run: Some((run, requested_by)) }
    }

    async fn dispatch_for(&self, request: DispatchRequest, reply: oneshot::Sender<Reply>) {
        if reply.is_closed() {
            return;
        }
        let by = request.requested_by.clone();
        let outcome = match self.begin(request, &reply).await {
            Ok(Some(dispatched)) => Ok((dispatched, self.unanswered(dispatched.run, by))),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        // What nobody takes is dropped, here or with the channel, and that is what it is for.
        drop(reply.send(outcome));
    }

    /// `None` where the request was taken back and its run has been settled.
    async fn begin(
        &self,
        request: DispatchRequest,
        reply: &oneshot::Sender<Reply>,
    ) -> Result<Option<Dispatched>, DispatchError> {
        let DispatchRequest { run, prompt, cwd, requested_by, plan, reserve } = request;
        let spec = plan.to_spec()?;
        let by = requested_by.clone();
        let new = NewRun { id: run, workflow: WORKFLOW.to_owned(), prompt, cwd, requested_by, spec };
        let claim = self.admit(new, reserve).await?;
        if reply.is_closed() && self.taken_back().await {
            self.settle_taken_back(&claim, by, plan.is_scripted()).await?;
            return Ok(None);
        }
        match self.launcher.launch(claim, plan).await {
            Ok(Launched { pid, ended }) => {
                self.watch(run, ended);
                Ok(Some(Dispatched { run, pid }))
            }
            Err(source) => {
                self.settle_unlaunched(run, &source).await?;
                Err(DispatchError::Launch { run, source })
            }
        }
    }

    async fn admit(&self, new: NewRun, reserve: Reserve) -> Result<Claim, StoreError> {
        match self.store.admit(new.clone(), reserve.clone()).await {
            Err(refusal @ StoreError::CapReached { .. }) => {
                // Dead runs hold money for nothing.
                if let Err(error) = self.settle_dead_runs().await {
                    tracing::warn!(%error, "dead runs could not be looked for");
                    return Err(refusal);
                }
                self.store.admit(new, reserve).await
            }
            admitted => admitted,
        }
    }

    /// Whether a request that was dropped was taken back, rather than cut off by the end of the
    /// server that had it.
    async fn taken_back(&self) -> bool {
        tokio::time::timeout(ENDING, self.work.closing.cancelled()).await.is_err()
    }

    /// Settles a run whose runner was never started, as cancelled.
    async fn settle_taken_back(&self, claim: &Claim, by: String, scripted: bool) -> Result<(), StoreError> {
        let detail = labelled(format!("cancelled by {by}: {UNANSWERED}; nobody had been asked"), scripted);
        self.store.request_cancel(claim.run(), by, Some(UNANSWERED.to_owned())).await?;
        let settled = RunEvent::Settled {
            state: RunState::Cancelled,
            detail,
            reason: None,
            processes: ProcessCount::default(),
        };
        self.settle(claim, settled).await
    }

    async fn settle_unlaunched(&self, run: RunId, why: &LaunchError) -> Result<(), StoreError> {
        if let Some(claim) = self.store.adopt(run).await? {
            let grave = Grave { state: RunState::Error, detail: why.to_string(), reason: "launch" };
            self.bury(&claim, grave).await?;
        }
        Ok(())
    }

    /// Settles the run as soon as its runner is gone, should it not have done so itself, and looks
    /// now and then whether the runner does what it should.
    fn watch(&self, run: RunId, ended: BoxFuture<'static, ()>) {
        self.work.launched().insert(run);
        let this = self.clone();
        self.work.tasks.spawn(async move {
            let closing = this.work.closing.clone();
            if closing.run_until_cancelled(this.attend(run, ended)).await.is_some() {
                this.look_at(run).await;
                this.work.launched().remove(&run);
            }
        });
    }

    /// Returns when the runner has ended.
    async fn attend(&self, run: RunId, mut ended: BoxFuture<'static, ()>) {
        while tokio::time::timeout(ATTEND, &mut ended).await.is_err() {
            self.look_at(run).await;
        }
    }

    async fn look_at(&self, run: RunId) {
        match self.settle_if_dead(run).await {
            Ok(true) => {
                tracing::warn!(%run, "the runner is gone without an end of its run, which was settled")
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%run, %error, "a run could not be looked at"),
        }
    }
}

/// A run of which its requester has not been told. Dropped like this, it is cancelled in the name
/// of who asked for it, unless everything is about to end: then it goes on.
#[must_use]
pub struct Unanswered {
    supervisor: Supervisor,
    /// The drop may happen outside of it.
    runtime: Handle,
    /// `None` once its requester knows of it.
    run: Option<(RunId, String)>,
}

impl Unanswered {
    /// Its requester knows of it.
    pub fn answered(mut self) {
        self.run = None;
    }

    /// Its requester knows of it once `leaving` has passed, and does not where the request is
    /// taken back (`cancel`) before that: a reply that is on its way then is not read any more.
    pub fn answered_unless(self, cancel: CancellationToken, leaving: Duration) {
        let (tasks, runtime) = (self.supervisor.work.tasks.clone(), self.runtime.clone());
        let waiting = async move {
            if tokio::time::timeout(leaving, cancel.cancelled()).await.is_err() {
                self.answered();
            }
        };
        tasks.spawn_on(waiting, &runtime);
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some((run, by)) = self.run.take() else { return };
        let supervisor = self.supervisor.clone();
        let cancelling = async move {
            if !supervisor.taken_back().await {
                return;
            }
            if let Err(error) = supervisor.cancel(run, by, Some(UNANSWERED.to_owned())).await {
                tracing::warn!(%run, %error, "a run that nobody knows of could not be cancelled");
            }
        };
        self.supervisor.work.tasks.spawn_on(cancelling, &self.runtime);
    }
}
