//! What a judge is asked to do beside naming the best: to tell whether two answers are the same, and
//! to find what is wrong with one.

use cyberine_types::Usage;

use super::report::{self, GroupReport};
use super::{Case, Group, Inquiry, cases};
use crate::adversarial::Adversarial;
use crate::consensus::equivalence;
use crate::judge::{Bench, Contender, Form, Heard, Judge as _, Juror, Next, Question, Standing};

/// How many pairs are to be told apart or not, one after the other.
const PAIRS: usize = 4;
/// How many good answers and bad ones are attacked.
const ATTACKED: usize = 3;

/// The cases of both roles, and what has come of them.
#[derive(Debug)]
pub(super) struct Roles {
    judge: String,
    pairs: usize,
    attacked: usize,
    at: usize,
    quality: Vec<Case>,
    current: Option<Sitting>,
    pub(super) equivalence: GroupReport,
    pub(super) critic: GroupReport,
}

#[derive(Debug)]
enum Sitting {
    /// Two answers in both orders; what was said in the first.
    Pair {
        bench: Bench,
        first: Option<bool>,
    },
    Critic(Box<Adversarial>),
}

impl Roles {
    /// For the judge of this name, with at most `most` cases for each role.
    pub(super) fn new(judge: &str, most: usize) -> Self {
        let (pairs, attacked) = counts(most);
        let quality = cases(usize::MAX).into_iter().filter(|case| case.group == Group::Quality).collect();
        let (equivalence, critic) = (GroupReport::default(), GroupReport::default());
        let judge = judge.to_owned();
        let mut this = Self { judge, pairs, attacked, at: 0, quality, current: None, equivalence, critic };
        this.seat();
        this
    }

    /// How many cases are done.
    pub(super) const fn done(&self) -> usize {
        self.at
    }

    pub(super) fn next(&self, draw: impl FnMut() -> String) -> Option<Inquiry> {
        let case = self.case()?;
        let question = match self.current.as_ref()? {
            Sitting::Pair { bench, first } => {
                let mut texts = self.texts();
                if first.is_some() {
                    texts.reverse();
                }
                Question::new(&self.judge, Form::Same, texts, bench.repair())
            }
            Sitting::Critic(judge) => match judge.next() {
                Next::Ask(question) => question,
                Next::Try(_) | Next::Decided(_) => return None,
            },
        };
        let (messages, schema) = (question.messages(case.task, draw), Some(question.schema()));
        Some(Inquiry { case: case.id, messages, schema })
    }

    pub(super) fn replied(&mut self, reply: Result<String, String>, usage: &Usage) {
        let same = self.is_same();
        match &mut self.current {
            Some(Sitting::Pair { bench, first }) => match bench.hear(reply, usage, equivalence::said) {
                Heard::Again => return,
                Heard::Reply(true) if first.is_none() => {
                    *first = Some(true);
                    return;
                }
                Heard::Reply(said) => {
                    let (first, both) = (first.unwrap_or(said), first.is_some());
                    let group = &mut self.equivalence;
                    group.compared += usize::from(both);
                    group.flips += usize::from(both && first != said);
                    group.misled_at_first += usize::from(first != same);
                    match said {
                        _ if said == same => group.right += 1,
                        true => group.wrong += 1,
                        false => group.ties += 1,
                    }
                }
                Heard::Out => self.equivalence.failed += 1,
            },
            Some(Sitting::Critic(judge)) => {
                judge.replied(reply, usage);
                if !judge.is_settled() {
                    return;
                }
                let good = self.at % 2;
                self.critic.misled_at_first += usize::from(judge.is_accused(good));
                match judge.left() {
                    None => self.critic.failed += 1,
                    Some(left) if !left.contains(&good) => self.critic.wrong += 1,
                    Some(left) if left.len() == 1 => self.critic.right += 1,
                    Some(_) => self.critic.ties += 1,
                }
            }
            None => return,
        }
        let group = if self.at < self.pairs { &mut self.equivalence } else { &mut self.critic };
        group.cases += 1;
        self.at += 1;
        self.seat();
    }

    fn case(&self) -> Option<&Case> {
        let of_role = if self.at < self.pairs { self.at } else { self.at - self.pairs };
        let all = self.pairs + self.attacked;
        self.quality.get(of_role).filter(|_| self.at < all)
    }

    /// Whether the present pair is the same: every other one is.
    const fn is_same(&self) -> bool {
        self.at % 2 == 1
    }

    fn texts(&self) -> Vec<String> {
        let Some(case) = self.case() else { return Vec::new() };
        let other = if self.is_same() { format!("In other words: {}", case.good) } else { case.bad.clone() };
        vec![case.good.clone(), other]
    }

    fn seat(&mut self) {
        let Some(case) = self.case() else {
            self.current = None;
            return;
        };
        let provider = self.judge.clone();
        let juror = Juror { provider, family: None, model: None, source: None, standing: Standing::Outside };
        if self.at < self.pairs {
            self.current = Some(Sitting::Pair { bench: Bench::new(vec![juror]), first: None });
            return;
        }
        let contender = |id: &str, text: &str| Contender {
            id: id.to_owned(),
            provider: id.to_owned(),
            family: None,
            model: None,
            text: text.to_owned(),
        };
        let mut contenders = vec![contender(report::GOOD, &case.good), contender(report::BAD, &case.bad)];
        if self.at % 2 == 1 {
            contenders.reverse();
        }
        let judge = Adversarial::new(contenders, vec![juror], self.at as u64);
        self.current = Some(Sitting::Critic(Box::new(judge)));
    }
}

/// The cases of each role: pairs, and answers to attack.
fn counts(most: usize) -> (usize, usize) {
    (PAIRS.min(most), ATTACKED.min(most))
}

/// How many cases there are in both roles.
pub(super) fn count(most: usize) -> usize {
    counts(most).0 + counts(most).1
}

/// The least and the most questions: one to four for a pair, and for each two answers to attack an
/// attack on each, three second looks at each in two orders, all with a repair.
pub(super) fn calls(most: usize) -> (usize, usize) {
    let (pairs, attacked) = counts(most);
    (pairs + 2 * attacked, 4 * pairs + 28 * attacked)
}

/// What speaks against the judge in these roles.
pub(super) fn faults(equivalence: &GroupReport, critic: &GroupReport) -> Vec<String> {
    let mut faults = Vec::new();
    let of = |group: &GroupReport| (group.wrong, group.right, group.cases);
    let (wrong, right, count) = of(equivalence);
    if wrong > 0 {
        faults.push(format!(
            "as a judge of equivalence, takes different answers for one in {wrong} of {count} cases"
        ));
    }
    if right * 10 < count * 6 {
        faults.push(format!("as a judge of equivalence, is right in {right} of {count} cases only"));
    }
    let (wrong, right, count) = of(critic);
    if wrong > 0 {
        faults.push(format!("as a critic, rules out the good answer in {wrong} of {count} cases"));
    }
    if right * 10 < count * 6 {
        faults.push(format!("as a critic, rules out the bad answer alone in {right} of {count} cases only"));
    }
    faults
}
