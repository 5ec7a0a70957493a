//! Providers, stores and launchers that do what a test tells them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_bus::{Bus, Channel, NoBus, Sender};
use cyberine_orchestrator::{
    Engine, JudgeKind, NoControls, NoProcesses, NoTrials, Plan, Planned, Team, TickSink, Trials,
};
use cyberine_provider::{
    Capabilities, Limits, Provider, ProviderConfig, ProviderInfo, Role, StopReason, Turn, TurnError,
    TurnEvent,
};
use cyberine_run_store::{Claim, MemoryRunStore, NewRun, Reserve, Run, RunStore, Tick};
use cyberine_types::{Billing, CostBasis, InstanceId, Principal, RunId, SystemClock, Usage, Usd};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One thing a fake does in its turn.
#[derive(Clone)]
pub(crate) enum Act {
    Say(String),
    Fail(TurnError),
    /// Waits to be released, or for the turn's cancellation.
    Hold(Arc<Notify>),
    Stop,
}

type Script = dyn Fn(&Turn) -> Vec<Act> + Send + Sync;

/// A provider that acts by a script.
pub(crate) struct Fake {
    info: ProviderInfo,
    script: Box<Script>,
    pub(crate) turns: AtomicUsize,
    pub(crate) cancelled: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn new(name: &str, script: impl Fn(&Turn) -> Vec<Act> + Send + Sync + 'static) -> Arc<Self> {
        let info = ProviderInfo {
            name: name.to_owned(),
            kind: "fake".to_owned(),
            model: None,
            billing: Billing::Metered,
        };
        Arc::new(Self {
            info,
            script: Box::new(script),
            turns: AtomicUsize::new(0),
            cancelled: Arc::default(),
        })
    }

    pub(crate) fn says(name: &str, text: &str) -> Arc<Self> {
        let text = text.to_owned();
        Self::new(name, move |_| vec![Act::Say(text.clone()), Act::Stop])
    }

    pub(crate) fn fails(name: &str, error: TurnError) -> Arc<Self> {
        Self::new(name, move |_| vec![Act::Fail(error.clone())])
    }

    pub(crate) fn holds(name: &str, gate: &Arc<Notify>) -> Arc<Self> {
        let gate = Arc::clone(gate);
        Self::new(name, move |_| vec![Act::Say("begun".into()), Act::Hold(Arc::clone(&gate)), Act::Stop])
    }

    /// A judge that names the candidate whose text contains `mark`.
    pub(crate) fn judge_for(name: &str, mark: &'static str) -> Arc<Self> {
        Self::new(name, move |turn| {
            let prompt = &turn.messages.iter().find(|message| message.role == Role::User).unwrap().text;
            let place = blocks(prompt).iter().position(|text| text.contains(mark)).unwrap();
            vec![Act::Say(reply(place, blocks(prompt).len())), Act::Stop]
        })
    }

    pub(crate) fn asked(&self) -> usize {
        self.turns.load(Ordering::SeqCst)
    }
}

/// What stands between the genuine markers of the candidates, in the order shown.
pub(crate) fn blocks(prompt: &str) -> Vec<String> {
    let token = prompt.lines().next().unwrap().rsplit(' ').next().unwrap().trim_end_matches('.');
    let begin = format!("[{token} begin candidate ");
    let end = format!("\n[{token} end candidate ");
    let parts = prompt.split(&begin).skip(1);
    parts.map(|part| part.split_once("]\n").unwrap().1.split(&end).next().unwrap().to_owned()).collect()
}

/// A reply that names the candidate at `place`.
pub(crate) fn reply(place: usize, count: usize) -> String {
    let label = |at: usize| char::from(b'A' + u8::try_from(at).unwrap()).to_string();
    let scores: Vec<_> = (0..count)
        .map(|at| serde_json::json!({ "label": label(at), "score": if at == place { 9 } else { 3 }, "reason": "r" }))
        .collect();
    serde_json::json!({ "winner": label(place), "scores": scores, "rationale": "because" }).to_string()
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
        turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        self.turns.fetch_add(1, Ordering::SeqCst);
        let cancelled = Arc::clone(&self.cancelled);
        let used = Usage {
            input: 10,
            output: 2,
            usd: Some(Usd::from_micros(100)),
            basis: CostBasis::Reported,
            ..Usage::default()
        };
        let acts = (self.script)(&turn).into_iter().flat_map(move |act| match act {
            Act::Say(text) => vec![Ok(TurnEvent::Usage(used)), Ok(TurnEvent::Text(text))],
            Act::Fail(error) => vec![Err((Some(error), None))],
            Act::Hold(gate) => vec![Err((None, Some(gate)))],
            Act::Stop => vec![Ok(TurnEvent::Stop(StopReason::EndTurn))],
        });
        stream::iter(acts)
            .then(move |act| {
                let (cancel, cancelled) = (cancel.clone(), Arc::clone(&cancelled));
                async move {
                    match act {
                        Ok(event) => Ok(event),
                        Err((Some(error), _)) => Err(error),
                        Err((None, gate)) => match cancel.run_until_cancelled(gate.unwrap().notified()).await
                        {
                            Some(()) => Ok(TurnEvent::Text(" and ended".into())),
                            None => {
                                cancelled.fetch_add(1, Ordering::SeqCst);
                                Err(TurnError::Cancelled)
                            }
                        },
                    }
                }
            })
            .boxed()
    }
}

/// Keeps every tick.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<Tick>>);

impl TickSink for Heard {
    fn tick(&self, tick: &Tick) {
        self.0.lock().unwrap().push(tick.clone());
    }
}

/// A run in memory with everything it takes.
pub(crate) struct Stage {
    pub(crate) store: MemoryRunStore,
    pub(crate) heard: Arc<Heard>,
    pub(crate) plan: Plan,
    pub(crate) team: Team,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) trials: Arc<dyn Trials>,
}

impl Stage {
    pub(crate) fn new(candidates: &[&Arc<Fake>], judges: &[&Arc<Fake>]) -> Self {
        let as_provider = |fake: &&Arc<Fake>| -> Arc<dyn Provider> { Arc::clone(*fake) as _ };
        let by_name = |fake: &&Arc<Fake>| (fake.info.name.clone(), as_provider(fake));
        Self {
            store: MemoryRunStore::new(Arc::new(SystemClock)),
            heard: Arc::default(),
            plan: plan(&names(candidates), &names(judges)),
            bus: Arc::new(NoBus),
            trials: Arc::new(NoTrials),
            team: Team {
                candidates: candidates.iter().map(as_provider).collect(),
                judges: judges.iter().map(by_name).collect::<BTreeMap<_, _>>(),
                fallbacks: BTreeMap::new(),
            },
        }
    }

    pub(crate) async fn admit(&self) -> Claim {
        self.store.admit(new_run(&self.plan), Reserve::of(Usd::from_dollars(1.0), None)).await.unwrap()
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine {
            store: Arc::new(self.store.clone()),
            reaper: Arc::new(NoProcesses),
            trials: Arc::clone(&self.trials),
            ticks: self.heard.clone(),
            bus: Arc::clone(&self.bus),
            sender: Sender::new(&Principal::local("test"), Channel::Run, InstanceId::random()),
        }
    }

    /// Runs to the end and returns the run.
    pub(crate) async fn play(&self) -> Run {
        self.play_with(|_| std::future::ready(())).await
    }

    /// As [`play`](Self::play), while `meanwhile` goes on with the run's id.
    pub(crate) async fn play_with<W: Future<Output = ()>>(&self, meanwhile: impl FnOnce(RunId) -> W) -> Run {
        let claim = self.admit().await;
        let (id, engine) = (claim.run(), self.engine());
        let ended =
            engine.run(claim, &self.plan, self.team.clone(), Box::new(NoControls), CancellationToken::new());
        let (state, ()) = soon(async { tokio::join!(ended, meanwhile(id)) }).await;
        let run = self.run(id).await;
        assert_eq!(run.state, state.unwrap());
        run
    }

    pub(crate) async fn run(&self, id: RunId) -> Run {
        self.store.load(id).await.unwrap().unwrap()
    }

    /// Waits until the run looks as `wanted` says.
    pub(crate) async fn see(&self, id: RunId, wanted: impl Fn(&Run) -> bool) -> Run {
        soon(async {
            loop {
                let run = self.run(id).await;
                if wanted(&run) {
                    return run;
                }
                self.store.changed(id, run.next_seq - 1, Duration::from_millis(100)).await;
            }
        })
        .await
    }
}

pub(crate) fn new_run(plan: &Plan) -> NewRun {
    NewRun {
        id: RunId::random(),
        workflow: "mcp-orchestrate".into(),
        prompt: "what is it?".into(),
        cwd: "/project".into(),
        requested_by: "test@1".into(),
        spec: plan.to_spec().unwrap(),
    }
}

fn names(fakes: &[&Arc<Fake>]) -> Vec<String> {
    fakes.iter().map(|fake| fake.info.name.clone()).collect()
}

pub(crate) fn plan(candidates: &[String], judges: &[String]) -> Plan {
    let config: ProviderConfig = serde_json::from_str(r#"{"kind":"command","command":["true"]}"#).unwrap();
    let planned = |name: &String| Planned::plain(name, &config);
    Plan {
        candidates: candidates.iter().map(planned).collect(),
        judges: vec![JudgeKind::Consensus, JudgeKind::LlmJudge],
        judge_providers: judges.iter().map(planned).collect(),
        quorum: 2.min(candidates.len()),
        first: None,
        rounds: 1,
        max_parallel: 16,
        retries: 3,
        judge_always: false,
        equivalence: false,
        rubric: None,
        criteria: Vec::new(),
        judge_command: None,
        limits: Limits::default(),
        seed: 3,
        approval: None,
        run_cap: None,
    }
}

/// Fails where `work` takes longer than any test should.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it ends in time")
}
