//! Messages between hosts, runs, chats and people.
//!
//! This crate owns addresses, envelopes and the [`Bus`] port with its implementations. A message
//! lies in its mailbox whether or not anybody is there to read it; reading never takes it away.
//! The crate knows no JSON-RPC and never decides who may write: it records who did.
#![warn(missing_docs)]

mod address;
mod envelope;
mod none;
mod port;

pub use address::{Address, AddressError, AddressKind, MAX_ID_BYTES};
pub use envelope::{Channel, Envelope, From, FromKind, Importance, MAX_TEXT_BYTES, Outgoing, Sender, Topic};
pub use none::NoBus;
pub use port::{Bus, BusError, Durability, Page, ReadRequest, Reader, Receipt};
