//! Rounds after the first: the candidates are asked again, each shown the others' answers.

use cyberine_run_store::{RunEvent, Verdict, VerdictOutcome};
use cyberine_types::Usage;

use super::{Effects, Machine, Phase, Stand};
use crate::criteria::Criterion;
use crate::judge::appeal;
use crate::plan::{step_id, step_name};
use crate::purse::Refused;
use crate::revision::Revision;
use crate::shuffle::order;

/// A round after the first, and what it began with.
#[derive(Debug)]
pub(super) struct Again {
    /// From 2.
    number: usize,
    /// What each candidate had answered before. Who had not is not asked again.
    answers: Vec<Option<Said>>,
    /// What came of the round before: neither a majority nor a winner.
    outcome: VerdictOutcome,
}

/// An answer of the round before.
#[derive(Debug)]
struct Said {
    text: String,
    /// As the others are shown it: without the lines that speak to whoever judges.
    plain: String,
}

impl Said {
    fn new(text: &str, criteria: &[Criterion]) -> Self {
        let plain = appeal::without(text, criteria).unwrap_or_else(|| text.to_owned());
        Self { text: text.to_owned(), plain }
    }
}

impl Machine {
    /// The present round, from 1.
    pub(super) fn round(&self) -> usize {
        self.again.as_ref().map_or(1, |again| again.number)
    }

    /// The step of the present round.
    pub(super) fn step_id(&self) -> String {
        step_id(self.round())
    }

    /// What the candidate of this index is shown beside the task; `None` in the first round.
    pub(crate) fn revision(&self, candidate: usize) -> Option<Revision> {
        let Again { number, answers, .. } = self.again.as_ref()?;
        let own = answers.get(candidate)?.as_ref()?;
        let said = answers.iter().enumerate().filter(|(at, _)| *at != candidate);
        let others: Vec<&Said> = said.filter_map(|(_, said)| said.as_ref()).collect();
        let place = u64::try_from(number * answers.len() + candidate).unwrap_or_default();
        let shuffled = order(others.len(), self.setup.seed.wrapping_add(place));
        let others = shuffled.into_iter().map(|at| others[at].plain.clone());
        Some(Revision::new(own.text.clone(), others.collect()))
    }

    /// How many bytes the candidate is shown beside the task.
    pub(super) fn beside(&self, candidate: usize) -> usize {
        self.revision(candidate).map_or(0, |revision| revision.bytes())
    }

    /// How many candidates have answered, in this round or in one before.
    pub(super) fn answered_so_far(&self) -> usize {
        let earlier = |at: usize| {
            self.again.as_ref().is_some_and(|again| again.answers.get(at).is_some_and(Option::is_some))
        };
        let answered = |(at, stand): &(usize, &Stand)| stand.answer().is_some() || earlier(*at);
        self.stands.iter().enumerate().filter(answered).count()
    }

    /// Who fails is out. In a later round its answer of before stands, unless the run ends.
    pub(super) fn fall_out(&mut self, candidate: usize, code: &'static str, effects: &mut Effects) {
        let earlier =
            self.again.as_ref().and_then(|again| Some(again.answers.get(candidate)?.as_ref()?.text.clone()));
        self.stands[candidate] = match (earlier, &self.phase) {
            (Some(text), Phase::Asking) => {
                effects.append.push(RunEvent::CandidateKept {
                    step: self.step_id(),
                    candidate: self.setup.contestants[candidate].id.clone(),
                    from_step: step_id(self.round() - 1),
                });
                Stand::Kept { text, code }
            }
            _ => Stand::Failed(code),
        };
    }

    /// Every judge has decided: asks the candidates again where there is neither a majority nor a
    /// winner, and a round is left that the run can pay for.
    pub(super) fn all_judged(&mut self, effects: &mut Effects) {
        let Some(&(outcome, None)) = self.verdicts.last().filter(|_| !self.has_winner()) else {
            return self.done(effects);
        };
        let number = self.round() + 1;
        if number > self.setup.rounds || self.answers().len() < 2 {
            return self.done(effects);
        }
        let answers = self
            .stands
            .iter()
            .map(|stand| stand.answer().map(|text| Said::new(text, &self.setup.criteria)))
            .collect();
        let before = self.again.replace(Again { number, answers, outcome });
        if let Err(refused) = self.can_pay_all() {
            self.again = before;
            self.unpaid = Some(refused.to_string());
            return self.done(effects);
        }
        self.begin_round(effects);
    }

    /// Whether what is left suffices for the most that this round's candidates can cost.
    fn can_pay_all(&self) -> Result<(), Refused> {
        let mut purse = self.purse.clone();
        for (at, contestant) in self.setup.contestants.iter().enumerate() {
            if self.stands[at].answer().is_some() {
                match purse.take_candidate(&contestant.id, &contestant.provider, self.beside(at)) {
                    // They are asked one after another.
                    Ok(()) | Err(Refused::Alone) => {}
                    Err(refused) => return Err(refused),
                }
            }
        }
        Ok(())
    }

    fn begin_round(&mut self, effects: &mut Effects) {
        let (step, name) = (self.step_id(), step_name(self.round()));
        effects.append.push(RunEvent::StepStarted { step, name });
        for stand in self.stands.iter_mut().filter(|stand| stand.answer().is_some()) {
            *stand = Stand::Waiting;
        }
        self.verdicts.clear();
        self.left = None;
        self.phase = Phase::Asking;
        self.advance(effects);
    }

    /// The candidates of a later round are over: judges it, unless nobody has said anything new.
    pub(super) fn round_finished(&mut self, effects: &mut Effects) {
        let said_anew = self.stands.iter().any(|stand| matches!(stand, Stand::Done(_)));
        let Some(again) = self.again.as_ref().filter(|_| !said_anew) else {
            return self.begin_judging(effects);
        };
        let (outcome, before) = (again.outcome, step_id(again.number - 1));
        let verdict = Verdict {
            kind: self.setup.judges.first().map_or("none", |judge| judge.name()).to_owned(),
            outcome,
            winner: None,
            rationale: format!(
                "nobody gave a new answer in this round, so that it stands as after `{before}`"
            ),
            votes: Vec::new(),
            attacks: Vec::new(),
            usage: Usage::default(),
        };
        self.judged(verdict, effects);
        self.done(effects);
    }

    /// What the rounds have to do with the outcome, for people; empty where there was but one.
    pub(super) fn rounds_said(&self) -> String {
        let (round, unpaid) = (self.round(), self.unpaid.as_ref());
        let count = match round {
            1 => String::new(),
            _ if self.has_winner() => format!(", in round {round}"),
            _ => format!(", after {round} rounds"),
        };
        let unpaid = unpaid.map(|why| format!("; there was no round {}: {why}", round + 1));
        format!("{count}{}", unpaid.unwrap_or_default())
    }
}
