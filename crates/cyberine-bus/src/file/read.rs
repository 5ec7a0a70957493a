//! Reading a mailbox: find the segment by its name, the place in it by halving, then only what
//! was asked for.

use cyberine_fs::{FileStatus, FsError, OpenFile, PrivateDir};
use cyberine_types::MessageId;

use super::segment::{Backwards, Lines, last_seq, locate};
use crate::address::Address;
use crate::envelope::Envelope;
use crate::names;
use crate::page::Collector;
use crate::port::{Page, ReadRequest};
use crate::record::{begins_with_id, checked};

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

/// One page of the mailbox.
pub(crate) fn page(dir: &PrivateDir, mailbox: &Address, request: ReadRequest) -> Result<Page, FsError> {
    let segments = segments(dir)?;
    let mut collector = Collector::new(request);
    let end = if request.newest {
        newest(dir, mailbox, &segments, &mut collector)?
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
    let after = collector.request().after;
    let mut last = None;
    let start = segments.partition_point(|first| *first <= after.saturating_add(1)).saturating_sub(1);
    for (index, first) in segments.iter().enumerate().skip(start) {
        let Some((file, length)) = open(dir, *first)? else { continue };
        let offset = if index == start { locate(&file, length, after)? } else { 0 };
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

/// As [`oldest`], from the end.
fn newest(
    dir: &PrivateDir,
    mailbox: &Address,
    segments: &[u64],
    collector: &mut Collector,
) -> Result<Option<u64>, FsError> {
    let after = collector.request().after;
    let mut last = None;
    for first in segments.iter().rev() {
        let Some((file, length)) = open(dir, *first)? else { continue };
        let mut lines = Backwards::new(&file, length).large();
        lines.next()?;
        while let Some(line) = lines.next()? {
            match read(line, mailbox) {
                Read::Message(envelope, follows_broken) => {
                    last = last.or(Some(envelope.seq));
                    if envelope.seq <= after || !collector.offer(*envelope) {
                        return Ok(last);
                    }
                    if follows_broken {
                        collector.broken();
                    }
                }
                Read::Nothing => {}
                Read::Broken => collector.broken(),
            }
        }
    }
    Ok(last)
}

/// What a line holds.
enum Read {
    /// A message, and whether the rest of a broken one stands before it.
    Message(Box<Envelope>, bool),
    /// The end of a segment, or of a torn record.
    Nothing,
    Broken,
}

fn read(line: &[u8], mailbox: &Address) -> Read {
    let record = checked(line);
    match record.and_then(|record| Some((record.message_of(mailbox)?, record.follows_broken))) {
        Some((envelope, follows_broken)) => Read::Message(Box::new(envelope), follows_broken),
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
