//! What the parameters of each method ask.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::effect::InboundBody;
use super::flight::Method;
use super::params::{Params, invalid, object, object_members, required, string};
use crate::jsonrpc::{RpcError, elements, text};
use crate::model::{CompletionRef, SubscriptionFilter};
use crate::revision::Revision;

/// The most URIs, and the most ids of tasks, in one `subscriptions/listen`.
const NAMES_LIMIT: usize = 1024;

type InputResponses = BTreeMap<String, Value>;

fn names(raw: &str, name: &str) -> Result<Vec<String>, RpcError> {
    let wrong = || invalid(name, &format!("an array of at most {NAMES_LIMIT} strings"));
    let count = elements(raw).take(NAMES_LIMIT + 1).count();
    if !raw.starts_with('[') || count > NAMES_LIMIT {
        return Err(wrong());
    }
    elements(raw).map(|uri| text(uri).map(Cow::into_owned).ok_or_else(wrong)).collect()
}

/// An object whose values are text.
fn texts(raw: Option<&str>, name: &str) -> Result<BTreeMap<String, String>, RpcError> {
    let Some(raw) = raw else { return Ok(BTreeMap::new()) };
    object_members(raw, name)?
        .map(|(key, value)| match text(value) {
            Some(value) => Ok((key.into_owned(), value.into_owned())),
            None => Err(RpcError::invalid_params(format!("every value of `{name}` must be a string"))),
        })
        .collect()
}

fn needed_text(raw: Option<&str>, name: &str) -> Result<String, RpcError> {
    Ok(string(required(raw, name, "a string")?, name)?.into_owned())
}

impl Params<'_> {
    /// What a request of `method` asks. Answers to questions exist in the stateless era only.
    pub(super) fn body(&self, method: Method, revision: Revision) -> Result<InboundBody, RpcError> {
        Ok(match method {
            Method::ListTools => InboundBody::ListTools { cursor: self.cursor()? },
            Method::CallTool => self.call(revision)?,
            Method::ListResources => InboundBody::ListResources { cursor: self.cursor()? },
            Method::ListTemplates => InboundBody::ListTemplates { cursor: self.cursor()? },
            Method::ReadResource => {
                let (input_responses, request_state) = self.input(revision)?;
                InboundBody::ReadResource { uri: self.uri()?, input_responses, request_state }
            }
            Method::Subscribe => InboundBody::Subscribe { uri: self.uri()? },
            Method::Unsubscribe => InboundBody::Unsubscribe { uri: self.uri()? },
            Method::Listen => InboundBody::Listen { filter: self.filter()? },
            Method::ListPrompts => InboundBody::ListPrompts { cursor: self.cursor()? },
            Method::GetPrompt => {
                let (input_responses, request_state) = self.input(revision)?;
                let arguments = texts(self.arguments, "arguments")?;
                let name = needed_text(self.name, "name")?;
                InboundBody::GetPrompt { name, arguments, input_responses, request_state }
            }
            Method::Complete => self.complete(revision)?,
            Method::GetTask => InboundBody::GetTask { task_id: self.task_id()? },
            Method::UpdateTask => {
                let responses = required(self.input_responses, "inputResponses", "an object")?;
                let input_responses = responses_of(responses)?;
                InboundBody::UpdateTask { task_id: self.task_id()?, input_responses }
            }
            Method::CancelTask => InboundBody::CancelTask { task_id: self.task_id()? },
        })
    }

    fn cursor(&self) -> Result<Option<String>, RpcError> {
        self.cursor.map(|raw| string(raw, "cursor").map(Cow::into_owned)).transpose()
    }

    fn uri(&self) -> Result<String, RpcError> {
        needed_text(self.uri, "uri")
    }

    fn task_id(&self) -> Result<String, RpcError> {
        needed_text(self.member("taskId"), "taskId")
    }

    /// What a client wants to hear of. Kinds of notifications not known here are left out, as every
    /// kind is that is not served.
    fn filter(&self) -> Result<SubscriptionFilter, RpcError> {
        let raw = required(self.member("notifications"), "notifications", "an object")?;
        let mut filter = SubscriptionFilter::default();
        for (key, value) in object_members(raw, "notifications")? {
            let wanted = match &*key {
                "toolsListChanged" => &mut filter.tools_list_changed,
                "promptsListChanged" => &mut filter.prompts_list_changed,
                "resourcesListChanged" => &mut filter.resources_list_changed,
                "resourceSubscriptions" => {
                    filter.resource_subscriptions = names(value, &key)?;
                    continue;
                }
                "taskIds" => {
                    filter.task_ids = names(value, &key)?;
                    continue;
                }
                _ => continue,
            };
            *wanted = match value {
                "true" => true,
                "false" => false,
                _ => return Err(invalid(&key, "true or false")),
            };
        }
        Ok(filter)
    }

    fn call(&self, revision: Revision) -> Result<InboundBody, RpcError> {
        let name = required(self.name, "name", "a string")?;
        let (input_responses, request_state) = self.input(revision)?;
        Ok(InboundBody::CallTool {
            name: string(name, "name")?.into_owned(),
            arguments: self.arguments.map_or_else(|| Ok(Map::new()), |raw| object(raw, "arguments"))?,
            input_responses,
            request_state,
        })
    }

    /// What a client brings back of an answer that needed input.
    fn input(&self, revision: Revision) -> Result<(InputResponses, Option<String>), RpcError> {
        if !revision.is_stateless() {
            return Ok((BTreeMap::new(), None));
        }
        let responses = self.input_responses.map_or_else(|| Ok(BTreeMap::new()), responses_of)?;
        let state = self.request_state.map(|raw| string(raw, "requestState").map(Cow::into_owned));
        Ok((responses, state.transpose()?))
    }

    fn complete(&self, revision: Revision) -> Result<InboundBody, RpcError> {
        let mut argument = (None, None);
        for (key, value) in
            object_members(required(self.member("argument"), "argument", "an object")?, "argument")?
        {
            match &*key {
                "name" => argument.0 = Some(value),
                "value" => argument.1 = Some(value),
                _ => {}
            }
        }
        let mut context = BTreeMap::new();
        if let Some(raw) = self.member("context").filter(|_| revision >= Revision::V2025_06_18) {
            let filled = object_members(raw, "context")?.find(|(key, _)| key == "arguments");
            context = texts(filled.map(|(_, value)| value), "context.arguments")?;
        }
        Ok(InboundBody::Complete {
            reference: self.reference()?,
            name: needed_text(argument.0, "argument.name")?,
            value: needed_text(argument.1, "argument.value")?,
            context,
        })
    }

    fn reference(&self) -> Result<CompletionRef, RpcError> {
        let (mut kind, mut name, mut uri) = (None, None, None);
        for (key, value) in object_members(required(self.member("ref"), "ref", "an object")?, "ref")? {
            match &*key {
                "type" => kind = text(value),
                "name" => name = Some(value),
                "uri" => uri = Some(value),
                _ => {}
            }
        }
        match kind.as_deref() {
            Some("ref/prompt") => Ok(CompletionRef::Prompt { name: needed_text(name, "ref.name")? }),
            Some("ref/resource") => Ok(CompletionRef::Resource { uri: needed_text(uri, "ref.uri")? }),
            _ => Err(invalid("ref.type", "`ref/prompt` or `ref/resource`")),
        }
    }
}

/// Answers by the keys of their questions. Whether one fits its question only the asker knows.
fn responses_of(raw: &str) -> Result<InputResponses, RpcError> {
    let responses: InputResponses = object(raw, "inputResponses")?;
    if responses.values().all(Value::is_object) {
        return Ok(responses);
    }
    Err(RpcError::invalid_params("every value of `inputResponses` must be an object"))
}
