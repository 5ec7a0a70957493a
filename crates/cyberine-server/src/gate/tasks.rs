//! Tasks behind the gate.

use std::collections::BTreeMap;

use cyberine_types::Caller;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;

use super::Gate;
use crate::task_set::{TaskError, TaskSet, TaskView, TaskWatch};

impl<S> Gate<S> {
    /// With a token configured there are no tasks, and no call begins one: what is said to a task has
    /// no place for a token, and its id opens nothing.
    fn no_task(&self, task_id: &str) -> Option<TaskError> {
        self.token.is_some().then(|| TaskError::UnknownTask(task_id.to_owned()))
    }
}

impl<S: TaskSet> TaskSet for Gate<S> {
    fn get(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<TaskView, TaskError>> {
        match self.no_task(&task_id) {
            Some(refusal) => Box::pin(ready(Err(refusal))),
            None => self.inner.get(caller, task_id),
        }
    }

    fn update(
        &self,
        caller: Caller,
        task_id: String,
        responses: BTreeMap<String, Value>,
    ) -> BoxFuture<'_, Result<(), TaskError>> {
        match self.no_task(&task_id) {
            Some(refusal) => Box::pin(ready(Err(refusal))),
            None => self.inner.update(caller, task_id, responses),
        }
    }

    fn cancel(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<(), TaskError>> {
        match self.no_task(&task_id) {
            Some(refusal) => Box::pin(ready(Err(refusal))),
            None => self.inner.cancel(caller, task_id),
        }
    }

    fn watch(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<Box<dyn TaskWatch>, TaskError>> {
        match self.no_task(&task_id) {
            Some(refusal) => Box::pin(ready(Err(refusal))),
            None => self.inner.watch(caller, task_id),
        }
    }
}
