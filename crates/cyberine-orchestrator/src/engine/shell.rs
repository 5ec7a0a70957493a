//! The asynchronous part: turns in flight, what comes from outside, effects taken out.

mod parts;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cyberine_provider::{Message, Provider, Role, Turn, TurnError};
use cyberine_run_store::{Claim, ProcessCount, RunEvent, RunState, StoreError, TickKind};
use cyberine_types::{Clock, RunId, SystemClock};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::expiry::Expiry;
use super::log::LogWatch;
use super::mail::Mail;
use super::{Engine, EngineError, Order};
use crate::control::{Control, ControlSource};
use crate::judge::{Attempt, Question};
use crate::machine::{Action, Closing, Effects, Input, Machine, Settlement, Steering};
use crate::plan::{Gate, Plan, STEP_ID};
use crate::purse::Purse;
use crate::team::Team;
use crate::ticks;
use crate::trial::{Trial, TrialError, TrialReport};
use crate::turn::{self, Finished};
use parts::{input, setup};

/// How long turns have to die before they are dropped and reaped.
const GRACE: Duration = Duration::from_secs(10);

/// Whose turn it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Candidate(usize),
    Judge,
}

/// What has come to its end.
enum Ended {
    Turn(Seat, Finished),
    Trial(Result<TrialReport, TrialError>),
}

/// What the shell has waited for.
enum Woken {
    Ended(Ended),
    Log(Vec<Input>),
    Control(Control),
    Steers(Vec<Steering>),
    Expired,
}

pub(super) struct Shell<'a> {
    engine: &'a Engine,
    claim: Claim,
    plan: &'a Plan,
    team: Team,
    order: Order,
    machine: Machine,
    turns: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// Ends every turn.
    kill: CancellationToken,
    /// Ends the candidates' turns.
    stop: CancellationToken,
    grace: Duration,
    log: LogWatch,
    mail: Mail,
    /// Set while the run waits for an approval.
    expiry: Option<Expiry>,
    clock: Arc<dyn Clock>,
}

impl<'a> Shell<'a> {
    pub(super) fn new(engine: &'a Engine, claim: Claim, plan: &'a Plan, team: Team, order: Order) -> Self {
        let purse = Purse::new(plan, order.task.len(), order.reserved, &order.shares);
        let machine = Machine::new(setup(plan, &team, &order.steers)).with_purse(purse);
        let names: Vec<String> = plan.candidates.iter().map(|planned| planned.name.clone()).collect();
        let kill = CancellationToken::new();
        let (bus, sender) = (Arc::clone(&engine.bus), engine.sender.clone());
        Self {
            log: LogWatch::new(Arc::clone(&engine.store), claim.run()),
            mail: Mail::new(bus, sender, claim.run(), &names),
            expiry: None,
            clock: Arc::new(SystemClock),
            engine,
            claim,
            plan,
            team,
            order,
            machine,
            turns: FuturesUnordered::new(),
            stop: kill.child_token(),
            kill,
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
        // A request to stop that came before the start is seen before anything is spent.
        let mut inputs = VecDeque::from(self.log.look().await?);
        if !matches!(inputs.front(), Some(Input::CancelRequested { .. })) {
            inputs.push_back(Input::Begin);
        }
        loop {
            while let Some(input) = inputs.pop_front() {
                let effects = self.machine.step(input);
                if let Some(settlement) = self.perform(effects, &mut inputs).await? {
                    return self.settle(settlement).await;
                }
            }
            self.mail.taken_in();
            let woken = tokio::select! {
                biased;
                Some(ended) = self.turns.next(), if !self.turns.is_empty() => Woken::Ended(ended),
                inputs = self.log.next() => Woken::Log(inputs),
                () = cancel.cancelled(), if !self.kill.is_cancelled() => Woken::Control(by_shutdown()),
                word = control.next() => Woken::Control(word),
                words = self.mail.next() => Woken::Steers(words),
                () = reached(self.expiry, &*self.clock) => Woken::Expired,
            };
            self.take(woken, &mut inputs).await?;
        }
    }

    async fn take(&mut self, woken: Woken, inputs: &mut VecDeque<Input>) -> Result<(), StoreError> {
        match woken {
            Woken::Ended(ended) => {
                if self.turns.is_empty() {
                    self.catch_up(inputs).await;
                }
                inputs.push_back(input(ended));
            }
            Woken::Log(written) => {
                if matches!(written.first(), Some(Input::Decided(_))) {
                    self.catch_up(inputs).await;
                }
                inputs.extend(written);
            }
            Woken::Control(Control::Stop { by, reason }) => {
                // Recorded before it takes effect. A repetition is the same request.
                self.engine.store.request_cancel(self.claim.run(), by.clone(), reason.clone()).await?;
                inputs.push_back(Input::CancelRequested { by, reason });
            }
            Woken::Control(Control::Unknown { detail }) => {
                self.append(vec![Control::ignored(detail)]).await?;
            }
            Woken::Steers(words) => inputs.extend(words.into_iter().map(Input::Steered)),
            Woken::Expired => {
                self.expiry = None;
                self.catch_up(inputs).await;
                inputs.push_back(Input::Expired);
            }
        }
        Ok(())
    }

    /// Takes in the guidance that is there before a judge may be asked.
    async fn catch_up(&mut self, inputs: &mut VecDeque<Input>) {
        inputs.extend(self.mail.look().await.into_iter().map(Input::Steered));
    }

    async fn announce(&mut self) -> Result<(), StoreError> {
        let started = RunEvent::Started { pid: std::process::id() };
        if self.order.begun {
            self.mail.tell(&[started]);
            return Ok(());
        }
        self.append(vec![started]).await
    }

    async fn append(&mut self, events: Vec<RunEvent>) -> Result<(), StoreError> {
        if !events.is_empty() {
            self.engine.store.append(&self.claim, events.clone()).await?;
            self.mail.tell(&events);
        }
        Ok(())
    }

    /// Appends first, then acts. `Some` when nothing is left but to settle.
    async fn perform(
        &mut self,
        effects: Effects,
        inputs: &mut VecDeque<Input>,
    ) -> Result<Option<Settlement>, StoreError> {
        self.append(effects.append).await?;
        let mut settlement = None;
        for action in effects.actions {
            match action {
                Action::Ask(at) => {
                    let provider = Arc::clone(&self.team.candidates[at]);
                    self.ask(at, Some(provider));
                }
                Action::AskFallback(at) => {
                    let fallback = self.team.fallbacks.get(&self.plan.candidates[at].name).cloned();
                    self.ask(at, fallback);
                }
                Action::StopCandidates => {
                    // Who is asked in a later round is not stopped by it.
                    std::mem::replace(&mut self.stop, self.kill.child_token()).cancel();
                }
                Action::AskJudge(question) => self.ask_judge(&question),
                Action::Try(attempt) => self.try_answer(attempt),
                Action::Suspend(gate) => self.suspend(gate).await?,
                Action::Close(closing) => self.close(*closing, inputs).await?,
                Action::KillTurns => self.kill.cancel(),
                Action::Settle(end) => settlement = Some(end),
            }
        }
        Ok(settlement)
    }

    fn ask(&mut self, at: usize, provider: Option<Arc<dyn Provider>>) {
        let planned = &self.plan.candidates[at];
        let task = &self.order.task;
        let messages = match self.machine.revision(at) {
            Some(revision) => revision.messages(planned.persona.as_deref(), task, random_token),
            None => {
                let persona = planned.persona.iter().map(|text| Message::new(Role::System, text));
                persona.chain([Message::new(Role::User, task)]).collect()
            }
        };
        let turn = self.turn(messages, None);
        self.start(Seat::Candidate(at), provider, turn, planned.name.clone());
    }

    fn ask_judge(&mut self, question: &Question) {
        let provider = self.team.judges.get(&question.provider).cloned();
        let messages = question.messages(&self.order.task, random_token);
        let turn = self.turn(messages, Some(question.schema()));
        self.start(Seat::Judge, provider, turn, format!("{} ({})", question.form.judge(), question.provider));
    }

    fn turn(&self, messages: Vec<Message>, output_schema: Option<serde_json::Value>) -> Turn {
        let (cwd, mark) = (self.order.cwd.clone(), self.claim.run().to_string());
        Turn { messages, tools: Vec::new(), output_schema, limits: self.plan.limits, cwd, mark }
    }

    /// Begins a turn. One that has not ended in time after it was told to is dropped.
    fn start(&mut self, seat: Seat, provider: Option<Arc<dyn Provider>>, turn: Turn, name: String) {
        let Some(provider) = provider else {
            let detail = "no such provider was built".to_owned();
            let finished = Finished::failed(TurnError::Unreachable { target: name, detail });
            return self.turns.push(Box::pin(std::future::ready(Ended::Turn(seat, finished))));
        };
        let (ticks, grace) = (Arc::clone(&self.engine.ticks), self.grace);
        let cancel = match seat {
            Seat::Candidate(_) => self.stop.child_token(),
            Seat::Judge => self.kill.child_token(),
        };
        let told = cancel.clone();
        let overdue = async move {
            told.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        self.turns.push(Box::pin(async move {
            tokio::select! {
                biased;
                finished = turn::take(provider, turn, name, ticks, cancel) => Ended::Turn(seat, finished),
                () = overdue => Ended::Turn(seat, Finished::failed(TurnError::Cancelled)),
            }
        }));
    }

    /// Begins a trial. One that has not ended in time after it was told to is dropped.
    fn try_answer(&mut self, attempt: Attempt) {
        let Some(command) = self.plan.judge_command.clone() else {
            let detail = "the plan holds no command".to_owned();
            return self.turns.push(Box::pin(std::future::ready(Ended::Trial(Err(TrialError { detail })))));
        };
        let (project, mark) = (self.order.cwd.clone(), self.claim.run().to_string());
        let trial = Trial { command, text: attempt.text, project, mark };
        let (ticks, name) = (Arc::clone(&self.engine.ticks), format!("command ({})", attempt.candidate));
        let (told, grace) = (self.kill.child_token(), self.grace);
        let tried = self.engine.trials.run(trial, told.clone());
        let overdue = async move {
            told.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        self.turns.push(Box::pin(async move {
            ticks.tick(&ticks::trial(&name, TickKind::Started, String::new()));
            let outcome = tokio::select! {
                biased;
                outcome = tried => outcome,
                () = overdue => Err(TrialError { detail: "it did not end when it was told to".to_owned() }),
            };
            let end = outcome.as_ref().map_or_else(ToString::to_string, |report| report.end.clone());
            ticks.tick(&ticks::trial(&name, TickKind::Done, end));
            Ended::Trial(outcome)
        }));
    }

    async fn suspend(&mut self, gate: Gate) -> Result<(), StoreError> {
        let expiry = Expiry::after(gate.seconds, &*self.clock);
        self.expiry = Some(expiry);
        let (step, expires_at, on_expiry) = (STEP_ID.to_owned(), expiry.at, gate.on_expiry);
        self.append(vec![RunEvent::ApprovalRequested { step, expires_at, on_expiry }]).await
    }

    /// Closes the gate where the log holds nothing that the machine was not told: a decision that
    /// is recorded before this counts, and one that is recorded after it finds the gate closed.
    async fn close(&mut self, closing: Closing, inputs: &mut VecDeque<Input>) -> Result<(), StoreError> {
        let Closing { event, decision, cause } = closing;
        let events = vec![event];
        loop {
            let news = self.log.look().await?;
            if !news.is_empty() {
                news.into_iter().chain([cause]).rev().for_each(|input| inputs.push_front(input));
                return Ok(());
            }
            match self.engine.store.append_after(&self.claim, self.log.seen(), events.clone()).await {
                Ok(_) => break,
                Err(StoreError::Moved { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.mail.tell(&events);
        self.expiry = None;
        inputs.push_front(Input::Closed(decision));
        Ok(())
    }

    /// Waits for what is dying, counts what had to be killed and appends the last event.
    async fn settle(&mut self, settlement: Settlement) -> Result<RunState, StoreError> {
        let processes = self.clear().await;
        let Settlement { state, detail, reason } = settlement;
        let settled =
            RunEvent::Settled { state, detail: detail.clone(), reason: reason.map(str::to_owned), processes };
        self.append(vec![settled]).await?;
        self.say_settled(detail);
        self.mail.taken_in();
        self.mail.close().await;
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
                Ok(()) => {
                    self.say_settled(detail);
                    self.mail.close().await;
                }
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

/// A version 4 UUID: 122 bits of the system's randomness.
fn random_token() -> String {
    RunId::random().to_string()
}

fn by_shutdown() -> Control {
    Control::Stop { by: "shutdown".to_owned(), reason: None }
}

async fn reached(expiry: Option<Expiry>, clock: &dyn Clock) {
    match expiry {
        Some(expiry) => expiry.reached(clock).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
