use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::{CompletionRef, LogLevel, SubscriptionFilter};
use crate::revision::Revision;

/// What a client can ask of a server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ask {
    /// `tools/list`: one page, from `cursor` on where there is one. Answered with
    /// [`ClientEffect::Tools`](super::ClientEffect::Tools).
    ListTools {
        /// Where the page begins. An empty string is a cursor too.
        cursor: Option<String>,
    },
    /// `tools/call`, with news of its progress. Answered with
    /// [`ClientEffect::Called`](super::ClientEffect::Called), or with a result of the type `task`.
    CallTool {
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// `prompts/list`: one page.
    ListPrompts {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `prompts/get`.
    GetPrompt {
        /// The prompt.
        name: String,
        /// Its arguments.
        arguments: BTreeMap<String, String>,
    },
    /// `resources/list`: one page.
    ListResources {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `resources/templates/list`: one page.
    ListTemplates {
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// `resources/read`.
    ReadResource {
        /// The URI.
        uri: String,
    },
    /// `completion/complete`.
    Complete {
        /// What is being filled in.
        reference: CompletionRef,
        /// The argument.
        name: String,
        /// What is written of it so far.
        value: String,
        /// Arguments that are written already. From 2025-06-18.
        context: BTreeMap<String, String>,
    },
    /// `logging/setLevel`, of the `initialize` era.
    SetLevel {
        /// The least grave level that is wanted.
        level: LogLevel,
    },
    /// `resources/subscribe`, of the `initialize` era: its news are
    /// [`ClientEffect::Updated`](super::ClientEffect::Updated).
    Subscribe {
        /// The URI.
        uri: String,
    },
    /// `resources/unsubscribe`, of the `initialize` era.
    Unsubscribe {
        /// The URI.
        uri: String,
    },
    /// `subscriptions/listen`, of the stateless era. First comes
    /// [`ClientEffect::Acknowledged`](super::ClientEffect::Acknowledged); its result is its end.
    Listen {
        /// Of what news is wanted.
        filter: SubscriptionFilter,
    },
    /// `tasks/get`, of the extension of the stateless era.
    GetTask {
        /// The task.
        task_id: String,
    },
    /// `tasks/update`: answers to the questions of a task.
    UpdateTask {
        /// The task.
        task_id: String,
        /// The answers, by the keys of the questions.
        responses: BTreeMap<String, Value>,
    },
    /// `tasks/cancel`.
    CancelTask {
        /// The task.
        task_id: String,
    },
    /// `ping`, of the `initialize` era.
    Ping,
}

/// What a server wanted to know before it would answer, and what it is told.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answers {
    /// The answers, by the keys of the questions.
    pub responses: BTreeMap<String, Value>,
    /// The state it gave, byte for byte; `None` where it gave none.
    pub state: Option<String>,
}

impl Ask {
    /// The method that asks it.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::ListTools { .. } => "tools/list",
            Self::CallTool { .. } => "tools/call",
            Self::ListPrompts { .. } => "prompts/list",
            Self::GetPrompt { .. } => "prompts/get",
            Self::ListResources { .. } => "resources/list",
            Self::ListTemplates { .. } => "resources/templates/list",
            Self::ReadResource { .. } => "resources/read",
            Self::Complete { .. } => "completion/complete",
            Self::SetLevel { .. } => "logging/setLevel",
            Self::Subscribe { .. } => "resources/subscribe",
            Self::Unsubscribe { .. } => "resources/unsubscribe",
            Self::Listen { .. } => "subscriptions/listen",
            Self::GetTask { .. } => "tasks/get",
            Self::UpdateTask { .. } => "tasks/update",
            Self::CancelTask { .. } => "tasks/cancel",
            Self::Ping => "ping",
        }
    }

    /// Whether a server of that revision can know it.
    #[must_use]
    pub const fn exists_in(&self, revision: Revision) -> bool {
        match self {
            Self::SetLevel { .. } | Self::Subscribe { .. } | Self::Unsubscribe { .. } | Self::Ping => {
                !revision.is_stateless()
            }
            Self::Listen { .. }
            | Self::GetTask { .. }
            | Self::UpdateTask { .. }
            | Self::CancelTask { .. } => revision.is_stateless(),
            _ => true,
        }
    }

    /// Whether its result may be a question, in the stateless era.
    pub(super) const fn may_need_input(&self) -> bool {
        matches!(self, Self::CallTool { .. } | Self::GetPrompt { .. } | Self::ReadResource { .. })
    }
}
