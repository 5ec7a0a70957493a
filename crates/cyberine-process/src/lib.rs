//! Children that die when told.
//!
//! This crate owns how a program is started and ended: an environment by allow-list, three pumps
//! that never deadlock, output with a bound, and the death of the whole tree, checked. Everything
//! in the product that starts a child does it here. The crate reads no environment of its own and
//! knows nothing of what the children do.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cyberine_process::{ChildEnvironment, Spawn, spawn};
//!
//! let environment = ChildEnvironment::allowed(std::env::vars_os()).marked("a-run");
//! let mut cat = spawn(Spawn { input: "hello".into(), ..Spawn::new("cat", environment, "/") })?;
//! let mut answer = Vec::new();
//! while let Some(chunk) = cat.next_chunk().await? {
//!     answer.extend_from_slice(&chunk);
//! }
//! assert!(cat.finish().await?.status.success());
//! assert_eq!(answer, b"hello");
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod detach;
mod environment;
mod error;
mod lookup;
mod running;
mod start;
mod tree;

pub use detach::{Detach, Detached, conceal, detach, enter_session, take_channel, take_stdin};
pub use environment::{ChildEnvironment, RUN_MARK};
pub use error::{OutputError, SendError, SpawnError};
pub use lookup::find_program;
pub use running::{Exit, Running, Spawn, TAIL_BYTES, spawn};
pub use tree::{KillReport, Process, become_subreaper, find_marked, kill_below, kill_marked};
