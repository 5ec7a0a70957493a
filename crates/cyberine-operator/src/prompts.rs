//! Prompts that a host offers to its user: ways to begin with the tools.

use std::sync::{Arc, LazyLock};

use cyberine_server::{
    ContentBlock, GetPromptResult, Prompt, PromptArgument, PromptCall, PromptError, PromptMessage,
    PromptOutcome, PromptSet, Role,
};
use cyberine_types::{Caller, RunId};
use futures_util::future::BoxFuture;

use crate::resources;

const ASK: &str = "ask_the_team";
const REVIEW: &str = "review_run";
/// The argument of [`REVIEW`].
pub(crate) const RUN_ID: &str = "runId";
const QUESTION: &str = "question";

/// The prompts of the operator surface.
#[derive(Debug, Clone, Copy, Default)]
pub struct OperatorPrompts;

static PROMPTS: LazyLock<Arc<[Prompt]>> = LazyLock::new(|| {
    let argument = |name: &str, description: &str| PromptArgument {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        required: true,
    };
    let prompt = |name: &str, title: &str, description: &str, argument: PromptArgument| Prompt {
        name: name.to_owned(),
        title: Some(title.to_owned()),
        description: Some(description.to_owned()),
        arguments: vec![argument],
        ..Prompt::default()
    };
    Arc::from([
        prompt(
            ASK,
            "Ask the team",
            "Puts one question to every configured provider and brings back the judged answer. Spends what a run costs.",
            argument(QUESTION, "The whole task; providers see nothing else."),
        ),
        prompt(
            REVIEW,
            "Review a run",
            "Reads one run: who answered what, what the judges said, what it cost.",
            argument(RUN_ID, "The run."),
        ),
    ])
});

/// Whether the argument `name` of the prompt `prompt` is the id of a run.
pub(crate) fn takes_run(prompt: &str, name: &str) -> bool {
    prompt == REVIEW && name == RUN_ID
}

/// Whether there is such an argument of such a prompt.
pub(crate) fn has(prompt: &str, name: &str) -> bool {
    let found = PROMPTS.iter().find(|known| known.name == prompt);
    found.is_some_and(|known| known.arguments.iter().any(|argument| argument.name == name))
}

fn made(mut call: PromptCall) -> Result<PromptOutcome, PromptError> {
    let mut argument = |name: &str| {
        let given = call.arguments.remove(name).filter(|text| !text.trim().is_empty());
        given.ok_or_else(|| PromptError::Arguments(format!("`{name}` is empty: say what it is")))
    };
    let contents = match call.name.as_str() {
        ASK => vec![ContentBlock::text(format!(
            "Use the tool `orchestrate` with exactly the prompt below, once: I have agreed to what it spends. \
             Follow the run with `inspect_run` (waitMs) until it has settled. Then give me the winning answer, \
             why the judges chose it, and where the others differ from it in substance. If there is no winner, \
             say so and show the answers side by side.\n\n{}",
            argument(QUESTION)?
        ))],
        REVIEW => {
            let text = argument(RUN_ID)?;
            let run: RunId = text.trim().parse().map_err(|_| {
                PromptError::Arguments(format!(
                    "`{RUN_ID}` is no id of a run; `query_runs` lists what there is"
                ))
            })?;
            vec![
                ContentBlock::text(
                    "Read this run (the resource below, or `inspect_run`). Tell me who answered, how the answers \
                     differ, what each judge said and whether it is convincing, what it cost, and what you would \
                     do next.",
                ),
                ContentBlock::ResourceLink(resources::link(run)),
            ]
        }
        _ => return Err(PromptError::UnknownPrompt(call.name)),
    };
    let description = PROMPTS.iter().find(|known| known.name == call.name);
    let description = description.and_then(|known| known.description.clone());
    let messages = contents.into_iter().map(|content| PromptMessage { role: Role::User, content }).collect();
    Ok(PromptOutcome::Complete(GetPromptResult { description, messages }))
}

impl PromptSet for OperatorPrompts {
    fn list(&self, _caller: &Caller) -> Arc<[Prompt]> {
        Arc::clone(&PROMPTS)
    }

    fn is_public(&self) -> bool {
        true
    }

    fn get(&self, call: PromptCall) -> BoxFuture<'_, Result<PromptOutcome, PromptError>> {
        Box::pin(std::future::ready(made(call)))
    }
}
