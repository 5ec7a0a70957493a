//! Whether a judge can be trusted: built-in cases with a known right answer, put to it as a run
//! would, and what it makes of them.

mod cases;
mod money;
mod report;
mod roles;

use std::path::PathBuf;
use std::sync::Arc;

use cyberine_provider::{Limits, Message, Provider, Role, Turn, TurnError};
use cyberine_run_store::VerdictOutcome;
use cyberine_types::Usage;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::judge::{Contender, Judge as _, Juror, Next, Standing};
use crate::llm_judge::LlmJudge;
use crate::shuffle;
use crate::ticks::NoTicks;
use crate::turn::{self, Finished};
pub use cases::cases;
pub use money::{Allowance, estimate};
use report::Seen;
pub use report::{GroupReport, JudgeReport};

/// What a case is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// One answer is right and the other is wrong.
    Quality,
    /// The wrong answer holds words to the judge.
    Injection,
    /// Both say the same, and one of them at great length.
    Length,
    /// Both are good, and one of them was written by the judge itself.
    Own,
}

impl Group {
    /// All of them, in the order they are put.
    pub const ALL: [Self; 4] = [Self::Quality, Self::Injection, Self::Length, Self::Own];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quality => "quality",
            Self::Injection => "injection",
            Self::Length => "length",
            Self::Own => "own",
        }
    }
}

/// One pair of answers to one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name, unique.
    pub id: &'static str,
    /// What it is about.
    pub group: Group,
    /// The task.
    pub task: &'static str,
    /// The answer that should win.
    pub good: String,
    /// The one that should not. Empty where the judge is to write it itself.
    pub bad: String,
}

/// What to ask the judge next.
#[derive(Debug, Clone, PartialEq)]
pub struct Inquiry {
    /// The case it belongs to.
    pub case: &'static str,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The JSON Schema the answer must satisfy; none where the judge is to write an answer.
    pub schema: Option<Value>,
}

/// The examination of one judge: pure, driven by the replies it is given.
#[derive(Debug)]
pub struct Examination {
    judge: String,
    cases: Vec<Case>,
    at: usize,
    current: Option<LlmJudge>,
    roles: roles::Roles,
    seen: Vec<Seen>,
    calls: usize,
    usage: Usage,
}

impl Examination {
    /// Puts `cases` to the judge of this name, in order.
    #[must_use]
    pub fn new(judge: &str, cases: Vec<Case>) -> Self {
        let roles = roles::Roles::new(judge, most(&cases));
        let mut this = Self {
            roles,
            judge: judge.to_owned(),
            cases,
            at: 0,
            current: None,
            seen: Vec::new(),
            calls: 0,
            usage: Usage::default(),
        };
        this.seat();
        this
    }

    /// The least and the most questions that `cases` take: a single showing where the judge says
    /// `tie`, else two, each with a repair where the reply does not hold; one more where the judge
    /// writes an answer itself.
    #[must_use]
    pub fn calls(cases: &[Case]) -> (usize, usize) {
        let own = cases.iter().filter(|case| case.group == Group::Own).count();
        let (least, more) = roles::calls(most(cases));
        (cases.len() + own + least, 4 * cases.len() + own + more)
    }

    /// How many cases are put in all: `cases`, and those of the other things a judge is asked.
    #[must_use]
    pub fn count(cases: &[Case]) -> usize {
        cases.len() + roles::count(most(cases))
    }

    /// What to ask now; `None` once all cases are done. `draw` gives random tokens.
    pub fn next(&self, draw: impl FnMut() -> String) -> Option<Inquiry> {
        let Some(case) = self.cases.get(self.at) else { return self.roles.next(draw) };
        let Some(judge) = &self.current else {
            let messages = vec![Message::new(Role::User, case.task)];
            return Some(Inquiry { case: case.id, messages, schema: None });
        };
        match judge.next() {
            Next::Ask(question) => Some(Inquiry {
                case: case.id,
                messages: question.messages(case.task, draw),
                schema: Some(question.schema()),
            }),
            Next::Try(_) | Next::Decided(_) => None,
        }
    }

    /// Takes the reply to the last question: its text, or how the turn failed.
    pub fn replied(&mut self, reply: Result<String, String>, usage: &Usage) {
        self.calls += 1;
        self.usage = self.usage.plus(usage);
        let Some(case) = self.cases.get_mut(self.at) else { return self.roles.replied(reply, usage) };
        match (&mut self.current, reply) {
            (Some(judge), reply) => judge.replied(reply, usage),
            (None, Ok(own)) => {
                case.bad = own;
                return self.seat();
            }
            (None, Err(_)) => {
                let group = case.group;
                return self.close(Seen { group, named: Vec::new(), good: 0, winner: None, held: false });
            }
        }
        let Some(judge) = &self.current else { return };
        if let Next::Decided(ruling) = judge.next() {
            let seen = Seen {
                group: case.group,
                named: judge.named(),
                good: self.at % 2,
                winner: ruling.verdict.winner,
                held: ruling.verdict.outcome != VerdictOutcome::Unjudged,
            };
            self.close(seen);
        }
    }

    /// How many cases are done.
    #[must_use]
    pub const fn done(&self) -> usize {
        self.at + self.roles.done()
    }

    /// What has come of it so far.
    #[must_use]
    pub fn report(&self) -> JudgeReport {
        let report = JudgeReport::of(&self.judge, &self.seen, self.calls, self.usage);
        report.with_roles(self.roles.equivalence, self.roles.critic)
    }

    fn close(&mut self, seen: Seen) {
        self.seen.push(seen);
        self.at += 1;
        self.seat();
    }

    /// Prepares the judging of the present case: in every other one the good answer is first.
    fn seat(&mut self) {
        let Some(case) = self.cases.get(self.at).filter(|case| !case.bad.is_empty()) else {
            self.current = None;
            return;
        };
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
        let (provider, standing) = (self.judge.clone(), Standing::Outside);
        let juror = Juror { provider, family: None, model: None, source: None, standing };
        let in_order = (0..).find(|seed| shuffle::order(2, *seed) == [0, 1]).unwrap_or_default();
        // The judge is put to the test, and not what keeps words from it.
        self.current = Some(LlmJudge::new(contenders, vec![juror], in_order).with_words());
    }
}

/// How many cases of a group there are at most.
fn most(cases: &[Case]) -> usize {
    cases.iter().filter(|case| case.group == Group::Quality).count()
}

/// How one question ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Replied {
    /// The answer, not empty, or the failure.
    pub answer: Result<String, TurnError>,
    /// What was used, also where it failed.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
}

/// Puts one question to `provider`, in the directory `cwd` and under the mark `mark`.
///
/// # Cancel safety
/// Dropping the future kills the turn. Use `cancel` to wait for its end.
pub async fn inquire(
    provider: Arc<dyn Provider>,
    inquiry: Inquiry,
    limits: Limits,
    cwd: PathBuf,
    mark: String,
    cancel: CancellationToken,
) -> Replied {
    let Inquiry { case, messages, schema } = inquiry;
    let turn = Turn { messages, tools: Vec::new(), output_schema: schema, limits, cwd, mark };
    let taken = turn::take(provider, turn, case.to_owned(), Arc::new(NoTicks), cancel).await;
    let Finished { answer, usage, duration_ms, .. } = taken;
    Replied { answer, usage, duration_ms }
}

#[cfg(test)]
mod tests;
