//! Sets that show what the fixture tools do not: questions of every kind, content, logs, prompts,
//! completions, tasks, and lists that change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_server::{
    Annotations, Call, CallError, Completion, CompletionCall, CompletionError, CompletionSet, ContentBlock,
    ElicitForm, ElicitUrl, Gate, GetPromptResult, InputRequest, ListChanges, ListSignal, LogLevel,
    ObjectSchema, Outcome, Prompt, PromptArgument, PromptCall, PromptError, PromptMessage, PromptOutcome,
    PromptSet, ReadOutcome, ResourceBody, ResourceContents, ResourceError, ResourcePage, ResourceRead,
    ResourceSet, ResourceTemplate, Role, SealKey, Server, TaskError, TaskSet, TaskState, TaskView, TaskWatch,
    Tool, ToolResult, ToolSet,
};
use cyberine_types::{Caller, Identity, Secret, Timestamp};
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A server of all of them, and what moves them from outside.
pub(crate) struct World {
    pub(crate) tools: ListSignal,
    pub(crate) prompts: ListSignal,
    pub(crate) resources: ListSignal,
    pub(crate) task: Arc<OneTask>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            tools: ListSignal::new(),
            prompts: ListSignal::new(),
            resources: ListSignal::new(),
            task: Arc::new(OneTask::new()),
        }
    }

    pub(crate) fn server(&self) -> Server {
        self.server_behind(None)
    }

    /// The same, its tools and tasks behind a token.
    pub(crate) fn server_behind(&self, token: Option<&str>) -> Server {
        let token = token.map(Secret::new);
        let tools = Tools { changes: self.tools.clone(), task: Arc::clone(&self.task) };
        let tools = Arc::new(Gate::new(tools, token.clone()));
        let tasks = Arc::new(Gate::new(SharedTask(Arc::clone(&self.task)), token));
        Server::new("sets", "0.1.0", tools, Identity::local("tester"), SealKey::from_bytes([7; 32]))
            .with_prompts(Arc::new(Prompts(self.prompts.clone())))
            .with_resources(Arc::new(Resources(self.resources.clone())))
            .with_completions(Arc::new(Numbers))
            .with_tasks(tasks)
            .with_logging()
    }
}

/// The questions, one of each kind.
pub(crate) fn questions() -> BTreeMap<String, InputRequest> {
    let form = ElicitForm {
        message: "your name?".to_owned(),
        requested_schema: json!({ "type": "object", "properties": { "name": { "type": "string" } } }),
    };
    let page = ElicitUrl { message: "sign in, please".to_owned(), url: "https://example.org/in".to_owned() };
    let sampling = json!({ "messages": [], "maxTokens": 1 }).as_object().unwrap().clone();
    BTreeMap::from([
        ("form".to_owned(), InputRequest::Form(form)),
        ("page".to_owned(), InputRequest::Url(page)),
        ("sampling".to_owned(), InputRequest::Sampling(sampling)),
        ("roots".to_owned(), InputRequest::Roots),
    ])
}

struct Tools {
    changes: ListSignal,
    task: Arc<OneTask>,
}

fn tool(name: &'static str, output_schema: ObjectSchema) -> Tool {
    Tool {
        name,
        title: name,
        description: name.into(),
        input_schema: ObjectSchema::new("", ""),
        output_schema,
        annotations: Annotations { read_only: true, destructive: false, idempotent: true, open_world: false },
    }
}

impl ToolSet for Tools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        let promising = ObjectSchema::new(r#""answers":{}"#, "");
        Arc::from([
            tool("ask_all", promising),
            tool("picture", ObjectSchema::new("", "")),
            tool("log", ObjectSchema::new("", "")),
            tool("job", ObjectSchema::new("", "")),
        ])
    }

    fn is_public(&self) -> bool {
        true
    }

    fn changes(&self) -> Option<ListChanges> {
        Some(self.changes.changes())
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        let outcome = match call.name.as_str() {
            "ask_all" if call.input_responses.is_empty() => {
                Ok(Outcome::InputRequired { requests: questions(), state: json!("asked") })
            }
            "ask_all" => {
                let answers = json!({ "answers": call.input_responses, "state": call.state });
                Ok(Outcome::Complete(ToolResult::ok(answers)))
            }
            "picture" => {
                let picture = ContentBlock::Image {
                    data: "AAAA".to_owned(),
                    mime_type: "image/png".to_owned(),
                    annotations: None,
                };
                Ok(Outcome::Complete(ToolResult::content(vec![picture])))
            }
            "log" => {
                for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Error] {
                    call.log.send(level, Some("sets"), &json!({ "at": level.as_str() }));
                }
                Ok(Outcome::Complete(ToolResult::ok(json!({}))))
            }
            "job" if call.tasks => Ok(Outcome::Task(self.task.view())),
            "job" => Err(CallError::NeedsTasks),
            other => Err(CallError::UnknownTool(other.to_owned())),
        };
        Box::pin(ready(outcome))
    }
}

struct Prompts(ListSignal);

impl PromptSet for Prompts {
    fn list(&self, _caller: &Caller) -> Arc<[Prompt]> {
        let argument = PromptArgument { name: "who".to_owned(), required: true, ..PromptArgument::default() };
        let prompt = |name: &str| Prompt {
            name: name.to_owned(),
            arguments: vec![argument.clone()],
            ..Prompt::default()
        };
        Arc::from([prompt("greet"), prompt("ask")])
    }

    fn changes(&self) -> Option<ListChanges> {
        Some(self.0.changes())
    }

    fn get(&self, call: PromptCall) -> BoxFuture<'_, Result<PromptOutcome, PromptError>> {
        let said = match call.name.as_str() {
            "ask" if call.input_responses.is_empty() => {
                let requests = BTreeMap::from([("roots".to_owned(), InputRequest::Roots)]);
                return Box::pin(ready(Ok(PromptOutcome::InputRequired { requests, state: json!(1) })));
            }
            "ask" => json!({ "answers": call.input_responses, "state": call.state }).to_string(),
            _ => format!("Greet {}.", call.arguments["who"]),
        };
        let message = PromptMessage { role: Role::User, content: ContentBlock::text(said) };
        let prompt = GetPromptResult { description: None, messages: vec![message] };
        Box::pin(ready(Ok(PromptOutcome::Complete(prompt))))
    }
}

/// As many values as the argument's value says.
struct Numbers;

impl CompletionSet for Numbers {
    fn complete(&self, call: CompletionCall) -> BoxFuture<'_, Result<Completion, CompletionError>> {
        let count = call.value.parse::<u32>();
        let completed = count.map(|count| Completion {
            values: (0..count).map(|number| number.to_string()).collect(),
            ..Completion::default()
        });
        let unknown = |_| CompletionError::Unknown(format!("`{}` is not completed", call.argument));
        Box::pin(ready(completed.map_err(unknown)))
    }
}

/// Resources of two parts, which are read after a question.
struct Resources(ListSignal);

impl ResourceSet for Resources {
    fn templates(&self) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    fn list(
        &self,
        _caller: Caller,
        _cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        Box::pin(ready(Ok(ResourcePage::default())))
    }

    fn changes(&self) -> Option<ListChanges> {
        Some(self.0.changes())
    }

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        let part = |body| ResourceContents {
            uri: read.uri.clone(),
            mime_type: "application/octet-stream".to_owned(),
            body,
        };
        let outcome = if read.input_responses.is_empty() {
            let requests = BTreeMap::from([("roots".to_owned(), InputRequest::Roots)]);
            ReadOutcome::InputRequired { requests, state: Value::Null }
        } else {
            let text = ResourceBody::Text(json!(read.input_responses).to_string());
            ReadOutcome::Contents(vec![part(text), part(ResourceBody::Blob("AAAA".to_owned()))])
        };
        Box::pin(ready(Ok(outcome)))
    }
}

/// The only task there is.
pub(crate) struct OneTask {
    view: watch::Sender<TaskView>,
    pub(crate) answers: Mutex<BTreeMap<String, Value>>,
}

impl OneTask {
    pub(crate) const ID: &str = "t-1";

    fn new() -> Self {
        let view = TaskView {
            task_id: Self::ID.to_owned(),
            state: TaskState::Working,
            message: None,
            created_at: Timestamp::from_unix_ms(1_796_000_000_000),
            updated_at: Timestamp::from_unix_ms(1_796_000_000_000),
            ttl: Some(Duration::from_secs(60)),
            poll_interval: None,
        };
        Self { view: watch::Sender::new(view), answers: Mutex::default() }
    }

    pub(crate) fn view(&self) -> TaskView {
        self.view.borrow().clone()
    }

    pub(crate) fn set(&self, state: TaskState) {
        self.view.send_modify(|view| view.state = state);
    }

    fn known(task_id: &str) -> Result<(), TaskError> {
        if task_id == Self::ID { Ok(()) } else { Err(TaskError::UnknownTask(task_id.to_owned())) }
    }
}

/// The task, as a set that a gate can have.
struct SharedTask(Arc<OneTask>);

impl TaskSet for SharedTask {
    fn get(&self, _caller: Caller, task_id: String) -> BoxFuture<'_, Result<TaskView, TaskError>> {
        Box::pin(ready(OneTask::known(&task_id).map(|()| self.0.view())))
    }

    fn update(
        &self,
        _caller: Caller,
        task_id: String,
        responses: BTreeMap<String, Value>,
    ) -> BoxFuture<'_, Result<(), TaskError>> {
        let known = OneTask::known(&task_id);
        Box::pin(ready(known.map(|()| self.0.answers.lock().unwrap().extend(responses))))
    }

    fn cancel(&self, _caller: Caller, task_id: String) -> BoxFuture<'_, Result<(), TaskError>> {
        Box::pin(ready(OneTask::known(&task_id).map(|()| self.0.set(TaskState::Cancelled))))
    }

    fn watch(
        &self,
        _caller: Caller,
        task_id: String,
    ) -> BoxFuture<'_, Result<Box<dyn TaskWatch>, TaskError>> {
        let watch = OneTask::known(&task_id).map(|()| {
            let watch: Box<dyn TaskWatch> = Box::new(Views(self.0.view.subscribe()));
            watch
        });
        Box::pin(ready(watch))
    }
}

struct Views(watch::Receiver<TaskView>);

impl TaskWatch for Views {
    fn next(&mut self) -> BoxFuture<'_, Option<TaskView>> {
        Box::pin(async move {
            self.0.changed().await.ok()?;
            Some(self.0.borrow_and_update().clone())
        })
    }
}
