//! Whether answers that are not equal say the same: a model compares them, pair by pair.

use cyberine_run_store::{Verdict, Vote};
use cyberine_types::Usage;
use serde::Deserialize;

use super::{Answer, CONSENSUS, clusters, majority, tally};
use crate::judge::{
    Bench, Contender, Form, Heard, Judge, Juror, Next, Question, RATIONALE_CHARS, Ruling, appeal, reply,
};
use crate::text::{capped, preview};

/// The most questions of one judging, repairs among them.
const MOST_QUESTIONS: usize = 24;

/// Consensus with a model's help: what exact equality left apart is put to a juror, each cluster
/// against the best answer of those before it. Two clusters become one where it says so in both
/// orders, the second time without words to the judge. Whatever fails, is in doubt or comes after
/// the last question stays apart. The rule of the majority is the same.
#[derive(Debug)]
pub(crate) struct Equivalence {
    contenders: Vec<Contender>,
    without_appeals: Vec<Option<String>>,
    bench: Bench,
    /// Places of contenders that are one answer so far, the largest first.
    groups: Vec<Vec<usize>>,
    /// Clusters that are still to be compared, the largest last.
    open: Vec<Vec<usize>>,
    /// The group that the last of `open` is compared with.
    against: usize,
    /// Whether the pair was found the same in the first order.
    half: bool,
    asked: usize,
    votes: Vec<Vote>,
    /// The caveats of the jurors that were heard.
    caveats: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    same: bool,
    reason: String,
}

impl Judge for Equivalence {
    fn name(&self) -> &'static str {
        CONSENSUS
    }

    fn next(&self) -> Next {
        match (self.pair(), self.bench.juror()) {
            (Some(pair), Some(juror)) => {
                let texts = pair.iter().map(|at| self.shown(*at).to_owned()).collect();
                Next::Ask(Question::new(&juror.provider, Form::Same, texts, self.bench.repair()))
            }
            _ => Ruling::on_all(self.verdict()),
        }
    }

    fn replied(&mut self, reply: Result<String, String>, usage: &Usage) {
        let (Some(pair), Some(juror)) = (self.pair(), self.bench.juror().cloned()) else { return };
        self.asked += 1;
        match self.bench.hear(reply, usage, reply::object::<Reply>) {
            Heard::Reply(reply) => {
                self.record(&juror, pair, &reply);
                self.take(reply.same);
            }
            Heard::Again => {}
            Heard::Out => self.half = false,
        }
    }

    fn asked(&self) -> Option<&str> {
        self.bench.juror().map(|juror| juror.provider.as_str())
    }

    fn usage(&self) -> Usage {
        self.bench.usage()
    }
}

impl Equivalence {
    pub(crate) fn new(contenders: Vec<Contender>, jurors: Vec<Juror>) -> Self {
        let answers: Vec<Answer<'_>> = contenders.iter().map(answer).collect();
        let place = |answer: &Answer<'_>| contenders.iter().position(|one| one.id == answer.candidate);
        let mut open: Vec<Vec<usize>> =
            clusters(&answers).iter().map(|members| members.iter().filter_map(place).collect()).collect();
        open.reverse();
        let groups = open.pop().into_iter().collect();
        let without_appeals = contenders.iter().map(|one| appeal::without(&one.text)).collect();
        Self {
            without_appeals,
            bench: Bench::new(jurors),
            groups,
            open,
            against: 0,
            half: false,
            asked: 0,
            votes: Vec::new(),
            caveats: Vec::new(),
            contenders,
        }
    }

    /// The two places to compare, in the order to show them; `None` where nothing is left to ask.
    fn pair(&self) -> Option<[usize; 2]> {
        if self.asked >= MOST_QUESTIONS || majority(&self.clusters(), self.contenders.len()).is_some() {
            return None;
        }
        let (this, other) = (*self.open.last()?.first()?, *self.groups.get(self.against)?.first()?);
        Some(if self.half { [this, other] } else { [other, this] })
    }

    fn shown(&self, at: usize) -> &str {
        let cut = self.without_appeals[at].as_deref().filter(|_| self.half);
        cut.unwrap_or(&self.contenders[at].text)
    }

    fn take(&mut self, same: bool) {
        if same && !self.half {
            self.half = true;
            return;
        }
        self.half = false;
        if !same {
            self.against += 1;
            if self.against < self.groups.len() {
                return;
            }
        }
        let Some(members) = self.open.pop() else { return };
        match self.groups.get_mut(self.against) {
            Some(group) => group.extend(members),
            None => self.groups.push(members),
        }
        self.against = 0;
    }

    fn record(&mut self, juror: &Juror, pair: [usize; 2], reply: &Reply) {
        let [first, second] = pair.map(|at| self.contenders[at].id.as_str());
        self.votes.push(Vote {
            voter: format!(
                "{}, {first} as {second}: {}",
                juror.provider,
                if reply.same { "same" } else { "not the same" }
            ),
            candidate: None,
            score: None,
            reason: Some(preview(&reply.reason, 200)),
        });
        let caveat = juror.caveat("judge of equivalence");
        if !caveat.is_empty() && !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
    }

    /// The clusters as they are now, the largest first, each with its best answer first.
    fn clusters(&self) -> Vec<Vec<Answer<'_>>> {
        let all = self.groups.iter().chain(self.open.iter().rev());
        let mut clusters: Vec<Vec<Answer<'_>>> =
            all.map(|members| members.iter().map(|at| answer(&self.contenders[*at])).collect()).collect();
        super::sort(&mut clusters);
        clusters
    }

    fn verdict(&self) -> Verdict {
        let mut verdict = tally(&self.clusters(), self.contenders.len());
        let unasked = if self.asked >= MOST_QUESTIONS && !self.open.is_empty() {
            format!("After {MOST_QUESTIONS} questions what was left was taken for different. ")
        } else {
            String::new()
        };
        let said = [self.caveats.concat(), self.bench.failed_before(), unasked].concat();
        verdict.rationale = capped(&format!("{said}{}", verdict.rationale), RATIONALE_CHARS);
        verdict.votes.extend(self.votes.iter().cloned());
        verdict.usage = self.bench.usage();
        verdict
    }
}

fn answer(contender: &Contender) -> Answer<'_> {
    Answer { candidate: &contender.id, text: &contender.text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Standing;
    use cyberine_run_store::VerdictOutcome;

    fn judge(texts: &[&str], jurors: &[&str]) -> Equivalence {
        let contenders = texts.iter().zip('a'..).map(|(text, id)| Contender {
            id: id.to_string(),
            provider: id.to_string(),
            family: None,
            model: None,
            text: (*text).to_owned(),
        });
        let jurors = jurors.iter().map(|name| Juror {
            provider: (*name).to_owned(),
            family: None,
            model: None,
            source: None,
            standing: Standing::Outside,
        });
        Equivalence::new(contenders.collect(), jurors.collect())
    }

    fn run(
        mut judge: Equivalence,
        mut answer: impl FnMut(&Question) -> Result<String, String>,
    ) -> (Verdict, usize) {
        for asked in 0.. {
            match judge.next() {
                Next::Ask(question) => {
                    let reply = answer(&question);
                    judge.replied(reply, &Usage { input: 10, ..Usage::default() });
                }
                Next::Decided(ruling) => return (ruling.verdict, asked),
                Next::Try(_) => unreachable!("it tries nothing"),
            }
        }
        unreachable!("judging ends")
    }

    fn says(same: bool) -> Result<String, String> {
        Ok(format!(r#"{{"same":{same},"reason":"r"}}"#))
    }

    /// The same where both begin alike.
    fn by_first_word(question: &Question) -> Result<String, String> {
        let word = |at: usize| question.texts[at].split(' ').next().unwrap().to_owned();
        says(word(0) == word(1))
    }

    #[test]
    fn what_a_juror_finds_the_same_in_both_orders_is_one_answer() {
        let texts = ["yes it is so", "no", "yes, to be sure, it is"];
        let mut shown = Vec::new();
        let (verdict, asked) = run(judge(&["yes it is", "no way", "yes indeed it is"], &["j"]), |question| {
            shown.push(question.texts.clone());
            by_first_word(question)
        });
        assert_eq!((verdict.outcome, verdict.winner.as_deref()), (VerdictOutcome::Majority, Some("a")));
        assert_eq!(verdict.usage.input, 10 * u64::try_from(asked).unwrap());
        let last = &shown[asked - 2..];
        assert_eq!(last[0], [last[1][1].clone(), last[1][0].clone()]);
        assert_eq!(run(judge(&texts, &[]), |_| unreachable!()).0.outcome, VerdictOutcome::Tie);
    }

    #[test]
    fn a_yes_in_one_order_only_and_a_judge_that_fails_leave_them_apart() {
        let mut yes = false;
        let (verdict, _) = run(judge(&["one two", "three"], &["j"]), |_| {
            yes = !yes;
            says(yes)
        });
        assert_eq!((verdict.outcome, verdict.votes.len()), (VerdictOutcome::Tie, 4));
        let (verdict, asked) =
            run(judge(&["one two", "three"], &["j", "k"]), |question| match &*question.provider {
                "j" => Ok("Yes, both say the same.".to_owned()),
                _ => Err("refused".to_owned()),
            });
        assert_eq!((verdict.outcome, asked), (VerdictOutcome::Tie, 3));
        assert!(verdict.rationale.starts_with("Judges that failed before: `j`"), "{}", verdict.rationale);
    }

    #[test]
    fn nobody_is_asked_where_equality_suffices() {
        let (verdict, asked) = run(judge(&["42", "no", "42.0"], &["j"]), |_| unreachable!());
        assert_eq!((verdict.outcome, asked), (VerdictOutcome::Majority, 0));
        let (verdict, asked) = run(judge(&["42", "42"], &["j"]), |_| unreachable!());
        assert_eq!((verdict.outcome, asked), (VerdictOutcome::Majority, 0));
    }

    #[test]
    fn the_questions_are_bounded_and_what_is_left_is_different() {
        let texts: Vec<String> = (0..12).map(|at| format!("word{at} and more")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (verdict, asked) = run(judge(&texts, &["j"]), |_| says(false));
        assert_eq!((verdict.outcome, asked), (VerdictOutcome::Tie, MOST_QUESTIONS));
        assert!(verdict.rationale.contains("what was left was taken for different"));
        assert!(verdict.rationale.contains("there are 12 different answers"), "{}", verdict.rationale);
    }
}
