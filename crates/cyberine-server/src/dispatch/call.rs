//! One tool call, in as many rounds as it needs.
//!
//! A handler that needs input says so and is entered again with the answers. In the stateless
//! era the client carries its state and calls again; with `initialize` the rail asks the client
//! while the call waits (`elicitation/create`), and the handler sees no difference.

use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_protocol::model::{self, CallToolResult, ElicitForm, InputRequired, Task, TaskStatus};
use cyberine_protocol::{Answer, RpcError};
use futures_util::future::try_join_all;
use serde_json::{Map, Value};

use super::Request;
use crate::catalog::{Catalog, Refused};
use crate::connection::Reply;
use crate::seal::Binding;
use crate::toolset::{Call, CallError, InputRequest, Outcome, TaskHandle, ToolResult};

/// Rounds of questions after which a call is given up; clients give up there too.
const MAX_ROUNDS: usize = 10;

const METHOD: &str = "tools/call";

/// What the client wrote.
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) input_responses: BTreeMap<String, Value>,
    pub(super) request_state: Option<String>,
}

/// What the handler said it needs.
struct Needs {
    requests: BTreeMap<String, InputRequest>,
    state: Value,
}

pub(super) async fn serve(request: &Request, asked: Asked) -> Reply {
    let server = request.server();
    let catalog = server.catalog(&request.caller);
    let asked = match admit(request, &catalog, asked)? {
        Ok(asked) => asked,
        Err(refusal) => return Ok(complete(&refusal)),
    };
    let mut state = opened(request, &asked)?;
    let mut responses = asked.input_responses.clone();
    for _ in 0..MAX_ROUNDS {
        let call = round(request, &asked, std::mem::take(&mut responses), state.take());
        let needs = match server.tools.call(call).await {
            Ok(Outcome::Complete(result)) => return Ok(complete(&result)),
            Ok(Outcome::Task(task)) => return Ok(created(request, task)),
            Ok(Outcome::InputRequired { requests, state }) => Needs { requests, state },
            Err(CallError::UnknownTool(name)) => return Err(unknown_tool(request, name)),
            Err(CallError::Internal(message)) => return Err(RpcError::internal(message)),
        };
        if request.revision.is_stateless() {
            return sealed(request, &asked, needs);
        }
        match answers(request, &needs.requests).await {
            Some(answers) => (responses, state) = (answers, Some(needs.state)),
            None => return Ok(complete(&unanswered(&needs.requests))),
        }
    }
    Ok(complete(&ToolResult::error(format!("given up after {MAX_ROUNDS} rounds of questions"))))
}

/// Refuses what the set refuses, unknown tools and arguments that do not fit, in this order, so
/// that only who may call learns what is wrong.
fn admit(
    request: &Request,
    catalog: &Catalog,
    mut asked: Asked,
) -> Result<Result<Asked, ToolResult>, RpcError> {
    if !catalog.contains(&asked.name) {
        return Err(unknown_tool(request, asked.name));
    }
    if let Some(refusal) = request.server().tools.refuse(&asked.name, &asked.arguments) {
        return Ok(Err(refusal));
    }
    match catalog.check(&asked.name, asked.arguments) {
        Ok(arguments) => asked.arguments = arguments,
        Err(Refused::Arguments(result)) => return Ok(Err(result)),
        Err(Refused::UnknownTool) => return Err(unknown_tool(request, asked.name)),
        Err(Refused::Schema(error)) => {
            tracing::error!(tool = asked.name, error, "the input schema does not compile");
            return Err(RpcError::internal("the tool's input schema is invalid"));
        }
    }
    Ok(Ok(asked))
}

fn unknown_tool(request: &Request, name: String) -> RpcError {
    RpcError::unknown_tool(&request.server().tools.redact(name))
}

fn binding<'a>(request: &'a Request, asked: &'a Asked) -> Binding<'a> {
    Binding {
        principal: request.caller.principal(),
        method: METHOD,
        name: &asked.name,
        arguments: &asked.arguments,
    }
}

/// The state the client brought back, verified.
fn opened(request: &Request, asked: &Asked) -> Result<Option<Value>, RpcError> {
    let Some(sealed) = &asked.request_state else { return Ok(None) };
    let server = request.server();
    let state = server.seal.open(binding(request, asked), sealed, server.clock.now());
    state.map(Some).map_err(|error| RpcError::invalid_params(error.to_string()))
}

/// The reply that sends the client for answers.
fn sealed(request: &Request, asked: &Asked, needs: Needs) -> Reply {
    let server = request.server();
    let state = server.seal.seal(binding(request, asked), &needs.state, server.clock.now());
    let state = state.map_err(|error| RpcError::internal(error.to_string()))?;
    let requests = needs.requests.into_iter().map(|(key, asked)| (key, form(&asked))).collect();
    Ok(Answer::InputRequired(InputRequired { requests, request_state: Some(state) }))
}

fn round(
    request: &Request,
    asked: &Asked,
    input_responses: BTreeMap<String, Value>,
    state: Option<Value>,
) -> Call {
    Call {
        name: asked.name.clone(),
        arguments: asked.arguments.clone(),
        caller: request.caller.clone(),
        input_responses,
        state,
        progress: request.progress.clone(),
        cancel: request.cancel.clone(),
        background: request.background(),
    }
}

/// Asks the client, all questions at once. `None` where it cannot be asked, does not answer in
/// time, or answers with an error: some hosts declare forms and never show one.
async fn answers(
    request: &Request,
    requests: &BTreeMap<String, InputRequest>,
) -> Option<BTreeMap<String, Value>> {
    if !request.capabilities.elicitation_form {
        return None;
    }
    let asked = requests.iter().map(|(key, question)| async move {
        let answer = request.connection().ask(request.entry.key, &form(question)).map_err(|_| ())?;
        let answer = answer.await.map_err(|_| ())?.map_err(|_| ())?;
        Ok::<_, ()>((key.clone(), answer))
    });
    let limit: Duration = request.server().answer_limit;
    let answers = tokio::time::timeout(limit, try_join_all(asked)).await;
    answers.ok()?.ok().map(|pairs| pairs.into_iter().collect())
}

fn form(question: &InputRequest) -> model::InputRequest {
    let InputRequest::Form { message, schema } = question;
    model::InputRequest::Form(ElicitForm { message: message.clone(), requested_schema: schema.clone() })
}

fn unanswered(requests: &BTreeMap<String, InputRequest>) -> ToolResult {
    let questions: Vec<&str> =
        requests.values().map(|InputRequest::Form { message, .. }| message.as_str()).collect();
    ToolResult::error(format!("input is needed and this client gave none: {}", questions.join("; ")))
}

fn complete(result: &ToolResult) -> Answer {
    Answer::Call(CallToolResult::structured(&result.structured, result.is_error))
}

fn created(request: &Request, task: TaskHandle) -> Answer {
    let now = request.server().clock.now().to_string();
    Answer::Task(Task {
        task_id: task.task_id,
        status: TaskStatus::Working,
        status_message: None,
        created_at: now.clone(),
        last_updated_at: now,
        ttl_ms: None,
        poll_interval_ms: Some(task.poll_interval_ms),
    })
}
