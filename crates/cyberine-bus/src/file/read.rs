//! Reading a mailbox: find the segment by its name, the place in it by halving, then only what
//! was asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use cyberine_fs::{Durability, FileStatus, FsError, OpenFile, PrivateDir};
use cyberine_types::{MessageId, Timestamp};

use super::segment::{Backwards, Lines, Sought, last_seq, locate, tail};
use crate::address::Address;
use crate::envelope::Envelope;
use crate::names;
use crate::page::Collector;
use crate::port::{Page, ReadRequest};
use crate::record::{begins_with_id, checked};

/// There where the clock was followed back, so that the mailbox is not in the order of its times.
const UNORDERED: &str = "unordered";

/// The last segment, by which a change of the mailbox is seen.
pub(crate) struct Tip {
    dir: PrivateDir,
    name: String,
    status: FileStatus,
}

impl Tip {
    /// The tip of the mailbox in `dir`; `None` before its first message.
    pub(crate) fn of(dir: &PrivateDir) -> Result<Option<Self>, FsError> {
        let Some(first) = segments(dir)?.pop() else { return Ok(None) };
        let name = names::segment(first);
        let status = dir.status(&name)?;
        Ok(status.map(|status| Self { dir: dir.clone(), name, status }))
    }

    /// Whether it has not changed: one question to the system, which is not answered by the disk.
    pub(crate) fn is_same(&self) -> bool {
        self.dir.status(&self.name).is_ok_and(|status| status == Some(self.status))
    }
}

/// The first sequence numbers of the mailbox's segments, in order.
pub(crate) fn segments(dir: &PrivateDir) -> Result<Vec<u64>, FsError> {
    let names = dir.list(usize::MAX)?.names;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| names::segment_first(name)).collect();
    firsts.sort_unstable();
    Ok(firsts)
}

/// A segment and its length; `None` where retention has just removed it.
pub(crate) fn open(dir: &PrivateDir, first: u64) -> Result<Option<(OpenFile, u64)>, FsError> {
    let Some(file) = dir.open_file(&names::segment(first))? else { return Ok(None) };
    let length = file.status()?.length;
    Ok(Some((file, length)))
}

/// Where reading begins.
struct Begin {
    /// The segment.
    index: usize,
    /// The place in it.
    offset: u64,
    /// The last message that was left out, where one was met.
    left_out: Option<u64>,
}

impl Begin {
    /// The place of what is sought: the last segment whose first record comes before it, and in
    /// there behind the last such record.
    fn of(dir: &PrivateDir, segments: &[u64], sought: Sought) -> Result<Self, FsError> {
        let by_number = segments.partition_point(|first| *first <= sought.after.saturating_add(1));
        let (mut index, mut end) = (by_number.saturating_sub(1), segments.len());
        while sought.since.is_some() && end - index > 1 {
            let middle = index + (end - index) / 2;
            let is_behind = match open(dir, segments[middle])? {
                Some((file, length)) => sought.is_behind_first(&file, length)?,
                // Retention removes what is oldest.
                None => true,
            };
            *(if is_behind { &mut index } else { &mut end }) = middle;
        }
        let Some(first) = segments.get(index) else { return Ok(Self { index, offset: 0, left_out: None }) };
        let Some((file, length)) = open(dir, *first)? else {
            return Ok(Self { index, offset: 0, left_out: None });
        };
        let (offset, left_out) = locate(&file, length, &sought)?;
        Ok(Self { index, offset, left_out: left_out.filter(|seq| *seq > sought.after) })
    }
}

/// Whether no message of the mailbox was sent earlier, by its own time, than the one before it.
fn is_ordered(dir: &PrivateDir) -> Result<bool, FsError> {
    Ok(dir.status(UNORDERED)?.is_none())
}

/// Notes that a message will be earlier, by its own time, than the one before it.
pub(crate) fn mark_unordered(dir: &PrivateDir) -> Result<(), FsError> {
    if is_ordered(dir)? {
        dir.replace(UNORDERED, b"", Durability::Durable)?;
    }
    Ok(())
}

/// When the last readable message of a segment was sent.
pub(crate) fn last_sent(dir: &PrivateDir, first: u64) -> Result<Option<Timestamp>, FsError> {
    let Some((file, length)) = open(dir, first)? else { return Ok(None) };
    let tail = tail(&file, length)?;
    Ok(tail.last.as_deref().and_then(checked).and_then(|record| record.sent_at()))
}

/// One page of the mailbox. `known` is its last segment as far as this process knows: where that
/// still is the last and holds what is asked for, the others are not looked for.
pub(crate) fn page(
    dir: &PrivateDir,
    mailbox: &Address,
    request: ReadRequest,
    known: &AtomicU64,
) -> Result<Page, FsError> {
    let tip = known.load(Ordering::Relaxed);
    if request.newest && tip > 0 && is_last(dir, tip)? {
        let mut collector = Collector::new(request);
        if let (Some(last), true) = newest(dir, mailbox, &[tip], &mut collector)? {
            return Ok(collector.finish(last));
        }
    }
    let segments = segments(dir)?;
    known.store(segments.last().copied().unwrap_or(0), Ordering::Relaxed);
    let mut collector = Collector::new(request);
    let end = if request.newest {
        newest(dir, mailbox, &segments, &mut collector)?.0
    } else {
        oldest(dir, mailbox, &segments, &mut collector)?
    };
    let last = end.map_or_else(|| last(dir, &segments), Ok)?;
    Ok(collector.finish(last))
}

/// The sequence number of the last message; 0 where there was none ever.
pub(crate) fn last(dir: &PrivateDir, segments: &[u64]) -> Result<u64, FsError> {
    for first in segments.iter().rev() {
        if let Some((file, length)) = open(dir, *first)?
            && let Some(seq) = last_seq(&file, length)?
        {
            return Ok(seq);
        }
    }
    // Where all are broken or removed, their names tell how far the numbers had come.
    Ok(segments.last().map_or(0, |first| first.saturating_sub(1)))
}

/// Offers what comes after the cursor; says which message is the last where it has seen it.
fn oldest(
    dir: &PrivateDir,
    mailbox: &Address,
    segments: &[u64],
    collector: &mut Collector,
) -> Result<Option<u64>, FsError> {
    let ReadRequest { after, since, .. } = *collector.request();
    let mut begin = Begin::of(dir, segments, Sought { after, since })?;
    // Looked at behind the search: what came out of order in between counts.
    if begin.left_out.is_some() && !is_ordered(dir)? {
        begin = Begin::of(dir, segments, Sought { after, since: None })?;
    }
    if let Some(seq) = begin.left_out {
        // What is not beyond the cursor was left out by it.
        collector.left_out(seq);
    }
    let mut last = None;
    for (index, first) in segments.iter().enumerate().skip(begin.index) {
        let Some((file, length)) = open(dir, *first)? else { continue };
        let offset = if index == begin.index { begin.offset } else { 0 };
        let mut lines = Lines::between(&file, offset, length);
        while let Some(line) = lines.next()? {
            match read(line.bytes, mailbox) {
                Read::Message(envelope, _) if envelope.seq <= after => {}
                Read::Message(envelope, follows_broken) => {
                    if follows_broken {
                        collector.broken();
                    }
                    last = Some(envelope.seq);
                    if !collector.offer(*envelope) {
                        return Ok(None);
                    }
                }
                Read::Strange(seq) if seq <= after => {}
                Read::Strange(seq) => {
                    last = Some(seq);
                    collector.strange(seq);
                }
                Read::Nothing => {}
                Read::Broken => collector.broken(),
            }
        }
        if lines.has_rest() && index + 1 < segments.len() {
            collector.broken();
        }
    }
    Ok(last)
}

/// Whether nothing follows a segment, as far as its end tells. One that is not whole tells nothing.
fn is_last(dir: &PrivateDir, first: u64) -> Result<bool, FsError> {
    let Some((file, length)) = open(dir, first)? else { return Ok(false) };
    let tail = tail(&file, length)?;
    let is_open = !tail.is_closed && tail.lost == 0 && tail.repair.is_empty();
    match tail.seq.filter(|_| is_open) {
        Some(seq) => Ok(dir.status(&names::segment(seq + 1))?.is_none()),
        None => Ok(false),
    }
}

/// As [`oldest`], from the end; says, too, whether all that was asked for was found.
fn newest(
    dir: &PrivateDir,
    mailbox: &Address,
    segments: &[u64],
    collector: &mut Collector,
) -> Result<(Option<u64>, bool), FsError> {
    let ReadRequest { after, since, .. } = *collector.request();
    let mut last = None;
    let mut known = None;
    // Asked once, and not before there is something early.
    let mut ordered = |dir| match known {
        Some(known) => Ok(known),
        None => is_ordered(dir).inspect(|ordered| known = Some(*ordered)),
    };
    for first in segments.iter().rev() {
        let Some((file, length)) = open(dir, *first)? else { continue };
        let mut lines = Backwards::new(&file, length).large();
        lines.next()?;
        while let Some(line) = lines.next()? {
            match read(line, mailbox) {
                Read::Message(envelope, follows_broken) => {
                    last = last.or(Some(envelope.seq));
                    let is_early = since.is_some_and(|since| envelope.sent_at <= since);
                    if envelope.seq <= after || (is_early && ordered(dir)?) || !collector.offer(*envelope) {
                        return Ok((last, true));
                    }
                    if follows_broken {
                        collector.broken();
                    }
                }
                Read::Strange(seq) => {
                    last = last.or(Some(seq));
                    if seq > after {
                        collector.strange(seq);
                    }
                }
                Read::Nothing => {}
                Read::Broken => collector.broken(),
            }
        }
    }
    Ok((last, false))
}

/// What a line holds.
enum Read {
    /// A message, and whether the rest of a broken one stands before it.
    Message(Box<Envelope>, bool),
    /// A whole record that is no message of this mailbox: one of another, or of a newer program.
    Strange(u64),
    /// The end of a segment, or of a torn record.
    Nothing,
    Broken,
}

fn read(line: &[u8], mailbox: &Address) -> Read {
    match checked(line) {
        Some(record) => match record.message_of(mailbox) {
            Some(envelope) => Read::Message(Box::new(envelope), record.follows_broken),
            None => Read::Strange(record.seq),
        },
        None if line.is_empty() => Read::Nothing,
        None => Read::Broken,
    }
}

/// A message found by its id.
pub(crate) struct Found {
    pub(crate) envelope: Envelope,
    /// Its segment.
    pub(crate) first: u64,
    /// Where its record begins in there.
    pub(crate) offset: u64,
    /// The record, with its line feed.
    pub(crate) bytes: Vec<u8>,
}

/// Where a search for a message ended: everything before was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    first: u64,
    offset: u64,
}

impl Place {
    /// Behind the messages up to `after`; the beginning where the mailbox ends before that.
    pub(crate) fn behind(dir: &PrivateDir, after: u64) -> Result<Self, FsError> {
        let segments = segments(dir)?;
        if after == 0 || after > last(dir, &segments)? {
            return Ok(Self::default());
        }
        let Begin { index, offset, .. } = Begin::of(dir, &segments, Sought { after, since: None })?;
        Ok(segments.get(index).map_or_else(Self::default, |first| Self { first: *first, offset }))
    }
}

/// Looks for the message `id` from a place on; says where a search that found nothing ended.
pub(crate) fn find(
    dir: &PrivateDir,
    mailbox: &Address,
    id: &MessageId,
    from: Place,
) -> Result<(Option<Found>, Place), FsError> {
    let (id, mut end) = (id.to_string(), from);
    for first in segments(dir)?.into_iter().filter(|first| *first >= from.first) {
        let Some((file, length)) = open(dir, first)? else { continue };
        let start = if first == from.first { from.offset } else { 0 };
        let mut lines = Lines::between(&file, start, length);
        while let Some(line) = lines.next()? {
            if begins_with_id(line.bytes, &id)
                && let Some(record) = checked(line.bytes)
                && let Some(envelope) = record.message_of(mailbox)
            {
                let bytes = [record.bytes, b"\n"].concat();
                return Ok((Some(Found { envelope, first, offset: line.offset, bytes }), end));
            }
        }
        end = Place { first, offset: lines.offset() };
    }
    Ok((None, end))
}
