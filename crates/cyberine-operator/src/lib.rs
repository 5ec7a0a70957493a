//! The operator surface: the tools that start, watch, decide on and stop runs, those that carry
//! messages between hosts, runs and people; the run as a resource and as a task, and prompts to begin
//! with.
//!
//! This crate owns what these tools are called, what they take and what they show. It never
//! carries a run out, never decides who may call (the gate of `cyberine-server` does) and takes
//! no identity from an argument. Nothing is opened before the first call: a server answers
//! `initialize` and lists its tools without touching a disk.
#![warn(missing_docs)]

mod address;
mod arguments;
mod bounded;
mod cancel;
mod catalog;
mod completions;
mod decide;
mod follow;
mod inspect;
mod once;
mod orchestrate;
mod poll;
mod project;
mod prompts;
mod query;
mod resources;
mod send;
mod services;
mod tasks;
mod team;
mod tools;
mod view;
mod waiting;

pub use address::{mailbox, team_mailbox};
pub use completions::RunCompletions;
pub use project::{DirectoryProject, Project};
pub use prompts::OperatorPrompts;
pub use resources::RunResources;
pub use services::{Dispatcher, LazyServices, NoTickFeeds, Services, Started, TickFeed, TickSource};
pub use tasks::RunTasks;
pub use tools::OperatorTools;
pub use view::run_view;
