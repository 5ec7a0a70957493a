//! From the candidates' answers to a verdict.

use cyberine_run_store::{CandidateError, RunEvent, Verdict, VerdictOutcome};
use cyberine_types::{Billing, Usage};

use super::{Contestant, Effects, Machine, Phase, SUPERSEDED, Stand};
use crate::adversarial::Adversarial;
use crate::config::JudgeKind;
use crate::consensus::equivalence::Equivalence;
use crate::consensus::{Answer, consensus};
use crate::judge::{Contender, Judge, Juror, Next, Question, Standing, family};
use crate::llm_judge::LlmJudge;
use crate::machine::Action;
use crate::trial::{CommandJudge, TrialError, TrialReport};

impl Machine {
    /// Judges what was answered, where there is anything to judge.
    pub(super) fn begin_judging(&mut self, effects: &mut Effects) {
        match self.verdict_without_judging() {
            Some((outcome, rationale)) => {
                let kind = self.setup.judges.first().map_or("none", |judge| judge.name()).to_owned();
                let (votes, usage) = (Vec::new(), Usage::default());
                self.judged(
                    Verdict { kind, outcome, winner: None, rationale, votes, attacks: Vec::new(), usage },
                    effects,
                );
                self.done(effects);
            }
            None => {
                self.phase = Phase::Judging { next_judge: 0, judge: None };
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

    /// Lets the judges decide, up to the first that has to wait for somebody.
    fn judge(&mut self, effects: &mut Effects) {
        while let Phase::Judging { next_judge, judge: None } = &mut self.phase {
            let Some(kind) = self.setup.judges.get(*next_judge).copied() else {
                return self.all_judged(effects);
            };
            *next_judge += 1;
            let contenders = self.contenders();
            // Who was ruled out stays out, and among fewer than two there is nothing to choose.
            if self.left.is_some() && contenders.len() < 2 {
                continue;
            }
            let by_equality = kind == JudgeKind::Consensus && !self.setup.equivalence;
            if by_equality {
                let answers: Vec<Answer<'_>> = contenders.iter().map(answer).collect();
                let verdict = consensus(&answers);
                self.judged(verdict, effects);
            } else if !self.has_winner() || self.setup.judge_always {
                let judge = self.seated(kind, contenders);
                self.ask_or_decide(judge, effects);
            }
        }
    }

    fn seated(&self, kind: JudgeKind, contenders: Vec<Contender>) -> Box<dyn Judge> {
        let seed = self.setup.seed.wrapping_add(self.round() as u64 - 1);
        match kind {
            JudgeKind::Consensus => Box::new(Equivalence::new(contenders, self.jurors(), seed)),
            JudgeKind::LlmJudge => {
                let criteria = self.setup.criteria.clone();
                Box::new(LlmJudge::new(contenders, self.jurors(), seed).with_criteria(criteria))
            }
            JudgeKind::Adversarial => {
                let criteria = self.setup.criteria.clone();
                Box::new(Adversarial::new(contenders, self.jurors(), seed).with_criteria(criteria))
            }
            JudgeKind::Command => Box::new(CommandJudge::new(contenders, self.setup.extract)),
        }
    }

    pub(super) fn judge_replied(
        &mut self,
        reply: Result<String, CandidateError>,
        usage: Usage,
        duration_ms: u64,
        effects: &mut Effects,
    ) {
        let Some(mut judge) = self.take_judge() else { return };
        self.purse.settle_judge(&usage, reply.as_ref().err().map(|error| error.code.as_str()));
        effects.append.push(RunEvent::JudgeReplied {
            step: self.step_id(),
            judge: judge.asked().unwrap_or_default().to_owned(),
            error: reply.as_ref().err().cloned(),
            usage,
            duration_ms,
        });
        if matches!(self.phase, Phase::Ending { .. }) {
            self.bill(judge.name(), judge.usage().plus(&usage), effects);
            return self.advance(effects);
        }
        judge.replied(reply.map_err(|error| error.message), &usage);
        self.ask_or_decide(judge, effects);
        self.judge(effects);
    }

    pub(super) fn tried(&mut self, outcome: Result<TrialReport, TrialError>, effects: &mut Effects) {
        let Some(mut judge) = self.take_judge() else { return };
        if matches!(self.phase, Phase::Ending { .. }) {
            self.bill(judge.name(), judge.usage(), effects);
            return self.advance(effects);
        }
        judge.tried(outcome);
        self.ask_or_decide(judge, effects);
        self.judge(effects);
    }

    /// The judge that waits for a reply or for the outcome of a trial.
    fn take_judge(&mut self) -> Option<Box<dyn Judge>> {
        match &mut self.phase {
            Phase::Judging { judge, .. } | Phase::Ending { judge, .. } => judge.take(),
            Phase::Asking | Phase::Waiting { .. } | Phase::Over => None,
        }
    }

    fn ask_or_decide(&mut self, mut waiting: Box<dyn Judge>, effects: &mut Effects) {
        loop {
            match waiting.next() {
                Next::Ask(question) => {
                    let (guidance, rubric) = (self.guidance.clone(), self.setup.rubric.clone());
                    let question = Question { guidance, rubric, ..question };
                    // Who is not asked is out like one who fails.
                    if let Err(refused) = self.purse.take_judge(&question) {
                        waiting.replied(Err(format!("budget: {refused}")), &Usage::default());
                        continue;
                    }
                    effects.append.push(self.judge_asked(&question.provider));
                    effects.actions.push(Action::AskJudge(question));
                }
                Next::Try(attempt) => effects.actions.push(Action::Try(attempt)),
                Next::Decided(ruling) => {
                    self.left = ruling.left.or(self.left.take());
                    return self.judged(ruling.verdict, effects);
                }
            }
            break;
        }
        if let Phase::Judging { judge, .. } = &mut self.phase {
            *judge = Some(waiting);
        }
    }

    fn judge_asked(&self, judge: &str) -> RunEvent {
        let juror = self.setup.jurors.iter().find(|juror| juror.id == judge);
        RunEvent::JudgeAsked {
            step: self.step_id(),
            judge: judge.to_owned(),
            kind: juror.map(|juror| juror.kind.clone()).unwrap_or_default(),
            model: juror.and_then(|juror| juror.model.clone()),
            billing: juror.map_or(Billing::Metered, |juror| juror.billing),
        }
    }

    /// Those who answered, and whom no judge has ruled out.
    fn contenders(&self) -> Vec<Contender> {
        let stands = self.setup.contestants.iter().zip(&self.stands).enumerate();
        let contenders = stands.filter_map(|(at, (contestant, stand))| {
            Some(Contender {
                id: contestant.id.clone(),
                provider: contestant.provider.clone(),
                family: family::family(&contestant.kind, self.model_of(at)),
                model: self.model_of(at).map(str::to_owned),
                text: stand.answer()?.to_owned(),
            })
        });
        let left = |one: &Contender| self.left.as_ref().is_none_or(|left| left.contains(&one.id));
        contenders.filter(left).collect()
    }

    /// The model that has answered, or else the one that was to.
    fn model_of(&self, candidate: usize) -> Option<&str> {
        let contestant = &self.setup.contestants[candidate];
        let fallback = contestant.fallback.as_deref().filter(|_| self.by_fallback[candidate]);
        fallback.or(contestant.model.as_deref())
    }

    /// Providers that have nothing to do with the candidates first. One that has just failed as a
    /// candidate is not asked again.
    pub(super) fn jurors(&self) -> Vec<Juror> {
        let jurors = self.setup.jurors.iter().filter_map(|juror| {
            let standing = self.standing(juror)?;
            let family = family::family(&juror.kind, juror.model.as_deref());
            let (model, source) = (juror.model.clone(), juror.source.clone());
            Some(Juror { provider: juror.id.clone(), family, model, source, standing })
        });
        let mut jurors: Vec<Juror> = jurors.collect();
        jurors.sort_by_key(|juror| juror.standing.nearness());
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
        let broken = |stand: &&Stand| matches!(stand, Stand::Failed(code) | Stand::Kept { code, .. } if *code != SUPERSEDED);
        if own.iter().any(broken) {
            return None;
        }
        let model = juror.model.as_deref();
        let mut all = 0..contestants.len();
        let twin = all.clone().find(|at| model.is_some() && self.model_of(*at) == model);
        let twin = twin.map(|at| Standing::SameModel(contestants[at].id.clone()));
        let own = family::family(&juror.kind, model);
        let family = |at: usize| family::family(&contestants[at].kind, self.model_of(at));
        let kin = all.find(|at| own.is_some() && family(*at) == own);
        let kin = kin.map(|at| Standing::SameFamily(contestants[at].id.clone()));
        Some(twin.or(kin).unwrap_or(Standing::Outside))
    }

    pub(super) fn has_winner(&self) -> bool {
        self.verdicts.iter().any(|(_, winner)| winner.is_some())
    }

    pub(super) fn judged(&mut self, verdict: Verdict, effects: &mut Effects) {
        self.verdicts.push((verdict.outcome, verdict.winner.clone()));
        effects.append.push(RunEvent::Judged { step: self.step_id(), verdict });
    }

    /// What a judge had used before it was stopped has been spent: a verdict carries it.
    fn bill(&mut self, judge: &str, usage: Usage, effects: &mut Effects) {
        let verdict = Verdict {
            kind: judge.to_owned(),
            outcome: VerdictOutcome::Unjudged,
            winner: None,
            rationale: "the run was cancelled before the judge had decided".to_owned(),
            votes: Vec::new(),
            attacks: Vec::new(),
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

fn answer(contender: &Contender) -> Answer<'_> {
    Answer { candidate: &contender.id, text: &contender.text }
}
