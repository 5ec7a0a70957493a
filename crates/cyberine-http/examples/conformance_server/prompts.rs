//! The prompts, and what completes their arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_server::{
    Completion, CompletionCall, CompletionError, CompletionRef, CompletionSet, ContentBlock, GetPromptResult,
    ListChanges, ListSignal, Prompt, PromptArgument, PromptCall, PromptError, PromptMessage, PromptOutcome,
    PromptSet, ResourceBody, Role,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::questions::form;
use crate::{embedded, image};

/// What the first argument of a prompt may begin with.
const WORDS: [&str; 4] = ["paris", "park", "party", "test"];

pub(crate) struct Prompts {
    prompts: Arc<[Prompt]>,
    changes: ListSignal,
}

impl Prompts {
    pub(crate) fn new(changes: ListSignal) -> Self {
        let prompts = Arc::from([
            prompt("test_simple_prompt", "A prompt without arguments.", &[]),
            prompt("test_prompt_with_arguments", "A prompt with two arguments.", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", "A prompt with a resource.", &["resourceUri"]),
            prompt("test_prompt_with_image", "A prompt with a picture.", &[]),
            prompt("test_input_required_result_prompt", "A prompt that asks.", &[]),
        ]);
        Self { prompts, changes }
    }
}

fn prompt(name: &str, description: &str, arguments: &[&str]) -> Prompt {
    let argument = |name: &&str| PromptArgument {
        name: (*name).to_owned(),
        description: Some(format!("The value of {name}.")),
        required: true,
        ..PromptArgument::default()
    };
    Prompt {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        arguments: arguments.iter().map(argument).collect(),
        ..Prompt::default()
    }
}

impl PromptSet for Prompts {
    fn list(&self, _caller: &Caller) -> Arc<[Prompt]> {
        Arc::clone(&self.prompts)
    }

    fn is_public(&self) -> bool {
        true
    }

    fn changes(&self) -> Option<ListChanges> {
        Some(self.changes.changes())
    }

    fn get(&self, call: PromptCall) -> BoxFuture<'_, Result<PromptOutcome, PromptError>> {
        Box::pin(std::future::ready(made(&call)))
    }
}

fn made(call: &PromptCall) -> Result<PromptOutcome, PromptError> {
    let argument = |name: &str| call.arguments.get(name).map_or("", String::as_str);
    let content = match call.name.as_str() {
        "test_simple_prompt" => vec![ContentBlock::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![ContentBlock::text(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            embedded(
                argument("resourceUri"),
                "text/plain",
                ResourceBody::Text("Embedded resource content for testing.".to_owned()),
            ),
            ContentBlock::text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), ContentBlock::text("Please analyze the image above.")],
        "test_input_required_result_prompt" => return Ok(asked(call)),
        other => return Err(PromptError::UnknownPrompt(other.to_owned())),
    };
    Ok(complete(content))
}

fn asked(call: &PromptCall) -> PromptOutcome {
    let properties = json!({ "context": { "type": "string" } });
    let question = form("What context should the prompt use?", properties, &["context"]);
    match call.input_responses.get("user_context").filter(|answer| question.fits(answer)) {
        Some(answer) => {
            let context = answer["content"]["context"].as_str().unwrap_or("none");
            complete(vec![ContentBlock::text(format!("Context: {context}"))])
        }
        None => PromptOutcome::InputRequired {
            requests: BTreeMap::from([("user_context".to_owned(), question)]),
            state: Value::Null,
        },
    }
}

fn complete(content: Vec<ContentBlock>) -> PromptOutcome {
    let messages = content.into_iter().map(|content| PromptMessage { role: Role::User, content });
    PromptOutcome::Complete(GetPromptResult { description: None, messages: messages.collect() })
}

pub(crate) struct Completions;

impl CompletionSet for Completions {
    fn complete(&self, call: CompletionCall) -> BoxFuture<'_, Result<Completion, CompletionError>> {
        let completed = match &call.reference {
            CompletionRef::Prompt { name } if name != "test_prompt_with_arguments" => {
                Err(CompletionError::Unknown(format!("no argument of the prompt `{name}` is completed")))
            }
            CompletionRef::Resource { .. } => Ok(Completion::default()),
            CompletionRef::Prompt { .. } => {
                let values = WORDS.into_iter().filter(|word| word.starts_with(&call.value));
                Ok(Completion { values: values.map(str::to_owned).collect(), ..Completion::default() })
            }
        };
        Box::pin(std::future::ready(completed))
    }
}
