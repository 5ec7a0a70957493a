//! Streamable HTTP for the rail of `cyberine-server`: one path that serves every revision of the
//! Model Context Protocol.
//!
//! It owns the bytes of HTTP: who may connect (`Host`, `Origin`, the [`identity`] behind a request),
//! which requests are well-formed, sessions of the `initialize` era, event streams and their resume,
//! every limit, and an end that leaves nobody hanging. What a message means is the protocol crate's,
//! what a tool does is the rail's.
#![warn(missing_docs)]

mod body;
mod endpoint;
mod events;
mod guard;
pub mod identity;
pub mod metrics;
mod observe;
mod operations;
mod reply;
mod server;
mod session;
mod settings;
mod stall;
pub mod trace_context;
mod visitors;

pub use guard::NameFault;
pub use observe::{Answered, Load, Meters, Observer};
pub use operations::operations;
pub use server::HttpServer;
pub use settings::Settings;
