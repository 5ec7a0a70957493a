//! Registers the server with MCP hosts.
//!
//! Each [`Host`] keeps its servers in a file of its own, in a format of its own, written by its
//! user. This crate works out the new text of such a file as a pure function of the old one
//! ([`plan`], [`withdraw`]): comments, key order, indentation, line endings and a byte order mark
//! stay as they are. [`ConfigFile`] reads and writes the file.
//!
//! ```
//! use cyberine_install::{Entry, Host, Overwrite, Plan, Withdrawal, plan, withdraw};
//!
//! # fn main() -> Result<(), cyberine_install::PlanError> {
//! let entry = Entry::new("/usr/local/bin/cyberine-mcp")?;
//! let before = "{\n  // mine\n  \"mcpServers\": {}\n}\n";
//! let Plan::Write(after) = plan(Host::Cursor, Some(before), &entry, Overwrite::Refuse)? else {
//!     unreachable!("it is not there yet");
//! };
//! assert!(after.contains("// mine"));
//! assert_eq!(plan(Host::Cursor, Some(&after), &entry, Overwrite::Refuse)?, Plan::Nothing);
//! let taken = withdraw(Host::Cursor, &after, &[before.into()], Overwrite::Refuse)?;
//! assert_eq!(taken, Withdrawal::GiveBack(before.into()));
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod diff;
mod entry;
mod error;
mod file;
mod host;
mod json;
mod plan;
mod text;
mod toml;

pub use diff::{Line, difference};
pub use entry::{Entry, NAME, SERVER};
pub use error::{EntryError, FileError, PlanError};
pub use file::{ConfigFile, MAX_BYTES};
pub use host::{Format, Host, Places, Platform, Scope};
pub use plan::{Overwrite, Plan, Withdrawal, plan, registered, snippet, withdraw};
