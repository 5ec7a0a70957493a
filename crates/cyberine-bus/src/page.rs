//! What goes into one page of messages, and what a message is made of: the rules every bus keeps.

use cyberine_types::{Clock, Timestamp};

use crate::address::MAX_ID_BYTES;
use crate::envelope::{Envelope, MAX_LABEL_BYTES, MAX_TEXT_BYTES, Outgoing};
use crate::error::BusError;
use crate::port::{Page, ReadRequest};

/// A clock that went back by more than this is believed: it was wrong before.
const CLOCK_SLACK_MS: i64 = 60 * 60 * 1000;

/// Refuses what is too long.
pub(crate) fn check(message: &Outgoing) -> Result<(), BusError> {
    if message.text.len() > MAX_TEXT_BYTES {
        return Err(BusError::TooLong { length: message.text.len() });
    }
    let labels = [
        ("sender's name", message.from.id.as_str()),
        ("principal", message.sender.principal.as_str()),
        ("thread", message.thread.as_deref().unwrap_or_default()),
    ];
    match labels.into_iter().find(|(_, text)| text.len() > MAX_LABEL_BYTES) {
        Some((what, text)) => {
            Err(BusError::LabelTooLong { what, length: text.len(), limit: MAX_LABEL_BYTES })
        }
        None => Ok(()),
    }
}

/// Refuses what cannot name a reader.
pub(crate) fn check_reader(name: &str) -> Result<(), BusError> {
    if cyberine_types::is_blank(name) {
        return Err(BusError::NamelessReader);
    }
    if name.len() > MAX_ID_BYTES {
        let what = "reader's name";
        return Err(BusError::LabelTooLong { what, length: name.len(), limit: MAX_ID_BYTES });
    }
    Ok(())
}

/// The time of the next message: now, but later than the message before, so that whoever reads
/// by time misses none. A clock that went back by more than an hour is followed all the same.
pub(crate) fn stamp(clock: &dyn Clock, before: Option<Timestamp>) -> Timestamp {
    let now = clock.now();
    match before {
        Some(before) if before >= now && before.unix_ms() - now.unix_ms() <= CLOCK_SLACK_MS => {
            Timestamp::from_unix_ms(before.unix_ms() + 1)
        }
        _ => now,
    }
}

/// The message with its place and its time.
pub(crate) fn seal(message: Outgoing, seq: u64, sent_at: Timestamp) -> Envelope {
    Envelope {
        seq,
        id: message.id,
        to: message.to,
        from: message.from,
        sender: message.sender,
        topic: message.topic,
        text: message.text,
        sent_at,
        thread: message.thread,
        reply_to: message.reply_to,
        importance: message.importance,
        ack_required: message.ack_required,
    }
}

/// Fills a page with messages that are offered in order: oldest first, or newest first where the
/// newest are wanted.
pub(crate) struct Collector {
    request: ReadRequest,
    page: Page,
    bytes: usize,
    /// Broken records since the last good one.
    broken: u64,
}

impl Collector {
    pub(crate) fn new(request: ReadRequest) -> Self {
        Self { request, page: Page { next: request.after, ..Page::default() }, bytes: 0, broken: 0 }
    }

    /// A record that cannot be read. It counts once a message lies beyond it.
    pub(crate) fn broken(&mut self) {
        self.broken += 1;
    }

    /// A record that has a number and cannot be read: it counts, and reading goes on behind it.
    pub(crate) fn strange(&mut self, seq: u64) {
        self.page.skipped += std::mem::take(&mut self.broken) + 1;
        self.page.next = self.page.next.max(seq);
    }

    /// What was left out unread: everything up to a sequence number.
    pub(crate) fn left_out(&mut self, through: u64) {
        self.page.next = self.page.next.max(through);
    }

    /// Offers the next message; says whether there may be room for another. One without room is
    /// not taken, and is offered again to the next page.
    pub(crate) fn offer(&mut self, envelope: Envelope) -> bool {
        let wanted = self.request.since.is_none_or(|since| envelope.sent_at > since);
        if wanted {
            let bytes = self.bytes.saturating_add(envelope.text.len());
            let is_first = self.page.messages.is_empty();
            if self.page.messages.len() >= self.request.limit || (!is_first && bytes > self.request.max_bytes)
            {
                return false;
            }
            self.bytes = bytes;
        }
        self.page.skipped += std::mem::take(&mut self.broken);
        self.page.next = self.page.next.max(envelope.seq);
        if wanted {
            self.page.messages.push(envelope);
        }
        self.page.messages.len() < self.request.limit
    }

    /// The page of a mailbox whose last message is `last`.
    pub(crate) fn finish(mut self, last: u64) -> Page {
        self.page.last = last;
        if self.request.newest {
            self.page.messages.reverse();
            self.page.next = last;
        }
        self.page.next = self.page.next.min(last);
        self.page.more = self.page.next < last;
        self.page
    }

    pub(crate) fn request(&self) -> &ReadRequest {
        &self.request
    }
}
