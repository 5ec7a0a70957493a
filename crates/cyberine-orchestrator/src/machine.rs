//! The course of one orchestration as a pure step machine: an input in, events to append and
//! actions to take out. It knows neither time nor tasks nor files.

mod gate;
mod judging;
mod rounds;
mod signals;
mod steering;

use std::collections::BTreeSet;

use cyberine_run_store::{RunEvent, RunState, VerdictOutcome};
use cyberine_types::{Billing, MessageId, Usage};

use crate::consensus::Answer;
use crate::judge::{Guidance, Judge};
use crate::label::labelled;
use crate::plan::{Gate, STEP_NAME};
use crate::purse::Purse;
use crate::text::preview;
use rounds::Again;
pub(crate) use signals::{Action, Closing, Contestant, Decision, Effects, Input, Settlement, Setup};
pub(crate) use steering::{MAX_STEERS, Steering};

/// How a candidate has failed that was stopped since there were answers enough.
pub(crate) const SUPERSEDED: &str = "superseded";

/// How a candidate has failed that was not asked, for what its run holds does not suffice.
const BUDGET: &str = "budget";

/// Failures of a turn after which the fallback model is asked, where no answer had begun.
const FALLS_BACK: [&str; 5] = ["overloaded", "rate-limit", "unreachable", "timeout-idle", "timeout-wall"];

#[derive(Debug)]
enum Stand {
    Waiting,
    Running {
        /// Its fallback model is asked; how long the model before had taken, in milliseconds.
        fell_back: Option<u64>,
    },
    Done(String),
    /// It has failed with this code, and its answer of the round before stands.
    Kept {
        text: String,
        code: &'static str,
    },
    Failed(&'static str),
}

impl Stand {
    fn answer(&self) -> Option<&str> {
        match self {
            Self::Done(text) | Self::Kept { text, .. } => Some(text),
            Self::Waiting | Self::Running { .. } | Self::Failed(_) => None,
        }
    }

    /// How long it has taken so far, in milliseconds, without the turn under way.
    const fn took_before(&self) -> u64 {
        match self {
            Self::Running { fell_back: Some(before) } => *before,
            _ => 0,
        }
    }
}

#[derive(Debug)]
enum Phase {
    Asking,
    /// At the gate, until somebody decides or its time is over.
    Waiting {
        gate: Gate,
        suspended: bool,
    },
    Judging {
        next_judge: usize,
        judge: Option<Box<dyn Judge>>,
    },
    /// Turns are dying; the settlement follows the last of them. `judge` is set as long as a
    /// judge's turn is among them.
    Ending {
        settlement: Settlement,
        judge: Option<Box<dyn Judge>>,
    },
    Over,
}

#[derive(Debug)]
pub(crate) struct Machine {
    setup: Setup,
    stands: Vec<Stand>,
    phase: Phase,
    /// What the run may still spend.
    purse: Purse,
    /// There are as many answers as suffice. Later rounds ask those only, and wait for them all.
    enough: bool,
    /// The present round, where it is not the first.
    again: Option<Again>,
    /// Why there was no further round, where the money did not suffice for it.
    unpaid: Option<String>,
    /// Those of the present round.
    verdicts: Vec<(VerdictOutcome, Option<String>)>,
    /// The candidates that are left to choose among, where a judge has ruled some out.
    left: Option<Vec<String>>,
    /// The first approval of the run or its step, as long as nobody has rejected it.
    approval: Option<Decision>,
    /// What the judges are shown beside the answers.
    guidance: Vec<Guidance>,
    /// The messages that were taken in.
    steered: BTreeSet<MessageId>,
    /// Whether it is on record that more guidance came than is taken in.
    overflowed: bool,
    /// Whether it is on record that guidance came while the run was judged.
    came_late: bool,
    /// Whose answer the fallback model gave.
    by_fallback: Vec<bool>,
}

impl Machine {
    pub(crate) fn new(setup: Setup) -> Self {
        let stands = setup.contestants.iter().map(|_| Stand::Waiting).collect();
        let by_fallback = vec![false; setup.contestants.len()];
        let steered = setup.steered.iter().map(|word| word.message).collect();
        let guidance = setup.steered.iter().map(Steering::guidance).collect();
        Self {
            setup,
            stands,
            phase: Phase::Asking,
            purse: Purse::default(),
            enough: false,
            again: None,
            unpaid: None,
            verdicts: Vec::new(),
            left: None,
            approval: None,
            guidance,
            steered,
            overflowed: false,
            came_late: false,
            by_fallback,
        }
    }

    /// Holds the run to what is in `purse`.
    pub(crate) fn with_purse(self, purse: Purse) -> Self {
        Self { purse, ..self }
    }

    /// Total: an input that no longer matters has no effects.
    pub(crate) fn step(&mut self, input: Input) -> Effects {
        let mut effects = Effects::default();
        if matches!(self.phase, Phase::Over) {
            return effects;
        }
        match input {
            Input::Begin => {
                effects
                    .append
                    .push(RunEvent::StepStarted { step: self.step_id(), name: STEP_NAME.to_owned() });
                self.advance(&mut effects);
            }
            Input::Answered { candidate, text, usage, duration_ms } => {
                self.answered(candidate, text, usage, duration_ms, &mut effects);
            }
            failed @ Input::Failed { .. } => self.failed(failed, &mut effects),
            Input::JudgeReplied { reply, usage, duration_ms } => {
                self.judge_replied(reply, usage, duration_ms, &mut effects);
            }
            Input::Tried(outcome) => self.tried(outcome, &mut effects),
            Input::CancelRequested { by, reason } => self.cancelled(&by, reason.as_deref(), &mut effects),
            Input::Decided(decision) => self.decided(decision, &mut effects),
            Input::Closed(decision) => self.closed(&decision, &mut effects),
            Input::Expired => self.expired(&mut effects),
            Input::Steered(word) => self.steered(word, &mut effects),
        }
        effects
    }

    fn answered(
        &mut self,
        candidate: usize,
        text: String,
        usage: Usage,
        duration_ms: u64,
        effects: &mut Effects,
    ) {
        self.purse.settle(&self.setup.contestants[candidate].id, &usage, None);
        effects.append.push(RunEvent::CandidateDone {
            step: self.step_id(),
            candidate: self.setup.contestants[candidate].id.clone(),
            output: text.clone(),
            usage,
            duration_ms: duration_ms.saturating_add(self.stands[candidate].took_before()),
        });
        self.by_fallback[candidate] = matches!(self.stands[candidate], Stand::Running { fell_back: Some(_) });
        self.stands[candidate] = Stand::Done(text);
        self.stop_where_enough(effects);
        self.advance(effects);
    }

    /// Stops the candidates that still run once there are as many answers as suffice. Those that
    /// wait for their turn are not asked any more.
    fn stop_where_enough(&mut self, effects: &mut Effects) {
        let answered = self.answers().len();
        let enough = self.setup.first.is_some_and(|first| answered >= first);
        if !enough || self.enough || !matches!(self.phase, Phase::Asking) {
            return;
        }
        self.enough = true;
        if self.running() > 0 {
            effects.actions.push(Action::StopCandidates);
        }
    }

    fn failed(&mut self, failure: Input, effects: &mut Effects) {
        let Input::Failed { candidate, mut code, mut message, begun, usage, duration_ms } = failure else {
            return;
        };
        let contestant = &self.setup.contestants[candidate];
        let (step, id) = (self.step_id(), contestant.id.clone());
        self.purse.settle(&id, &usage, Some(code));
        if self.falls_back(candidate, code, begun)
            && let Some(model) = contestant.fallback.clone()
            && self.purse.take_fallback(&id, &contestant.provider, self.beside(candidate)).is_ok()
        {
            let code = code.to_owned();
            effects.append.push(RunEvent::CandidateFellBack {
                step,
                candidate: id,
                model,
                code,
                message,
                usage,
                duration_ms,
            });
            self.stands[candidate] = Stand::Running { fell_back: Some(duration_ms) };
            effects.actions.push(Action::AskFallback(candidate));
            return;
        }
        if self.sufficed() && code == "cancelled" {
            code = SUPERSEDED;
            message = format!("it was stopped: {} answers were enough", self.setup.first.unwrap_or_default());
        }
        effects.append.push(RunEvent::CandidateFailed {
            step,
            candidate: id,
            code: code.to_owned(),
            message,
            usage,
            duration_ms: duration_ms.saturating_add(self.stands[candidate].took_before()),
        });
        self.fall_out(candidate, code, effects);
        self.advance(effects);
    }

    /// Whether the fallback model is asked after this failure: once, and only where nothing that
    /// ends the asking has come.
    fn falls_back(&self, candidate: usize, code: &str, begun: bool) -> bool {
        let asking = matches!(self.phase, Phase::Asking) && !self.sufficed();
        let first = matches!(self.stands[candidate], Stand::Running { fell_back: None });
        asking && first && !begun && FALLS_BACK.contains(&code)
    }

    /// Starts what may start, and goes to the next phase when all are finished.
    fn advance(&mut self, effects: &mut Effects) {
        match &self.phase {
            Phase::Ending { settlement, judge: None } if self.running() == 0 => {
                let settlement = settlement.clone();
                self.settle(settlement, effects);
            }
            Phase::Asking => {
                if !self.sufficed() {
                    self.start_waiting(effects);
                }
                if self.running() == 0 {
                    self.all_finished(effects);
                }
            }
            Phase::Ending { .. } | Phase::Waiting { .. } | Phase::Judging { .. } | Phase::Over => {}
        }
    }

    /// Whether the present round has as many answers as suffice.
    const fn sufficed(&self) -> bool {
        self.enough && self.again.is_none()
    }

    fn running(&self) -> usize {
        self.stands.iter().filter(|stand| matches!(stand, Stand::Running { .. })).count()
    }

    fn start_waiting(&mut self, effects: &mut Effects) {
        for at in 0..self.stands.len() {
            if self.running() >= self.setup.max_parallel.max(1) {
                return;
            }
            if !matches!(self.stands[at], Stand::Waiting) {
                continue;
            }
            let contestant = &self.setup.contestants[at];
            let beside = self.beside(at);
            let refused = self.purse.take_candidate(&contestant.id, &contestant.provider, beside).err();
            // What is under way may come out cheaper than it can.
            if refused.is_some() && self.purse.waits() {
                continue;
            }
            effects.append.push(RunEvent::CandidateStarted {
                step: self.step_id(),
                candidate: contestant.id.clone(),
                provider: contestant.provider.clone(),
                kind: contestant.kind.clone(),
                model: contestant.model.clone(),
                billing: contestant.billing,
            });
            if let Some(refused) = refused {
                effects.append.push(RunEvent::CandidateFailed {
                    step: self.step_id(),
                    candidate: contestant.id.clone(),
                    code: BUDGET.to_owned(),
                    message: refused.to_string(),
                    usage: Usage::default(),
                    duration_ms: 0,
                });
                self.fall_out(at, BUDGET, effects);
                continue;
            }
            self.stands[at] = Stand::Running { fell_back: None };
            effects.actions.push(Action::Ask(at));
        }
    }

    fn answers(&self) -> Vec<Answer<'_>> {
        let stands = self.setup.contestants.iter().zip(&self.stands);
        stands
            .filter_map(|(contestant, stand)| {
                Some(Answer { candidate: &contestant.id, text: stand.answer()? })
            })
            .collect()
    }

    fn all_finished(&mut self, effects: &mut Effects) {
        if self.answers().is_empty() {
            let detail = format!("no candidate answered: {}", self.failures());
            let settlement = Settlement { state: RunState::Error, detail, reason: Some("no_answer") };
            return self.settle(settlement, effects);
        }
        if self.again.is_some() {
            return self.round_finished(effects);
        }
        self.reach_gate(effects);
    }

    /// Stops everything and settles once nothing runs. Only the first request counts.
    fn cancelled(&mut self, by: &str, reason: Option<&str>, effects: &mut Effects) {
        if matches!(self.phase, Phase::Ending { .. } | Phase::Over) {
            return;
        }
        let answered = self.answered_so_far();
        let why = reason.map(|reason| format!(" ({})", preview(reason, 200))).unwrap_or_default();
        let detail = format!(
            "cancelled by {}{why}; {answered} of {} candidates had answered{}",
            preview(by, 120),
            self.stands.len(),
            self.again
                .as_ref()
                .map(|_| format!(", and it was in round {}", self.round()))
                .unwrap_or_default()
        );
        self.end(detail, effects);
    }

    /// Kills what runs, and settles as cancelled once all of it is over.
    fn end(&mut self, detail: String, effects: &mut Effects) {
        let judge = match &mut self.phase {
            Phase::Judging { judge, .. } => judge.take(),
            Phase::Asking | Phase::Waiting { .. } | Phase::Ending { .. } | Phase::Over => None,
        };
        effects.actions.push(Action::KillTurns);
        let settlement = Settlement { state: RunState::Cancelled, detail, reason: None };
        self.phase = Phase::Ending { settlement, judge };
        self.advance(effects);
    }

    fn done(&mut self, effects: &mut Effects) {
        let first = if self.enough { "the first " } else { "" };
        let detail = format!(
            "{first}{} of {} candidates answered; {}{}",
            self.answers().len(),
            self.stands.len(),
            self.outcome(),
            self.rounds_said()
        );
        self.settle(Settlement { state: RunState::Done, detail, reason: None }, effects);
    }

    fn settle(&mut self, mut settlement: Settlement, effects: &mut Effects) {
        let scripted =
            self.setup.contestants.iter().any(|contestant| contestant.billing == Billing::Scripted);
        settlement.detail = labelled(settlement.detail, scripted);
        self.phase = Phase::Over;
        effects.actions.push(Action::Settle(settlement));
    }

    /// Who failed, and how: `a (auth), b (empty)`. Who was stopped has not failed.
    fn failures(&self) -> String {
        let stands = self.setup.contestants.iter().zip(&self.stands);
        let failed = stands.filter_map(|(contestant, stand)| match stand {
            Stand::Failed(code) if *code != SUPERSEDED => Some(format!("{} ({code})", contestant.id)),
            _ => None,
        });
        failed.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
