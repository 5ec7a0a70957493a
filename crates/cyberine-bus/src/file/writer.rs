//! The end of a mailbox, where messages are put.

use cyberine_fs::{FileStatus, FsError, OpenFile, PrivateDir};
use cyberine_types::Timestamp;

use super::read;
use super::readers;
use super::segment::tail;
use crate::names;
use crate::record::checked;

/// From this size or this many records on, a segment is followed by another.
pub(crate) const SEGMENT_BYTES: u64 = 1 << 20;
pub(crate) const SEGMENT_RECORDS: u64 = 4096;

/// The last segment of a mailbox, open, and what its next record needs to know. Only whoever
/// holds the mailbox's lock and the file's may rely on it, and only after [`Writer::is_current`].
pub(crate) struct Writer {
    pub(crate) file: OpenFile,
    name: String,
    first: u64,
    status: FileStatus,
    /// The last sequence number that was given away.
    pub(crate) last: u64,
    /// When the last message was published.
    pub(crate) sent_at: Option<Timestamp>,
    /// What must be written before the next record.
    pub(crate) repair: &'static [u8],
    /// Whether it is not the mailbox's only segment.
    pub(crate) has_older: bool,
}

impl Writer {
    /// Opens the end of the mailbox in `dir`, and begins its first segment where it has none.
    /// Numbers up to `used` are not given away again. `sync_parents` makes the names of the
    /// directories above safe before the first byte is written: a byte in a file says that they are.
    pub(crate) fn open(
        dir: &PrivateDir,
        used: u64,
        sync_parents: impl FnOnce() -> Result<(), FsError>,
    ) -> Result<Self, FsError> {
        let segments = read::segments(dir)?;
        let Some(first) = segments.last().copied() else {
            let first = used.max(furthest(dir)?) + 1;
            let writer = Self::begin(dir, first, None, false)?;
            sync_parents()?;
            return Ok(writer);
        };
        let name = names::segment(first);
        let (file, _) = dir.open_log(&name)?;
        let status = file.status()?;
        let mut writer = Self {
            file,
            name,
            first,
            status,
            last: first - 1,
            sent_at: None,
            repair: b"",
            has_older: segments.len() > 1,
        };
        if status.length == 0 {
            // Whoever made it may have died before its name was safe.
            dir.sync_names()?;
            sync_parents()?;
        }
        writer.look(dir)?;
        if writer.sent_at.is_none() {
            let older = segments.iter().rev().skip(1).map(|first| read::last_sent(dir, *first));
            writer.sent_at = older.filter_map(Result::transpose).next().transpose()?;
        }
        writer.last = writer.last.max(used);
        Ok(writer)
    }

    /// Whether the file still is the mailbox's last segment, has the length it had, and is ours
    /// under one name: opening it anew tells what is wrong where it is not.
    pub(crate) fn is_current(&self, dir: &PrivateDir) -> Result<bool, FsError> {
        Ok(!self.status.is_linked && dir.status(&self.name)? == Some(self.status))
    }

    /// Whether no segment follows it.
    pub(crate) fn is_last(&self, dir: &PrivateDir) -> Result<bool, FsError> {
        Ok(read::segments(dir)?.last() == Some(&self.first))
    }

    /// Puts `bytes`, which hold records up to `last`, at the end.
    pub(crate) fn append(&mut self, bytes: &[u8], last: u64, sent_at: Timestamp) -> Result<(), FsError> {
        self.file.append(self.status.length, bytes)?;
        self.status.length += bytes.len() as u64;
        (self.last, self.sent_at, self.repair) = (last, Some(sent_at), b"");
        Ok(())
    }

    /// Whether the segment is long enough.
    pub(crate) fn is_full(&self) -> bool {
        self.status.length >= SEGMENT_BYTES || self.last + 1 - self.first >= SEGMENT_RECORDS
    }

    /// Begins the next segment. The old one gets an empty line, by whose length whoever has it
    /// open sees that it no longer is the last.
    pub(crate) fn rotate(self, dir: &PrivateDir) -> Result<Self, FsError> {
        self.file.append(self.status.length, &[self.repair, b"\n"].concat())?;
        Self::begin(dir, self.last + 1, self.sent_at, true)
    }

    fn begin(
        dir: &PrivateDir,
        first: u64,
        sent_at: Option<Timestamp>,
        has_older: bool,
    ) -> Result<Self, FsError> {
        let name = names::segment(first);
        let (file, _) = dir.open_log(&name)?;
        dir.sync_names()?;
        let status = file.status()?;
        Ok(Self { file, name, first, status, last: first - 1, sent_at, repair: b"", has_older })
    }

    /// Learns from the end of the file what the next record needs to know.
    fn look(&mut self, dir: &PrivateDir) -> Result<(), FsError> {
        let tail = tail(&self.file, self.status.length)?;
        self.repair = tail.repair;
        self.last = match tail.seq {
            Some(seq) => seq,
            // Nothing in here tells: readers may know of more than there is.
            None => (self.first - 1 + tail.lost).max(furthest(dir)?),
        };
        self.sent_at = tail.last.as_deref().and_then(checked).and_then(|record| record.sent_at());
        Ok(())
    }
}

/// How far the mailbox's readers say that they have read.
fn furthest(dir: &PrivateDir) -> Result<u64, FsError> {
    Ok(readers::all(dir)?.iter().map(|mark| mark.through).max().unwrap_or(0))
}
