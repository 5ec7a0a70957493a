use std::collections::BTreeMap;

use super::{CallToolResult, ClientCapabilities, InputRequest};
use crate::jsonrpc::RpcError;

/// A call that goes on as a task (extension `io.modelcontextprotocol/tasks`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The task's id.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// What that means, for people.
    pub status_message: Option<String>,
    /// When it began, RFC 3339.
    pub created_at: String,
    /// When it changed last, RFC 3339.
    pub last_updated_at: String,
    /// How long it is kept after its creation, in milliseconds; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How often to poll, in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// At work.
    Working,
    /// Waiting for input.
    InputRequired,
    /// Over, with a result.
    Completed,
    /// Over, with an error.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl TaskStatus {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of that name, if there is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

/// A task and what has come of it. What goes out as its status is that of `state`, so that the two
/// cannot disagree; only an open task says by itself whether it works or was cancelled.
#[derive(Debug, Clone)]
pub struct DetailedTask {
    /// The task.
    pub task: Task,
    /// What has come of it.
    pub state: TaskState,
}

/// What has come of a task.
#[derive(Debug, Clone)]
pub enum TaskState {
    /// Nothing: it is at work, or was cancelled.
    Open,
    /// It waits for answers to these questions, by keys that are never used again.
    Input(BTreeMap<String, InputRequest>),
    /// It is over, and this is what the call would have returned. A failure of the work is a result.
    Result(CallToolResult),
    /// It is over, and this is the error the call would have been answered with.
    Error(RpcError),
}

impl DetailedTask {
    /// The task as a client may see it that declared `declared`: one that asks what the client cannot
    /// be asked is at work for it, and says what it waits for. It would not be seen at all else, and
    /// what it waits for may come from elsewhere.
    #[must_use]
    pub fn shown_to(mut self, declared: ClientCapabilities) -> Self {
        if declared.covers(self.required()) {
            return self;
        }
        let waits = "waits for an answer that this client cannot be asked for";
        let message = self.task.status_message.take();
        let message = message.map_or_else(|| waits.to_owned(), |message| format!("{message}; {waits}"));
        self.task.status_message = Some(message);
        self.state = TaskState::Open;
        self
    }

    /// What a client must have declared to be asked what the task asks.
    fn required(&self) -> ClientCapabilities {
        let TaskState::Input(requests) = &self.state else { return ClientCapabilities::default() };
        requests
            .values()
            .map(InputRequest::required)
            .fold(ClientCapabilities::default(), ClientCapabilities::and)
    }

    /// The status that goes out.
    #[must_use]
    pub fn status(&self) -> TaskStatus {
        match (&self.state, self.task.status) {
            (TaskState::Open, TaskStatus::Cancelled) => TaskStatus::Cancelled,
            (TaskState::Open, _) => TaskStatus::Working,
            (TaskState::Input(_), _) => TaskStatus::InputRequired,
            (TaskState::Result(_), _) => TaskStatus::Completed,
            (TaskState::Error(_), _) => TaskStatus::Failed,
        }
    }
}
