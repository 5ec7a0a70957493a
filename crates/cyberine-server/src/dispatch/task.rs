//! Tasks: how they stand, answers to what they ask, and their end.

use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_protocol::model::{self, DetailedTask, Task, TaskStatus};
use cyberine_protocol::{Answer, RpcError};
use serde_json::Value;

use super::{Request, call, unknown};
use crate::connection::Reply;
use crate::server::Server;
use crate::task_set::{TaskError, TaskSet, TaskState, TaskView};

/// A task that has just begun.
pub(super) fn begun(view: TaskView) -> Task {
    detailed(view).task
}

pub(super) async fn get(request: &Request, task_id: String) -> Reply {
    let view = tasks(request.server())?.get(request.caller.clone(), task_id).await;
    Ok(Answer::TaskState(detailed(view.map_err(|error| rpc_error(request.server(), error))?)))
}

pub(super) async fn update(request: &Request, task_id: String, responses: BTreeMap<String, Value>) -> Reply {
    let updated = tasks(request.server())?.update(request.caller.clone(), task_id, responses).await;
    updated.map(|()| Answer::Empty).map_err(|error| rpc_error(request.server(), error))
}

pub(super) async fn cancel(request: &Request, task_id: String) -> Reply {
    let cancelled = tasks(request.server())?.cancel(request.caller.clone(), task_id).await;
    cancelled.map(|()| Answer::Empty).map_err(|error| rpc_error(request.server(), error))
}

/// The tasks. That the client declared them has been checked with the request's form.
pub(super) fn tasks(server: &Server) -> Result<&dyn TaskSet, RpcError> {
    server.tasks.as_deref().ok_or_else(|| RpcError::method_not_found("tasks"))
}

fn rpc_error(server: &Server, error: TaskError) -> RpcError {
    match error {
        TaskError::UnknownTask(id) => unknown(server, "task", id),
        TaskError::Refused(message) => RpcError::invalid_params(message),
        TaskError::Internal(message) => RpcError::internal(message),
    }
}

/// The task as it goes out.
pub(crate) fn detailed(view: TaskView) -> DetailedTask {
    let TaskView { task_id, state, message, created_at, updated_at, ttl, poll_interval } = view;
    let (status, state) = match state {
        TaskState::Working => (TaskStatus::Working, model::TaskState::Open),
        TaskState::Cancelled => (TaskStatus::Cancelled, model::TaskState::Open),
        TaskState::InputRequired(asked) => (TaskStatus::InputRequired, model::TaskState::Input(asked)),
        TaskState::Completed(result) => {
            (TaskStatus::Completed, model::TaskState::Result(call::wire_result(result)))
        }
        TaskState::Failed(message) => {
            (TaskStatus::Failed, model::TaskState::Error(RpcError::internal(message)))
        }
    };
    let task = Task {
        task_id,
        status,
        status_message: message,
        created_at: created_at.to_string(),
        last_updated_at: updated_at.to_string(),
        ttl_ms: ttl.map(milliseconds),
        poll_interval_ms: poll_interval.map(milliseconds),
    };
    DetailedTask { task, state }
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
