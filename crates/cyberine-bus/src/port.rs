//! The port: what surfaces and engines ask of a bus, whatever it is made of.

use std::time::Duration;

use cyberine_types::{MessageId, Timestamp};
use futures_util::future::BoxFuture;

pub use cyberine_fs::Durability;

use crate::address::Address;
use crate::envelope::{Envelope, MAX_TEXT_BYTES, Outgoing};
use crate::error::BusError;

/// Mailboxes: one sequence of messages per address, written by many processes at once.
///
/// # Cancel safety
/// Dropping a future does not take back what it has begun: a message is published whole or not
/// at all, and nobody is told which.
pub trait Bus: Send + Sync {
    /// Puts a message into its mailbox and returns once it is as safe as `durability` says. That
    /// does not depend on anybody being there to read it.
    ///
    /// An [`Outgoing`] that may have been published before (`again`) is looked for first: where
    /// the mailbox holds its id beyond the number that `again` gives, that message's receipt is
    /// given and nothing is written. Where the mailbox ends before that number it was replaced,
    /// and all of it is looked through.
    ///
    /// # Errors
    /// [`BusError`]; nothing is acknowledged then.
    fn publish(&self, message: Outgoing, durability: Durability) -> BoxFuture<'_, Result<Receipt, BusError>>;

    /// Reads messages, oldest first, and takes none away. A mailbox nobody has written to is empty.
    ///
    /// # Errors
    /// [`BusError`].
    fn read(&self, mailbox: Address, request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>>;

    /// Records durably that `reader` has read everything up to `through`, and returns how far it
    /// has read; it never goes backwards, and not beyond what is there.
    ///
    /// # Errors
    /// [`BusError`].
    fn acknowledge(
        &self,
        mailbox: Address,
        reader: String,
        through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>>;

    /// Who has said how far they have read, in the order of their names.
    ///
    /// # Errors
    /// [`BusError`].
    fn readers(&self, mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>>;

    /// Returns once the mailbox may hold a message after `after`, or after `timeout`. A hint: the
    /// caller reads again in either case.
    fn changed(&self, mailbox: Address, after: u64, timeout: Duration) -> BoxFuture<'_, ()>;
}

/// Which messages to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// Only those with a higher sequence number. 0: from the oldest that is kept.
    pub after: u64,
    /// Only those sent later than this, by their own time.
    pub since: Option<Timestamp>,
    /// The newest of those that are left, instead of the oldest, where not all have room.
    pub newest: bool,
    /// At most this many.
    pub limit: usize,
    /// At most about this many bytes of text; one message is given however long it is.
    pub max_bytes: usize,
}

impl Default for ReadRequest {
    fn default() -> Self {
        Self { after: 0, since: None, newest: false, limit: 100, max_bytes: 4 * MAX_TEXT_BYTES }
    }
}

/// Messages of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The messages, oldest first.
    pub messages: Vec<Envelope>,
    /// Where to go on reading: the `after` of the next request. It is beyond messages that
    /// `since` left out, and not beyond any that had no room; of the newest, it is the last.
    /// Where the request's `after` lay beyond the end (the mailbox was cut or replaced), it is
    /// the end, so that whoever goes on reading gets what comes next.
    pub next: u64,
    /// Whether messages after `next` are there already.
    pub more: bool,
    /// The sequence number of the last message of the mailbox; 0 in an empty one.
    pub last: u64,
    /// How many records up to `next` could not be read: broken on the disk, or no message of this
    /// mailbox that this program knows. They are skipped.
    pub skipped: u64,
}

/// A message that is in its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Its id.
    pub id: MessageId,
    /// Its place in the mailbox.
    pub seq: u64,
    /// When it was published.
    pub sent_at: Timestamp,
}

/// How far somebody has read a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reader {
    /// The reader's name.
    pub reader: String,
    /// The last message it has read.
    pub through: u64,
    /// How many messages it has not read.
    pub unread: u64,
}
