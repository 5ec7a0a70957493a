//! The rail that serves the Model Context Protocol: it carries calls to a [`ToolSet`], reads to a
//! [`ResourceSet`], and what there is beside them to a [`PromptSet`], a [`CompletionSet`] and a
//! [`TaskSet`]. It owns requests in flight, cancellation, progress, logs, questions to the client,
//! the auth gate and the byte streams. What a tool means it does not know, and it never touches the
//! process's own streams unless a binary hands them over ([`StdioGuard`]).
//!
//! ```
//! use std::sync::Arc;
//!
//! use cyberine_server::{Annotations, Call, CallError, Outcome, SealKey, Server, Tool, ToolResult, ToolSet};
//! use cyberine_types::{Caller, Identity};
//! use futures_util::future::BoxFuture;
//! use serde_json::json;
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//! use tokio_util::sync::CancellationToken;
//!
//! struct Greeter(Arc<[Tool]>);
//!
//! impl ToolSet for Greeter {
//!     fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
//!         Arc::clone(&self.0)
//!     }
//!
//!     fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
//!         let greeting = json!({ "greeting": format!("hello, {}", call.caller) });
//!         Box::pin(std::future::ready(Ok(Outcome::Complete(ToolResult::ok(greeting)))))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tool = Tool {
//!     name: "greet",
//!     title: "Greet",
//!     description: "Greets whoever calls.".into(),
//!     input_schema: json!({ "additionalProperties": false }).into(),
//!     output_schema: json!({ "required": ["greeting"] }).into(),
//!     annotations: Annotations { read_only: true, destructive: false, idempotent: true, open_world: false },
//! };
//! let tools = Arc::new(Greeter(Arc::from([tool])));
//! let server = Server::new("greeter", "1.0.0", tools, Identity::local("me"), SealKey::random()?);
//!
//! let (mut client, stream) = tokio::io::duplex(4096);
//! let (reader, writer) = tokio::io::split(stream);
//! client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
//! client.shutdown().await?;
//! Arc::new(server).serve(reader, writer, CancellationToken::new()).await;
//! let mut answers = String::new();
//! client.read_to_string(&mut answers).await?;
//! assert_eq!(answers, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod background;
mod catalog;
mod changes;
mod completion_set;
mod connection;
mod dispatch;
mod exchange;
mod gate;
mod input;
mod lines;
mod log;
mod object_schema;
mod output;
mod progress;
mod prompt_set;
mod resource_set;
mod seal;
mod serve;
mod server;
mod stdio;
mod task_set;
mod toolset;

pub use background::Background;
pub use changes::{ListChanges, ListSignal};
pub use completion_set::{CompletionCall, CompletionError, CompletionSet};
/// What ports say in the words of the protocol.
pub use cyberine_protocol::model::{
    ClientCapabilities, Completion, CompletionRef, ContentBlock, ElicitForm, ElicitUrl, GetPromptResult,
    InputRequest, LogLevel, Prompt, PromptArgument, PromptMessage, Resource as LinkedResource, ResourceBody,
    Role,
};
pub use exchange::{Exchange, First, Peer};
pub use gate::{Gate, SHORTEST_MASKED};
pub use log::{Log, LogSink};
pub use object_schema::{ExtraArgument, ObjectSchema};
pub use progress::{OutlivesReply, Progress, ProgressSink, ProgressUpdate};
pub use prompt_set::{PromptCall, PromptError, PromptOutcome, PromptSet};
pub use resource_set::{
    ReadOutcome, Resource, ResourceContents, ResourceError, ResourcePage, ResourceRead, ResourceSet,
    ResourceTemplate, ResourceWatch,
};
pub use seal::{RandomError, SealKey};
pub use serve::Ended;
pub use server::Server;
pub use stdio::StdioGuard;
pub use task_set::{TaskError, TaskSet, TaskState, TaskView, TaskWatch};
pub use toolset::{Annotations, Call, CallError, Outcome, ResultMismatch, Tool, ToolResult, ToolSet};
