//! Tasks (extension `io.modelcontextprotocol/tasks`).

use super::ask::input_requests;
use super::json::Object;
use super::line::error_object;
use super::result::call_members;
use crate::model::{DetailedTask, Task, TaskState, TaskStatus};
use crate::revision::Revision;

/// The members of a task that has just been created.
pub(super) fn created_members(object: &mut Object<'_>, task: &Task, status: TaskStatus) {
    object.member("taskId", &task.task_id);
    object.member("status", status.as_str());
    object.optional("statusMessage", task.status_message.as_ref());
    object.member("createdAt", &task.created_at);
    object.member("lastUpdatedAt", &task.last_updated_at);
    object.member("ttlMs", &task.ttl_ms);
    object.optional("pollIntervalMs", task.poll_interval_ms.as_ref());
}

/// The members of a task, with what has come of it.
pub(super) fn task_members(object: &mut Object<'_>, task: &DetailedTask, revision: Revision) {
    created_members(object, &task.task, task.status());
    match &task.state {
        TaskState::Open => {}
        TaskState::Input(requests) => input_requests(object, requests, revision),
        TaskState::Result(result) => {
            let mut inner = object.object("result");
            call_members(&mut inner, result, revision);
            if !result.meta.is_empty() {
                inner.member("_meta", &result.meta);
            }
            inner.end();
        }
        TaskState::Error(error) => error_object(object, error, revision),
    }
}
