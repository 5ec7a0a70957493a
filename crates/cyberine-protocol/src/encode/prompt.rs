use super::content::block;
use super::json::Object;
use crate::model::{Completion, GetPromptResult, Prompt, PromptArgument, PromptMessage};
use crate::revision::Revision;

pub(super) fn prompt(out: &mut Vec<u8>, prompt: &Prompt, revision: Revision) {
    let mut object = Object::new(out);
    object.member("name", &prompt.name);
    object.title(prompt.title.as_ref(), revision);
    object.optional("description", prompt.description.as_ref());
    if !prompt.arguments.is_empty() {
        object.array("arguments", &prompt.arguments, |out, item| argument(out, item, revision));
    }
    object.icons(&prompt.icons, revision);
    object.part_meta(&prompt.meta, revision);
    object.end();
}

fn argument(out: &mut Vec<u8>, argument: &PromptArgument, revision: Revision) {
    let mut object = Object::new(out);
    object.member("name", &argument.name);
    object.title(argument.title.as_ref(), revision);
    object.optional("description", argument.description.as_ref());
    if argument.required {
        object.raw("required", "true");
    }
    object.end();
}

pub(super) fn prompt_members(object: &mut Object<'_>, result: &GetPromptResult, revision: Revision) {
    object.optional("description", result.description.as_ref());
    object.array("messages", &result.messages, |out, message| {
        let PromptMessage { role, content } = message;
        let mut object = Object::new(out);
        object.member("role", role);
        block(object.key("content"), content, revision);
        object.end();
    });
}

/// What is more than one answer may hold is left out, and said to be there.
pub(super) fn completion_members(object: &mut Object<'_>, completion: &Completion) {
    let mut inner = object.object("completion");
    let values = completion.values.get(..Completion::LIMIT).unwrap_or(&completion.values);
    inner.member("values", values);
    inner.optional("total", completion.total.as_ref());
    inner.member("hasMore", &(completion.has_more || values.len() < completion.values.len()));
    inner.end();
}
