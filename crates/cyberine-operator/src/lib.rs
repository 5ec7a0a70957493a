//! The operator surface: `orchestrate`, `inspect_run`, `query_runs`, `cancel_run` and the run
//! resource.
//!
//! This crate owns what these tools are called, what they take and what they show. It never
//! carries a run out, never decides who may call (the gate of `cyberine-server` does) and takes
//! no identity from an argument. Nothing is opened before the first call: a server answers
//! `initialize` and lists its tools without touching a disk.
#![warn(missing_docs)]

mod arguments;
mod bounded;
mod cancel;
mod catalog;
mod follow;
mod inspect;
mod orchestrate;
mod project;
mod query;
mod resources;
mod services;
mod tools;
mod view;

pub use project::{DirectoryProject, Project};
pub use resources::RunResources;
pub use services::{Dispatcher, LazyServices, NoTickFeeds, Services, Started, TickFeed, TickSource};
pub use tools::OperatorTools;
pub use view::run_view;
