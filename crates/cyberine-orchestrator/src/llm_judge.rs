//! The model as a judge: both orders must agree, or there is no winner.

mod prompt;
mod reply;

use cyberine_provider::Message;
use cyberine_run_store::{Verdict, VerdictOutcome, Vote};
use cyberine_types::Usage;
use serde_json::Value;

use crate::shuffle;
use crate::text::{capped, preview};
use reply::Reply;

/// The name of this judge.
pub const LLM_JUDGE: &str = "llm-judge";

/// The longest rationale of a verdict, in characters.
const RATIONALE_CHARS: usize = 4_000;

/// A candidate that answered, as the judge will be shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contender {
    /// The candidate's id. Judges never see it.
    pub(crate) id: String,
    /// What it said. Not empty.
    pub(crate) text: String,
}

/// A provider that may judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Juror {
    /// The provider's name.
    pub(crate) provider: String,
    /// What it has to do with the candidates.
    pub(crate) standing: Standing,
}

/// What a juror has to do with the candidates: models favour what they have written themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing that is known.
    Outside,
    /// It uses the same model as the candidate of this name.
    SameModel(String),
    /// It is a candidate itself.
    Candidate,
}

/// A word that was sent while the run ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guidance {
    /// Who claims to have sent it.
    pub(crate) from: String,
    pub(crate) text: String,
}

/// One question to one juror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The provider to ask.
    pub(crate) provider: String,
    /// The candidates' texts in the order to show.
    pub(crate) texts: Vec<String>,
    /// What was sent to guide the run, oldest first.
    pub(crate) guidance: Vec<Guidance>,
    /// The reply that was not accepted and why, where this is the second try.
    pub(crate) repair: Option<(String, String)>,
}

impl Question {
    /// The conversation to send. `draw` gives random tokens; one that occurs in no text is used.
    pub(crate) fn messages(&self, task: &str, draw: impl FnMut() -> String) -> Vec<Message> {
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        let words = self.guidance.iter().flat_map(|word| [word.from.as_str(), word.text.as_str()]);
        let all: Vec<&str> = texts.iter().copied().chain([task]).chain(words).collect();
        let token = prompt::fence(draw, &all);
        let messages = prompt::messages(task, &self.guidance, &texts, &token);
        match &self.repair {
            Some((reply, problem)) => prompt::with_repair(messages, reply, problem),
            None => messages,
        }
    }

    /// The JSON Schema the reply must satisfy.
    pub(crate) fn schema(&self) -> Value {
        reply::schema(self.texts.len())
    }
}

/// What judging needs next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Ask(Question),
    Decided(Verdict),
}

/// Judging in progress: pure, driven by the replies it is given.
///
/// A juror is shown the candidates in an order drawn from the seed, then in its reverse. It has
/// a winner only where both replies name the same candidate. Where that candidate stood at the
/// same place both times (the middle of an odd number), a third showing puts it first, so that
/// no preference for a place can decide. A reply that does not hold is asked for once more; then
/// the next juror starts afresh; after the last the verdict is `unjudged`.
#[derive(Debug)]
pub(crate) struct LlmJudge {
    contenders: Vec<Contender>,
    jurors: Vec<Juror>,
    first_order: Vec<usize>,
    at: usize,
    replies: Vec<(Vec<usize>, Reply)>,
    repair: Option<(String, String)>,
    votes: Vec<Vote>,
    failures: Vec<String>,
    usage: Usage,
}

impl LlmJudge {
    pub(crate) fn new(contenders: Vec<Contender>, jurors: Vec<Juror>, seed: u64) -> Self {
        let first_order = shuffle::order(contenders.len(), seed);
        Self {
            contenders,
            jurors,
            first_order,
            at: 0,
            replies: Vec::new(),
            repair: None,
            votes: Vec::new(),
            failures: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// What to do now. Guidance is the run's: whoever asks adds it.
    pub(crate) fn next(&self) -> Next {
        let Some(juror) = self.jurors.get(self.at) else {
            return Next::Decided(self.unjudged());
        };
        match self.order() {
            Some(order) => Next::Ask(Question {
                provider: juror.provider.clone(),
                texts: order.iter().map(|at| self.contenders[*at].text.clone()).collect(),
                guidance: Vec::new(),
                repair: self.repair.clone(),
            }),
            None => Next::Decided(self.verdict(juror)),
        }
    }

    /// Takes the reply to the last question: its text, or how the turn failed.
    pub(crate) fn replied(&mut self, reply: Result<String, String>, usage: &Usage) {
        self.usage = self.usage.plus(usage);
        let (Some(juror), Some(order)) = (self.jurors.get(self.at).cloned(), self.order()) else {
            return;
        };
        let text = match reply {
            Ok(text) => text,
            Err(message) => return self.next_juror(&juror, &message),
        };
        match reply::parse(&text, order.len()) {
            Ok(reply) => {
                self.repair = None;
                self.record(&juror, &order, &reply);
                self.replies.push((order, reply));
            }
            Err(problem) if self.repair.is_none() => self.repair = Some((text, problem.to_string())),
            Err(problem) => self.next_juror(&juror, &format!("its reply did not hold twice: {problem}")),
        }
    }

    /// The provider that is asked, as long as one is.
    pub(crate) fn asked(&self) -> Option<&str> {
        self.jurors.get(self.at).map(|juror| juror.provider.as_str())
    }

    /// What the judging has cost so far.
    pub(crate) const fn usage(&self) -> &Usage {
        &self.usage
    }

    fn next_juror(&mut self, juror: &Juror, why: &str) {
        self.failures.push(format!("`{}`: {}", juror.provider, preview(why, 400)));
        self.at += 1;
        self.replies.clear();
        self.repair = None;
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
        let best = reply.winner.map(|place| (shown[place].to_owned(), reply.scores[place].0));
        self.votes.push(Vote {
            voter: voter.clone(),
            candidate: best.as_ref().map(|(id, _)| id.clone()),
            score: best.map(|(_, score)| score),
            reason: Some(preview(&reply.rationale, 500)),
        });
        let scores = shown.iter().zip(&reply.scores).map(|(id, (score, reason))| Vote {
            voter: format!("{voter} (score)"),
            candidate: Some((*id).to_owned()),
            score: Some(*score),
            reason: Some(reason.clone()),
        });
        self.votes.extend(scores);
    }

    fn verdict(&self, juror: &Juror) -> Verdict {
        let named: Vec<Option<usize>> = self.replies.iter().map(winner).collect();
        let agreed =
            named.first().copied().flatten().filter(|first| named.iter().all(|one| *one == Some(*first)));
        let because = self.replies.first().map_or("", |(_, reply)| reply.rationale.as_str());
        let (outcome, reason) = match agreed {
            Some(_) => (
                VerdictOutcome::Winner,
                format!(
                    "`{}` prefers the same candidate in {} orders: {because}",
                    juror.provider,
                    named.len()
                ),
            ),
            None if named.len() == 1 => (
                VerdictOutcome::Tie,
                format!("`{}` finds no candidate better than every other: {because}", juror.provider),
            ),
            None => (
                VerdictOutcome::Tie,
                format!("`{}` does not prefer the same candidate when the order changes", juror.provider),
            ),
        };
        self.build(
            outcome,
            agreed.map(|at| self.contenders[at].id.clone()),
            &format!("{}{reason}", self.caveats(juror)),
        )
    }

    fn caveats(&self, juror: &Juror) -> String {
        let mut caveats = String::new();
        match &juror.standing {
            Standing::Outside => {}
            Standing::SameModel(candidate) => {
                caveats = format!("The judge `{}` uses the same model as `{candidate}`. ", juror.provider);
            }
            Standing::Candidate => {
                caveats = format!("The judge `{}` is itself a candidate. ", juror.provider);
            }
        }
        if !self.failures.is_empty() {
            caveats.push_str(&format!("Judges that failed before: {}. ", self.failures.join("; ")));
        }
        caveats
    }

    fn unjudged(&self) -> Verdict {
        let reason = if self.failures.is_empty() {
            "no provider is left that could judge".to_owned()
        } else {
            format!("no judge gave a verdict that holds: {}", self.failures.join("; "))
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
            usage: self.usage,
        }
    }
}

/// The candidate a reply names, whatever place it stood at.
fn winner((order, reply): &(Vec<usize>, Reply)) -> Option<usize> {
    reply.winner.map(|place| order[place])
}

#[cfg(test)]
mod tests;
