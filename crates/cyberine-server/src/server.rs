//! What is served: the sets, and what the server says of itself.

use std::sync::Arc;
use std::time::Duration;

use cyberine_protocol::model::{Implementation, ListKind};
use cyberine_protocol::{ServerProfile, SharedProfile};
use cyberine_types::{Caller, Clock, Identity, SystemClock};

use crate::catalog::{Around, Catalog, Catalogs};
use crate::changes::ListChanges;
use crate::completion_set::CompletionSet;
use crate::prompt_set::PromptSet;
use crate::resource_set::ResourceSet;
use crate::seal::SealKey;
use crate::task_set::TaskSet;
use crate::toolset::ToolSet;

/// Below the 30 seconds after which a host that never shows the question would seem to hang.
const ANSWER_LIMIT: Duration = Duration::from_secs(25);

/// A server of one tool set, and perhaps of resources, prompts, completions and tasks. What it has
/// no set for it does not advertise, and refuses.
///
/// It opens nothing and starts nothing: `initialize` is answered whatever the sets do on their
/// first call.
pub struct Server {
    pub(crate) tools: Arc<dyn ToolSet>,
    pub(crate) resources: Option<Arc<dyn ResourceSet>>,
    pub(crate) prompts: Option<Arc<dyn PromptSet>>,
    pub(crate) completions: Option<Arc<dyn CompletionSet>>,
    pub(crate) tasks: Option<Arc<dyn TaskSet>>,
    pub(crate) profile: SharedProfile,
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
        let tools_list_changed = tools.changes().is_some();
        let profile = ServerProfile { info, tools: true, tools_list_changed, ..ServerProfile::default() };
        Self {
            tools,
            resources: None,
            prompts: None,
            completions: None,
            tasks: None,
            profile: profile.into(),
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
        self.profile = self.profile.changed(|profile| {
            profile.resources = true;
            profile.subscriptions = resources.is_watchable();
            profile.resources_list_changed = resources.changes().is_some();
        });
        self.resources = Some(resources);
        self
    }

    /// Serves `prompts` too.
    #[must_use]
    pub fn with_prompts(mut self, prompts: Arc<dyn PromptSet>) -> Self {
        self.profile = self.profile.changed(|profile| {
            profile.prompts = true;
            profile.prompts_list_changed = prompts.changes().is_some();
        });
        self.prompts = Some(prompts);
        self
    }

    /// Completes arguments of prompts and resource templates.
    #[must_use]
    pub fn with_completions(mut self, completions: Arc<dyn CompletionSet>) -> Self {
        self.profile = self.profile.changed(|profile| profile.completions = true);
        self.completions = Some(completions);
        self
    }

    /// Lets calls go on as `tasks`, for clients that declare the tasks extension.
    #[must_use]
    pub fn with_tasks(mut self, tasks: Arc<dyn TaskSet>) -> Self {
        self.profile = self.profile.changed(|profile| profile.tasks = true);
        self.tasks = Some(tasks);
        self
    }

    /// Sends what calls put into their [`Log`](crate::Log) to clients that want it.
    #[must_use]
    pub fn with_logging(mut self) -> Self {
        self.profile = self.profile.changed(|profile| profile.logging = true);
        self
    }

    /// Tells clients' models how to use the server: a few lines at most.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.profile = self.profile.changed(|profile| profile.instructions = Some(instructions.into()));
        self
    }

    /// The name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.profile = self.profile.changed(|profile| profile.info.title = Some(title.into()));
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

    /// The lists that may change, each followed from now on.
    pub(crate) fn list_changes(&self) -> impl Iterator<Item = (ListKind, ListChanges)> + use<> {
        let tools = self.tools.changes().map(|changes| (ListKind::Tools, changes));
        let prompts = self.prompts.as_ref().and_then(|prompts| prompts.changes());
        let resources = self.resources.as_ref().and_then(|resources| resources.changes());
        let prompts = prompts.map(|changes| (ListKind::Prompts, changes));
        let resources = resources.map(|changes| (ListKind::Resources, changes));
        [tools, prompts, resources].into_iter().flatten()
    }

    pub(crate) fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let around = || Around { extra: self.tools.extra_arguments(), is_public: self.tools.is_public() };
        self.catalogs.of(&self.tools.list(caller), around)
    }
}
