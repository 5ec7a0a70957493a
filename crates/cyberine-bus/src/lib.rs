//! Messages between hosts, runs, chats and people.
//!
//! This crate owns addresses, envelopes and the [`Bus`] port with its implementations. A message
//! lies in its mailbox whether or not anybody is there to read it; reading never takes it away.
//! The crate knows no JSON-RPC and never decides who may write: it records who did.
#![warn(missing_docs)]

mod address;
#[cfg(feature = "contract")]
pub mod contract;
mod envelope;
mod error;
mod file;
mod memory;
mod names;
mod none;
mod page;
mod port;
mod record;

pub use address::{Address, AddressError, AddressKind, MAX_ID_BYTES};
pub use envelope::{
    Channel, Envelope, From, FromKind, Importance, MAX_LABEL_BYTES, MAX_TEXT_BYTES, Outgoing, Sender, Topic,
};
pub use error::BusError;
pub use file::{FileBus, MailboxReport, Mailboxes, Unusable};
pub use memory::MemoryBus;
pub use none::NoBus;
pub use port::{Bus, Durability, Page, ReadRequest, Reader, Receipt};
