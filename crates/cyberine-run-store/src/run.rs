//! A run as its events make it: the fold, and the view that is written to `run.json`.

use cyberine_types::{Billing, MessageId, RunId, Timestamp, Usage, Usd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Choice, OperatorDecision, ProcessCount, RunState, Verdict};
use crate::money::Share;
use crate::port::{DecideOutcome, Wish};

/// A run, folded from its events. This is what `run.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run's id.
    pub run_id: RunId,
    /// `mcp-orchestrate`, `research`.
    pub workflow_name: String,
    /// How it stands.
    pub state: RunState,
    /// One line for people about how it stands.
    pub detail: String,
    /// A stable code where `state` is `error`, such as `interrupted`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The prompt, whole.
    pub task: String,
    /// The project's directory.
    pub cwd: String,
    /// Who asked for it.
    pub requested_by: String,
    /// The runner's process id, once there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine_pid: Option<u32>,
    /// When it was admitted.
    pub started_at: Timestamp,
    /// When its last event was appended.
    pub updated_at: Timestamp,
    /// Its steps, in the order they began.
    pub steps: Vec<Step>,
    /// What the whole run used.
    pub usage: Usage,
    /// The money held for the run until it settles.
    #[serde(default)]
    pub reserved: Usd,
    /// What of it is held at which provider.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shares: Vec<Share>,
    /// Processes found when it settled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub processes: Option<ProcessCount>,
    /// Set as soon as somebody asked for it to stop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cancel_requested_by: Option<String>,
    /// What the run waits for, while it is suspended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub awaiting: Option<Awaiting>,
    /// How the wait for an approval came out, once it has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gate: Option<GateOutcome>,
    /// What was decided on it and its steps, in that order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub decisions: Vec<OperatorDecision>,
    /// Who guided it, and with what, in that order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub steers: Vec<Steer>,
    /// What the engine was told to do.
    pub spec: Value,
    /// The sequence number the next event will have.
    pub next_seq: u64,
}

/// What a suspended run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Awaiting {
    /// The step that waits for a decision.
    pub step: String,
    /// When the waiting ends.
    pub expires_at: Timestamp,
    /// What is taken for decided then.
    pub on_expiry: Choice,
}

/// What was taken for decided where the run needs an approval. Later decisions are on record only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateOutcome {
    /// Whether the run goes on.
    pub decision: Choice,
    /// Who decided, or `expiry`.
    pub by: String,
    /// When the run took it in.
    pub at: Timestamp,
}

/// A word of guidance that reached a run while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Steer {
    /// The message's id on the bus.
    pub message: MessageId,
    /// Who, as claimed.
    pub from: String,
    /// The text.
    pub text: String,
    /// When the run took it in.
    pub at: Timestamp,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The step's id.
    pub id: String,
    /// The step's name.
    pub name: String,
    /// How it stands.
    pub state: RunState,
    /// Its candidates, in the order they were asked.
    pub candidates: Vec<Candidate>,
    /// Every question to a judge, in the order they were asked.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub judge_calls: Vec<JudgeCall>,
    /// Every verdict, in the order the judges decided.
    pub verdicts: Vec<Verdict>,
    /// The verdict that counts: a majority, else the first other one with a winner, else the last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<Verdict>,
}

/// One candidate of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The candidate's id.
    pub id: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's kind.
    pub kind: String,
    /// The model, where known: the fallback model once that is asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// The turn before, where the model asked first has failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fell_back: Option<FellBack>,
    /// How the provider is paid for.
    pub billing: Billing,
    /// How it stands: running, done, error, cancelled.
    pub state: RunState,
    /// The answer, whole; empty until it is done.
    pub output: String,
    /// The step the answer is of, where the candidate has failed in this one: `error` says how.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kept_from: Option<String>,
    /// What it used.
    pub usage: Usage,
    /// How long it took, the turn of a model that was stood in for among it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<CandidateError>,
}

/// The turn of a model that failed before the fallback model was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FellBack {
    /// The model, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// How it failed.
    pub error: CandidateError,
    /// What it used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
}

/// One question to a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgeCall {
    /// The judge: its provider's name.
    pub judge: String,
    /// The provider's kind.
    pub kind: String,
    /// The model, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// How the provider is paid for.
    pub billing: Billing,
    /// How it stands: running, done, error, cancelled.
    pub state: RunState,
    /// What it used.
    pub usage: Usage,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<CandidateError>,
}

/// How a turn of a candidate or a judge failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateError {
    /// The stable code.
    pub code: String,
    /// The failure in words.
    pub message: String,
}

impl Step {
    /// The winning candidate, where the verdict that counts has one.
    #[must_use]
    pub fn winner(&self) -> Option<&Candidate> {
        let winner = self.verdict.as_ref()?.winner.as_deref()?;
        self.candidates.iter().find(|candidate| candidate.id == winner)
    }
}

impl Run {
    /// The winner of the latest step that has one.
    #[must_use]
    pub fn winner(&self) -> Option<&Candidate> {
        self.steps.iter().rev().find_map(Step::winner)
    }

    /// The decision by which the run went on or ended; else the one on the whole run, else the
    /// latest on one of its steps.
    #[must_use]
    pub fn decision(&self) -> Option<&OperatorDecision> {
        let counted = self.gate.as_ref().and_then(|gate| {
            self.decisions.iter().find(|made| {
                made.decision == gate.decision && made.decider() == gate.by && made.decided_at <= gate.at
            })
        });
        let whole = || self.decisions.iter().find(|decision| decision.step_id.is_none());
        counted.or_else(whole).or(self.decisions.last())
    }

    /// The time of an event that is appended at `now`: a log does not go back in time, whatever
    /// clocks do.
    pub(crate) fn moment(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at)
    }

    /// The decision `wish` makes on this run; or why none is made.
    pub(crate) fn decide(&self, wish: Wish, at: Timestamp) -> Result<OperatorDecision, DecideOutcome> {
        let Wish { choice, step, comment, by, kind } = wish;
        if let Some(step) = &step
            && self.steps.iter().all(|known| known.id != *step)
        {
            let known = self.steps.iter().map(|step| step.id.clone()).collect();
            return Err(DecideOutcome::UnknownStep { known });
        }
        if let Some(standing) = self.decisions.iter().find(|known| known.step_id == step) {
            return Err(DecideOutcome::Standing(standing.clone()));
        }
        Ok(OperatorDecision {
            decision: choice,
            run_id: self.run_id,
            step_id: step,
            comment,
            decided_by: by,
            decider_kind: kind,
            decided_at: at,
        })
    }
}
