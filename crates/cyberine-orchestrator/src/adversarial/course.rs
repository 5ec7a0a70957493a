//! Who looks at what next.

use cyberine_run_store::Severity;

use super::{Adversarial, CRITICS, LOOKS};
use crate::judge::Standing;
use crate::shuffle;

/// What is asked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// The juror at `critic` attacks one answer.
    Attack { critic: usize, contender: usize },
    /// The juror at `by` looks at an attack a second time, beside the answers in this order.
    Look { by: usize, attack: usize, order: Vec<usize> },
}

impl Adversarial {
    /// The next question; `None` where all attacks are heard and looked at.
    pub(super) fn task(&self) -> Option<Task> {
        let order = shuffle::order(self.contenders.len(), self.seed);
        order.iter().find_map(|at| self.attack(*at)).or_else(|| self.look())
    }

    fn attack(&self, contender: usize) -> Option<Task> {
        let looked = self.heard.iter().filter(|(_, at)| *at == contender).count();
        if looked >= CRITICS {
            return None;
        }
        let fresh = |critic: usize| !self.heard.contains(&(critic, contender));
        let critic = self
            .nearest_last(contender, fresh)
            .find(|critic| looked == 0 || !self.is_author(*critic, contender))?;
        Some(Task::Attack { critic, contender })
    }

    fn look(&self) -> Option<Task> {
        let open = self.attacks.iter().enumerate().find(|(_, attack)| {
            let same = |other: &&super::Raised| other.contender == attack.contender;
            let looked = self.attacks.iter().filter(same).filter(|other| other.looked_at).count();
            let hit = self.attacks.iter().filter(same).any(|other| other.confirmed);
            attack.severity == Severity::Fatal && !attack.looked_at && !hit && looked < LOOKS
        });
        let (at, attack) = open?;
        let others = |juror: usize| juror != attack.critic && !self.is_author(juror, attack.contender);
        let by = self.nearest_last(attack.contender, others).next();
        let by = by.or_else(|| self.nearest_last(attack.contender, |juror| juror == attack.critic).next())?;
        Some(Task::Look { by, attack: at, order: self.order_for(at) })
    }

    /// The jurors that are in and fit, those with least to do with the author first.
    fn nearest_last(&self, contender: usize, fits: impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
        let nearness = |at: usize| {
            let juror = &self.jurors[at];
            (juror.standing_to(&self.contenders[contender]).nearness(), juror.standing.nearness(), at)
        };
        let mut fitting: Vec<usize> = self.bench.sitting().map(|(at, _)| at).filter(|at| fits(*at)).collect();
        fitting.sort_by_key(|at| nearness(*at));
        fitting.into_iter()
    }

    fn is_author(&self, juror: usize, contender: usize) -> bool {
        self.jurors[juror].standing_to(&self.contenders[contender]) == Standing::Candidate
    }

    /// Another order for each attack, in which the attacked answer is not the first: the critic
    /// has seen it under the first label.
    fn order_for(&self, attack: usize) -> Vec<usize> {
        let seed = self.seed.wrapping_add(attack as u64 + 1);
        let mut order = shuffle::order(self.contenders.len(), seed);
        let last = order.len() - 1;
        if order.first() == Some(&self.attacks[attack].contender) {
            order.swap(0, last);
        }
        order
    }
}
