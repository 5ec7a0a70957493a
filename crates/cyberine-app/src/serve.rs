//! Serving one host on stdin and stdout.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cyberine_operator::{
    DirectoryProject, Dispatcher, LazyServices, OperatorTools, RunResources, Services, Started, TickFeed,
    TickSource,
};
use cyberine_run_store::{SqliteRunStore, Tick, TickReader};
use cyberine_server::{Gate, SealKey, Server, StdioGuard};
use cyberine_types::{Principal, RunId, Secret};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::config::HostExit;
use crate::environment::{Environment, PROJECT_VARIABLE, TOKEN_VARIABLE};
use crate::exit::Exit;
use crate::invocation::{ServeOptions, version};
use crate::problem::Problem;
use crate::runtime;
use crate::telemetry;
use crate::workplace::Workplace;

const INSTRUCTIONS: &str = "\
Cyberine puts one prompt to several models or agents at once, judges their answers and keeps every run.
Run `cyberine guide` in a terminal for the command map.
Ask the user before calling anything that spends: orchestrate may call paid providers.";

/// How long dispatches are waited for at the end, and how long runs are asked to stop where they
/// are to end with their host.
const FAREWELL: Duration = Duration::from_millis(500);

/// Serves the operator surface to the host behind `stdio` until it goes away.
#[must_use]
pub fn serve_stdio(stdio: StdioGuard, options: &ServeOptions) -> ExitCode {
    let environment = Arc::new(Environment::read());
    telemetry::start(&environment);
    match serve(stdio, options, environment) {
        Ok(()) => Exit::Done.into(),
        Err(problem) => {
            tracing::error!("{problem}");
            problem.exit.into()
        }
    }
}

fn serve(stdio: StdioGuard, options: &ServeOptions, environment: Arc<Environment>) -> Result<(), Problem> {
    let token = gate(&environment)?;
    let host = Arc::new(Host::new(options.clone(), environment)?);
    let server = server(&host, token)?;
    runtime::block_on(async move {
        let stop = CancellationToken::new();
        let ending = stop.clone();
        let serving = server.serve_stdio(stdio, stop);
        tokio::pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = runtime::asked_to_end() => {
                ending.cancel();
                serving.await
            }
        };
        host.farewell().await;
        ended.map(drop).map_err(|error| Problem::of(Exit::Internal, &error))
    })?
}

/// The token of the gate, where one is set. An empty one would open the gate to everybody who
/// sends an empty token, so it is refused.
fn gate(environment: &Environment) -> Result<Option<Secret>, Problem> {
    match environment.raw(TOKEN_VARIABLE).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Some(token)) if !token.is_empty() => Ok(Some(Secret::new(token))),
        Some(_) => Err(Problem::new(
            Exit::Configuration,
            format!(
                "`{TOKEN_VARIABLE}` is set, and empty or not UTF-8: set it to a token, or unset it to serve without one"
            ),
        )),
    }
}

fn server(host: &Arc<Host>, token: Option<Secret>) -> Result<Arc<Server>, Problem> {
    let services = {
        let host = Arc::clone(host);
        LazyServices::new(move || {
            let host = Arc::clone(&host);
            async move { host.open().await.map_err(|problem| problem.message) }
        })
    };
    let seal = SealKey::random().map_err(|error| Problem::of(Exit::Internal, &error))?;
    let tools = Gate::new(OperatorTools::new(services.clone()), token.clone());
    let resources = Gate::new(RunResources::new(services), token);
    let principal = Principal::local(host.environment.user());
    let server = Server::new("cyberine", version(), Arc::new(tools), principal, seal)
        .with_title("Cyberine")
        .with_instructions(INSTRUCTIONS)
        .with_resources(Arc::new(resources));
    Ok(Arc::new(server))
}

/// What one host's server stands on. Nothing is opened before the first call.
struct Host {
    options: ServeOptions,
    environment: Arc<Environment>,
    /// The project, where the command line or the environment names it: a wrong name is told at
    /// start, when somebody reads it.
    named: Option<Workplace>,
    opened: Mutex<Option<Workplace>>,
}

impl Host {
    fn new(options: ServeOptions, environment: Arc<Environment>) -> Result<Self, Problem> {
        let is_named = options.project.is_some() || environment.path(PROJECT_VARIABLE).is_some();
        let named =
            is_named.then(|| Workplace::resolve(options.project.as_deref(), Arc::clone(&environment)));
        Ok(Self { options, environment, named: named.transpose()?, opened: Mutex::default() })
    }

    async fn open(&self) -> Result<Services, Problem> {
        let workplace = match &self.named {
            Some(workplace) => workplace.clone(),
            None => Workplace::resolve(self.options.project.as_deref(), Arc::clone(&self.environment))?,
        };
        let project = DirectoryProject::open(workplace.project.directory())
            .map_err(|error| Problem::of(Exit::Configuration, &error))?;
        let settled = workplace.supervisor.settle_dead_runs().await?;
        if !settled.is_empty() {
            tracing::info!(runs = settled.len(), "settled runs whose runner was gone");
        }
        *lock(&self.opened) = Some(workplace.clone());
        Ok(Services {
            store: workplace.store.clone(),
            registry: workplace.store.clone(),
            supervisor: workplace.supervisor.clone(),
            ticks: Arc::new(Streams(workplace.store.clone())),
            project: Arc::new(project),
            dispatcher: Arc::new(Dispatching { workplace }),
        })
    }

    /// Lets dispatches come to their end, and the runs of this host go on, or asks them to stop, as
    /// the configuration says.
    async fn farewell(&self) {
        let Some(workplace) = lock(&self.opened).clone() else { return };
        let supervisor = &workplace.supervisor;
        if tokio::time::timeout(FAREWELL, supervisor.close()).await.is_err() {
            tracing::warn!("a dispatch did not come to its end in time; whoever looks next settles its run");
        }
        let started = supervisor.launched();
        let cancel = workplace.config().is_ok_and(|config| config.run.on_host_exit == HostExit::Cancel);
        if !cancel || started.is_empty() {
            return;
        }
        let asking = async {
            for run in started {
                let reason = Some("its host has gone".to_owned());
                if let Err(error) = supervisor.cancel(run, "host-exit".to_owned(), reason).await {
                    tracing::warn!(%run, %error, "the run could not be asked to stop");
                }
            }
        };
        if tokio::time::timeout(FAREWELL, asking).await.is_err() {
            tracing::warn!("not every run could be asked to stop in time; they go on under their caps");
        }
    }
}

/// Starts runs of one project.
struct Dispatching {
    workplace: Workplace,
}

impl Dispatcher for Dispatching {
    fn dispatch(&self, prompt: String, requested_by: String) -> BoxFuture<'_, Result<Started, String>> {
        Box::pin(async move {
            let dispatched = self.workplace.dispatch_noting(RunId::random(), prompt, requested_by).await;
            let (dispatched, untrusted) = dispatched.map_err(|problem| problem.message)?;
            let note = untrusted.map(|untrusted| untrusted.to_string());
            Ok(Started { run: dispatched.run, note })
        })
    }
}

/// The `stream.jsonl` of live runs.
struct Streams(Arc<SqliteRunStore>);

impl TickSource for Streams {
    fn follow(&self, run: RunId) -> BoxFuture<'_, Option<Box<dyn TickFeed>>> {
        Box::pin(async move {
            let directory = self.0.run_dir(run).await.ok()?;
            Some(Box::new(Feed(TickReader::new(directory, 0))) as Box<dyn TickFeed>)
        })
    }
}

struct Feed(TickReader);

impl TickFeed for Feed {
    fn read(&mut self) -> Vec<Tick> {
        self.0.read().unwrap_or_default()
    }
}

/// A panic while one of these is held leaves a list that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_token_is_refused_and_a_missing_one_leaves_the_gate_open() {
        let gate = |value: Option<&str>| {
            let environment = Environment::of([], "/");
            super::gate(&value.map_or(environment.clone(), |value| environment.with(TOKEN_VARIABLE, value)))
        };
        assert!(gate(None).unwrap().is_none());
        assert!(gate(Some("t")).unwrap().unwrap().matches("t"));
        let refused = gate(Some("")).unwrap_err();
        assert_eq!(refused.exit, Exit::Configuration);
        assert!(refused.message.contains("unset it"), "{refused}");
    }

    #[test]
    fn the_instructions_are_three_lines_and_name_the_map() {
        assert_eq!(INSTRUCTIONS.lines().count(), 3);
        assert!(INSTRUCTIONS.contains("`cyberine guide`") && INSTRUCTIONS.contains("Ask the user before"));
    }
}
