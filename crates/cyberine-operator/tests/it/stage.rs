//! A server's worth of tools without a server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_bus::{Address, AddressKind, Bus, Channel, Envelope, MemoryBus, ReadRequest, Sender};
use cyberine_operator::{
    DirectoryProject, Dispatcher, LazyServices, OperatorTools, RunResources, Services, Started, TickFeed,
    TickSource,
};
use cyberine_orchestrator::{
    Caps, DispatchRequest, Engine, Estimate, Forecast, InProcessLauncher, LaunchError, Launched, Launcher,
    NoProcesses, NoTrials, OrchestrateConfig, Plan, Supervisor, Team, TickSink, plan,
};
use cyberine_presence::MemoryPresence;
use cyberine_provider::{
    Capabilities, Provider, ProviderConfig, ProviderInfo, StopReason, Turn, TurnError, TurnEvent,
};
use cyberine_run_store::{
    Begun, Claim, Idempotency, IdempotencyKey, MemoryRunStore, NewRun, Reserve, Run, RunStore, StoreError,
    Tick,
};
use cyberine_server::{
    Background, Call, ClientCapabilities, Log, Outcome, OutlivesReply, Progress, ProgressSink,
    ProgressUpdate, ToolResult, ToolSet,
};
use cyberine_types::{
    Billing, Caller, ClientInfo, Clock as _, Identity, InstanceId, Principal, RunId, SystemClock, Usd,
};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::slow::Slow;

/// A provider that says one thing once it is let.
pub(crate) struct Fake {
    info: ProviderInfo,
    text: String,
    gate: watch::Receiver<bool>,
}

impl Provider for Fake {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn turn(
        &self,
        _turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        let (text, mut gate) = (self.text.clone(), self.gate.clone());
        let first = async move {
            let opened = cancel.run_until_cancelled(gate.wait_for(|open| *open)).await;
            opened.map(|_| TurnEvent::Text(text)).ok_or(TurnError::Cancelled)
        };
        stream::once(first).chain(stream::iter([Ok(TurnEvent::Stop(StopReason::EndTurn))])).boxed()
    }
}

/// Ticks kept in memory, to be followed.
#[derive(Clone, Default)]
pub(crate) struct Ticks(Arc<Mutex<Vec<Tick>>>);

impl TickSink for Ticks {
    fn tick(&self, tick: &Tick) {
        self.0.lock().unwrap().push(tick.clone());
    }
}

struct Feed(Ticks, usize);

impl TickFeed for Feed {
    fn read(&mut self) -> Vec<Tick> {
        let all = self.0.0.lock().unwrap();
        let new = all[self.1..].to_vec();
        self.1 = all.len();
        new
    }
}

impl TickSource for Ticks {
    fn follow(&self, _run: RunId) -> BoxFuture<'_, Option<Box<dyn TickFeed>>> {
        let feed: Box<dyn TickFeed> = Box::new(Feed(self.clone(), 0));
        Box::pin(std::future::ready(Some(feed)))
    }
}

/// Dispatches with one configuration.
struct Desk {
    supervisor: Supervisor,
    providers: BTreeMap<String, ProviderConfig>,
    cwd: String,
    config: OrchestrateConfig,
    note: Arc<Mutex<Option<String>>>,
    ledger: MemoryRunStore,
}

impl Dispatcher for Desk {
    fn dispatch(
        &self,
        run: RunId,
        prompt: String,
        requested_by: String,
    ) -> BoxFuture<'_, Result<Started, String>> {
        Box::pin(async move {
            let request = DispatchRequest {
                run,
                prompt,
                cwd: self.cwd.clone(),
                requested_by,
                plan: plan(&self.config, &self.providers, 1).unwrap(),
                reserve: Reserve::of(Usd::from_dollars(1.0), Some(Usd::from_dollars(100.0))),
            };
            let dispatched = self.supervisor.dispatch(request).await;
            let dispatched = dispatched.map_err(|error| format!("{error}. {}", error.advice()))?;
            Ok(Started { run: dispatched.run, note: self.note.lock().unwrap().clone() })
        })
    }

    fn forecast(&self, prompt: String, requested_by: String) -> BoxFuture<'_, Result<Forecast, String>> {
        Box::pin(async move {
            let plan = plan(&self.config, &self.providers, 1).unwrap();
            Supervisor::check(&prompt, &plan).map_err(|error| format!("{error}. {}", error.advice()))?;
            let estimate = Estimate::of(&plan, prompt.len());
            let caps =
                Caps { run: Usd::from_dollars(1.0), unknown: Usd::from_dollars(1.0), ..Caps::default() };
            let reserve =
                estimate.reserve(&Caps { daily: Some(Usd::from_dollars(2.0)), ..caps }, &requested_by);
            let day = SystemClock.now().day();
            Ok(Forecast::of(&plan, prompt.len(), &estimate, &reserve, &self.ledger, day).await.unwrap())
        })
    }
}

/// What a stage stands on.
pub(crate) struct Setting {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) config: OrchestrateConfig,
}

impl Default for Setting {
    fn default() -> Self {
        Self::on(Arc::new(MemoryBus::new(Arc::new(SystemClock))))
    }
}

impl Setting {
    pub(crate) fn on(bus: Arc<dyn Bus>) -> Self {
        Self { bus, config: OrchestrateConfig::default() }
    }

    /// Every run waits for an approval.
    pub(crate) fn approving() -> Self {
        let config = serde_json::from_value(json!({ "approval": "required" })).unwrap();
        Self { config, ..Self::default() }
    }
}

/// Keys, and whether results are lost on their way to them.
pub(crate) struct Forgetful {
    store: MemoryRunStore,
    pub(crate) forgets: Arc<AtomicBool>,
}

impl Idempotency for Forgetful {
    fn begin(&self, key: IdempotencyKey, draft: String) -> BoxFuture<'_, Result<Begun, StoreError>> {
        self.store.begin(key, draft)
    }

    fn finish(&self, key: IdempotencyKey, result: Value) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.forgets.load(Ordering::SeqCst) {
            let lost = StoreError::Worker { detail: "the result was lost".to_owned() };
            return Box::pin(std::future::ready(Err(lost)));
        }
        self.store.finish(key, result)
    }

    fn redraft(
        &self,
        key: IdempotencyKey,
        old: String,
        new: String,
    ) -> BoxFuture<'_, Result<Begun, StoreError>> {
        self.store.redraft(key, old, new)
    }
}

/// What becomes of runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launching {
    Starts,
    Fails,
    /// The runner dies before it begins.
    Dies,
}

struct Sometimes {
    starts: Arc<InProcessLauncher>,
    launching: Arc<Mutex<Launching>>,
}

impl Launcher for Sometimes {
    fn launch(&self, claim: Claim, plan: Plan) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        let launching = *self.launching.lock().unwrap();
        match launching {
            Launching::Starts => self.starts.launch(claim, plan),
            Launching::Fails => {
                drop(claim);
                Box::pin(std::future::ready(Err(LaunchError { detail: "no room".to_owned() })))
            }
            Launching::Dies => {
                drop(claim);
                let ended = Box::pin(std::future::pending());
                Box::pin(std::future::ready(Ok(Launched { pid: 1, ended })))
            }
        }
    }
}

/// The tools, and what is behind them.
pub(crate) struct Stage {
    pub(crate) tools: OperatorTools,
    pub(crate) resources: RunResources,
    pub(crate) services: LazyServices,
    pub(crate) store: MemoryRunStore,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) presence: MemoryPresence,
    /// The server's own.
    pub(crate) instance: InstanceId,
    /// Whether results of calls with a key are lost.
    pub(crate) forgets: Arc<AtomicBool>,
    pub(crate) opened: Arc<AtomicUsize>,
    pub(crate) gate: watch::Sender<bool>,
    pub(crate) tasks: TaskTracker,
    pub(crate) cwd: String,
    /// What the dispatcher has to say beside the run.
    pub(crate) note: Arc<Mutex<Option<String>>>,
    /// How often others go first before the store answers.
    pub(crate) turns: Arc<AtomicUsize>,
    pub(crate) launching: Arc<Mutex<Launching>>,
    /// Deleted with the stage.
    _home: tempfile::TempDir,
}

impl Stage {
    /// Providers that say `answers`, by name; they wait until the gate is opened.
    pub(crate) fn new(answers: &[(&str, &str)], billing: Billing) -> Self {
        Self::set(Setting::default(), answers, billing)
    }

    /// The same in another setting.
    pub(crate) fn set(setting: Setting, answers: &[(&str, &str)], billing: Billing) -> Self {
        let Setting { bus, config } = setting;
        let instance = InstanceId::random();
        let presence = MemoryPresence::new(Arc::new(SystemClock), instance);
        let home = tempfile::tempdir().unwrap();
        let cwd = home.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let store = MemoryRunStore::new(Arc::new(SystemClock));
        let (gate, opened_gate) = watch::channel(false);
        let (opened, ticks) = (Arc::new(AtomicUsize::new(0)), Ticks::default());
        let team = team(answers, billing, &opened_gate);
        let engine = Engine {
            store: Arc::new(store.clone()),
            reaper: Arc::new(NoProcesses),
            trials: Arc::new(NoTrials),
            ticks: Arc::new(ticks.clone()),
            bus: Arc::clone(&bus),
            sender: Sender::new(&Principal::local("test"), Channel::Run, InstanceId::random()),
        };
        let starts = InProcessLauncher::new(engine, move |_| team.clone());
        let launching = Arc::new(Mutex::new(Launching::Starts));
        let launcher = Arc::new(Sometimes { starts, launching: Arc::clone(&launching) });
        let turns = Arc::default();
        let slow = Arc::new(Slow { store: store.clone(), turns: Arc::clone(&turns) });
        let supervisor = Supervisor::new(slow.clone(), launcher, Arc::new(NoProcesses));
        let note = Arc::default();
        let forgets = Arc::default();
        let desk = Desk {
            supervisor: supervisor.clone(),
            providers: configs(answers, billing),
            cwd: cwd.clone(),
            config,
            note: Arc::clone(&note),
            ledger: store.clone(),
        };
        let services = Services {
            store: slow,
            registry: Arc::new(store.clone()),
            supervisor,
            dispatcher: Arc::new(desk),
            ticks: Arc::new(ticks),
            project: Arc::new(DirectoryProject::open(home.path()).unwrap()),
            bus: Arc::clone(&bus),
            presence: Arc::new(presence.clone()),
            keys: Arc::new(Forgetful { store: store.clone(), forgets: Arc::clone(&forgets) }),
            sender: Sender::new(&Principal::local("me"), Channel::Mcp, instance),
        };
        let count = Arc::clone(&opened);
        let lazy = LazyServices::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok(services.clone()))
        });
        Self {
            tools: OperatorTools::new(lazy.clone()),
            resources: RunResources::new(lazy.clone()),
            services: lazy,
            store,
            bus,
            presence,
            instance,
            forgets,
            opened,
            gate,
            tasks: TaskTracker::new(),
            cwd,
            note,
            turns,
            launching,
            _home: home,
        }
    }

    pub(crate) fn free(answers: &[(&str, &str)]) -> Self {
        Self::new(answers, Billing::Free)
    }

    pub(crate) fn call_of(&self, name: &str, arguments: Value, progress: Progress) -> Call {
        Call {
            name: name.to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_else(Map::new),
            caller: caller(),
            capabilities: ClientCapabilities::default(),
            tasks: false,
            input_responses: BTreeMap::new(),
            state: None,
            progress,
            log: Log::none(),
            cancel: CancellationToken::new(),
            background: Background::new(self.tasks.clone(), CancellationToken::new()),
        }
    }

    /// Calls a tool and checks the result against the tool's output schema.
    pub(crate) async fn call_with(&self, name: &str, arguments: Value, progress: Progress) -> ToolResult {
        let outcome = soon(self.tools.call(self.call_of(name, arguments, progress))).await.unwrap();
        let Outcome::Complete(result) = outcome else { panic!("{outcome:?}") };
        let tools = self.tools.list(&caller());
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        jsonschema::validate(&tool.output_schema.value().unwrap(), &result.structured)
            .unwrap_or_else(|error| panic!("{error}: {}", result.structured));
        assert_eq!(result.is_error, result.structured.get("error").is_some());
        assert!(result.structured.to_string().len() <= 24 * 1024);
        result
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        self.call_with(name, arguments, Progress::none()).await.structured
    }

    /// What lies in a mailbox.
    pub(crate) async fn mail(&self, kind: AddressKind, id: &str) -> Vec<Envelope> {
        let request = ReadRequest { limit: 10_000, max_bytes: 1 << 30, ..ReadRequest::default() };
        self.bus.read(Address::new(kind, id).unwrap(), request).await.unwrap().messages
    }

    /// A run that nobody carries out, and its claim.
    pub(crate) async fn admitted(&self, prompt: &str, cwd: &str) -> Claim {
        let run = NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".into(),
            prompt: prompt.into(),
            cwd: cwd.into(),
            requested_by: "cli".into(),
            spec: json!({}),
        };
        self.store.admit(run, Reserve::of(Usd::ZERO, None)).await.unwrap()
    }

    /// The error a call comes to.
    pub(crate) async fn refused(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        result["error"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// Starts a run and returns its id.
    pub(crate) async fn start(&self, prompt: &str) -> RunId {
        let reply = self.call("orchestrate", json!({ "prompt": prompt })).await;
        reply["runId"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn see(&self, id: RunId, wanted: impl Fn(&Run) -> bool) -> Run {
        soon(async {
            loop {
                let run = self.store.load(id).await.unwrap().unwrap();
                if wanted(&run) {
                    return run;
                }
                self.store.changed(id, run.next_seq - 1, Duration::from_millis(100)).await;
            }
        })
        .await
    }

    /// Starts a run, lets the providers speak and waits for the end.
    pub(crate) async fn finished(&self, prompt: &str) -> RunId {
        let id = self.start(prompt).await;
        self.gate.send_replace(true);
        self.see(id, |run| run.state.is_terminal()).await;
        id
    }
}

fn team(answers: &[(&str, &str)], billing: Billing, gate: &watch::Receiver<bool>) -> Team {
    let fakes = answers.iter().map(|(name, text)| -> Arc<dyn Provider> {
        let info =
            ProviderInfo { name: (*name).to_owned(), kind: "command".to_owned(), model: None, billing };
        Arc::new(Fake { info, text: (*text).to_owned(), gate: gate.clone() })
    });
    Team { candidates: fakes.collect(), ..Team::default() }
}

fn configs(answers: &[(&str, &str)], billing: Billing) -> BTreeMap<String, ProviderConfig> {
    let program = if billing == Billing::Scripted { "cyberine-scripted-llm" } else { "true" };
    let mut config = json!({ "kind": "command", "command": [program] });
    if billing == Billing::Metered {
        config["billing"] = json!(billing);
    }
    let config: ProviderConfig = serde_json::from_value(config).unwrap();
    answers.iter().map(|(name, _)| ((*name).to_owned(), config.clone())).collect()
}

pub(crate) fn caller() -> Caller {
    let client = ClientInfo { name: "host".to_owned(), version: "1.2".to_owned() };
    Caller { identity: Arc::new(Identity::local("me")), client: Some(client) }
}

/// Keeps the news a client is sent.
#[derive(Clone, Default)]
pub(crate) struct Client(Arc<Mutex<Vec<ProgressUpdate>>>);

impl ProgressSink for Client {
    fn send(&self, update: &ProgressUpdate) -> bool {
        self.0.lock().unwrap().push(update.clone());
        true
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Client {
    pub(crate) fn progress(&self, outlives: OutlivesReply) -> Progress {
        Progress::to(self.clone(), outlives)
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|update| update.message.clone().unwrap()).collect()
    }
}

/// Fails where `work` takes longer than any test should.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it ends in time")
}
