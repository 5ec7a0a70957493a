//! The words every Cyberine crate shares: ids, callers, secrets, money and time.
//!
//! This crate owns plain values. It never does I/O, never starts a task and knows no other
//! Cyberine crate. [`Identity`] (authority, minted only by a transport) and [`ClientInfo`]
//! (what a client says of itself, for display) are two types on purpose: neither converts
//! into the other.
//!
//! ```
//! use cyberine_types::{RunId, Usd};
//!
//! let id = RunId::random();
//! assert_eq!(id.to_string().parse::<RunId>().ok(), Some(id));
//! assert_eq!(Usd::from_dollars(0.25).micros(), 250_000);
//! ```
#![warn(missing_docs)]

mod caller;
mod clock;
mod id;
mod mend;
mod money;
mod secret;
mod usage;
mod visible;

pub use caller::{Caller, ClientInfo, Identity, Principal};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp, UtcDay};
pub use id::{InstanceId, MessageId, ParseInstanceIdError, ParseMessageIdError, ParseRunIdError, RunId};
pub use mend::mended;
pub use money::Usd;
pub use secret::Secret;
pub use usage::{Billing, CostBasis, Usage};
pub use visible::{is_blank, is_invisible};
