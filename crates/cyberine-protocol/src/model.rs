//! The types of the newest revision. Older revisions are encoded from them by leaving out.

mod capabilities;
mod completion;
mod content;
mod input;
mod outcome;
mod prompt;
mod resource;
mod subscription;
mod task;
mod tool;

pub(crate) use capabilities::TASKS_EXTENSION;
pub use capabilities::{ClientCapabilities, Implementation, LogLevel};
pub use completion::{Completion, CompletionRef};
pub use content::{Annotations, ContentBlock, Icon, ResourceBody, ResourceContents, Role};
pub use input::{ElicitForm, ElicitUrl, InputRequest, InputRequired};
pub use outcome::{CacheHint, CacheScope, CallToolResult};
pub use prompt::{GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage};
pub use resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate,
};
pub use subscription::{ListKind, SubscriptionFilter};
pub use task::{DetailedTask, Task, TaskState, TaskStatus};
pub use tool::{ListedSchema, ListedTool, Tool, ToolAnnotations};
