//! What the surface stands on, opened at the first call.

use std::sync::Arc;

use cyberine_bus::{Bus, Sender};
use cyberine_orchestrator::{Forecast, Supervisor};
use cyberine_presence::Presence;
use cyberine_run_store::{Idempotency, Registry, Run, RunStore, RunSummary, StoreError, Tick};
use cyberine_types::{Caller, Principal, RunId};
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::project::Project;
use crate::waiting::Waits;

/// What the tools and resources work with.
#[derive(Clone)]
pub struct Services {
    /// The runs.
    pub store: Arc<dyn RunStore>,
    /// The runs as a list.
    pub registry: Arc<dyn Registry>,
    /// Stops and buries runs.
    pub supervisor: Supervisor,
    /// Starts runs.
    pub dispatcher: Arc<dyn Dispatcher>,
    /// Fast news of live runs.
    pub ticks: Arc<dyn TickSource>,
    /// The project this server works for.
    pub project: Arc<dyn Project>,
    /// The mailboxes.
    pub bus: Arc<dyn Bus>,
    /// Who is there.
    pub presence: Arc<dyn Presence>,
    /// What became of calls that carried a key.
    pub keys: Arc<dyn Idempotency>,
    /// This server, as the sender of what it publishes; a message that a caller sends carries the
    /// principal of that caller.
    pub sender: Sender,
}

/// Starts an orchestration with the configuration that holds at the moment.
pub trait Dispatcher: Send + Sync {
    /// Puts `prompt` to every provider, as the run `run`. Returns once the run is durable and under
    /// way.
    ///
    /// # Errors
    /// A sentence for the caller: why nothing was started, and what to do about it. It must not
    /// hold a secret.
    ///
    /// # Cancel safety
    /// As [`Supervisor::dispatch`]: dropping the future takes the request back.
    fn dispatch(
        &self,
        run: RunId,
        prompt: String,
        requested_by: String,
    ) -> BoxFuture<'_, Result<Started, String>>;

    /// What [`dispatch`](Self::dispatch) would do now, and what that may cost. Nobody is asked, and
    /// nothing is recorded.
    ///
    /// # Errors
    /// A sentence for the caller: why nothing could be started, other than for want of money.
    fn forecast(&self, prompt: String, requested_by: String) -> BoxFuture<'_, Result<Forecast, String>>;
}

/// An orchestration that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The run.
    pub run: RunId,
    /// What the caller should know beside it, such as a configuration that was not used: one
    /// sentence without its full stop.
    pub note: Option<String>,
}

/// Where the fast news of runs can be followed.
pub trait TickSource: Send + Sync {
    /// Begins to follow `run` from the first tick that is kept; `None` where there are none.
    fn follow(&self, run: RunId) -> BoxFuture<'_, Option<Box<dyn TickFeed>>>;
}

/// The fast news of one run.
pub trait TickFeed: Send {
    /// The ticks since the last call, oldest first. Does not wait.
    fn read(&mut self) -> Vec<Tick>;
}

/// No fast news: what a run's log says is all there is.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTickFeeds;

impl TickSource for NoTickFeeds {
    fn follow(&self, _run: RunId) -> BoxFuture<'_, Option<Box<dyn TickFeed>>> {
        Box::pin(std::future::ready(None))
    }
}

type Open = dyn Fn() -> BoxFuture<'static, Result<Services, String>> + Send + Sync;

/// Services that are opened by the first call that needs them. Where that fails the call says
/// why, and the next one tries again. Cheap to clone; clones share what has been opened.
#[derive(Clone)]
pub struct LazyServices(Arc<Lazy>);

struct Lazy {
    open: Box<Open>,
    cell: OnceCell<Services>,
    waits: Waits,
}

impl LazyServices {
    /// Services that `open` makes when they are first needed. Its error is a sentence for the
    /// caller.
    pub fn new<F>(open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Services, String>> + Send + 'static,
    {
        let open = Box::new(move || -> BoxFuture<'static, _> { Box::pin(open()) });
        Self(Arc::new(Lazy { open, cell: OnceCell::new(), waits: Waits::default() }))
    }

    /// The places of calls that wait.
    pub(crate) fn waits(&self) -> &Waits {
        &self.0.waits
    }

    /// The services, opened now if they have not been before.
    pub(crate) async fn get(&self) -> Result<&Services, String> {
        self.0.cell.get_or_try_init(|| (self.0.open)()).await
    }
}

impl Services {
    /// How a decision or a cancellation names who made it: the client as it calls itself, with the
    /// principal before it where that is not the server's own.
    pub(crate) fn decider(&self, caller: &Caller) -> String {
        let Principal { tenant, name } = caller.principal();
        let principal = format!("{tenant}/{name}");
        let client = caller.attribution();
        if principal == self.sender.principal { client } else { format!("{principal} ({client})") }
    }

    /// The run as it stands, after a look whether its runner is still alive.
    pub(crate) async fn look(&self, id: RunId) -> Result<Option<Run>, String> {
        let run = self.load(id).await?;
        match &run {
            Some(run) if !run.state.is_terminal() && self.buried(id).await => self.load(id).await,
            _ => Ok(run),
        }
    }

    /// Whether the run was admitted for the project this server works for, wherever that lies now.
    pub(crate) async fn owns(&self, id: RunId) -> Result<bool, String> {
        let admitted_for = self.store.project(id).await;
        let admitted_for = admitted_for.map_err(|error| format!("{error}. {}", error.advice()))?;
        Ok(admitted_for == Some(self.project.id()))
    }

    pub(crate) async fn load(&self, id: RunId) -> Result<Option<Run>, String> {
        self.store.load(id).await.map_err(|error| format!("{error}. {}", error.advice()))
    }

    /// What `list` finds. Runs in it that are listed as alive are looked at first, so that none is
    /// shown running whose runner is dead.
    pub(crate) async fn listed<F>(&self, list: impl Fn() -> F) -> Result<Vec<RunSummary>, StoreError>
    where
        F: Future<Output = Result<Vec<RunSummary>, StoreError>>,
    {
        let runs = list().await?;
        let mut buried = false;
        for run in runs.iter().filter(|run| !run.state.is_terminal()) {
            buried |= self.buried(run.run_id).await;
        }
        if buried { list().await } else { Ok(runs) }
    }

    /// Settles a run whose runner is dead. A failure to do so is logged: what is known of the run
    /// can be shown all the same.
    pub(crate) async fn buried(&self, id: RunId) -> bool {
        match self.supervisor.settle_if_dead(id).await {
            Ok(buried) => buried,
            Err(error) => {
                tracing::warn!(run = %id, %error, "a run could not be looked after");
                false
            }
        }
    }
}

/// What is said of a run that does not exist.
pub(crate) fn no_such_run(id: RunId) -> String {
    format!("there is no run `{id}`; `query_runs` lists what there is")
}
