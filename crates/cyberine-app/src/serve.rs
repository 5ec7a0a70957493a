//! Serving one host on stdin and stdout.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cyberine_bus::{AddressKind, Channel, Sender};
use cyberine_operator::{
    DirectoryProject, Dispatcher, LazyServices, OperatorPrompts, OperatorTools, RunCompletions, RunResources,
    RunTasks, Services, Started, TickFeed, TickSource,
};
use cyberine_orchestrator::Forecast;
use cyberine_presence::{Announcement, Announcing, RecordAddr};
use cyberine_run_store::{SqliteRunStore, Tick, TickReader};
use cyberine_server::{Gate, ResourceSet, SHORTEST_MASKED, SealKey, Server, StdioGuard, ToolSet};
use cyberine_types::{Identity, RunId, Secret};
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::config::HostExit;
use crate::environment::{Environment, PROJECT_VARIABLE, TOKEN_VARIABLE};
use crate::exit::Exit;
use crate::invocation::{ServeOptions, version};
use crate::messaging;
use crate::problem::{Problem, chain};
use crate::runtime;
use crate::telemetry;
use crate::who;
use crate::workplace::Workplace;

const INSTRUCTIONS: &str = "\
Cyberine puts one prompt to several models or agents at once, judges their answers and keeps every run.
Run `cyberine guide` in a terminal for the command map.
Ask the user before calling anything that spends: orchestrate may call paid providers.";

/// How long dispatches are waited for at the end, the roster, and that runs are asked to stop.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long a server is there before it announces itself, where no call does so before.
const ARRIVAL: Duration = Duration::from_secs(2);
/// How long a call waits for the announcement.
const PATIENCE: Duration = Duration::from_secs(1);
/// What this server can be asked for, as the roster has it.
const CAPABILITIES: [&str; 3] = ["orchestrate", "messages", "decisions"];

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
    messaging::backend(&environment)?;
    messaging::presence(&environment)?;
    let host = Arc::new(Host::new(options.clone(), environment)?);
    let server = server(&host, token)?;
    runtime::block_on(async move {
        let stop = CancellationToken::new();
        let ending = stop.clone();
        let serving = async {
            let serving = server.serve_stdio(stdio, stop);
            tokio::pin!(serving);
            tokio::select! {
                ended = &mut serving => ended,
                () = runtime::asked_to_end() => {
                    ending.cancel();
                    serving.await
                }
            }
        };
        let ended = tokio::select! {
            ended = serving => ended,
            never = host.announce_soon() => match never {},
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
        Some(Some(token)) if !token.is_empty() => {
            if token.len() < SHORTEST_MASKED {
                tracing::warn!(
                    "`{TOKEN_VARIABLE}` has less than {SHORTEST_MASKED} bytes: such a token can be guessed, and is not taken out of texts; set a longer one"
                );
            }
            Ok(Some(Secret::new(token)))
        }
        Some(_) => Err(Problem::new(
            Exit::Configuration,
            format!(
                "`{TOKEN_VARIABLE}` is set, and empty or not UTF-8: set it to a token, or unset it to serve without one"
            ),
        )),
    }
}

fn server(host: &Arc<Host>, token: Option<Secret>) -> Result<Arc<Server>, Problem> {
    let services = host.services();
    let is_open = token.is_none();
    let tools = Gate::new(OperatorTools::new(services.clone()), token.clone());
    let resources = Gate::new(RunResources::new(services.clone()), token);
    let server = host.server(Arc::new(tools), Arc::new(resources))?;
    // Neither a completion nor what is said to a task has a place for a token.
    let server = if is_open {
        let completions = RunCompletions::new(services.clone());
        server.with_completions(Arc::new(completions)).with_tasks(Arc::new(RunTasks::new(services)))
    } else {
        server.with_completions(Arc::new(RunCompletions::closed()))
    };
    Ok(Arc::new(server))
}

/// What a server stands on, be it that of one host or of many clients. Nothing is opened before the first call, or before it has been
/// there for a moment.
pub(crate) struct Host {
    options: ServeOptions,
    environment: Arc<Environment>,
    /// Who started the process, or why that cannot be said.
    profile: Result<Arc<Identity>, Problem>,
    workplace: Mutex<Option<Workplace>>,
    opened: AtomicBool,
    announcement: OnceCell<Option<Arc<dyn Announcement>>>,
}

impl Host {
    pub(crate) fn new(options: ServeOptions, environment: Arc<Environment>) -> Result<Self, Problem> {
        let is_named = options.project.is_some() || environment.path(PROJECT_VARIABLE).is_some();
        let profile = who::started(&environment).map(Arc::new);
        let host = Self {
            options,
            environment,
            profile,
            workplace: Mutex::default(),
            opened: AtomicBool::default(),
            announcement: OnceCell::new(),
        };
        // A wrong name is told at start, when somebody reads it.
        if is_named {
            host.workplace()?;
        }
        Ok(host)
    }

    /// What the tools and resources work with, opened by the first call.
    pub(crate) fn services(self: &Arc<Self>) -> LazyServices {
        let host = Arc::clone(self);
        LazyServices::new(move || {
            let host = Arc::clone(&host);
            async move { host.open().await.map_err(|problem| problem.message) }
        })
    }

    /// A server of these sets. Whoever started the process is who calls, where no transport says
    /// otherwise.
    pub(crate) fn server(
        &self,
        tools: Arc<dyn ToolSet>,
        resources: Arc<dyn ResourceSet>,
    ) -> Result<Server, Problem> {
        let seal = SealKey::random().map_err(|error| Problem::of(Exit::Internal, &error))?;
        // Where it cannot be said who that is no call comes to anything: `open` says why.
        let identity = self.profile.as_ref().map_or_else(|_| Arc::new(self.unsaid()), Arc::clone);
        let server = Server::new("cyberine", version(), tools, identity, seal)
            .with_title("Cyberine")
            .with_instructions(INSTRUCTIONS)
            .with_resources(resources)
            .with_prompts(Arc::new(OperatorPrompts))
            .with_logging();
        Ok(server)
    }

    fn unsaid(&self) -> Identity {
        Identity::local(self.environment.user())
    }

    /// The one workplace of this process, put together by the first who needs it.
    fn workplace(&self) -> Result<Workplace, Problem> {
        let mut workplace = lock(&self.workplace);
        if let Some(workplace) = &*workplace {
            return Ok(workplace.clone());
        }
        let resolved = Workplace::of_server(self.options.project.as_deref(), Arc::clone(&self.environment))?;
        Ok(workplace.insert(resolved).clone())
    }

    async fn open(&self) -> Result<Services, Problem> {
        let workplace = self.workplace()?;
        let profile = self.profile.as_ref().map_err(Clone::clone)?;
        let project = DirectoryProject::open(workplace.project.directory())
            .map_err(|error| Problem::of(Exit::Configuration, &error))?;
        let settled = workplace.supervisor.settle_dead_runs().await?;
        if !settled.is_empty() {
            tracing::info!(runs = settled.len(), "settled runs whose runner was gone");
        }
        self.opened.store(true, Ordering::Relaxed);
        self.announce().await;
        Ok(Services {
            store: workplace.store.clone(),
            registry: workplace.store.clone(),
            supervisor: workplace.supervisor.clone(),
            ticks: Arc::new(Streams(workplace.store.clone())),
            project: Arc::new(project),
            bus: Arc::clone(&workplace.bus),
            presence: Arc::clone(&workplace.presence),
            keys: workplace.store.clone(),
            sender: Sender::new(&profile.principal, Channel::Mcp, workplace.instance),
            dispatcher: Arc::new(Dispatching { workplace }),
        })
    }

    /// Announces this server once it has been there for a moment: what only asks for the tools and
    /// leaves again is nobody to write to.
    pub(crate) async fn announce_soon(&self) -> Infallible {
        tokio::time::sleep(ARRIVAL).await;
        self.announce().await;
        std::future::pending().await
    }

    /// Announces this server, once. Where that fails it serves all the same.
    async fn announce(&self) {
        let announcing = self.announcement.get_or_init(|| async {
            match tokio::time::timeout(PATIENCE, self.announced()).await {
                Ok(Ok(announcement)) => Some(announcement),
                Ok(Err(problem)) => {
                    tracing::warn!("this server is not announced to others: {problem}");
                    None
                }
                Err(_) => {
                    tracing::warn!("this server is not announced to others: the roster does not react");
                    None
                }
            }
        });
        announcing.await;
    }

    async fn announced(&self) -> Result<Arc<dyn Announcement>, Problem> {
        let workplace = self.workplace()?;
        let flags = self.options.presence.clone();
        let said = match workplace.presented(flags.clone()) {
            Ok(said) => said,
            Err(problem) => {
                tracing::warn!("this server is announced without its [presence]: {problem}");
                flags.over(messaging::presence(&self.environment)?)
            }
        };
        let announcing = Announcing {
            addr: RecordAddr { kind: AddressKind::Mcp.name().to_owned(), id: workplace.instance.to_string() },
            repo_cwd: workplace.cwd()?,
            capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
            team: said.team.map(String::from),
            role: said.role.map(String::from),
            name: said.name.map(String::from),
        };
        let announced = workplace.presence.announce(announcing).await;
        announced
            .map_err(|error| Problem::new(Exit::Internal, format!("{}. {}", chain(&error), error.advice())))
    }

    /// Withdraws the server from the roster, lets dispatches come to their end, and asks the runs to
    /// stop that are to end with it. Their guardians notice, too, and do so where it was killed.
    pub(crate) async fn farewell(&self) {
        let withdrawing = async {
            if let Some(Some(announcement)) = self.announcement.get() {
                announcement.end().await;
            }
        };
        let withdrawing = tokio::time::timeout(FAREWELL, withdrawing);
        let (withdrawn, ()) = tokio::join!(withdrawing, self.see_runs_off());
        if withdrawn.is_err() {
            tracing::warn!("this server could not be withdrawn from the roster in time");
        }
    }

    async fn see_runs_off(&self) {
        if !self.opened.load(Ordering::Relaxed) {
            return;
        }
        let Some(workplace) = lock(&self.workplace).clone() else { return };
        let supervisor = &workplace.supervisor;
        if tokio::time::timeout(FAREWELL, supervisor.close()).await.is_err() {
            tracing::warn!("a dispatch did not come to its end in time; whoever looks next settles its run");
        }
        let cancel = workplace.config().is_ok_and(|config| config.run.on_host_exit == HostExit::Cancel);
        let asking = async {
            for run in supervisor.launched() {
                let reason = Some("its host has gone".to_owned());
                if let Err(error) = supervisor.cancel(run, "host-exit".to_owned(), reason).await {
                    tracing::warn!(%run, %error, "the run could not be asked to stop");
                }
            }
        };
        if cancel && tokio::time::timeout(FAREWELL, asking).await.is_err() {
            tracing::warn!("not every run was asked to stop in time; their guardians do so");
        }
    }
}

/// Starts runs of one project.
struct Dispatching {
    workplace: Workplace,
}

impl Dispatcher for Dispatching {
    fn dispatch(
        &self,
        run: RunId,
        prompt: String,
        requested_by: String,
    ) -> BoxFuture<'_, Result<Started, String>> {
        Box::pin(async move {
            let dispatched = self.workplace.dispatch_noting(run, prompt, requested_by).await;
            let (dispatched, untrusted) = dispatched.map_err(|problem| problem.message)?;
            let note = untrusted.map(|untrusted| untrusted.to_string());
            Ok(Started { run: dispatched.run, note })
        })
    }

    fn forecast(&self, prompt: String, requested_by: String) -> BoxFuture<'_, Result<Forecast, String>> {
        Box::pin(async move {
            let forecast = self.workplace.forecast(&prompt, &requested_by).await;
            forecast.map(|(forecast, _)| forecast).map_err(|problem| problem.message)
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
    use cyberine_bus::MAX_TEXT_BYTES;

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

    /// What is logged while the gate is made of a token.
    fn logged(token: &str) -> String {
        let (reader, writer) = std::io::pipe().unwrap();
        let log = tracing_subscriber::fmt().with_writer(Mutex::new(writer)).finish();
        tracing::subscriber::with_default(log, || {
            gate(&Environment::of([], "/").with(TOKEN_VARIABLE, token)).unwrap();
        });
        std::io::read_to_string(reader).unwrap()
    }

    #[test]
    fn a_token_that_is_too_short_to_be_masked_is_warned_of_once_and_not_shown() {
        assert_eq!(logged("hunter22"), "");
        let log = logged("hunter2");
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(
            log.contains("WARN") && log.contains("set a longer one") && !log.contains("hunter2"),
            "{log}"
        );
    }

    #[test]
    fn the_longest_text_of_a_message_fits_a_line_however_it_is_escaped() {
        let escaped = MAX_TEXT_BYTES * r"\u0001".len();
        let line = cyberine_protocol::strict::FRAME_LIMIT;
        assert!(line >= escaped + 1024 * 1024, "there is room for the rest of the call");
    }

    #[test]
    fn the_instructions_are_three_lines_and_name_the_map() {
        assert_eq!(INSTRUCTIONS.lines().count(), 3);
        assert!(INSTRUCTIONS.contains("`cyberine guide`") && INSTRUCTIONS.contains("Ask the user before"));
    }
}
