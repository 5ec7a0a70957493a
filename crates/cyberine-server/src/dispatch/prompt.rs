//! Prompts, and completions of what is typed into their arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_protocol::model::{Completion, ListPromptsResult, Prompt};
use cyberine_protocol::{Answer, RpcError};
use cyberine_types::Caller;
use serde_json::{Map, Value};

use super::input::{Input, Needs, Next};
use super::{Request, unknown};
use crate::catalog::list_cache;
use crate::completion_set::{CompletionCall, CompletionError};
use crate::connection::Reply;
use crate::prompt_set::{PromptCall, PromptError, PromptOutcome, PromptSet};
use crate::seal::Binding;
use crate::server::Server;

/// What the client wrote.
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) arguments: BTreeMap<String, String>,
    pub(super) input_responses: BTreeMap<String, Value>,
    pub(super) request_state: Option<String>,
}

pub(super) fn list(server: &Server, caller: &Caller) -> Reply {
    let set = prompts(server)?;
    let prompts = set.list(caller).to_vec();
    let cache = list_cache(set.is_public());
    Ok(Answer::Prompts(ListPromptsResult { prompts, next_cursor: None, cache }))
}

pub(super) async fn get(request: &Request, asked: Asked) -> Reply {
    let set = prompts(request.server())?;
    admit(request, &set.list(&request.caller), &asked)?;
    let Asked { name, arguments, input_responses, request_state } = asked;
    let texts: Map<String, Value> =
        arguments.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
    let binding = Binding {
        principal: request.caller.principal(),
        method: "prompts/get",
        name: &name,
        arguments: &texts,
    };
    let mut input = Input::new(request, binding, input_responses, request_state.as_deref())?;
    loop {
        let (input_responses, state) = input.take();
        let call = PromptCall {
            name: name.clone(),
            arguments: arguments.clone(),
            caller: request.caller.clone(),
            capabilities: request.capabilities,
            input_responses,
            state,
            cancel: request.cancel.clone(),
        };
        let needs = match set.get(call).await {
            Ok(PromptOutcome::Complete(prompt)) => return Ok(Answer::Prompt(prompt)),
            Ok(PromptOutcome::InputRequired { requests, state }) => Needs { requests, state },
            Err(PromptError::UnknownPrompt(name)) => return Err(unknown(request.server(), "prompt", name)),
            Err(PromptError::Arguments(message)) => return Err(RpcError::invalid_params(message)),
            Err(PromptError::Internal(message)) => return Err(RpcError::internal(message)),
        };
        match input.ask(needs).await? {
            Next::Again => {}
            Next::Reply(answer) => return Ok(answer),
            Next::Unanswered(why) => return Err(why.into_error()),
        }
    }
}

fn admit(request: &Request, prompts: &[Prompt], asked: &Asked) -> Result<(), RpcError> {
    let prompt = prompts.iter().find(|prompt| prompt.name == asked.name);
    let prompt = prompt.ok_or_else(|| unknown(request.server(), "prompt", asked.name.clone()))?;
    let mut required = prompt.arguments.iter().filter(|argument| argument.required);
    match required.find(|argument| !asked.arguments.contains_key(&argument.name)) {
        Some(missing) => {
            Err(RpcError::invalid_params(format!("the prompt needs the argument `{}`", missing.name)))
        }
        None => Ok(()),
    }
}

fn prompts(server: &Server) -> Result<&Arc<dyn PromptSet>, RpcError> {
    server.prompts.as_ref().ok_or_else(|| RpcError::method_not_found("prompts"))
}

pub(super) async fn complete(request: &Request, call: CompletionCall) -> Reply {
    let set = request.server().completions.as_ref();
    let set = set.ok_or_else(|| RpcError::method_not_found("completion/complete"))?;
    match set.complete(call).await {
        Ok(completion) => Ok(Answer::Completion(bounded(completion))),
        Err(CompletionError::Unknown(message)) => {
            Err(RpcError::invalid_params(request.server().tools.redact(message)))
        }
        Err(CompletionError::Internal(message)) => Err(RpcError::internal(message)),
    }
}

/// No more values than the protocol lets through, and word of those that are left out.
fn bounded(mut completion: Completion) -> Completion {
    let count = completion.values.len();
    if count > Completion::LIMIT {
        completion.values.truncate(Completion::LIMIT);
        completion.total = completion.total.or(u64::try_from(count).ok());
        completion.has_more = true;
    }
    completion
}
