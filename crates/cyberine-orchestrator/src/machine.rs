//! The course of one orchestration as a pure step machine: an input in, events to append and
//! actions to take out. It knows neither time nor tasks nor files.

mod signals;

use cyberine_run_store::{CandidateError, RunEvent, RunState, Verdict, VerdictOutcome};
use cyberine_types::{Billing, Usage};

use crate::config::JudgeKind;
use crate::consensus::{Answer, consensus};
use crate::label::labelled;
use crate::llm_judge::{Contender, Juror, LlmJudge, Next, Standing};
use crate::plan::{STEP_ID, STEP_NAME};
use crate::text::preview;
pub(crate) use signals::{Action, Contestant, Effects, Input, Settlement, Setup};

#[derive(Debug)]
enum Stand {
    Waiting,
    Running,
    Done(String),
    Failed(&'static str),
}

#[derive(Debug)]
enum Phase {
    Asking,
    Judging {
        next_judge: usize,
        model: Option<Box<LlmJudge>>,
    },
    /// Turns are dying; the settlement follows the last of them. `judge` is set as long as a
    /// judge's turn is among them.
    Ending {
        settlement: Settlement,
        judge: Option<Box<LlmJudge>>,
    },
    Over,
}

#[derive(Debug)]
pub(crate) struct Machine {
    setup: Setup,
    stands: Vec<Stand>,
    phase: Phase,
    verdicts: Vec<(VerdictOutcome, Option<String>)>,
}

impl Machine {
    pub(crate) fn new(setup: Setup) -> Self {
        let stands = setup.contestants.iter().map(|_| Stand::Waiting).collect();
        Self { setup, stands, phase: Phase::Asking, verdicts: Vec::new() }
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
                    .push(RunEvent::StepStarted { step: STEP_ID.to_owned(), name: STEP_NAME.to_owned() });
                self.advance(&mut effects);
            }
            Input::Answered { candidate, text, usage, duration_ms } => {
                self.answered(candidate, text, usage, duration_ms, &mut effects);
            }
            Input::Failed { candidate, code, message, usage, duration_ms } => {
                self.stands[candidate] = Stand::Failed(code);
                effects.append.push(RunEvent::CandidateFailed {
                    step: STEP_ID.to_owned(),
                    candidate: self.setup.contestants[candidate].id.clone(),
                    code: code.to_owned(),
                    message,
                    usage,
                    duration_ms,
                });
                self.advance(&mut effects);
            }
            Input::JudgeReplied { reply, usage, duration_ms } => {
                self.judge_replied(reply, usage, duration_ms, &mut effects);
            }
            Input::CancelRequested { by, reason } => self.cancelled(&by, reason.as_deref(), &mut effects),
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
        effects.append.push(RunEvent::CandidateDone {
            step: STEP_ID.to_owned(),
            candidate: self.setup.contestants[candidate].id.clone(),
            output: text.clone(),
            usage,
            duration_ms,
        });
        self.stands[candidate] = Stand::Done(text);
        self.advance(effects);
    }

    /// Starts what may start, and goes to the next phase when all are finished.
    fn advance(&mut self, effects: &mut Effects) {
        match &self.phase {
            Phase::Ending { settlement, judge: None } if self.running() == 0 => {
                let settlement = settlement.clone();
                self.settle(settlement, effects);
            }
            Phase::Asking => {
                self.start_waiting(effects);
                if self.running() == 0 {
                    self.all_finished(effects);
                }
            }
            Phase::Ending { .. } | Phase::Judging { .. } | Phase::Over => {}
        }
    }

    fn running(&self) -> usize {
        self.stands.iter().filter(|stand| matches!(stand, Stand::Running)).count()
    }

    fn start_waiting(&mut self, effects: &mut Effects) {
        let room = self.setup.max_parallel.max(1).saturating_sub(self.running());
        let waiting = self
            .stands
            .iter_mut()
            .enumerate()
            .filter(|(_, stand)| matches!(stand, Stand::Waiting))
            .take(room);
        for (at, stand) in waiting {
            *stand = Stand::Running;
            let contestant = &self.setup.contestants[at];
            effects.append.push(RunEvent::CandidateStarted {
                step: STEP_ID.to_owned(),
                candidate: contestant.id.clone(),
                provider: contestant.id.clone(),
                kind: contestant.kind.clone(),
                model: contestant.model.clone(),
                billing: contestant.billing,
            });
            effects.actions.push(Action::Ask(at));
        }
    }

    fn answers(&self) -> Vec<Answer<'_>> {
        let stands = self.setup.contestants.iter().zip(&self.stands);
        stands
            .filter_map(|(contestant, stand)| match stand {
                Stand::Done(text) => Some(Answer { candidate: &contestant.id, text }),
                Stand::Waiting | Stand::Running | Stand::Failed(_) => None,
            })
            .collect()
    }

    fn all_finished(&mut self, effects: &mut Effects) {
        if self.answers().is_empty() {
            let detail = format!("no candidate answered: {}", self.failures());
            let settlement = Settlement { state: RunState::Error, detail, reason: Some("no_answer") };
            return self.settle(settlement, effects);
        }
        match self.verdict_without_judging() {
            Some((outcome, rationale)) => {
                let kind = self.setup.judges.first().map_or("none", |judge| judge.name()).to_owned();
                let (votes, usage) = (Vec::new(), Usage::default());
                self.judged(Verdict { kind, outcome, winner: None, rationale, votes, usage }, effects);
                self.done(effects);
            }
            None => {
                self.phase = Phase::Judging { next_judge: 0, model: None };
                self.judge(effects);
            }
        }
    }

    /// What comes out where there is nothing to judge, or nobody who could.
    fn verdict_without_judging(&self) -> Option<(VerdictOutcome, String)> {
        let (answered, asked) = (self.answers().len(), self.stands.len());
        let quorum = self.setup.quorum.min(asked);
        if answered < quorum {
            let failures = self.failures();
            let rationale =
                format!("{answered} of {asked} candidates answered, and {quorum} are needed: {failures}");
            return Some((VerdictOutcome::NoQuorum, rationale));
        }
        let why = if answered == 1 {
            "there is one answer, and nothing to compare it with"
        } else if self.setup.judges.is_empty() {
            "no judge is configured"
        } else {
            return None;
        };
        Some((VerdictOutcome::Unjudged, why.to_owned()))
    }

    /// Lets the judges decide, up to the first that has to ask a model.
    fn judge(&mut self, effects: &mut Effects) {
        while let Phase::Judging { next_judge, model: None } = &mut self.phase {
            let Some(kind) = self.setup.judges.get(*next_judge).copied() else {
                return self.done(effects);
            };
            *next_judge += 1;
            match kind {
                JudgeKind::Consensus => {
                    let verdict = consensus(&self.answers());
                    self.judged(verdict, effects);
                }
                JudgeKind::LlmJudge if self.has_majority() && !self.setup.judge_always => {}
                JudgeKind::LlmJudge => {
                    let judge = LlmJudge::new(self.contenders(), self.jurors(), self.setup.seed);
                    self.ask_or_decide(Box::new(judge), effects);
                }
            }
        }
    }

    fn judge_replied(
        &mut self,
        reply: Result<String, CandidateError>,
        usage: Usage,
        duration_ms: u64,
        effects: &mut Effects,
    ) {
        let judge = match &mut self.phase {
            Phase::Judging { model: judge, .. } | Phase::Ending { judge, .. } => judge.take(),
            Phase::Asking | Phase::Over => None,
        };
        let Some(mut judge) = judge else { return };
        effects.append.push(RunEvent::JudgeReplied {
            step: STEP_ID.to_owned(),
            judge: judge.asked().unwrap_or_default().to_owned(),
            error: reply.as_ref().err().cloned(),
            usage,
            duration_ms,
        });
        if matches!(self.phase, Phase::Ending { .. }) {
            self.bill(judge.usage().plus(&usage), effects);
            return self.advance(effects);
        }
        judge.replied(reply.map_err(|error| error.message), &usage);
        self.ask_or_decide(judge, effects);
        self.judge(effects);
    }

    fn ask_or_decide(&mut self, judge: Box<LlmJudge>, effects: &mut Effects) {
        match judge.next() {
            Next::Ask(question) => {
                effects.append.push(self.judge_asked(&question.provider));
                effects.actions.push(Action::AskJudge(question));
                if let Phase::Judging { model, .. } = &mut self.phase {
                    *model = Some(judge);
                }
            }
            Next::Decided(verdict) => self.judged(verdict, effects),
        }
    }

    fn judge_asked(&self, judge: &str) -> RunEvent {
        let juror = self.setup.jurors.iter().find(|juror| juror.id == judge);
        RunEvent::JudgeAsked {
            step: STEP_ID.to_owned(),
            judge: judge.to_owned(),
            kind: juror.map(|juror| juror.kind.clone()).unwrap_or_default(),
            model: juror.and_then(|juror| juror.model.clone()),
            billing: juror.map_or(Billing::Metered, |juror| juror.billing),
        }
    }

    fn contenders(&self) -> Vec<Contender> {
        self.answers()
            .iter()
            .map(|answer| Contender { id: answer.candidate.to_owned(), text: answer.text.to_owned() })
            .collect()
    }

    /// Providers that have nothing to do with the candidates first. One that has just failed as a
    /// candidate is not asked again.
    fn jurors(&self) -> Vec<Juror> {
        let jurors = self.setup.jurors.iter().filter_map(|juror| {
            let standing = self.standing(juror)?;
            Some(Juror { provider: juror.id.clone(), standing })
        });
        let mut jurors: Vec<Juror> = jurors.collect();
        jurors.sort_by_key(|juror| match juror.standing {
            Standing::Outside => 0,
            Standing::SameModel(_) => 1,
            Standing::Candidate => 2,
        });
        jurors
    }

    /// `None` for a candidate that has failed.
    fn standing(&self, juror: &Contestant) -> Option<Standing> {
        let contestants = &self.setup.contestants;
        if let Some(at) = contestants.iter().position(|contestant| contestant.id == juror.id) {
            return matches!(self.stands[at], Stand::Done(_)).then_some(Standing::Candidate);
        }
        let same = |contestant: &&Contestant| contestant.model.is_some() && contestant.model == juror.model;
        let twin = contestants.iter().find(same).map(|contestant| Standing::SameModel(contestant.id.clone()));
        Some(twin.unwrap_or(Standing::Outside))
    }

    fn has_majority(&self) -> bool {
        self.verdicts.iter().any(|(outcome, _)| *outcome == VerdictOutcome::Majority)
    }

    fn judged(&mut self, verdict: Verdict, effects: &mut Effects) {
        self.verdicts.push((verdict.outcome, verdict.winner.clone()));
        effects.append.push(RunEvent::Judged { step: STEP_ID.to_owned(), verdict });
    }

    /// Stops everything and settles once nothing runs. Only the first request counts.
    fn cancelled(&mut self, by: &str, reason: Option<&str>, effects: &mut Effects) {
        let judge = match &mut self.phase {
            Phase::Ending { .. } | Phase::Over => return,
            Phase::Judging { model, .. } => model.take(),
            Phase::Asking => None,
        };
        let answered = self.answers().len();
        let why = reason.map(|reason| format!(" ({})", preview(reason, 200))).unwrap_or_default();
        let detail = format!(
            "cancelled by {}{why}; {answered} of {} candidates had answered",
            preview(by, 120),
            self.stands.len()
        );
        effects.actions.push(Action::KillTurns);
        let settlement = Settlement { state: RunState::Cancelled, detail, reason: None };
        self.phase = Phase::Ending { settlement, judge };
        self.advance(effects);
    }

    /// What a judge had used before it was stopped has been spent: a verdict carries it.
    fn bill(&mut self, usage: Usage, effects: &mut Effects) {
        let verdict = Verdict {
            kind: JudgeKind::LlmJudge.name().to_owned(),
            outcome: VerdictOutcome::Unjudged,
            winner: None,
            rationale: "the run was cancelled before the judge had decided".to_owned(),
            votes: Vec::new(),
            usage,
        };
        self.judged(verdict, effects);
    }

    fn done(&mut self, effects: &mut Effects) {
        let detail = format!(
            "{} of {} candidates answered; {}",
            self.answers().len(),
            self.stands.len(),
            self.outcome()
        );
        self.settle(Settlement { state: RunState::Done, detail, reason: None }, effects);
    }

    fn outcome(&self) -> String {
        let majority = self.verdicts.iter().find(|(outcome, _)| *outcome == VerdictOutcome::Majority);
        let decided = majority.or_else(|| self.verdicts.iter().find(|(_, winner)| winner.is_some()));
        match decided.or(self.verdicts.last()) {
            Some((VerdictOutcome::Majority, Some(winner))) => format!("a majority agrees with `{winner}`"),
            Some((_, Some(winner))) => format!("the judge prefers `{winner}`"),
            Some((VerdictOutcome::Tie, _)) => "a tie, no winner".to_owned(),
            Some((VerdictOutcome::NoQuorum, _)) => "too few to judge".to_owned(),
            _ => "not judged".to_owned(),
        }
    }

    fn settle(&mut self, mut settlement: Settlement, effects: &mut Effects) {
        let scripted =
            self.setup.contestants.iter().any(|contestant| contestant.billing == Billing::Scripted);
        settlement.detail = labelled(settlement.detail, scripted);
        self.phase = Phase::Over;
        effects.actions.push(Action::Settle(settlement));
    }

    /// Who failed, and how: `a (auth), b (empty)`.
    fn failures(&self) -> String {
        let stands = self.setup.contestants.iter().zip(&self.stands);
        let failed = stands.filter_map(|(contestant, stand)| match stand {
            Stand::Failed(code) => Some(format!("{} ({code})", contestant.id)),
            Stand::Waiting | Stand::Running | Stand::Done(_) => None,
        });
        failed.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
