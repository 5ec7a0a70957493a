//! Who is there: records with a heartbeat, and the live roster they make.
//!
//! This crate owns the record a process keeps about itself, the announcer that keeps it fresh and
//! the judgement whether its process is still there. It knows neither the bus nor JSON-RPC.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cyberine_presence::{Announcing, FilePresence, Presence, RecordAddr};
//! use cyberine_types::{InstanceId, SystemClock};
//!
//! # async fn shown(home: std::path::PathBuf) -> Result<(), cyberine_presence::PresenceError> {
//! let presence = FilePresence::new(home, Arc::new(SystemClock), InstanceId::random());
//! let announcement = presence
//!     .announce(Announcing {
//!         addr: RecordAddr { kind: "chat".into(), id: "review".into() },
//!         repo_cwd: "/work".into(),
//!         capabilities: vec!["orchestrate".into()],
//!         team: Some("owls".into()),
//!         role: None,
//!         name: None,
//!     })
//!     .await?;
//! assert_eq!(presence.roster().await?.len(), 1);
//! announcement.end().await;
//! assert!(presence.roster().await?.is_empty());
//! # Ok(())
//! # }
//! # let scratch = tempfile::tempdir().unwrap();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(shown(scratch.path().join("home"))).unwrap();
//! ```
#![warn(missing_docs)]

#[cfg(feature = "contract")]
pub mod contract;
mod error;
mod file;
mod host;
mod liveness;
mod matching;
mod memory;
mod port;
mod record;
#[cfg(test)]
mod samples;
mod text;

pub use error::PresenceError;
pub use file::{Check, FilePresence};
pub use liveness::{Shown, liveness};
pub use matching::matching;
pub use memory::MemoryPresence;
pub use port::{Announcement, Announcing, NoPresence, Presence};
pub use record::{Activity, Host, Liveness, MAX_TTL, MIN_TTL, Member, Record, RecordAddr, State};
pub use text::{MAX_CAPABILITIES, MAX_NAME_CHARS};
