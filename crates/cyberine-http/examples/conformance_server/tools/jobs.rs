//! Tools that go on as tasks, where the client takes one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cyberine_server::{Call, CallError, ContentBlock, InputRequest, Outcome, ToolResult};
use serde_json::{Value, json};

use super::input::{name, named};
use super::{said, text_of};
use crate::questions::form;
use crate::tasks::{Ended, Job, Tasks};

pub(super) async fn answer(tasks: &Arc<Tasks>, call: Call) -> Result<Outcome, CallError> {
    match call.name.as_str() {
        "slow_compute" => {
            let seconds = call.arguments.get("seconds").and_then(Value::as_f64).unwrap_or_default();
            let span = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            if !call.tasks {
                tokio::time::sleep(span).await;
                return said("Computed.");
            }
            begin(tasks, &call, async move |_| {
                tokio::time::sleep(span).await;
                told("Computed.")
            })
        }
        "failing_job" => begin(tasks, &call, async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(ToolResult { is_error: true, ..text("The job failed.") })
        }),
        "protocol_error_job" => begin(tasks, &call, async |_| Err("the job broke".to_owned())),
        "confirm_delete" => {
            let file = text_of(&call, "filename").to_owned();
            if !call.tasks {
                return at_once(&call, "confirm", confirm(&file), &format!("Deleted {file}."));
            }
            begin(tasks, &call, async move |job: Job| {
                let answers = job.ask([("confirm", confirm(&file))]).await;
                told(&format!("Asked about {file}: {}", answers["confirm"]["action"]))
            })
        }
        "multi_input" => begin(tasks, &call, async |job: Job| {
            let questions = [("first", name("What is your name?")), ("second", confirm("everything"))];
            let answers = job.ask(questions).await;
            told(&format!("Answers: {}", json!(answers)))
        }),
        "test_tool_with_task" => with_name(tasks, &call),
        other => Err(CallError::UnknownTool(other.to_owned())),
    }
}

/// Starts a task, for a client that takes one.
fn begin<W, F>(tasks: &Arc<Tasks>, call: &Call, work: W) -> Result<Outcome, CallError>
where
    W: FnOnce(Job) -> F,
    F: Future<Output = Ended> + Send + 'static,
{
    if !call.tasks {
        return Err(CallError::NeedsTasks);
    }
    let begun = tasks.begin(call.caller.principal().clone(), work);
    begun.map(Outcome::Task).map_err(CallError::Internal)
}

/// All questions come before the task.
fn with_name(tasks: &Arc<Tasks>, call: &Call) -> Result<Outcome, CallError> {
    if !call.tasks {
        return Err(CallError::NeedsTasks);
    }
    let question = name("What is your name?");
    match call.input_responses.get("user_name").filter(|answer| question.fits(answer)) {
        Some(answer) => {
            let greeting = format!("Hello, {}, from a task.", named(answer));
            begin(tasks, call, async move |_| told(&greeting))
        }
        None => Ok(Outcome::InputRequired {
            requests: BTreeMap::from([("user_name".to_owned(), question)]),
            state: Value::Null,
        }),
    }
}

/// The same without a task.
fn at_once(call: &Call, key: &str, question: InputRequest, text: &str) -> Result<Outcome, CallError> {
    if call.input_responses.get(key).is_some_and(|answer| question.fits(answer)) {
        return said(text);
    }
    Ok(Outcome::InputRequired { requests: BTreeMap::from([(key.to_owned(), question)]), state: Value::Null })
}

fn confirm(what: &str) -> InputRequest {
    form(&format!("Delete {what}?"), json!({ "confirm": { "type": "boolean" } }), &["confirm"])
}

fn text(text: &str) -> ToolResult {
    ToolResult::content(vec![ContentBlock::text(text)])
}

fn told(said: &str) -> Ended {
    Ok(text(said))
}
