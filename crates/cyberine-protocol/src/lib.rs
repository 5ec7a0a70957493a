//! JSON-RPC 2.0 and the Model Context Protocol, every revision from 2024-11-05 to 2026-07-28,
//! without I/O.
//!
//! This crate owns the bytes of the wire: which lines are messages, by which revision's rules a
//! request is served, what is in flight, and how an answer looks in each revision. It never
//! reads, writes, sleeps or starts anything, knows no runtime, and knows no tool's meaning.
//!
//! [`ServerSession`] is the server's side of one pipe, [`ClientSession`] the client's. [`strict`] is the layer in front of the
//! JSON parser, [`model`] the types of the newest revision, from which older ones are encoded by
//! leaving out, and [`Schema`] checks values against JSON Schema. [`http`] and [`sse`] are what messages
//! look like on their way over HTTP.
#![warn(missing_docs)]

mod client;
mod encode;
mod escape;
pub mod http;
mod jsonrpc;
pub mod model;
mod revision;
mod schema;
mod session;
pub mod sse;
pub mod strict;

pub use client::{
    Answers, Ask, CallKey, ClientEffect, ClientFault, ClientIgnored, ClientProfile, ClientSession, LogLine,
    OfferedTool, Opening, QuestionKey, RemoteError, ReplyPart, RequestError, ServerFacts, ToolReply,
    ToolsPage,
};
pub use encode::{ToolListing, ToolSource};
pub use jsonrpc::{ErrorKind, RpcError};
pub use revision::Revision;
pub use schema::{Schema, SchemaError, Violations};
pub use session::{
    Answer, AskError, AskKey, Effect, Ignored, Inbound, InboundBody, LegacyClient, RequestKey, ServerProfile,
    ServerSession, SharedProfile, ask_scope_of,
};
