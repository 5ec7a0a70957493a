//! The model as a judge: both orders must agree, or there is no winner.

mod reply;
mod scored;

use cyberine_run_store::{Verdict, VerdictOutcome, Vote};
use cyberine_types::Usage;

use crate::criteria::{self, Criterion};
use crate::judge::{
    Bench, Contender, Form, Heard, Judge, Juror, Next, Question, RATIONALE_CHARS, Ruling, appeal,
};
use crate::shuffle;
use crate::text::{capped, preview};
use reply::Reply;
pub(crate) use reply::schema;
pub(crate) use scored::schema as schema_by_criteria;

/// The name of this judge.
pub const LLM_JUDGE: &str = "llm-judge";

/// Judging in progress: pure, driven by the replies it is given.
///
/// A juror is shown the candidates in an order drawn from the seed, then in its reverse. It has
/// a winner only where both replies name the same candidate. Where that candidate stood at the
/// same place both times (the middle of an odd number), a third showing puts it first, so that
/// no preference for a place can decide. Words that speak to the judge are left out of every
/// showing, so that no such word can decide either, alone or together with such a preference. Where
/// there are criteria, a reply names nobody: it names whom its scores give the highest total. A
/// reply that does not hold is asked for once more; then the next juror starts afresh; after the
/// last the verdict is `unjudged`.
#[derive(Debug)]
pub(crate) struct LlmJudge {
    contenders: Vec<Contender>,
    /// The texts without words to the judge, where there are such to leave out.
    without_appeals: Vec<Option<String>>,
    bench: Bench,
    /// What is scored one by one; empty where the judge gives each candidate one score.
    criteria: Vec<Criterion>,
    first_order: Vec<usize>,
    replies: Vec<(Vec<usize>, Reply)>,
    votes: Vec<Vote>,
}

impl Judge for LlmJudge {
    fn name(&self) -> &'static str {
        LLM_JUDGE
    }

    fn next(&self) -> Next {
        let Some(juror) = self.bench.juror() else {
            return Ruling::on_all(self.unjudged());
        };
        match self.order() {
            Some(order) => {
                let texts = order.iter().map(|at| self.shown(*at).to_owned()).collect();
                Next::Ask(Question::new(&juror.provider, self.form(), texts, self.bench.repair()))
            }
            None => Ruling::on_all(self.verdict(juror)),
        }
    }

    fn replied(&mut self, reply: Result<String, String>, usage: &Usage) {
        let (Some(juror), Some(order)) = (self.bench.juror().cloned(), self.order()) else {
            return;
        };
        let (count, criteria) = (order.len(), self.criteria.as_slice());
        let parse = |text: &str| match criteria {
            [] => reply::parse(text, count),
            criteria => scored::parse(text, count, criteria),
        };
        match self.bench.hear(reply, usage, parse) {
            Heard::Reply(reply) => {
                self.record(&juror, &order, &reply);
                self.replies.push((order, reply));
            }
            Heard::Again => {}
            Heard::Out => self.replies.clear(),
        }
    }

    fn asked(&self) -> Option<&str> {
        self.bench.juror().map(|juror| juror.provider.as_str())
    }

    fn usage(&self) -> Usage {
        self.bench.usage()
    }
}

impl LlmJudge {
    pub(crate) fn new(contenders: Vec<Contender>, jurors: Vec<Juror>, seed: u64) -> Self {
        let first_order = shuffle::order(contenders.len(), seed);
        let without_appeals = without_appeals(&contenders, &[]);
        let (bench, replies, votes) = (Bench::new(jurors), Vec::new(), Vec::new());
        let criteria = Vec::new();
        Self { contenders, without_appeals, bench, criteria, first_order, replies, votes }
    }

    /// Has each candidate scored for each of `criteria`, where there are any.
    pub(crate) fn with_criteria(self, criteria: Vec<Criterion>) -> Self {
        Self { without_appeals: without_appeals(&self.contenders, &criteria), criteria, ..self }
    }

    /// Leaves words to the judge where they are: to see what it makes of them.
    pub(crate) fn with_words(mut self) -> Self {
        self.without_appeals.fill(None);
        self
    }

    /// The candidates that the replies so far have named, in the order of the showings; `None` for
    /// a tie.
    pub(crate) fn named(&self) -> Vec<Option<usize>> {
        self.replies.iter().map(winner).collect()
    }

    fn form(&self) -> Form {
        if self.criteria.is_empty() { Form::Rank } else { Form::Score { criteria: self.criteria.clone() } }
    }

    fn shown(&self, at: usize) -> &str {
        self.without_appeals[at].as_deref().unwrap_or(&self.contenders[at].text)
    }

    /// The order to show next; `None` where the replies suffice.
    fn order(&self) -> Option<Vec<usize>> {
        match self.replies.as_slice() {
            [] => Some(self.first_order.clone()),
            [one] => winner(one).map(|_| self.first_order.iter().rev().copied().collect()),
            [one, two] => {
                let same_place = one.1.winner == two.1.winner && winner(one) == winner(two);
                let place = one.1.winner.filter(|_| same_place)?;
                let mut order = self.first_order.clone();
                order.swap(0, place);
                Some(order)
            }
            _ => None,
        }
    }

    fn record(&mut self, juror: &Juror, order: &[usize], reply: &Reply) {
        let shown: Vec<&str> = order.iter().map(|at| self.contenders[*at].id.as_str()).collect();
        let voter = format!("{}, order {}: {}", juror.provider, self.replies.len() + 1, shown.join(", "));
        let best = reply.winner.map(|place| (shown[place].to_owned(), reply.scores[place].score));
        self.votes.push(Vote {
            voter: voter.clone(),
            candidate: best.as_ref().map(|(id, _)| id.clone()),
            score: best.map(|(_, score)| score),
            reason: Some(preview(&reply.rationale, 500)),
            criteria: Vec::new(),
        });
        let scores = shown.iter().zip(&reply.scores).map(|(id, one)| Vote {
            voter: format!("{voter} (score)"),
            candidate: Some((*id).to_owned()),
            score: Some(one.score),
            reason: Some(one.reason.clone()),
            criteria: criteria::told(&self.criteria, &one.by_criterion),
        });
        self.votes.extend(scores);
    }

    fn verdict(&self, juror: &Juror) -> Verdict {
        let named = self.named();
        let agreed =
            named.first().copied().flatten().filter(|first| named.iter().all(|one| *one == Some(*first)));
        let because = self.replies.first().map_or("", |(_, reply)| reply.rationale.as_str());
        let by_criteria = !self.criteria.is_empty();
        let (outcome, said) = match agreed {
            Some(_) => {
                let prefers = if by_criteria { "gives the highest total to" } else { "prefers" };
                let said = format!("{prefers} the same candidate in {} orders: {because}", named.len());
                (VerdictOutcome::Winner, said)
            }
            None if named.len() == 1 => {
                let finds = if by_criteria {
                    "gives the highest total to more than one candidate"
                } else {
                    "finds no candidate better than every other"
                };
                (VerdictOutcome::Tie, format!("{finds}: {because}"))
            }
            None => {
                let prefers = if by_criteria { "give the highest total to" } else { "prefer" };
                let said = format!("does not {prefers} the same candidate when the order changes");
                (VerdictOutcome::Tie, said)
            }
        };
        let reason = format!("`{}` {said}", juror.provider);
        self.build(
            outcome,
            agreed.map(|at| self.contenders[at].id.clone()),
            &format!("{}{reason}", self.caveats(juror, agreed)),
        )
    }

    fn caveats(&self, juror: &Juror, winner: Option<usize>) -> String {
        let spoke = |at: &usize| self.without_appeals[*at].is_some();
        let speaking = (0..self.contenders.len()).filter(spoke).map(|at| self.contenders[at].id.as_str());
        let said = appeal::said(speaking);
        let flag = if winner.as_ref().is_some_and(spoke) { "The winner is one of them. " } else { "" };
        format!("{}{said}{flag}{}", juror.caveat("judge"), self.bench.failed_before())
    }

    fn unjudged(&self) -> Verdict {
        let failures = self.bench.failures();
        let reason = if failures.is_empty() {
            "no provider is left that could judge".to_owned()
        } else {
            format!("no judge gave a verdict that holds: {}", failures.join("; "))
        };
        self.build(VerdictOutcome::Unjudged, None, &reason)
    }

    fn build(&self, outcome: VerdictOutcome, winner: Option<String>, rationale: &str) -> Verdict {
        Verdict {
            kind: LLM_JUDGE.to_owned(),
            outcome,
            winner,
            rationale: capped(rationale, RATIONALE_CHARS),
            votes: self.votes.clone(),
            attacks: Vec::new(),
            usage: self.bench.usage(),
        }
    }
}

/// The candidate a reply names, whatever place it stood at.
fn winner((order, reply): &(Vec<usize>, Reply)) -> Option<usize> {
    reply.winner.map(|place| order[place])
}

/// The answers without words to a judge who scores by `criteria`; `None` where there are none.
fn without_appeals(contenders: &[Contender], criteria: &[Criterion]) -> Vec<Option<String>> {
    contenders.iter().map(|one| appeal::without(&one.text, criteria)).collect()
}

#[cfg(test)]
mod tests;
