use std::sync::Arc;

use cyberine_types::ClientInfo;

use crate::encode;
use crate::model::{ClientCapabilities, Implementation, ListKind, LogLevel};
use crate::revision::Revision;
use crate::strict::Limits;

/// What a server is and serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent capability of the schema")]
pub struct ServerProfile {
    /// Who it is.
    pub info: Implementation,
    /// What a model should know before it uses the server.
    pub instructions: Option<String>,
    /// Whether it serves tools. Methods of what it does not serve get `-32601`.
    pub tools: bool,
    /// Whether it serves resources.
    pub resources: bool,
    /// Whether changes of its resources can be followed.
    pub subscriptions: bool,
    /// Whether it serves prompts.
    pub prompts: bool,
    /// Whether it completes arguments.
    pub completions: bool,
    /// Whether it sends its log to clients that want it.
    pub logging: bool,
    /// Whether calls may go on as tasks (extension `io.modelcontextprotocol/tasks`).
    pub tasks: bool,
    /// Whether it tells of changes of the list of tools.
    pub tools_list_changed: bool,
    /// Whether it tells of changes of the list of prompts.
    pub prompts_list_changed: bool,
    /// Whether it tells of changes of the list of resources.
    pub resources_list_changed: bool,
    /// What a line may cost.
    pub limits: Limits,
}

impl ServerProfile {
    /// Whether changes of that list are told.
    #[must_use]
    pub const fn tells_of(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => self.tools && self.tools_list_changed,
            ListKind::Prompts => self.prompts && self.prompts_list_changed,
            ListKind::Resources => self.resources && self.resources_list_changed,
        }
    }

    /// Whether there is anything to listen to.
    pub(super) const fn has_news(&self) -> bool {
        self.subscriptions
            || self.tasks
            || self.tells_of(ListKind::Tools)
            || self.tells_of(ListKind::Prompts)
            || self.tells_of(ListKind::Resources)
    }
}

/// A profile that many sessions share, with what is encoded of it once. A clone is a count.
#[derive(Debug, Clone)]
pub struct SharedProfile(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    profile: ServerProfile,
    /// The encoded `serverInfo` of stateless results: name, title and version. Pictures and prose
    /// go out with `server/discover` only, not with every result.
    server_info: String,
}

impl From<ServerProfile> for SharedProfile {
    fn from(profile: ServerProfile) -> Self {
        let Implementation { name, version, title, .. } = profile.info.clone();
        let short = Implementation { name, version, title, ..Implementation::default() };
        let server_info = encode::implementation(&short, Revision::V2026_07_28);
        Self(Arc::new(Shared { profile, server_info }))
    }
}

impl SharedProfile {
    /// The profile.
    #[must_use]
    pub fn profile(&self) -> &ServerProfile {
        &self.0.profile
    }

    /// The same with some of it changed.
    #[must_use]
    pub fn changed(&self, change: impl FnOnce(&mut ServerProfile)) -> Self {
        let mut profile = self.0.profile.clone();
        change(&mut profile);
        profile.into()
    }

    pub(super) fn server_info(&self) -> &str {
        &self.0.server_info
    }
}

/// What the latest `initialize` said, and what was said to it since.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyClient {
    pub(super) revision: Revision,
    pub(super) info: ClientInfo,
    pub(super) capabilities: ClientCapabilities,
    /// What `logging/setLevel` said last.
    pub(super) log_level: Option<LogLevel>,
}

impl LegacyClient {
    /// The revision that was agreed.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The log this client gets. One that said nothing gets what is worth reading (every legacy
    /// revision's `server/utilities/logging`: the server decides).
    pub(super) fn wanted_log(&self) -> LogLevel {
        self.log_level.unwrap_or(LogLevel::Info)
    }
}
