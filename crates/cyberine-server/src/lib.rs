//! The rail that serves the Model Context Protocol: it carries calls to a [`ToolSet`] and reads
//! to a [`ResourceSet`], and owns requests in flight, cancellation, progress, the auth gate and
//! the byte streams. What a tool means it does not know.
#![warn(missing_docs)]

mod background;
mod catalog;
mod connection;
mod dispatch;
mod gate;
mod input;
mod lines;
mod output;
mod progress;
mod resource_set;
mod seal;
mod serve;
mod server;
mod stdio;
mod toolset;

pub use background::Background;
pub use gate::Gate;
pub use progress::{OutlivesReply, Progress, ProgressSink, ProgressUpdate};
pub use resource_set::{
    Resource, ResourceContents, ResourceError, ResourcePage, ResourceSet, ResourceTemplate,
};
pub use seal::{RandomError, SealKey};
pub use serve::Ended;
pub use server::Server;
pub use stdio::StdioGuard;
pub use toolset::{
    Annotations, Call, CallError, InputRequest, Outcome, TaskHandle, Tool, ToolResult, ToolSet,
};
