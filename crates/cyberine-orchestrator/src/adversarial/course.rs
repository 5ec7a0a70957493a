//! Who looks at what next.

use std::collections::BTreeSet;

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
        self.attack(&order).or_else(|| self.look())
    }

    fn attack(&self, order: &[usize]) -> Option<Task> {
        let panel = self.panel();
        panel.iter().find_map(|critic| {
            let open = |at: &&usize| self.owes(*critic, **at);
            order.iter().find(open).map(|contender| Task::Attack { critic: *critic, contender: *contender })
        })
    }

    /// Up to three jurors, those with least to do with the candidates first: who has looked at
    /// every answer, and of those that are in as many as are missing. One that fails midway makes
    /// room for the next. Two that are one model at one place count once.
    fn panel(&self) -> Vec<usize> {
        let sitting: BTreeSet<usize> = self.bench.sitting().map(|(at, _)| at).collect();
        let mut panel: Vec<usize> = Vec::new();
        for at in 0..self.jurors.len() {
            let is_new = !panel.iter().any(|other| self.jurors[*other].is_twin_of(&self.jurors[at]));
            if panel.len() < CRITICS && is_new && (self.has_seen_all(at) || sitting.contains(&at)) {
                panel.push(at);
            }
        }
        panel
    }

    /// Whether `critic` still has to look at `contender`: its author does only where nobody else can.
    fn owes(&self, critic: usize, contender: usize) -> bool {
        let others = || self.panel().into_iter().any(|at| !self.is_author(at, contender));
        let has_looked = self.heard.contains(&(critic, contender));
        let leaves_it = || self.is_author(critic, contender) && others();
        !has_looked && !leaves_it()
    }

    /// Whether `critic` has looked at every answer but its own.
    pub(super) fn has_seen_all(&self, critic: usize) -> bool {
        let seen = |at: usize| self.heard.contains(&(critic, at));
        let mut all = 0..self.contenders.len();
        self.heard.iter().any(|(at, _)| *at == critic) && all.all(|at| self.is_author(critic, at) || seen(at))
    }

    /// Whether critics that have looked at every answer have between them looked at each.
    pub(super) fn is_examined(&self) -> bool {
        let by_whole = |at: usize| {
            self.heard.iter().any(|(critic, contender)| *contender == at && self.has_seen_all(*critic))
        };
        (0..self.contenders.len()).all(by_whole)
    }

    fn look(&self) -> Option<Task> {
        let open = self.attacks.iter().enumerate().find_map(|(at, attack)| {
            let same = |other: &&super::Raised| other.contender == attack.contender;
            let looked = self.attacks.iter().filter(same).filter(|other| other.looked_at).count();
            let hit = self.attacks.iter().filter(same).any(|other| other.confirmed);
            let due = attack.severity == Severity::Fatal && !attack.looked_at && !hit && looked < LOOKS;
            let due = due && self.has_seen_all(attack.critic);
            Some((at, self.second(attack)?)).filter(|_| due)
        });
        let (attack, by) = open?;
        let order = self.order_for(attack, by);
        Some(Task::Look { by, attack, order })
    }

    /// Who looks a second time: whoever has least to do with the attacked, neither who raised it
    /// nor who wrote it; else who wrote it, and else who raised it, unless it is a candidate:
    /// it would rule out a rival alone.
    fn second(&self, attack: &super::Raised) -> Option<usize> {
        let raised = &self.jurors[attack.critic];
        let another = |juror: usize| juror != attack.critic && !self.jurors[juror].is_twin_of(raised);
        let is_author = |juror: usize| self.is_author(juror, attack.contender);
        let first = |fits: &dyn Fn(usize) -> bool| self.nearest_last(attack.contender, fits).next();
        first(&|juror| another(juror) && !is_author(juror))
            .or_else(|| first(&another))
            .or_else(|| first(&|juror| !another(juror) && raised.standing != Standing::Candidate))
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

    pub(super) fn is_author(&self, juror: usize, contender: usize) -> bool {
        self.jurors[juror].standing_to(&self.contenders[contender]) == Standing::Candidate
    }

    /// Another order for each attack; once it was seen in that, each answer one place further on:
    /// whoever goes by places names others then.
    fn order_for(&self, attack: usize, by: usize) -> Vec<usize> {
        let seed = self.seed.wrapping_add(attack as u64 + 1);
        let mut order = shuffle::order(self.contenders.len(), seed);
        if self.half.as_ref().is_some_and(|half| half.is_of(by, attack)) {
            order.rotate_right(1);
        }
        order
    }
}
