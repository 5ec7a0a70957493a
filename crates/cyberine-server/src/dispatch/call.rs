//! One tool call, in as many rounds as it needs.

use std::collections::BTreeMap;

use cyberine_protocol::model::{CallToolResult, ClientCapabilities};
use cyberine_protocol::{Answer, RpcError};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::input::{Input, Needs, Next};
use super::{Request, task};
use crate::catalog::{Catalog, Refused};
use crate::connection::Reply;
use crate::seal::Binding;
use crate::toolset::{Call, CallError, Outcome, ToolResult};

/// What the client wrote.
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) input_responses: BTreeMap<String, Value>,
    pub(super) request_state: Option<String>,
}

pub(super) async fn serve(request: &Request, asked: Asked) -> Reply {
    let server = request.server();
    let catalog = server.catalog(&request.caller);
    let mut asked = match admit(request, &catalog, asked)? {
        Ok(asked) => asked,
        Err(refusal) => return Ok(complete(refusal)),
    };
    let responses = std::mem::take(&mut asked.input_responses);
    let mut input = Input::new(request, binding(request, &asked), responses, asked.request_state.as_deref())?;
    loop {
        let needs = match server.tools.call(round(request, &asked, input.take())).await {
            Ok(Outcome::Complete(result)) => return Ok(complete(result)),
            Ok(Outcome::Task(view)) => return Ok(Answer::Task(task::begun(view))),
            Ok(Outcome::InputRequired { requests, state }) => Needs { requests, state },
            Err(error) => return refused(request, error),
        };
        match input.ask(needs).await? {
            Next::Again => {}
            Next::Reply(answer) => return Ok(answer),
            Next::Unanswered(why) => return Ok(complete(ToolResult::error(why.message()))),
        }
    }
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

fn refused(request: &Request, error: CallError) -> Reply {
    match error {
        CallError::UnknownTool(name) => Err(unknown_tool(request, name)),
        CallError::Internal(message) => Err(RpcError::internal(message)),
        CallError::NeedsTasks if request.revision.is_stateless() => {
            let tasks = ClientCapabilities { tasks: true, ..ClientCapabilities::default() };
            Err(RpcError::missing_capability(tasks))
        }
        CallError::NeedsTasks => {
            let message = "this tool goes on as a task, which this revision of the protocol has not";
            Ok(complete(ToolResult::error(message)))
        }
    }
}

fn unknown_tool(request: &Request, name: String) -> RpcError {
    RpcError::unknown_tool(&request.server().tools.redact(name))
}

fn binding<'a>(request: &'a Request, asked: &'a Asked) -> Binding<'a> {
    Binding {
        principal: request.caller.principal(),
        method: "tools/call",
        name: &asked.name,
        arguments: &asked.arguments,
    }
}

fn round(request: &Request, asked: &Asked, input: (BTreeMap<String, Value>, Option<Value>)) -> Call {
    let (input_responses, state) = input;
    Call {
        name: asked.name.clone(),
        arguments: asked.arguments.clone(),
        caller: request.caller.clone(),
        capabilities: request.capabilities,
        tasks: request.takes_tasks(),
        input_responses,
        state,
        progress: request.progress.clone(),
        log: request.log(),
        cancel: request.cancel.clone(),
        background: request.background(),
    }
}

pub(super) fn complete(result: ToolResult) -> Answer {
    Answer::Call(wire_result(result))
}

pub(super) fn wire_result(result: ToolResult) -> CallToolResult {
    let ToolResult { structured, content, is_error } = result;
    let Some(content) = content else { return CallToolResult::structured(&structured, is_error) };
    // A `Value` has only string keys, the one thing that could fail.
    let structured = if structured.is_null() { None } else { to_raw_value(&structured).ok() };
    CallToolResult { content, structured, is_error, meta: Map::new() }
}
