//! The second look at a fatal attack.
//!
//! A juror is shown the claim beside all answers, and not told whom it was raised against, in an
//! order drawn from the seed and then with each answer one place further on. The attack holds where
//! it names the attacked both times, names the same answers both times, and does not name all of
//! them: what is true of every answer tells none of them apart, and whoever goes by places names
//! others once they have moved.

use std::collections::BTreeSet;

use cyberine_run_store::Vote;
use cyberine_types::Usage;

use super::{Adversarial, reply};
use crate::judge::Heard;
use crate::text::preview;

/// A second look that was taken in one order.
#[derive(Debug)]
pub(super) struct Half {
    by: usize,
    attack: usize,
    named: BTreeSet<usize>,
}

impl Half {
    pub(super) const fn is_of(&self, by: usize, attack: usize) -> bool {
        self.by == by && self.attack == attack
    }
}

impl Adversarial {
    pub(super) fn looked(
        &mut self,
        by: usize,
        attack: usize,
        order: Vec<usize>,
        reply: Result<String, String>,
        usage: &Usage,
    ) {
        let parse = |text: &str| reply::true_of(text, order.len());
        let found = match self.bench.hear_from(by, reply, usage, parse) {
            Heard::Reply(found) => found,
            Heard::Again => return,
            Heard::Out => return self.half = None,
        };
        self.checked.insert(by);
        let named: BTreeSet<usize> = found.places.iter().map(|place| order[*place]).collect();
        let before = self.half.take().filter(|half| half.is_of(by, attack));
        let target = self.attacks[attack].contender;
        let problem = if !named.contains(&target) {
            Some("does not hold")
        } else if named.len() == self.contenders.len() {
            Some("is true of every answer and tells none apart")
        } else {
            let moved = before.as_ref().is_some_and(|half| half.named != named);
            moved.then_some("is true of others when the order changes")
        };
        let whole = before.is_some();
        let says = problem.unwrap_or(if whole { "holds in both orders" } else { "holds in the first order" });
        let raised = &mut self.attacks[attack];
        raised.looked_at = whole || problem.is_some();
        raised.confirmed = whole && problem.is_none();
        self.votes.push(Vote {
            voter: format!("{}, on a fatal attack: {says}", self.jurors[by].provider),
            candidate: Some(self.contenders[target].id.clone()),
            score: None,
            criteria: Vec::new(),
            reason: Some(format!("{} — {}", preview(&raised.claim, 200), preview(&found.reason, 200))),
        });
        if !whole && problem.is_none() {
            self.half = Some(Half { by, attack, named });
        }
    }
}
