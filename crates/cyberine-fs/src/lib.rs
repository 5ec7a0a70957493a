//! Durable private files, locks, and one watcher per process.
//!
//! This crate owns how bytes reach the disk: directories nobody else can write to, files replaced
//! whole or appended to, advisory locks that survive a hand-over to a child, and news of changes.
//! It never knows what the bytes mean, and it holds no noun of the product.
//!
//! ```
//! use cyberine_fs::{Durability, PrivateDir};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let path = scratch.path().join("home");
//! let home = PrivateDir::open_or_create(&path)?;
//! home.replace("state.json", b"{}", Durability::Durable)?;
//! assert_eq!(home.read("state.json", 1024)?.as_deref(), Some(&b"{}"[..]));
//!
//! let lock = home.try_lock("state.lock")?.ok_or("someone else has it")?;
//! assert!(home.try_lock("state.lock")?.is_none());
//! drop(lock);
//! assert!(!home.is_locked("state.lock")?);
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod dir;
mod error;
mod lock;
mod watcher;

pub use dir::{Dated, Durability, FileStatus, Identity, Listing, OpenFile, PrivateDir};
pub use error::FsError;
pub use lock::{LockFile, RestingLock};
pub use watcher::{POLL, Subscription, WATCHED_POLL, Wake, Watcher};
