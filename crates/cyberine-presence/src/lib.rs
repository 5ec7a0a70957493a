//! Who is there: records with a heartbeat, and the live roster they make.
//!
//! This crate owns the record a process keeps about itself, the announcer that keeps it fresh and
//! the judgement whether its process is still there. It knows neither the bus nor JSON-RPC.
#![warn(missing_docs)]

mod port;
mod record;

pub use port::{Announcement, Announcing, NoPresence, Presence, PresenceError};
pub use record::{Activity, Host, Liveness, Member, Record, RecordAddr};
