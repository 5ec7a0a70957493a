//! The shape of calls that go on as tasks (extension `io.modelcontextprotocol/tasks`).

use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_protocol::model::InputRequest;
use cyberine_types::{Caller, Timestamp};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::toolset::ToolResult;

/// The tasks that calls have begun, by their ids.
///
/// An id is hard to guess, and the set checks at each call that the caller may know of the task:
/// to anybody else there is no such task. A task is there before its id is given out, and stays
/// for the time its [`TaskView::ttl`] says.
pub trait TaskSet: Send + Sync {
    /// The task as it stands.
    fn get(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<TaskView, TaskError>>;

    /// Gives answers to what [`TaskState::InputRequired`] asks, by its keys. Some of them may be
    /// missing, which leaves their questions open; keys that are not asked are ignored.
    fn update(
        &self,
        caller: Caller,
        task_id: String,
        responses: BTreeMap<String, Value>,
    ) -> BoxFuture<'_, Result<(), TaskError>>;

    /// Asks for the task's end. It may end otherwise, and one that has ended stays as it is.
    fn cancel(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<(), TaskError>>;

    /// Follows a task from now on.
    fn watch(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<Box<dyn TaskWatch>, TaskError>>;
}

/// One task that is followed.
pub trait TaskWatch: Send {
    /// Resolves with the task as it stands when it has changed since the last time this resolved,
    /// or since the watch began; with `None` when nothing will change any more. Several changes
    /// may count as one; the last one does not get lost.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, no change is lost.
    fn next(&mut self) -> BoxFuture<'_, Option<TaskView>>;
}

/// A task as a client may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    /// Its id.
    pub task_id: String,
    /// How it stands.
    pub state: TaskState,
    /// What that means, for people.
    pub message: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
    /// How long it is kept from its beginning on; `None` is for ever.
    pub ttl: Option<Duration>,
    /// How often to look at it.
    pub poll_interval: Option<Duration>,
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// At work.
    Working,
    /// It waits for these answers. A key names one question, and is never used for another.
    InputRequired(BTreeMap<String, InputRequest>),
    /// Over: the result the call would have had. The work may have failed (`is_error`).
    Completed(ToolResult),
    /// Over, by a fault of the server.
    Failed(String),
    /// Cancelled.
    Cancelled,
}

/// A task that cannot be looked at or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// There is no such task for this caller. `-32602`.
    #[error("unknown task `{0}`")]
    UnknownTask(String),
    /// It cannot be done to this task, or not like this; the text says why. `-32602`.
    #[error("{0}")]
    Refused(String),
    /// The server is at fault. `-32603`.
    #[error("internal error: {0}")]
    Internal(String),
}
