//! What is served: the sets, and what the server says of itself.

use std::sync::Arc;
use std::time::Duration;

use cyberine_protocol::{ServerProfile, model::Implementation};
use cyberine_types::{Caller, ClientInfo, Clock, Identity, SystemClock};

use crate::catalog::{Catalog, Catalogs};
use crate::resource_set::ResourceSet;
use crate::seal::SealKey;
use crate::toolset::ToolSet;

/// Below the 30 seconds after which a host that never shows the question would seem to hang.
const ANSWER_LIMIT: Duration = Duration::from_secs(25);

/// A server of one tool set, and perhaps one resource set, to the clients of one identity.
///
/// It opens nothing and starts nothing: `initialize` is answered whatever the sets do on their
/// first call.
pub struct Server {
    pub(crate) tools: Arc<dyn ToolSet>,
    pub(crate) resources: Option<Arc<dyn ResourceSet>>,
    pub(crate) profile: ServerProfile,
    pub(crate) identity: Arc<Identity>,
    pub(crate) seal: SealKey,
    pub(crate) clock: Arc<dyn Clock>,
    /// How long a client may take to answer a question while its call waits.
    pub(crate) answer_limit: Duration,
    catalogs: Catalogs,
}

impl Server {
    /// A server of `tools` that calls itself `name` and `version`. `identity` is who its
    /// transport vouches for; `seal` protects the state a client carries between two calls.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        tools: Arc<dyn ToolSet>,
        identity: impl Into<Arc<Identity>>,
        seal: SealKey,
    ) -> Self {
        let info = Implementation { name: name.into(), version: version.into(), ..Implementation::default() };
        Self {
            tools,
            resources: None,
            profile: ServerProfile { info, tools: true, ..ServerProfile::default() },
            identity: identity.into(),
            seal,
            clock: Arc::new(SystemClock),
            answer_limit: ANSWER_LIMIT,
            catalogs: Catalogs::default(),
        }
    }

    /// Serves `resources` too.
    #[must_use]
    pub fn with_resources(mut self, resources: Arc<dyn ResourceSet>) -> Self {
        self.profile.subscriptions = resources.is_watchable();
        self.resources = Some(resources);
        self.profile.resources = true;
        self
    }

    /// Tells clients' models how to use the server: a few lines at most.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.profile.instructions = Some(instructions.into());
        self
    }

    /// The name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.profile.info.title = Some(title.into());
        self
    }

    /// Tells the time by `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Waits for a client's answer to a question, in the `initialize` era, for at most `limit`
    /// instead of 25 seconds.
    #[must_use]
    pub const fn with_answer_limit(mut self, limit: Duration) -> Self {
        self.answer_limit = limit;
        self
    }

    pub(crate) fn caller(&self, client: Option<ClientInfo>) -> Caller {
        Caller { identity: Arc::clone(&self.identity), client }
    }

    pub(crate) fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.catalogs.of(&self.tools.list(caller), || self.tools.extra_arguments())
    }
}
