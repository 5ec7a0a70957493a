use super::table::BatchKey;
use crate::jsonrpc::RequestId;
use crate::model::{ClientCapabilities, ListKind, LogLevel, SubscriptionFilter};
use crate::revision::Revision;

/// The methods whose requests stay in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    ListTools,
    CallTool,
    ListResources,
    ListTemplates,
    ReadResource,
    Subscribe,
    Unsubscribe,
    Listen,
    ListPrompts,
    GetPrompt,
    Complete,
    GetTask,
    UpdateTask,
    CancelTask,
}

impl Method {
    /// Whether it is one of the tasks extension.
    pub(super) const fn is_of_tasks(self) -> bool {
        matches!(self, Self::GetTask | Self::UpdateTask | Self::CancelTask)
    }
}

/// What may be sent for a request after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Progress, where the client asked for it.
    Progress,
    /// Changes of a resource, where the client that asked is still the one of the session.
    Changes,
    /// Nothing.
    Over,
}

/// Whether changes are told under a request's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Following {
    Never,
    NotYet,
    Begun,
}

/// What a client that listens was told it will hear of, beside resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one kind of notification")]
struct Heard {
    tools: bool,
    prompts: bool,
    resources: bool,
    tasks: bool,
}

/// One request in flight, or one of which there is news after its answer.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) revision: Revision,
    pub(super) capabilities: ClientCapabilities,
    pub(super) token: Option<RequestId>,
    pub(super) batch: Option<BatchKey>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress: f64,
    pub(super) answered: bool,
    pub(super) following: Following,
    heard: Heard,
}

impl Flight {
    pub(super) const fn new(
        id: RequestId,
        method: Method,
        revision: Revision,
        capabilities: ClientCapabilities,
        token: Option<RequestId>,
    ) -> Self {
        let following = match method {
            Method::Subscribe | Method::Listen => Following::NotYet,
            _ => Following::Never,
        };
        Self {
            id,
            method,
            revision,
            capabilities,
            token,
            batch: None,
            log_level: None,
            progress: f64::NEG_INFINITY,
            answered: false,
            following,
            heard: Heard { tools: false, prompts: false, resources: false, tasks: false },
        }
    }

    /// Notes what the client was told it will hear of.
    pub(super) fn hear(&mut self, served: &SubscriptionFilter) {
        self.heard = Heard {
            tools: served.tools_list_changed,
            prompts: served.prompts_list_changed,
            resources: served.resources_list_changed,
            tasks: !served.task_ids.is_empty(),
        };
    }

    pub(super) const fn hears_of(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => self.heard.tools,
            ListKind::Prompts => self.heard.prompts,
            ListKind::Resources => self.heard.resources,
        }
    }

    pub(super) const fn hears_of_tasks(&self) -> bool {
        self.heard.tasks
    }

    /// Whether the request stays known after its answer.
    pub(super) fn outlives(&mut self, news: News) -> bool {
        match news {
            News::Over => false,
            News::Progress => self.token.is_some() && !self.revision.is_stateless(),
            News::Changes => self.begin_following(),
        }
    }

    pub(super) fn begin_following(&mut self) -> bool {
        let begins = self.following == Following::NotYet;
        if begins {
            self.following = Following::Begun;
        }
        begins
    }
}
