//! What goes into the step machine and what comes out of it.

use cyberine_run_store::{CandidateError, Choice, RunEvent, RunState};
use cyberine_types::{Billing, Usage};

use crate::config::JudgeKind;
use crate::criteria::Criterion;
use crate::judge::{Attempt, Question};
use crate::machine::Steering;
use crate::plan::Gate;
use crate::trial::{Extract, TrialError, TrialReport};

/// A provider before it is asked, as a candidate or as a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contestant {
    pub(crate) id: String,
    /// The provider's configured name, which several candidates may share.
    pub(crate) provider: String,
    pub(crate) kind: String,
    pub(crate) model: Option<String>,
    /// What is asked in the end: the program or address, and the model.
    pub(crate) source: Option<String>,
    pub(crate) billing: Billing,
    /// The model to ask where the first does not answer.
    pub(crate) fallback: Option<String>,
}

/// What the machine is to do.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) judges: Vec<JudgeKind>,
    /// Providers that may judge, in the order they are asked.
    pub(crate) jurors: Vec<Contestant>,
    pub(crate) quorum: usize,
    /// How many answers suffice; none where all are waited for.
    pub(crate) first: Option<usize>,
    /// How often the candidates are asked at most; at least once.
    pub(crate) rounds: usize,
    pub(crate) max_parallel: usize,
    pub(crate) judge_always: bool,
    /// Whether a model compares answers that are not equal.
    pub(crate) equivalence: bool,
    /// The operator's criteria.
    pub(crate) rubric: Option<String>,
    /// What of them is scored one by one.
    pub(crate) criteria: Vec<Criterion>,
    /// Which part of an answer the judge `command` tries.
    pub(crate) extract: Option<Extract>,
    pub(crate) seed: u64,
    /// Where somebody has to approve before anything is judged.
    pub(crate) gate: Option<Gate>,
    /// Guidance that is in the run's log already.
    pub(crate) steered: Vec<Steering>,
}

/// What somebody decided on the run or on its one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) choice: Choice,
    pub(crate) by: String,
    pub(crate) comment: Option<String>,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Begin,
    Answered {
        candidate: usize,
        text: String,
        usage: Usage,
        duration_ms: u64,
    },
    Failed {
        candidate: usize,
        code: &'static str,
        message: String,
        /// Whether anything of an answer had come: text, or a call of a tool.
        begun: bool,
        usage: Usage,
        duration_ms: u64,
    },
    JudgeReplied {
        reply: Result<String, CandidateError>,
        usage: Usage,
        duration_ms: u64,
    },
    /// A trial is over.
    Tried(Result<TrialReport, TrialError>),
    CancelRequested {
        by: String,
        reason: Option<String>,
    },
    /// Somebody has decided. Where there is no gate, it changes nothing.
    Decided(Decision),
    /// It is on record that the gate is closed with this decision, and that nothing had come
    /// before that which was not told.
    Closed(Decision),
    /// The gate's time is over.
    Expired,
    Steered(Steering),
}

/// What to do about it: append all of `append` first, then act in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Effects {
    pub(crate) append: Vec<RunEvent>,
    pub(crate) actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Ask the candidate of this index.
    Ask(usize),
    /// Ask the fallback model of the candidate of this index.
    AskFallback(usize),
    /// Stop the turns of all candidates, since there are answers enough; each still reports its end.
    StopCandidates,
    AskJudge(Question),
    /// Run the judge's command on an answer.
    Try(Attempt),
    /// Append that the run waits for an approval, and until when; tell when that time is over.
    Suspend(Gate),
    /// Close the gate where nothing has come into the log that was not told, and say so with
    /// `Closed`; else tell what has come, and the cause again after it.
    Close(Box<Closing>),
    /// Kill every turn; each still reports its end.
    KillTurns,
    /// Nothing more will happen: count what is left and append the last event.
    Settle(Settlement),
}

/// The end of the wait at the gate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Closing {
    /// What is appended for it.
    pub(crate) event: RunEvent,
    pub(crate) decision: Decision,
    /// Upon what the gate is closed.
    pub(crate) cause: Input,
}

/// How the run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settlement {
    pub(crate) state: RunState,
    pub(crate) detail: String,
    pub(crate) reason: Option<&'static str>,
}
