//! What can happen to a run: the events its log is made of.

use cyberine_types::{Billing, MessageId, RunId, Timestamp, Usage, Usd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::money::Share;
use crate::run::CandidateError;

/// One record of a run's log. `(run, seq)` is its key; `seq` starts at 1 and has no holes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Position in the run's log, from 1.
    pub seq: u64,
    /// When it was appended.
    pub at: Timestamp,
    /// The claim under which it was appended. A lower epoch than the run's present one is refused.
    pub epoch: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: RunEvent,
}

/// What happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunEvent {
    /// The run exists and its reservation is held. Always the first event.
    Admitted {
        /// `mcp-orchestrate`, `research`.
        workflow: String,
        /// The prompt, whole.
        prompt: String,
        /// The project's directory, absolute.
        cwd: String,
        /// Who asked, as they call themselves: `name@version`, or `cli`.
        requested_by: String,
        /// What the engine is to do, frozen at dispatch. Holds no secret.
        spec: Value,
        /// The money held for it until it settles.
        #[serde(default)]
        reserved: Usd,
        /// What of it is held at which provider.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shares: Vec<Share>,
    },
    /// A runner holds the claim.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// A step begins.
    StepStarted {
        /// The step's id, unique within the run.
        step: String,
        /// The step's name, for people.
        name: String,
    },
    /// A candidate has been asked.
    CandidateStarted {
        /// The step it belongs to.
        step: String,
        /// The candidate's id, unique within the step.
        candidate: String,
        /// The provider's name.
        provider: String,
        /// The provider's kind.
        kind: String,
        /// The model, where known.
        model: Option<String>,
        /// How the provider is paid for.
        billing: Billing,
    },
    /// A candidate has answered.
    CandidateDone {
        /// The step it belongs to.
        step: String,
        /// The candidate's id.
        candidate: String,
        /// The answer, whole and not empty.
        output: String,
        /// What it used.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
    },
    /// A candidate has failed, or was stopped (`cancelled`, and `superseded` where other answers
    /// sufficed).
    CandidateFailed {
        /// The step it belongs to.
        step: String,
        /// The candidate's id.
        candidate: String,
        /// The failure's stable code, such as `auth` or `empty`.
        code: String,
        /// The failure in words.
        message: String,
        /// What it used before it failed.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
    },
    /// A candidate's model has failed before it said anything, and the candidate goes on with its
    /// fallback model. Appended before that is asked.
    CandidateFellBack {
        /// The step it belongs to.
        step: String,
        /// The candidate's id.
        candidate: String,
        /// The model that is asked now.
        model: String,
        /// The failure's stable code, such as `overloaded`.
        code: String,
        /// The failure in words.
        message: String,
        /// What the first model used.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
    },
    /// A candidate has failed in a step, and its answer of a step before stands. Follows its
    /// `CandidateFailed`, which says why and what that used; this adds nothing to what was used.
    CandidateKept {
        /// The step it has failed in.
        step: String,
        /// The candidate's id, the same in both steps.
        candidate: String,
        /// The step whose answer stands.
        from_step: String,
    },
    /// A judge has been asked a question. Appended before the request leaves, so that money which
    /// may have been spent is known of whatever happens next.
    JudgeAsked {
        /// The step it judges.
        step: String,
        /// The judge: its provider's name.
        judge: String,
        /// The provider's kind.
        kind: String,
        /// The model, where known.
        model: Option<String>,
        /// How the provider is paid for.
        billing: Billing,
    },
    /// A judge's turn is over. Whether its reply holds, the verdict says.
    JudgeReplied {
        /// The step it judges.
        step: String,
        /// The judge: its provider's name.
        judge: String,
        /// How the turn failed, where it did.
        error: Option<CandidateError>,
        /// What it used.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
    },
    /// A judge has decided, or has been found unable to.
    Judged {
        /// The step it belongs to.
        step: String,
        /// The verdict.
        verdict: Verdict,
    },
    /// Somebody wants the run stopped.
    CancelRequested {
        /// Who: `name@version`, `cli`, `control-file`.
        by: String,
        /// Why, where they said.
        reason: Option<String>,
    },
    /// Somebody guides the run: the text is put before the judges, as data.
    Steered {
        /// The message's id on the bus.
        message: MessageId,
        /// Who, as claimed: `human u`, `mcp name@version`.
        from: String,
        /// The text; at most 4,000 characters.
        text: String,
    },
    /// The run waits for a decision before it goes on.
    ApprovalRequested {
        /// The step that waits.
        step: String,
        /// When the waiting ends.
        expires_at: Timestamp,
        /// What is taken for decided then.
        on_expiry: Choice,
    },
    /// The run goes on after a decision, or the want of one.
    Resumed {
        /// Who decided, or `expiry`.
        by: String,
    },
    /// The run came to where it needs an approval, had one already and goes on without waiting.
    Approved {
        /// Who decided.
        by: String,
    },
    /// The run ends after a decision, or the want of one: it waits no more and does not go on.
    Rejected {
        /// Who decided, or `expiry`.
        by: String,
    },
    /// Somebody decided on the run, or on one of its steps. The one event that may follow
    /// `Settled`: it changes what is known of the run, and not how it stands.
    Decided {
        /// The decision.
        decision: OperatorDecision,
    },
    /// A control was given that the engine does not understand.
    ControlIgnored {
        /// What was wrong with it.
        detail: String,
    },
    /// The run is over. Nothing follows but decisions.
    Settled {
        /// `done`, `error` or `cancelled`.
        state: RunState,
        /// One line for people.
        detail: String,
        /// A stable code, such as `interrupted`, where the state is `error`.
        reason: Option<String>,
        /// What is left of what the run started.
        processes: ProcessCount,
    },
}

/// What somebody decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Go on; or: this is good.
    Approve,
    /// Stop; or: this is not good.
    Reject,
}

impl Choice {
    /// The choice's name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// What kind of decider it was, as the process that recorded the decision knows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeciderKind {
    /// A person at the command line.
    Human,
    /// A client of a server. What does not say who it was counts as one.
    #[default]
    Mcp,
}

/// A decision on a run or on one of its steps. There is one per target: the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorDecision {
    /// What was decided.
    pub decision: Choice,
    /// The run.
    pub run_id: RunId,
    /// The step; none for the whole run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step_id: Option<String>,
    /// Why; at most 4,000 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comment: Option<String>,
    /// Who, as they call themselves: `name@version`, `human u`. Attribution, never authority.
    pub decided_by: String,
    /// What they are. No client can say it of itself.
    #[serde(default)]
    pub decider_kind: DeciderKind,
    /// When.
    pub decided_at: Timestamp,
}

impl OperatorDecision {
    /// Who decided, so that no client passes for a person: `human u`, `mcp name@version`.
    #[must_use]
    pub fn decider(&self) -> String {
        match self.decider_kind {
            DeciderKind::Human => self.decided_by.clone(),
            DeciderKind::Mcp => format!("mcp {}", self.decided_by),
        }
    }
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Admitted; no runner has claimed it yet.
    Queued,
    /// A runner holds the claim.
    Running,
    /// It waits for somebody.
    Suspended,
    /// It came to its end. Whether there is a winner, the verdict says.
    Done,
    /// It could not come to its end.
    Error,
    /// It was stopped on request.
    Cancelled,
}

impl RunState {
    /// Whether nothing more will happen.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Error | Self::Cancelled)
    }

    /// The state's name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Done => "done",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a judge decided about a step's candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// `consensus`, `llm-judge`, `adversarial`, `command`.
    pub kind: String,
    /// What came out.
    pub outcome: VerdictOutcome,
    /// The winning candidate's id; present exactly where `outcome` is `majority` or `winner`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub winner: Option<String>,
    /// Why, in words; at most 4,000 characters.
    pub rationale: String,
    /// Who voted for what, or how each candidate was scored.
    pub votes: Vec<Vote>,
    /// What critics held against the candidates, where the judge has critics.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attacks: Vec<Attack>,
    /// What judging used: the sum over the step's judge calls that led to this verdict.
    pub usage: Usage,
}

/// What came out of judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictOutcome {
    /// More than half of the candidates that answered say the same.
    Majority,
    /// The judge prefers one candidate, in every order it was shown them.
    Winner,
    /// No candidate is better than every other, or the orders disagree.
    Tie,
    /// Too few candidates answered.
    NoQuorum,
    /// No judge gave a verdict that holds.
    Unjudged,
}

/// One line of a verdict's tally.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vote {
    /// Who voted: a judge's provider name and the order it was shown, or `cluster 1`.
    pub voter: String,
    /// The candidate voted for, or `None` for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub candidate: Option<String>,
    /// The score, where the judge gives one: the total where it scores by criteria.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub score: Option<f64>,
    /// What the total is made of, where the judge scores by the criteria of a rubric.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub criteria: Vec<CriterionScore>,
    /// A short reason.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// The score of one candidate for one criterion of a rubric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CriterionScore {
    /// The criterion's name.
    pub name: String,
    /// How much it counts beside the others: the total is the mean of the scores by weight.
    pub weight: u32,
    /// The score, from 0 to 10.
    pub score: f64,
}

/// What a critic holds against a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attack {
    /// The critic: its provider's name.
    pub critic: String,
    /// The candidate that is attacked.
    pub candidate: String,
    /// How bad it is, if it is true.
    pub severity: Severity,
    /// What is wrong; at most 300 characters.
    pub claim: String,
    /// Whether a second critic or a second look agrees. Asked of fatal attacks only.
    #[serde(default)]
    pub confirmed: bool,
}

/// How bad an attack is, if it is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Whoever relies on the answer is led wrong.
    Fatal,
    /// An important part is wrong or missing.
    Major,
    /// Anything else.
    Minor,
}

/// Children of a run, counted when it settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessCount {
    /// How many had to be killed.
    pub killed: u32,
    /// How many are still there. Zero, or something is wrong.
    pub left: u32,
}
