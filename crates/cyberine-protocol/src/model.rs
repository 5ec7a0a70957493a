//! The types of the newest revision. Older revisions are encoded from them by leaving out.

mod capabilities;
mod content;
mod outcome;
mod resource;
mod subscription;
mod tool;

pub use capabilities::{ClientCapabilities, Implementation, LogLevel};
pub use content::{Annotations, ContentBlock, Icon, ResourceBody, ResourceContents, Role};
pub use outcome::{
    CacheHint, CacheScope, CallToolResult, CreatedTask, ElicitForm, InputRequired, TaskStatus,
};
pub use resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate,
};
pub use subscription::SubscriptionFilter;
pub use tool::{ListedSchema, ListedTool, Tool, ToolAnnotations};
