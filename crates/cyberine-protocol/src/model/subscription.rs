/// Of which changes a client wants news (`SubscriptionFilter` of the schema), or is to get them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriptionFilter {
    /// Of the list of tools.
    pub tools_list_changed: bool,
    /// Of the list of prompts.
    pub prompts_list_changed: bool,
    /// Of the list of resources.
    pub resources_list_changed: bool,
    /// Of the resources with these URIs.
    pub resource_subscriptions: Vec<String>,
    /// Of the tasks with these ids (extension `io.modelcontextprotocol/tasks`).
    pub task_ids: Vec<String>,
}

/// A list a client can be told the change of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
}
