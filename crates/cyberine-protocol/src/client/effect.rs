use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{InputRequest, InputRequired, ListKind, LogLevel, ResourceContents, SubscriptionFilter};
use crate::revision::Revision;

/// Names one request of one session, once and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub(super) u64);

/// Names one question of the server, once and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionKey(pub(super) u64);

/// What the driver of a client session has to do.
#[derive(Debug)]
pub enum ClientEffect {
    /// Write this line and a newline.
    Send(Vec<u8>),
    /// The server is found out: requests can be made.
    Opened(ServerFacts),
    /// A page of tools.
    Tools {
        /// The request.
        key: CallKey,
        /// The page.
        page: ToolsPage,
    },
    /// A call is over.
    Called {
        /// The request.
        key: CallKey,
        /// What came of it.
        reply: ToolReply,
    },
    /// Any other request is over, or a call goes on as a task: `resultType` says so.
    Result {
        /// The request.
        key: CallKey,
        /// The result: an object, byte for byte.
        result: Box<RawValue>,
    },
    /// A request is over for now: the server wants to know something first. Ask again with
    /// [`ClientSession::ask_again`](super::ClientSession::ask_again). Stateless era only, and only for
    /// what the profile declares.
    NeedsInput {
        /// The request.
        key: CallKey,
        /// What it wants to know, and the state it wants back.
        needs: InputRequired,
    },
    /// The server asks something while a request waits. Answer it with
    /// [`ClientSession::answer`](super::ClientSession::answer). The `initialize` era only, and only for
    /// what the profile declares.
    Question {
        /// The question.
        question: QuestionKey,
        /// What it wants to know.
        request: InputRequest,
    },
    /// The server does not want to know any more.
    Withdrawn(QuestionKey),
    /// A listen has begun: of these news will come.
    Acknowledged {
        /// The listen.
        key: CallKey,
        /// What of the wishes is served.
        served: SubscriptionFilter,
    },
    /// A list has changed. Unasked in the `initialize` era.
    Changed {
        /// The listen that wanted to know.
        key: Option<CallKey>,
        /// Which.
        list: ListKind,
    },
    /// A resource has changed.
    Updated {
        /// The listen that wanted to know.
        key: Option<CallKey>,
        /// The resource, or a part of it.
        uri: String,
    },
    /// A task has changed.
    TaskChanged {
        /// The listen that wanted to know.
        key: CallKey,
        /// How it stands: an object, as the result of `tasks/get` has it.
        task: Box<RawValue>,
    },
    /// A request has no result.
    Failed {
        /// The request.
        key: CallKey,
        /// Why.
        error: RequestError,
    },
    /// A call goes on.
    Progress {
        /// The request.
        key: CallKey,
        /// How far it is; more each time.
        progress: f64,
        /// How far it goes, where that is known.
        total: Option<f64>,
        /// What it does, where the server says so.
        message: Option<String>,
    },
    /// A line of the server's log.
    Log(LogLine),
    /// The message was ignored. A line for the operator's log.
    Ignored(ClientIgnored),
}

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// The revision that was agreed.
    pub revision: Revision,
    /// `name version`, where it says so: for people only.
    pub label: Option<String>,
    /// Whether it offers tools.
    pub tools: bool,
}

/// One page of a list of tools.
#[derive(Debug, Clone)]
pub struct ToolsPage {
    /// The tools, in the server's order.
    pub tools: Vec<OfferedTool>,
    /// Where the next page begins; `None` at the end. An empty string is a cursor too.
    pub next_cursor: Option<String>,
}

/// A tool a server offers.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// What it does, for a model.
    pub description: Option<String>,
    /// JSON Schema of its arguments, byte for byte as the server wrote it. Nothing in it is ever
    /// fetched.
    pub input_schema: Option<Box<RawValue>>,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub struct ToolReply {
    /// What a model reads.
    pub content: Vec<ReplyPart>,
    /// The same for programs; `null` counts as none.
    pub structured: Option<Box<RawValue>>,
    /// Whether the work failed.
    pub is_error: bool,
}

/// One piece of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyPart {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A pointer to a resource.
    Link {
        /// Its URI.
        uri: String,
        /// Its name.
        name: String,
    },
    /// A resource.
    Embedded(ResourceContents),
    /// Something newer than this crate.
    Unknown {
        /// Its `type`.
        kind: String,
    },
}

/// A line of the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How grave it is, where the level has a name that is known.
    pub level: Option<LogLevel>,
    /// What it says: text, or other data as JSON.
    pub text: String,
}

/// The error a server answered with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RemoteError {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Facts for code.
    pub data: Option<Value>,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server said no.
    #[error("the server answered `{method}` with an error: {error}")]
    Remote {
        /// What was asked.
        method: &'static str,
        /// What it said.
        error: RemoteError,
    },
    /// The server wants something of this client that it never said it could do.
    #[error("the server wants {} before it answers, which this client cannot give", asks(.methods))]
    NeedsInput {
        /// The methods of its questions; none where it wants to be asked again.
        methods: Vec<String>,
    },
    /// The result cannot be read.
    #[error("the server's result of `{method}` cannot be read: {reason}")]
    Unreadable {
        /// What was asked.
        method: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The server has ended it.
    #[error("the server has ended `{method}`")]
    Ended {
        /// What was asked.
        method: &'static str,
    },
}

fn asks(methods: &[String]) -> String {
    if methods.is_empty() {
        return "to be asked again".to_owned();
    }
    methods.iter().map(|method| format!("`{method}`")).collect::<Vec<_>>().join(", ")
}

/// What ends a session.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientFault {
    /// A line is no message.
    #[error(
        "the server wrote what is no message ({reason}): `{line}`; its standard output is for messages \
         only, and its log belongs on its standard error"
    )]
    NoMessage {
        /// Why not.
        reason: String,
        /// The line: its beginning, controls escaped.
        line: String,
    },
    /// A line is longer than the limit.
    #[error("the server wrote a line of more than {limit} bytes: `{line}`")]
    TooLong {
        /// The limit.
        limit: usize,
        /// Its beginning, controls escaped.
        line: String,
    },
    /// There is no revision both sides speak.
    #[error("the server speaks {}, and this client {}", names(.offered), spoken())]
    NoCommonRevision {
        /// What the server speaks.
        offered: Vec<String>,
    },
    /// The server does not let a session begin.
    #[error("the server refused `{method}`: {error}")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// What it said.
        error: RemoteError,
    },
    /// The answer to the beginning of a session cannot be read.
    #[error("the server's result of `{method}` cannot be read: {reason}")]
    Unreadable {
        /// What was asked.
        method: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A stateless server asked something. It may not, and no answer may be written to it, so that
    /// it would wait for ever (2026-07-28, `basic/transports/stdio`).
    #[error("the server sent the request `{method}`, which a server of 2026-07-28 may not")]
    Asked {
        /// What it asked.
        method: String,
    },
}

fn names(versions: &[String]) -> String {
    if versions.is_empty() { "no revision it names".to_owned() } else { versions.join(", ") }
}

fn spoken() -> String {
    Revision::ALL.map(Revision::as_str).join(", ")
}

/// A message that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientIgnored {
    /// A response to nothing that is open, or a second one.
    #[error("a response answers no open request")]
    StrayResponse,
    /// News of the progress of nothing that is open, or no more than before.
    #[error("news of progress belong to no open call, or go backwards")]
    StrayProgress,
    /// News of what nobody listens to, or that cannot be read.
    #[error("news belong to no listen that is open, or cannot be read")]
    StrayNews,
    /// A notification nobody here listens to.
    #[error("the notification `{0}` is not known")]
    UnknownNotification(String),
    /// A request that was answered with an error, for it asks what this client does not offer.
    #[error("the server asked for `{0}`, which is not offered")]
    Declined(String),
}
