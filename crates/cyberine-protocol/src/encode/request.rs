//! What a client sends.

use serde_json::Value;

use super::json::Object;
use super::line::line;
use crate::client::{Answers, Ask};
use crate::jsonrpc::RequestId;
use crate::model::{CompletionRef, LogLevel, SubscriptionFilter};
use crate::revision::Revision;
use crate::session::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION};

/// Who asks, and by which rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender<'a> {
    /// The encoded `Implementation`.
    pub(crate) info: &'a str,
    /// The encoded `ClientCapabilities`.
    pub(crate) capabilities: &'a str,
    /// How much of its log the server is to send with a request of the stateless era.
    pub(crate) log_level: Option<LogLevel>,
    /// The revision that was agreed.
    pub(crate) revision: Revision,
}

impl Sender<'_> {
    pub(crate) fn discover(self, id: &RequestId) -> Vec<u8> {
        self.request(id, "server/discover", 0, None, |_| {})
    }

    /// Asks, or asks again with the answers the server wanted. The progress of a call is told under
    /// the request's own id.
    pub(crate) fn ask(self, id: &RequestId, ask: &Ask, answers: Option<&Answers>) -> Vec<u8> {
        let progress = matches!(ask, Ask::CallTool { .. }).then_some(id);
        self.request(id, ask.method(), length(ask), progress, |params| {
            self.params(params, ask);
            if let Some(Answers { responses, state }) = answers {
                params.member("inputResponses", responses);
                params.optional("requestState", state.as_ref());
            }
        })
    }

    fn params(self, params: &mut Object<'_>, ask: &Ask) {
        match ask {
            Ask::ListTools { cursor }
            | Ask::ListPrompts { cursor }
            | Ask::ListResources { cursor }
            | Ask::ListTemplates { cursor } => params.optional("cursor", cursor.as_ref()),
            Ask::CallTool { name, arguments } => {
                params.member("name", name);
                params.member("arguments", arguments);
            }
            Ask::GetPrompt { name, arguments } => {
                params.member("name", name);
                params.member("arguments", arguments);
            }
            Ask::ReadResource { uri } | Ask::Subscribe { uri } | Ask::Unsubscribe { uri } => {
                params.member("uri", uri);
            }
            Ask::Complete { reference, name, value, context } => {
                completed(params.object("ref"), reference);
                let mut argument = params.object("argument");
                argument.member("name", name);
                argument.member("value", value);
                argument.end();
                if !context.is_empty() && self.revision >= Revision::V2025_06_18 {
                    let mut written = params.object("context");
                    written.member("arguments", context);
                    written.end();
                }
            }
            Ask::SetLevel { level } => params.member("level", level.as_str()),
            Ask::Listen { filter } => wanted(params.object("notifications"), filter),
            Ask::UpdateTask { task_id, responses } => {
                params.member("taskId", task_id);
                params.member("inputResponses", responses);
            }
            Ask::GetTask { task_id } | Ask::CancelTask { task_id } => params.member("taskId", task_id),
            Ask::Ping => {}
        }
    }

    fn request(
        self,
        id: &RequestId,
        method: &str,
        length: usize,
        progress: Option<&RequestId>,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Vec<u8> {
        line(400 + length, |message| {
            message.raw("id", id.token());
            message.member("method", method);
            let mut params = message.object("params");
            write(&mut params);
            if self.revision.is_stateless() || progress.is_some() {
                self.meta(params.object("_meta"), progress);
            }
            params.end();
        })
    }

    /// In the stateless era every request says who sends it, by which rules, and what that client
    /// can do.
    fn meta(self, mut meta: Object<'_>, progress: Option<&RequestId>) {
        if let Some(token) = progress {
            meta.raw("progressToken", token.token());
        }
        if self.revision.is_stateless() {
            meta.member(PROTOCOL_VERSION, self.revision.as_str());
            meta.raw(CLIENT_INFO, self.info);
            meta.raw(CLIENT_CAPABILITIES, self.capabilities);
            if let Some(level) = self.log_level {
                meta.member(LOG_LEVEL, level.as_str());
            }
        }
        meta.end();
    }
}

fn completed(mut reference: Object<'_>, of: &CompletionRef) {
    match of {
        CompletionRef::Prompt { name } => {
            reference.raw("type", "\"ref/prompt\"");
            reference.member("name", name);
        }
        CompletionRef::Resource { uri } => {
            reference.raw("type", "\"ref/resource\"");
            reference.member("uri", uri);
        }
    }
    reference.end();
}

/// What a client wants to hear of (`SubscriptionFilter` of the schema): what it does not want is left
/// out.
pub(super) fn wanted(mut notifications: Object<'_>, filter: &SubscriptionFilter) {
    for (key, wanted) in [
        ("toolsListChanged", filter.tools_list_changed),
        ("promptsListChanged", filter.prompts_list_changed),
        ("resourcesListChanged", filter.resources_list_changed),
    ] {
        if wanted {
            notifications.raw(key, "true");
        }
    }
    for (key, names) in
        [("resourceSubscriptions", &filter.resource_subscriptions), ("taskIds", &filter.task_ids)]
    {
        if !names.is_empty() {
            notifications.member(key, names);
        }
    }
    notifications.end();
}

/// About how long the parameters are, in bytes.
fn length(ask: &Ask) -> usize {
    match ask {
        Ask::CallTool { arguments, .. } => arguments.values().filter_map(Value::as_str).map(str::len).sum(),
        Ask::Listen { filter } => filter.resource_subscriptions.iter().map(String::len).sum(),
        _ => 0,
    }
}

/// `initialize`, which asks for the newest revision that has it. `info` and `capabilities` are
/// encoded.
pub(crate) fn initialize_request(id: &RequestId, info: &str, capabilities: &str) -> Vec<u8> {
    line(256, |message| {
        message.raw("id", id.token());
        message.raw("method", "\"initialize\"");
        let mut params = message.object("params");
        params.member("protocolVersion", Revision::NEWEST_LEGACY.as_str());
        params.raw("capabilities", capabilities);
        params.raw("clientInfo", info);
        params.end();
    })
}

/// `notifications/initialized`.
pub(crate) fn initialized_line() -> Vec<u8> {
    line(64, |message| message.raw("method", "\"notifications/initialized\""))
}

/// The answer to a question of the server, as JSON.
pub(crate) fn answer_line(id: &RequestId, result: &Value) -> Vec<u8> {
    line(256, |message| {
        message.raw("id", id.token());
        message.member("result", result);
    })
}

/// `notifications/cancelled` for a request of this client: on a pipe it is the same in both eras.
pub(crate) fn cancel_line(id: &RequestId, reason: &str) -> Vec<u8> {
    line(160 + reason.len(), |message| {
        message.raw("method", "\"notifications/cancelled\"");
        let mut params = message.object("params");
        params.raw("requestId", id.token());
        params.member("reason", reason);
        params.end();
    })
}
