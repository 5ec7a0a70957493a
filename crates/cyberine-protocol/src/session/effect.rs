use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_types::ClientInfo;
use serde_json::{Map, Value};

use crate::encode::ToolListing;
use crate::jsonrpc::RpcError;
use crate::model::{
    CallToolResult, ClientCapabilities, Completion, CompletionRef, DetailedTask, GetPromptResult,
    InputRequired, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, LogLevel,
    ReadResourceResult, SubscriptionFilter, Task,
};
use crate::revision::Revision;

/// Names one request of one session, once and for ever: ids of clients repeat, keys do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(pub(super) u64);

/// Names one question of the server to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskKey(pub(super) u64);

/// What the driver of a session has to do.
#[derive(Debug)]
pub enum Effect {
    /// Write this line and a newline.
    Send(Vec<u8>),
    /// Serve this request, then call [`ServerSession::finish`](super::ServerSession::finish).
    Request(Inbound),
    /// Stop working on this request. Nothing more is sent for it: `finish`, `progress` and
    /// `updated` answer `None` from now on. It may have been answered already, where its progress
    /// went on after the reply, or where changes of a resource were told under its key.
    Cancel(RequestKey),
    /// The client answered a question.
    Answered {
        /// The request it was asked for.
        key: RequestKey,
        /// The question.
        ask: AskKey,
        /// What the kind of the question says ([`InputRequest`](crate::model::InputRequest)), checked
        /// for its shape; or why there is none.
        answer: Result<Value, RpcError>,
    },
    /// The message was ignored, as the protocol wants it. A line for the operator's log.
    Ignored(Ignored),
}

/// A message that asks for no answer and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// A response to nothing that was asked, or a second one.
    #[error("a response answers no open question of this server")]
    StrayResponse,
    /// A notification nobody here listens to.
    #[error("the notification `{0}` is not known")]
    UnknownNotification(String),
    /// A cancellation whose request is unknown, over, or not named.
    #[error("a cancellation names no request in flight")]
    StrayCancel,
}

/// One request to serve.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbound {
    /// Its key.
    pub key: RequestKey,
    /// The rules it is served by.
    pub revision: Revision,
    /// Who the client says it is: from this request's `_meta`, else from the latest `initialize`.
    pub client: Option<ClientInfo>,
    /// What the client can do: from this request in the stateless era, else from `initialize`.
    pub capabilities: ClientCapabilities,
    /// The log the client wants with this request, if any: from this request in the stateless era.
    /// With `initialize`, what `logging/setLevel` said last, else [`LogLevel::Info`], where the server
    /// keeps a log.
    pub log_level: Option<LogLevel>,
    /// Whether the client wants news of its progress.
    pub progress: bool,
    /// What is asked.
    pub body: InboundBody,
}

/// What a request asks.
#[derive(Debug, Clone, PartialEq)]
pub enum InboundBody {
    /// `tools/list`. Answer with [`Answer::Tools`].
    ListTools {
        /// Where the page begins. An empty string is a cursor too.
        cursor: Option<String>,
    },
    /// `tools/call`. Answer with [`Answer::Call`], [`Answer::InputRequired`] or [`Answer::Task`].
    CallTool {
        /// The tool.
        name: String,
        /// The arguments, empty where there are none.
        arguments: Map<String, Value>,
        /// Answers to an earlier [`Answer::InputRequired`], by its keys.
        input_responses: BTreeMap<String, Value>,
        /// The state that answer carried: the client could have changed it.
        request_state: Option<String>,
    },
    /// `resources/list`. Answer with [`Answer::Resources`].
    ListResources {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `resources/templates/list`. Answer with [`Answer::Templates`].
    ListTemplates {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `resources/read`. Answer with [`Answer::Contents`] or [`Answer::InputRequired`].
    ReadResource {
        /// The URI, unchecked.
        uri: String,
        /// Answers to an earlier [`Answer::InputRequired`], by its keys.
        input_responses: BTreeMap<String, Value>,
        /// The state that answer carried: the client could have changed it.
        request_state: Option<String>,
    },
    /// `resources/subscribe`, of the `initialize` era. Answer with [`Answer::Empty`]; after that the
    /// changes of the resource are told with [`ServerSession::updated`](super::ServerSession::updated).
    Subscribe {
        /// The URI, unchecked.
        uri: String,
    },
    /// `resources/unsubscribe`, of the `initialize` era. End the subscription, if there is one, and
    /// answer with [`Answer::Empty`].
    Unsubscribe {
        /// The URI, unchecked.
        uri: String,
    },
    /// `subscriptions/listen`, of the stateless era. Say with
    /// [`ServerSession::acknowledge`](super::ServerSession::acknowledge) what of it is served, tell
    /// the changes, and answer with [`Answer::ListenEnded`] when the server ends it.
    Listen {
        /// Of what the client wants to hear; the URIs and the ids of tasks are unchecked.
        filter: SubscriptionFilter,
    },
    /// `prompts/list`. Answer with [`Answer::Prompts`].
    ListPrompts {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `prompts/get`. Answer with [`Answer::Prompt`] or [`Answer::InputRequired`].
    GetPrompt {
        /// The prompt.
        name: String,
        /// The arguments, unchecked.
        arguments: BTreeMap<String, String>,
        /// Answers to an earlier [`Answer::InputRequired`], by its keys.
        input_responses: BTreeMap<String, Value>,
        /// The state that answer carried: the client could have changed it.
        request_state: Option<String>,
    },
    /// `completion/complete`. Answer with [`Answer::Completion`].
    Complete {
        /// Whose argument it is.
        reference: CompletionRef,
        /// The argument's name.
        name: String,
        /// What is there of its value.
        value: String,
        /// The arguments that have a value already. From 2025-06-18.
        context: BTreeMap<String, String>,
    },
    /// `tasks/get`. Answer with [`Answer::TaskState`].
    GetTask {
        /// The task, unchecked.
        task_id: String,
    },
    /// `tasks/update`. Answer with [`Answer::Empty`].
    UpdateTask {
        /// The task, unchecked.
        task_id: String,
        /// Answers to some of the questions of its [`TaskState::Input`](crate::model::TaskState).
        input_responses: BTreeMap<String, Value>,
    },
    /// `tasks/cancel`. Answer with [`Answer::Empty`], whether or not it ends the task.
    CancelTask {
        /// The task, unchecked.
        task_id: String,
    },
}

/// The outcome of a request. [`ServerSession::finish`](super::ServerSession::finish) refuses one
/// that does not fit the method with `-32603`.
#[derive(Debug, Clone)]
pub enum Answer {
    /// To `tools/list`: all tools, encoded before.
    Tools(Arc<ToolListing>),
    /// To `tools/call`: it is over.
    Call(CallToolResult),
    /// To `tools/call`, `prompts/get` and `resources/read`: it needs input. A client that did not
    /// declare what the questions need gets `-32021`; with `initialize`, use
    /// [`ServerSession::ask`](super::ServerSession::ask) instead.
    InputRequired(InputRequired),
    /// To `tools/call`: it goes on as a task. A client that did not declare tasks gets `-32021`.
    Task(Task),
    /// To `resources/list`.
    Resources(ListResourcesResult),
    /// To `resources/templates/list`.
    Templates(ListResourceTemplatesResult),
    /// To `resources/read`.
    Contents(ReadResourceResult),
    /// To `prompts/list`.
    Prompts(ListPromptsResult),
    /// To `prompts/get`.
    Prompt(GetPromptResult),
    /// To `completion/complete`.
    Completion(Completion),
    /// To `tasks/get`.
    TaskState(DetailedTask),
    /// To `resources/subscribe`, `resources/unsubscribe`, `tasks/update` and `tasks/cancel`: done.
    Empty,
    /// To `subscriptions/listen`: the server ends it.
    ListenEnded,
}
