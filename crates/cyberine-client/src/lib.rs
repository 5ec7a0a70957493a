//! Sessions with other MCP servers: children of ours that speak on their standard streams, and
//! servers elsewhere that speak Streamable HTTP.
//!
//! This crate owns how another server is started or reached, found out, asked and ended:
//! `server/discover` first and `initialize` where that is not known, one request at a time with its
//! questions and the news of its progress, and the death of a child's whole tree. What goes over the wire is `cyberine-protocol`'s, what
//! a tool means is the caller's, and nothing a server names is ever fetched.
//!
//! A [`Client`] has no task of its own: it reads only while it is asked to, and whatever becomes of
//! a future of it, the client is there to be closed.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cyberine_client::{CallEvent, Client, ClientOptions, ReplyPart};
//! use cyberine_process::{ChildEnvironment, Spawn};
//!
//! let server = r#"
//!     read discover
//!     echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
//!     read call
//!     echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello"}]}}'
//! "#;
//! let environment = ChildEnvironment::allowed(std::env::vars_os());
//! let spawn = Spawn { args: vec!["-c".into(), server.into()], ..Spawn::new("sh", environment, "/") };
//!
//! let mut client = Client::start(spawn, ClientOptions::new("doc", "1.0"))?;
//! assert_eq!(client.open().await?.revision.as_str(), "2026-07-28");
//! let mut call = client.call("greet", &serde_json::Map::new())?;
//! let CallEvent::Done(reply) = call.next().await? else { panic!("it says nothing of its progress") };
//! assert_eq!(reply.content, [ReplyPart::Text("hello".into())]);
//! drop(call);
//! assert_eq!(client.close().await.left, 0);
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod call;
mod child;
mod client;
mod error;
mod form;
mod http;
mod link;
mod tools;

pub use call::{Call, CallEvent};
pub use client::{Client, ClientOptions};
pub use cyberine_protocol::model::{
    ClientCapabilities, CompletionRef, ElicitForm, ElicitUrl, InputRequest, ListKind, LogLevel, ResourceBody,
    ResourceContents, SubscriptionFilter,
};
pub use cyberine_protocol::{
    Ask, ClientFault, LogLine, OfferedTool, QuestionKey, RemoteError, ReplyPart, RequestError, ServerFacts,
    ToolReply, ToolsPage,
};
pub use error::{ClientError, StderrTail};
pub use form::accepted;
pub use http::{HttpServer, WebError, web_client};
