//! Whether answers that are not equal say the same: a model compares them, pair by pair.

mod control;

use cyberine_run_store::{Verdict, Vote};
use cyberine_types::Usage;
use serde::Deserialize;

use super::{Answer, CONSENSUS, clusters, majority, tally};
use crate::judge::{
    Bench, Contender, Form, Heard, Judge, Juror, Next, Question, RATIONALE_CHARS, Ruling, appeal, reply,
};
use crate::text::{capped, preview};
use control::Control;

/// The most questions of one judging, repairs among them.
const MOST_QUESTIONS: usize = 24;

/// Consensus with a model's help: what exact equality left apart is put to a juror, each cluster
/// against the best answer of those before it. Two clusters become one where it says so in both
/// orders; words to the judge are in neither. Before that it must tell two known pairs
/// ([`Control`]), so that one that always says the same decides nothing. Whatever fails, is in
/// doubt, is nothing but words to the judge or comes after the last question stays apart. The rule
/// of the majority is the same.
#[derive(Debug)]
pub(crate) struct Equivalence {
    contenders: Vec<Contender>,
    without_appeals: Vec<Option<String>>,
    bench: Bench,
    /// Places of contenders that are one answer so far, the largest first.
    groups: Vec<Vec<usize>>,
    /// Clusters of nothing but words to the judge: there is nothing to compare.
    mute: Vec<Vec<usize>>,
    /// Clusters that are still to be compared, the largest last.
    open: Vec<Vec<usize>>,
    /// The group that the last of `open` is compared with.
    against: usize,
    /// Whether the pair was found the same in the first order.
    half: bool,
    control: Control,
    /// How many of the known pairs the juror has told.
    told: usize,
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
            (Some(_), Some(juror)) if self.control.pair(self.told).is_some() => {
                let texts = self.control.pair(self.told).map(|(texts, _)| texts).unwrap_or_default();
                Next::Ask(Question::new(&juror.provider, Form::Same, texts, self.bench.repair()))
            }
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
            Heard::Reply(reply) if self.control.pair(self.told).is_some() => {
                if self.control.pair(self.told).is_some_and(|(_, same)| same == reply.same) {
                    self.told += 1;
                } else {
                    self.told = 0;
                    self.bench.dismiss(&format!(
                        "it calls two answers that are known {}",
                        if reply.same { "not to be the same the same" } else { "to be the same different" }
                    ));
                }
            }
            Heard::Reply(reply) => {
                self.record(&juror, pair, &reply);
                self.take(reply.same);
            }
            Heard::Again => {}
            Heard::Out => (self.half, self.told) = (false, 0),
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
    pub(crate) fn new(contenders: Vec<Contender>, jurors: Vec<Juror>, seed: u64) -> Self {
        let answers: Vec<Answer<'_>> = contenders.iter().map(answer).collect();
        let place = |answer: &Answer<'_>| contenders.iter().position(|one| one.id == answer.candidate);
        let mut open: Vec<Vec<usize>> =
            clusters(&answers).iter().map(|members| members.iter().filter_map(place).collect()).collect();
        open.reverse();
        let without_appeals: Vec<Option<String>> =
            contenders.iter().map(|one| appeal::without(&one.text, &[])).collect();
        let is_mute = |at: usize| without_appeals[at].as_deref().is_some_and(says_nothing);
        let (mute, mut open): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|members| members.iter().any(|at| is_mute(*at)));
        let groups = open.pop().into_iter().collect();
        Self {
            without_appeals,
            bench: Bench::new(jurors),
            groups,
            open,
            mute,
            control: Control::of(seed),
            told: 0,
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
        self.without_appeals[at].as_deref().unwrap_or(&self.contenders[at].text)
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
            criteria: Vec::new(),
            reason: Some(preview(&reply.reason, 200)),
        });
        let caveat = juror.caveat("judge of equivalence");
        if !caveat.is_empty() && !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
    }

    /// The clusters as they are now, the largest first, each with its best answer first.
    fn clusters(&self) -> Vec<Vec<Answer<'_>>> {
        let all = self.groups.iter().chain(self.open.iter().rev()).chain(&self.mute);
        let in_order = |members: &Vec<usize>| {
            let mut members = members.clone();
            members.sort_unstable();
            members.into_iter().map(|at| answer(&self.contenders[at])).collect()
        };
        let mut clusters: Vec<Vec<Answer<'_>>> = all.map(in_order).collect();
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
        let speaking = self.contenders.iter().zip(&self.without_appeals).filter(|(_, cut)| cut.is_some());
        let asked = !self.votes.is_empty();
        let left_out = appeal::said(speaking.filter(|_| asked).map(|(one, _)| one.id.as_str()));
        let said = [self.caveats.concat(), left_out, self.bench.failed_before(), unasked].concat();
        verdict.rationale = capped(&format!("{said}{}", verdict.rationale), RATIONALE_CHARS);
        verdict.votes.extend(self.votes.iter().cloned());
        verdict.usage = self.bench.usage();
        verdict
    }
}

/// What a reply to [`Form::Same`] says.
pub(crate) fn said(text: &str) -> Result<bool, reply::ReplyError> {
    reply::object::<Reply>(text).map(|reply| reply.same)
}

fn answer(contender: &Contender) -> Answer<'_> {
    Answer { candidate: &contender.id, text: &contender.text }
}

/// Whether `cut`, a text without words to the judge, holds nothing but what says where they stood.
fn says_nothing(cut: &str) -> bool {
    let mut outside = String::new();
    for part in cut.split_inclusive(['(', ')']) {
        if !(part.ends_with(')') && part.contains("words to the judge")) {
            outside.push_str(part);
        }
    }
    !outside.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests;
