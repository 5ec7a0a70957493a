//! One message as a line of a mailbox file.
//!
//! A line is the envelope as JSON, its last member a CRC-32 of everything before that member:
//! `{"seq":1,…,"crc":"89abcdef"}`. JSON escapes every control character, so a line feed ends a
//! record and nothing else, and the byte [`CANCEL`] is in none.

use cyberine_types::Timestamp;
use serde::Deserialize;

use crate::address::Address;
use crate::envelope::Envelope;

/// Ends a torn record, before its line feed: it was never acknowledged, and its sequence number
/// is given to the next one.
pub(crate) const CANCEL: u8 = 0x18;

/// How every record begins. Within a text its quotes would be escaped, so it is nowhere else.
const START: &[u8] = b"{\"seq\":";
const TAIL_START: &[u8] = b",\"crc\":\"";
const TAIL_LENGTH: usize = TAIL_START.len() + 8 + 2;

/// Puts the envelope's line, with its line feed, behind what `into` holds.
pub(crate) fn encode(envelope: &Envelope, into: &mut Vec<u8>) -> serde_json::Result<()> {
    let start = into.len();
    if let Err(error) = serde_json::to_writer(&mut *into, envelope) {
        into.truncate(start);
        return Err(error);
    }
    into.pop();
    let sum = crc32fast::hash(&into[start..]);
    into.extend_from_slice(TAIL_START);
    into.extend_from_slice(format!("{sum:08x}\"}}\n").as_bytes());
    Ok(())
}

/// The record in `line`, without its line feed, where its checksum holds. What is left of a
/// broken record before it, as a lost line feed leaves it, does not harm it.
pub(crate) fn checked(line: &[u8]) -> Option<Record<'_>> {
    exactly(line).or_else(|| {
        let rest = line.get(1..)?;
        let start = memchr::memmem::rfind(rest, START)?;
        exactly(&rest[start..]).map(|record| Record { follows_broken: true, ..record })
    })
}

/// The record that `line` is, with nothing before or behind it.
pub(crate) fn exactly(line: &[u8]) -> Option<Record<'_>> {
    let (body, tail) = line.split_at_checked(line.len().checked_sub(TAIL_LENGTH)?)?;
    let digits = tail.strip_prefix(TAIL_START)?.strip_suffix(b"\"}")?;
    let sum = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    if digits.iter().any(u8::is_ascii_uppercase) || crc32fast::hash(body) != sum {
        return None;
    }
    let number = body.strip_prefix(START)?;
    let end = number.iter().position(|byte| !byte.is_ascii_digit())?;
    let seq = std::str::from_utf8(&number[..end]).ok()?.parse().ok()?;
    Some(Record { seq, bytes: line, follows_broken: false })
}

/// A line whose checksum holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its sequence number.
    pub(crate) seq: u64,
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// Whether the rest of a broken one stands before it in its line.
    pub(crate) follows_broken: bool,
}

/// What is read of a record to find a time.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    sent_at: Timestamp,
}

impl Record<'_> {
    /// The message in it.
    pub(crate) fn envelope(&self) -> Option<Envelope> {
        serde_json::from_slice(self.bytes).ok()
    }

    /// When the message in it was sent.
    pub(crate) fn sent_at(&self) -> Option<Timestamp> {
        serde_json::from_slice::<Sent>(self.bytes).ok().map(|sent| sent.sent_at)
    }

    /// The message in it, where it is one of `mailbox`.
    pub(crate) fn message_of(&self, mailbox: &Address) -> Option<Envelope> {
        self.envelope().filter(|envelope| envelope.to == *mailbox)
    }
}

/// Whether `line` begins as the record of the message `id` does. Its checksum was not looked at.
pub(crate) fn begins_with_id(line: &[u8], id: &str) -> bool {
    let Some(number) = line.strip_prefix(START) else { return false };
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = number[digits..].strip_prefix(b",\"id\":\"");
    rest.is_some_and(|rest| rest.starts_with(id.as_bytes()))
}
