//! Critics attack each answer; who survives is ranked.

mod course;
mod look;
mod reply;

use std::collections::BTreeSet;

use cyberine_run_store::{Attack, Severity, Verdict, VerdictOutcome, Vote};
use cyberine_types::Usage;

use crate::criteria::Criterion;
use crate::judge::{
    Bench, Contender, Form, Heard, Judge, Juror, Next, Question, RATIONALE_CHARS, Ruling, appeal,
};
use crate::llm_judge::LlmJudge;
use crate::text::{capped, preview};
use course::Task;
use look::Half;
pub(crate) use reply::schema;

/// The name of this judge.
pub const ADVERSARIAL: &str = "adversarial";

/// How many critics look at one answer.
const CRITICS: usize = 3;
/// How many fatal attacks on one answer are looked at a second time.
const LOOKS: usize = 3;

/// Judging by attack: pure, driven by the replies it is given.
///
/// Up to three critics are shown each answer alone, its author only where nobody else is left. The
/// attacks of a critic count only once it has looked at every answer, so that one that fails midway
/// decides nothing. An attack whose quote does not stand in the answer is dropped. A fatal attack
/// is confirmed by a second look ([`look`]) in two orders. Who is hit by a confirmed one is out. A
/// lone survivor wins, several are ranked in both orders, and where nobody survives nobody wins.
#[derive(Debug)]
pub(crate) struct Adversarial {
    contenders: Vec<Contender>,
    /// The texts as critics see them: without words to the judge.
    shown: Vec<String>,
    jurors: Vec<Juror>,
    bench: Bench,
    seed: u64,
    /// What survivors are scored for, where the rubric says so.
    criteria: Vec<Criterion>,
    /// Who has looked at whom: critic and contender.
    heard: BTreeSet<(usize, usize)>,
    /// The second look that has been taken in one order: who looked, at what, whom it named.
    half: Option<Half>,
    /// Who has looked a second time.
    checked: BTreeSet<usize>,
    attacks: Vec<Raised>,
    dropped: usize,
    votes: Vec<Vote>,
    ranking: Option<Box<LlmJudge>>,
}

/// An attack that is on record.
#[derive(Debug)]
struct Raised {
    critic: usize,
    contender: usize,
    severity: Severity,
    claim: String,
    /// Whether it was looked at a second time.
    looked_at: bool,
    confirmed: bool,
}

impl Judge for Adversarial {
    fn name(&self) -> &'static str {
        ADVERSARIAL
    }

    fn next(&self) -> Next {
        if let Some(ranking) = &self.ranking {
            return match ranking.next() {
                Next::Decided(ruling) => self.ranked(&ruling.verdict),
                other => other,
            };
        }
        match self.task() {
            Some(task) => Next::Ask(self.question(&task)),
            None => Next::Decided(Box::new(self.without_ranking())),
        }
    }

    fn replied(&mut self, reply: Result<String, String>, usage: &Usage) {
        if let Some(ranking) = &mut self.ranking {
            return ranking.replied(reply, usage);
        }
        match self.task() {
            Some(Task::Attack { critic, contender }) => self.attacked(critic, contender, reply, usage),
            Some(Task::Look { by, attack, order }) => self.looked(by, attack, order, reply, usage),
            None => return,
        }
        self.rank_where_needed();
    }

    fn asked(&self) -> Option<&str> {
        if let Some(ranking) = &self.ranking {
            return ranking.asked();
        }
        let (Task::Attack { critic: at, .. } | Task::Look { by: at, .. }) = self.task()?;
        self.bench.at(at).map(|juror| juror.provider.as_str())
    }

    fn usage(&self) -> Usage {
        let ranking = self.ranking.as_ref().map(|ranking| ranking.usage()).unwrap_or_default();
        self.bench.usage().plus(&ranking)
    }
}

/// The answers without words to a judge who scores by `criteria`.
fn shown(contenders: &[Contender], criteria: &[Criterion]) -> Vec<String> {
    let shown = |one: &Contender| appeal::without(&one.text, criteria).unwrap_or_else(|| one.text.clone());
    contenders.iter().map(shown).collect()
}

impl Adversarial {
    pub(crate) fn new(contenders: Vec<Contender>, jurors: Vec<Juror>, seed: u64) -> Self {
        Self {
            shown: shown(&contenders, &[]),
            bench: Bench::new(jurors.clone()),
            contenders,
            jurors,
            seed,
            criteria: Vec::new(),
            heard: BTreeSet::new(),
            half: None,
            checked: BTreeSet::new(),
            attacks: Vec::new(),
            dropped: 0,
            votes: Vec::new(),
            ranking: None,
        }
    }

    /// Has survivors scored for each of `criteria`, where there are any.
    pub(crate) fn with_criteria(self, criteria: Vec<Criterion>) -> Self {
        Self { shown: shown(&self.contenders, &criteria), criteria, ..self }
    }

    /// Whether all attacks are heard and looked at.
    pub(crate) fn is_settled(&self) -> bool {
        self.task().is_none()
    }

    /// The places of those that are not out; `None` where no critic has looked at every answer.
    pub(crate) fn left(&self) -> Option<Vec<usize>> {
        self.is_examined().then(|| self.survivors())
    }

    /// Whether anybody called the answer at this place fatally wrong.
    pub(crate) fn is_accused(&self, place: usize) -> bool {
        self.attacks.iter().any(|one| one.contender == place && one.severity == Severity::Fatal)
    }

    fn question(&self, task: &Task) -> Question {
        let (at, form, texts) = match task {
            Task::Attack { critic, contender } => {
                (*critic, Form::Attack, vec![self.shown[*contender].clone()])
            }
            Task::Look { by, attack, order } => {
                let claim = self.attacks[*attack].claim.clone();
                (*by, Form::Confirm { claim }, order.iter().map(|at| self.shown[*at].clone()).collect())
            }
        };
        let provider = self.bench.at(at).map_or("", |juror| juror.provider.as_str());
        Question::new(provider, form, texts, self.bench.repair())
    }

    fn attacked(&mut self, critic: usize, contender: usize, reply: Result<String, String>, usage: &Usage) {
        let Heard::Reply(found) = self.bench.hear_from(critic, reply, usage, reply::attacks) else { return };
        self.heard.insert((critic, contender));
        let holds = |attack: &reply::Found| reply::stands_in(attack.quote.as_deref(), &self.shown[contender]);
        let (held, dropped): (Vec<_>, Vec<_>) = found.into_iter().partition(holds);
        self.dropped += dropped.len();
        let fatal = held.iter().filter(|attack| attack.severity == Severity::Fatal).count();
        let name = &self.jurors[critic].provider;
        self.votes.push(Vote {
            voter: format!("{name}, as a critic"),
            candidate: Some(self.contenders[contender].id.clone()),
            score: None,
            criteria: Vec::new(),
            reason: Some(match (held.len(), dropped.len()) {
                (0, 0) => "no attack".to_owned(),
                (count, 0) => format!("{count} attacks, {fatal} of them fatal"),
                (count, out) => format!(
                    "{count} attacks, {fatal} of them fatal; {out} dropped, for they quote what is not there"
                ),
            }),
        });
        self.attacks.extend(held.into_iter().map(|attack| Raised {
            critic,
            contender,
            severity: attack.severity,
            claim: attack.claim,
            looked_at: false,
            confirmed: false,
        }));
    }

    /// The contenders that no confirmed fatal attack has hit.
    fn survivors(&self) -> Vec<usize> {
        let hit = |at: &usize| self.attacks.iter().any(|attack| attack.contender == *at && attack.confirmed);
        (0..self.contenders.len()).filter(|at| !hit(at)).collect()
    }

    fn rank_where_needed(&mut self) {
        let survivors = self.survivors();
        if self.task().is_some() || !self.is_examined() || survivors.len() < 2 {
            return;
        }
        let contenders = survivors.iter().map(|at| self.contenders[*at].clone()).collect();
        let sitting = self.bench.sitting().map(|(_, juror)| juror.clone()).collect();
        self.ranking = Some(Box::new(
            LlmJudge::new(contenders, sitting, self.seed).with_criteria(self.criteria.clone()),
        ));
    }

    fn without_ranking(&self) -> Ruling {
        if !self.is_examined() {
            let why = "no critic has looked at every answer, so they cannot be compared";
            return Ruling { verdict: self.verdict(VerdictOutcome::Unjudged, None, why, &[]), left: None };
        }
        let survivors = self.survivors();
        let left: Vec<String> = survivors.iter().map(|at| self.contenders[*at].id.clone()).collect();
        let verdict = match left.first() {
            Some(lone) => {
                let why = format!("`{lone}` alone survives the critics{}", self.reasons());
                self.verdict(VerdictOutcome::Winner, Some(lone.clone()), &why, &[])
            }
            None => {
                let why = format!("no answer survives the critics{}", self.reasons());
                self.verdict(VerdictOutcome::Unjudged, None, &why, &[])
            }
        };
        Ruling { verdict, left: Some(left) }
    }

    fn ranked(&self, ranking: &Verdict) -> Next {
        let survivors = self.survivors();
        let why = format!(
            "{} of {} answers survive the critics{}. {}",
            survivors.len(),
            self.contenders.len(),
            self.reasons(),
            ranking.rationale
        );
        let left = survivors.iter().map(|at| self.contenders[*at].id.clone()).collect();
        let verdict = self.verdict(ranking.outcome, ranking.winner.clone(), &why, &ranking.votes);
        Next::Decided(Box::new(Ruling { verdict, left: Some(left) }))
    }

    /// What has hit those that are out: `: a (claim), b (claim)`.
    fn reasons(&self) -> String {
        let hit = |contender: &Contender| {
            let attacks = self.attacks.iter().filter(|attack| attack.confirmed);
            let claim = attacks.map(|attack| (&self.contenders[attack.contender].id, &attack.claim));
            let first = claim.into_iter().find(|(id, _)| **id == contender.id);
            first.map(|(id, claim)| format!("`{id}` is out ({})", preview(claim, 200)))
        };
        let out: Vec<String> = self.contenders.iter().filter_map(hit).collect();
        if out.is_empty() { String::new() } else { format!(": {}", out.join(", ")) }
    }

    /// What has to be said of those who looked.
    fn caveats(&self) -> String {
        let own = self.heard.iter().filter(|(critic, contender)| self.is_author(*critic, *contender));
        let own = own.map(|(_, contender)| {
            format!("Nobody but its own author attacked `{}`. ", self.contenders[*contender].id)
        });
        let critics: BTreeSet<usize> = self.heard.iter().map(|(critic, _)| *critic).collect();
        let all: BTreeSet<usize> = critics.union(&self.checked).copied().collect();
        let near = all.iter().map(|at| self.jurors[*at].caveat("critic"));
        let partly = critics.iter().filter(|critic| !self.has_seen_all(**critic)).map(|critic| {
            let name = &self.jurors[*critic].provider;
            format!("`{name}` has not looked at every answer, so that its attacks do not count. ")
        });
        let speaking = self.contenders.iter().zip(&self.shown).filter(|(one, shown)| one.text != **shown);
        // A ranking says so itself.
        let speaking = speaking.filter(|_| self.ranking.is_none());
        let left_out = appeal::said(speaking.map(|(one, _)| one.id.as_str()));
        own.chain(near).chain(partly).chain([left_out]).collect()
    }

    fn verdict(&self, outcome: VerdictOutcome, winner: Option<String>, why: &str, votes: &[Vote]) -> Verdict {
        let mut caveats = self.caveats();
        if self.dropped > 0 {
            caveats
                .push_str(&format!("{} attacks quoted what is not there and were dropped. ", self.dropped));
        }
        caveats.push_str(&self.bench.failed_before());
        let attacks = self.attacks.iter().map(|attack| Attack {
            critic: self.jurors[attack.critic].provider.clone(),
            candidate: self.contenders[attack.contender].id.clone(),
            severity: attack.severity,
            claim: attack.claim.clone(),
            confirmed: attack.confirmed,
        });
        Verdict {
            kind: ADVERSARIAL.to_owned(),
            outcome,
            winner,
            rationale: capped(&format!("{caveats}{why}"), RATIONALE_CHARS),
            votes: self.votes.iter().chain(votes).cloned().collect(),
            attacks: attacks.collect(),
            usage: self.usage(),
        }
    }
}

#[cfg(test)]
mod tests;
