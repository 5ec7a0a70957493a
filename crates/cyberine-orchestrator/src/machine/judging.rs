//! From the candidates' answers to a verdict.

use cyberine_run_store::{CandidateError, RunEvent, Verdict, VerdictOutcome};
use cyberine_types::{Billing, Usage};

use super::{Contestant, Effects, Machine, Phase, SUPERSEDED, Stand};
use crate::config::JudgeKind;
use crate::consensus::consensus;
use crate::llm_judge::{Contender, Juror, LlmJudge, Next, Question, Standing};
use crate::machine::Action;
use crate::plan::STEP_ID;

impl Machine {
    /// Judges what was answered, where there is anything to judge.
    pub(super) fn begin_judging(&mut self, effects: &mut Effects) {
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

    pub(super) fn judge_replied(
        &mut self,
        reply: Result<String, CandidateError>,
        usage: Usage,
        duration_ms: u64,
        effects: &mut Effects,
    ) {
        let judge = match &mut self.phase {
            Phase::Judging { model: judge, .. } | Phase::Ending { judge, .. } => judge.take(),
            Phase::Asking | Phase::Waiting { .. } | Phase::Over => None,
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
                let question = Question { guidance: self.guidance.clone(), ..question };
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
    pub(super) fn jurors(&self) -> Vec<Juror> {
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

    /// `None` for a provider all of whose candidates have failed. One whose candidates were only
    /// stopped, or not asked any more, has no answer to prefer.
    fn standing(&self, juror: &Contestant) -> Option<Standing> {
        let contestants = &self.setup.contestants;
        let own = contestants.iter().zip(&self.stands).filter(|(one, _)| one.provider == juror.provider);
        let own: Vec<&Stand> = own.map(|(_, stand)| stand).collect();
        if own.iter().any(|stand| matches!(stand, Stand::Done(_))) {
            return Some(Standing::Candidate);
        }
        let broken = |stand: &&Stand| matches!(stand, Stand::Failed(code) if *code != SUPERSEDED);
        if own.iter().any(broken) {
            return None;
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

    pub(super) fn outcome(&self) -> String {
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
}
