//! The asynchronous part: turns in flight, the watch for requests to stop, effects taken out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cyberine_provider::{Message, Provider, ProviderInfo, Role, Turn, TurnError};
use cyberine_run_store::{CandidateError, Claim, ProcessCount, RunEvent, RunState, RunStore, StoreError};
use cyberine_types::{RunId, Usage};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Engine, EngineError, Order};
use crate::control::{Control, ControlSource};
use crate::llm_judge::Question;
use crate::machine::{Action, Contestant, Effects, Input, Machine, Settlement, Setup};
use crate::plan::Plan;
use crate::team::Team;
use crate::ticks;
use crate::turn::{self, Finished};

/// How often the store is asked for requests to stop, should a wake-up get lost.
const POLL: Duration = Duration::from_millis(500);
/// How long turns have to die before they are dropped and reaped.
const GRACE: Duration = Duration::from_secs(10);

/// Whose turn it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Candidate(usize),
    Judge,
}

/// What the shell has waited for.
enum Woken {
    Turn(Seat, Finished),
    Control(Control),
    GraceOver,
}

pub(super) struct Shell<'a> {
    engine: &'a Engine,
    claim: Claim,
    plan: &'a Plan,
    team: Team,
    order: Order,
    machine: Machine,
    turns: FuturesUnordered<BoxFuture<'static, (Seat, Finished)>>,
    /// The seats of `turns`.
    seats: Vec<Seat>,
    /// Ends every turn.
    kill: CancellationToken,
    kill_by: Option<Instant>,
    grace: Duration,
}

impl<'a> Shell<'a> {
    pub(super) fn new(engine: &'a Engine, claim: Claim, plan: &'a Plan, team: Team, order: Order) -> Self {
        let machine = Machine::new(setup(plan, &team));
        Self {
            engine,
            claim,
            plan,
            team,
            order,
            machine,
            turns: FuturesUnordered::new(),
            seats: Vec::new(),
            kill: CancellationToken::new(),
            kill_by: None,
            grace: GRACE,
        }
    }

    pub(super) async fn run(
        mut self,
        mut control: Box<dyn ControlSource>,
        cancel: CancellationToken,
    ) -> Result<RunState, EngineError> {
        match self.course(control.as_mut(), &cancel).await {
            Ok(state) => Ok(state),
            Err(error) => Err(self.abandon(error).await),
        }
    }

    async fn course(
        &mut self,
        control: &mut dyn ControlSource,
        cancel: &CancellationToken,
    ) -> Result<RunState, StoreError> {
        self.announce().await?;
        let mut watch = stop_requested(Arc::clone(&self.engine.store), self.claim.run());
        let mut watching = true;
        let mut inputs = VecDeque::new();
        // A request to stop that came before the start is seen before anything is spent.
        match self.recorded_stop().await? {
            Some(stop) => inputs.extend([stop]),
            None => inputs.extend([Input::Begin]),
        }
        loop {
            while let Some(input) = inputs.pop_front() {
                let effects = self.machine.step(input);
                if let Some(settlement) = self.perform(effects).await? {
                    return self.settle(settlement).await;
                }
            }
            let woken = tokio::select! {
                biased;
                Some((seat, finished)) = self.turns.next(), if !self.turns.is_empty() => Woken::Turn(seat, finished),
                stop = &mut watch, if watching => { watching = false; Woken::Control(stop) }
                () = cancel.cancelled(), if self.kill_by.is_none() => Woken::Control(by_shutdown()),
                word = control.next() => Woken::Control(word),
                () = sleep_until(self.kill_by) => Woken::GraceOver,
            };
            self.take(woken, &mut inputs).await?;
        }
    }

    async fn take(&mut self, woken: Woken, inputs: &mut VecDeque<Input>) -> Result<(), StoreError> {
        match woken {
            Woken::Turn(seat, finished) => {
                self.seats.retain(|open| *open != seat);
                inputs.push_back(input(seat, finished));
            }
            Woken::Control(Control::Stop { by, reason }) => {
                // Recorded before it takes effect. A repetition is the same request.
                self.engine.store.request_cancel(self.claim.run(), by.clone(), reason.clone()).await?;
                inputs.push_back(Input::CancelRequested { by, reason });
            }
            Woken::Control(Control::Unknown { detail }) => {
                self.append(vec![Control::ignored(detail)]).await?;
            }
            Woken::GraceOver => {
                self.turns.clear();
                self.kill_by = None;
                inputs.extend(self.seats.drain(..).map(|seat| input(seat, dropped())));
            }
        }
        Ok(())
    }

    async fn announce(&mut self) -> Result<(), StoreError> {
        if self.order.begun {
            return Ok(());
        }
        self.append(vec![RunEvent::Started { pid: std::process::id() }]).await
    }

    async fn recorded_stop(&mut self) -> Result<Option<Input>, StoreError> {
        let events = self.engine.store.events(self.claim.run(), 0).await?;
        Ok(events
            .into_iter()
            .find_map(|event| stop_in(event.body))
            .map(|(by, reason)| Input::CancelRequested { by, reason }))
    }

    async fn append(&mut self, events: Vec<RunEvent>) -> Result<(), StoreError> {
        if !events.is_empty() {
            self.engine.store.append(&self.claim, events).await?;
        }
        Ok(())
    }

    /// Appends first, then acts. `Some` when nothing is left but to settle.
    async fn perform(&mut self, effects: Effects) -> Result<Option<Settlement>, StoreError> {
        self.append(effects.append).await?;
        let mut settlement = None;
        for action in effects.actions {
            match action {
                Action::Ask(at) => self.ask(at),
                Action::AskJudge(question) => self.ask_judge(&question),
                Action::KillTurns => self.kill_turns(),
                Action::Settle(end) => settlement = Some(end),
            }
        }
        Ok(settlement)
    }

    fn ask(&mut self, at: usize) {
        let messages = vec![Message { role: Role::User, text: self.order.task.clone() }];
        let turn = self.turn(messages, None);
        let name = self.plan.candidates[at].name.clone();
        self.start(Seat::Candidate(at), Arc::clone(&self.team.candidates[at]), turn, name);
    }

    fn ask_judge(&mut self, question: &Question) {
        let Some(provider) = self.team.judges.get(&question.provider).cloned() else {
            let why = TurnError::Unreachable {
                target: question.provider.clone(),
                detail: "no such provider was built".to_owned(),
            };
            let finished = Finished { answer: Err(why), usage: Usage::default(), duration_ms: 0 };
            self.seats.push(Seat::Judge);
            self.turns.push(Box::pin(std::future::ready((Seat::Judge, finished))));
            return;
        };
        // A version 4 UUID: 122 bits of the system's randomness.
        let messages = question.messages(&self.order.task, || RunId::random().to_string());
        let turn = self.turn(messages, Some(question.schema()));
        self.start(Seat::Judge, provider, turn, format!("llm-judge ({})", question.provider));
    }

    fn turn(&self, messages: Vec<Message>, output_schema: Option<serde_json::Value>) -> Turn {
        let (cwd, mark) = (self.order.cwd.clone(), self.claim.run().to_string());
        Turn { messages, tools: Vec::new(), output_schema, limits: self.plan.limits, cwd, mark }
    }

    fn start(&mut self, seat: Seat, provider: Arc<dyn Provider>, turn: Turn, name: String) {
        let (ticks, cancel) = (Arc::clone(&self.engine.ticks), self.kill.child_token());
        self.seats.push(seat);
        self.turns
            .push(Box::pin(async move { (seat, turn::take(provider, turn, name, ticks, cancel).await) }));
    }

    fn kill_turns(&mut self) {
        self.kill.cancel();
        self.kill_by = Some(Instant::now() + self.grace);
    }

    /// Waits for what is dying, counts what had to be killed and appends the last event.
    async fn settle(&mut self, settlement: Settlement) -> Result<RunState, StoreError> {
        let processes = self.clear().await;
        let Settlement { state, detail, reason } = settlement;
        let settled =
            RunEvent::Settled { state, detail: detail.clone(), reason: reason.map(str::to_owned), processes };
        self.append(vec![settled]).await?;
        self.say_settled(detail);
        Ok(state)
    }

    /// Stops spending after the store has failed, and settles the run if it still can be.
    async fn abandon(&mut self, error: StoreError) -> EngineError {
        let processes = self.clear().await;
        if !matches!(error, StoreError::Fenced { .. }) {
            let detail = format!("the run store failed, and nothing more was spent: {error}");
            let settled = RunEvent::Settled {
                state: RunState::Error,
                detail: detail.clone(),
                reason: Some("store".to_owned()),
                processes,
            };
            match self.append(vec![settled]).await {
                Ok(()) => self.say_settled(detail),
                Err(again) => {
                    tracing::error!(run = %self.claim.run(), error = %again, "the run could not be settled")
                }
            }
        }
        EngineError::Store(error)
    }

    /// Ends every turn and reaps what is left.
    async fn clear(&mut self) -> ProcessCount {
        self.kill.cancel();
        let all_ended = async { while self.turns.next().await.is_some() {} };
        if tokio::time::timeout(self.grace, all_ended).await.is_err() {
            tracing::warn!(run = %self.claim.run(), "turns did not end in time and were dropped");
        }
        self.turns.clear();
        self.engine.reaper.reap(self.claim.run()).await
    }

    fn say_settled(&self, note: String) {
        self.engine.ticks.tick(&ticks::settled(note));
    }
}

fn setup(plan: &Plan, team: &Team) -> Setup {
    let candidates = plan.candidates.iter().zip(&team.candidates);
    let judges = plan.judge_providers.iter().map(|planned| (planned, team.judges.get(&planned.name)));
    let contestants = candidates.map(|(planned, provider)| contestant(&planned.name, provider.info()));
    // One that was planned and not built is asked all the same, and fails like any other.
    let jurors = judges.map(|(planned, provider)| match provider {
        Some(provider) => contestant(&planned.name, provider.info()),
        None => contestant(&planned.name, &planned.provider.info(&planned.name)),
    });
    Setup {
        contestants: contestants.collect(),
        judges: plan.judges.clone(),
        jurors: jurors.collect(),
        quorum: plan.quorum,
        max_parallel: plan.max_parallel,
        judge_always: plan.judge_always,
        seed: u64::from(plan.seed),
    }
}

fn contestant(name: &str, info: &ProviderInfo) -> Contestant {
    Contestant {
        id: name.to_owned(),
        kind: info.kind.clone(),
        model: info.model.clone(),
        billing: info.billing,
    }
}

fn input(seat: Seat, finished: Finished) -> Input {
    let Finished { answer, usage, duration_ms } = finished;
    match (seat, answer) {
        (Seat::Candidate(candidate), Ok(text)) => Input::Answered { candidate, text, usage, duration_ms },
        (Seat::Candidate(candidate), Err(error)) => {
            Input::Failed { candidate, code: error.code(), message: error.to_string(), usage, duration_ms }
        }
        (Seat::Judge, answer) => {
            let failure = |error: TurnError| CandidateError {
                code: error.code().to_owned(),
                message: error.to_string(),
            };
            Input::JudgeReplied { reply: answer.map_err(failure), usage, duration_ms }
        }
    }
}

/// What is said of a turn that did not end when it was told to.
fn dropped() -> Finished {
    Finished { answer: Err(TurnError::Cancelled), usage: Usage::default(), duration_ms: 0 }
}

fn by_shutdown() -> Control {
    Control::Stop { by: "shutdown".to_owned(), reason: None }
}

fn stop_in(event: RunEvent) -> Option<(String, Option<String>)> {
    match event {
        RunEvent::CancelRequested { by, reason } => Some((by, reason)),
        _ => None,
    }
}

/// Resolves once the run's log holds a request to stop it. A store that fails here is asked
/// again: the next append will show whether it is broken.
fn stop_requested(store: Arc<dyn RunStore>, run: RunId) -> BoxFuture<'static, Control> {
    Box::pin(async move {
        let mut after = 0;
        loop {
            match store.events(run, after).await {
                Ok(events) => {
                    after = events.last().map_or(after, |event| event.seq);
                    if let Some((by, reason)) = events.into_iter().find_map(|event| stop_in(event.body)) {
                        return Control::Stop { by, reason };
                    }
                }
                Err(error) => tracing::warn!(%run, %error, "requests to stop could not be read"),
            }
            store.changed(run, after, POLL).await;
        }
    })
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
