//! The `Provider` port: one turn of one model, as a stream of events.

use std::path::PathBuf;
use std::time::Duration;

use cyberine_types::{Billing, Usage};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::TurnError;
use crate::probe::Probe;

/// Takes one turn of a conversation with one model, whatever wire it speaks.
///
/// The stream ends with exactly one [`TurnEvent::Stop`] or one [`TurnError`], and yields nothing
/// after it. `Stop(StopReason::EndTurn)` is only sent after the provider's own success event and
/// a non-empty answer; an answer that is missing, cut or empty is an error.
///
/// # Cancel safety
///
/// Cancelling `cancel` ends the stream with [`TurnError::Cancelled`] after everything the turn
/// started is dead. Dropping the stream kills too, but nobody is told whether it worked.
pub trait Provider: Send + Sync {
    /// What this provider is, for records and for people.
    fn info(&self) -> &ProviderInfo;

    /// What a turn may ask of it.
    fn capabilities(&self) -> Capabilities;

    /// Looks whether it could answer, at no cost: whether it is there, lets us in, and knows its
    /// model. Calls no model. Takes at most some 15 seconds.
    fn probe(&self) -> BoxFuture<'_, Probe> {
        Box::pin(std::future::ready(Probe::there()))
    }

    /// Starts one turn.
    fn turn(&self, turn: Turn, cancel: CancellationToken)
    -> BoxStream<'static, Result<TurnEvent, TurnError>>;
}

/// What a provider is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderInfo {
    /// The name in the configuration: unique, and how people speak of it.
    pub name: String,
    /// The wire: `openai`, `anthropic`, `claude-cli`, `command`.
    pub kind: String,
    /// The model, where the configuration names one.
    pub model: Option<String>,
    /// How its use is paid for.
    pub billing: Billing,
}

/// What a turn may ask of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// It can be offered tools.
    pub tools: bool,
    /// It can be held to a JSON Schema natively.
    pub structured_output: bool,
    /// A later turn can continue an earlier one.
    pub resume: bool,
    /// It can be kept from changing anything.
    pub read_only: bool,
}

/// One turn to take.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// A JSON Schema the answer must satisfy. Where the provider has no native support the
    /// adapter ignores it and the caller checks.
    pub output_schema: Option<Value>,
    /// Bounds on time and size.
    pub limits: Limits,
    /// The directory a child process works in.
    pub cwd: PathBuf,
    /// The run this turn belongs to: the mark put into the environment of every child, by which
    /// its leftovers are found (`CYBERINE_RUN=<mark>`).
    pub mark: String,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
    /// The tools the model called, where it speaks; the one call whose result this is, where a tool
    /// does; else none.
    pub calls: Vec<ToolCall>,
}

impl Message {
    /// A message of `role` that says `text`.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), calls: Vec::new() }
    }

    /// What the model said when it called tools: `text` and `calls`, as they came.
    #[must_use]
    pub fn calling(text: impl Into<String>, calls: Vec<ToolCall>) -> Self {
        Self { role: Role::Assistant, text: text.into(), calls }
    }

    /// The result of `call`.
    #[must_use]
    pub fn result(call: ToolCall, text: impl Into<String>) -> Self {
        Self { role: Role::Tool, text: text.into(), calls: vec![call] }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Standing instructions.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// A tool the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Bounds on one turn. Each limit is its own failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The longest silence.
    pub idle: Duration,
    /// The longest turn.
    pub wall: Duration,
    /// The longest answer, in bytes of UTF-8.
    pub answer_bytes: usize,
    /// The most output tokens to ask for, where the wire has a field for it.
    pub max_tokens: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(300),
            wall: Duration::from_secs(3600),
            answer_bytes: 4 << 20,
            max_tokens: 8192,
        }
    }
}

/// What happens during a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEvent {
    /// The model has begun to work, if only to think: from here on the turn is paid for. Told once,
    /// before anything of an answer.
    Working,
    /// More of the answer. Whole characters, terminal escapes removed.
    Text(String),
    /// Everything said so far is void: the provider starts its answer anew.
    Retract,
    /// The model, or the agent behind it, calls a tool.
    ToolCall(ToolCall),
    /// What has been used so far, in total: it replaces the figure before.
    Usage(Usage),
    /// Nothing of an answer has come, and the turn waits before it is taken, or taken again.
    Waiting {
        /// How long; zero where that is not known.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// The turn is over, and well.
    Stop(StopReason),
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// What the provider wants back with the call, as it came: some carry their reasoning in it.
    pub signature: Option<String>,
}

impl ToolCall {
    /// A call of `name` with `arguments`.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, signature: None }
    }
}

/// Why a turn that went well is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model has said what it had to say.
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
}
