//! Runs as tasks (extension `io.modelcontextprotocol/tasks`): the id of the task is that of the run.
//!
//! Whoever may call the tools may look at every run; only what this server's project has admitted
//! can be decided on and cancelled, as with the tools. A run that waits for an approval is a task that
//! wants input.

use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_run_store::{Choice, Run, RunState};
use cyberine_server::{
    ElicitForm, InputRequest, TaskError, TaskSet, TaskState, TaskView, TaskWatch, ToolResult,
};
use cyberine_types::{Caller, RunId};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::arguments::{Cancel, Decide, MAX_COMMENT};
use crate::resources::RunWatch;
use crate::services::{LazyServices, Services};
use crate::{cancel, decide, orchestrate, view};

/// How often a client looks at a task.
const POLL: Duration = Duration::from_secs(2);
/// What the key of the question for an approval begins with; its step follows.
const APPROVAL: &str = "approve-";

/// The runs as tasks.
#[derive(Clone)]
pub struct RunTasks {
    services: LazyServices,
}

impl RunTasks {
    /// Tasks over `services`, which the first call opens.
    #[must_use]
    pub const fn new(services: LazyServices) -> Self {
        Self { services }
    }

    async fn run(&self, task_id: &str) -> Result<(&Services, Run), TaskError> {
        let unknown = || TaskError::UnknownTask(task_id.to_owned());
        let id: RunId = task_id.parse().map_err(|_| unknown())?;
        if id.to_string() != task_id {
            return Err(unknown());
        }
        let services = self.services.get().await.map_err(TaskError::Internal)?;
        let run = services.look(id).await.map_err(TaskError::Internal)?.ok_or_else(unknown)?;
        Ok((services, run))
    }

    async fn answer(
        &self,
        caller: &Caller,
        task_id: &str,
        mut responses: BTreeMap<String, Value>,
    ) -> Result<(), TaskError> {
        let (services, run) = self.run(task_id).await?;
        let Some(awaiting) = &run.awaiting else { return Ok(()) };
        let Some(answer) = responses.remove(&approval_key(&awaiting.step)) else { return Ok(()) };
        let Some(choice) = chosen(&answer) else { return Ok(()) };
        let comment = answer["content"]["comment"].as_str().filter(|comment| !comment.is_empty());
        if comment.is_some_and(|comment| comment.chars().nth(MAX_COMMENT).is_some()) {
            return Err(TaskError::Refused(format!("`comment` may have {MAX_COMMENT} characters")));
        }
        let arguments = Decide {
            run: run.run_id,
            step: Some(awaiting.step.clone()),
            comment: comment.map(str::to_owned),
        };
        let decided = decide::decide(services, arguments, choice, services.decider(caller)).await;
        decided.map(drop).map_err(TaskError::Refused)
    }
}

/// The task of a run that was just found or started.
pub(crate) async fn of_run(services: &Services, id: RunId) -> Option<TaskView> {
    services.load(id).await.ok().flatten().map(|run| shown(&run))
}

fn approval_key(step: &str) -> String {
    format!("{APPROVAL}{step}")
}

/// What an answer decides. A form that was put away, or not filled in, decides nothing: the question
/// stays.
fn chosen(answer: &Value) -> Option<Choice> {
    match answer["action"].as_str()? {
        "accept" => answer["content"]["approve"]
            .as_bool()
            .map(|yes| if yes { Choice::Approve } else { Choice::Reject }),
        "decline" => Some(Choice::Reject),
        _ => None,
    }
}

fn shown(run: &Run) -> TaskView {
    TaskView {
        task_id: run.run_id.to_string(),
        state: state(run),
        message: Some(crate::bounded::cut(&run.detail, 300)).filter(|detail| !detail.is_empty()),
        created_at: run.started_at,
        updated_at: run.updated_at,
        ttl: None,
        poll_interval: Some(POLL),
    }
}

fn state(run: &Run) -> TaskState {
    match (run.state, &run.awaiting) {
        (RunState::Suspended, Some(awaiting)) => {
            let question = approval(run, &awaiting.step);
            TaskState::InputRequired(BTreeMap::from([(approval_key(&awaiting.step), question)]))
        }
        (RunState::Queued | RunState::Running | RunState::Suspended, _) => TaskState::Working,
        (RunState::Cancelled, _) => TaskState::Cancelled,
        (RunState::Done | RunState::Error, _) => TaskState::Completed(result(run)),
    }
}

/// What the call would have come to, had it waited for the end.
fn result(run: &Run) -> ToolResult {
    let envelope = orchestrate::envelope(run.run_id, Some(run), None);
    ToolResult { is_error: run.state == RunState::Error, ..ToolResult::ok(view::within(envelope, run)) }
}

fn approval(run: &Run, step: &str) -> InputRequest {
    let message = format!(
        "Run {} has its answers and waits for your approval of `{}` before judges are asked, which may cost \
         money. Approve?",
        run.run_id,
        crate::bounded::cut(step, 100)
    );
    InputRequest::Form(ElicitForm {
        message,
        requested_schema: json!({
            "type": "object",
            "properties": {
                "approve": { "type": "boolean", "title": "Approve", "description": "Let the run go on." },
                "comment": { "type": "string", "title": "Comment", "maxLength": MAX_COMMENT },
            },
            "required": ["approve"],
        }),
    })
}

impl TaskSet for RunTasks {
    fn get(&self, _caller: Caller, task_id: String) -> BoxFuture<'_, Result<TaskView, TaskError>> {
        Box::pin(async move { self.run(&task_id).await.map(|(_, run)| shown(&run)) })
    }

    fn update(
        &self,
        caller: Caller,
        task_id: String,
        responses: BTreeMap<String, Value>,
    ) -> BoxFuture<'_, Result<(), TaskError>> {
        Box::pin(async move { self.answer(&caller, &task_id, responses).await })
    }

    fn cancel(&self, caller: Caller, task_id: String) -> BoxFuture<'_, Result<(), TaskError>> {
        Box::pin(async move {
            let (services, run) = self.run(&task_id).await?;
            let arguments = Cancel { run: run.run_id, reason: None };
            let cancelled = cancel::cancel(services, &arguments, services.decider(&caller)).await;
            cancelled.map(drop).map_err(TaskError::Refused)
        })
    }

    fn watch(
        &self,
        _caller: Caller,
        task_id: String,
    ) -> BoxFuture<'_, Result<Box<dyn TaskWatch>, TaskError>> {
        Box::pin(async move {
            let (services, run) = self.run(&task_id).await?;
            let over = run.state.is_terminal();
            let watch = RunWatch::new(services.clone(), &run);
            Ok(Box::new(Watch { services: services.clone(), watch, run: run.run_id, over })
                as Box<dyn TaskWatch>)
        })
    }
}

/// One run that is followed as a task.
struct Watch {
    services: Services,
    watch: RunWatch,
    run: RunId,
    /// Its end has been told.
    over: bool,
}

impl TaskWatch for Watch {
    fn next(&mut self) -> BoxFuture<'_, Option<TaskView>> {
        Box::pin(async move {
            while !self.over {
                self.watch.next().await;
                let run = match self.services.load(self.run).await {
                    Ok(Some(run)) => run,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(run = %self.run, error, "a task could not be looked at");
                        continue;
                    }
                };
                self.over = run.state.is_terminal();
                return Some(shown(&run));
            }
            None
        })
    }
}
