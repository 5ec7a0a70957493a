//! Reading one file of records: forwards from an offset, backwards from the end, and the place of
//! a sequence number in it.

use cyberine_fs::{FsError, OpenFile};
use cyberine_types::Timestamp;
use memchr::{memchr, memrchr};

use crate::record::{CANCEL, Record, checked, exactly};

const CHUNK: usize = 64 << 10;
const SMALL_CHUNK: usize = 4 << 10;
/// Longer than any record: a text of [`MAX_TEXT_BYTES`](crate::MAX_TEXT_BYTES) whose every byte is
/// escaped, and what stands around it. What is longer is no record and is not kept in memory.
const LONGEST_LINE: usize = 8 << 20;

/// One line, without its line feed.
pub(crate) struct Line<'a> {
    /// Where it begins.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

/// The finished lines of a file, forwards. What stands behind the last line feed is being written,
/// or torn, and is not given.
pub(crate) struct Lines<'f> {
    file: &'f OpenFile,
    buffer: Vec<u8>,
    /// How much of the buffer was given.
    given: usize,
    /// How much of it was looked through for a line feed.
    searched: usize,
    /// Where the buffer's beginning lies in the file.
    base: u64,
    /// Where reading ends.
    end: u64,
    chunk: usize,
}

impl<'f> Lines<'f> {
    /// The lines between two offsets, the first of which begins a line.
    pub(crate) fn between(file: &'f OpenFile, start: u64, end: u64) -> Self {
        Self { file, buffer: Vec::new(), given: 0, searched: 0, base: start, end, chunk: CHUNK }
    }

    fn small(mut self) -> Self {
        self.chunk = SMALL_CHUNK;
        self
    }

    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, FsError> {
        loop {
            if let Some(found) = memchr(b'\n', &self.buffer[self.searched..]) {
                let (start, end) = (self.given, self.searched + found);
                (self.given, self.searched) = (end + 1, end + 1);
                let offset = self.base + start as u64;
                return Ok(Some(Line { offset, bytes: &self.buffer[start..end] }));
            }
            self.searched = self.buffer.len();
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Where the next line begins.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.given as u64
    }

    /// Whether bytes without a line feed were left at the end.
    pub(crate) fn has_rest(&self) -> bool {
        self.given < self.buffer.len()
    }

    fn fill(&mut self) -> Result<bool, FsError> {
        let kept = self.buffer.len() - self.given;
        let dropped = if kept > LONGEST_LINE { self.buffer.len() } else { self.given };
        self.buffer.drain(..dropped);
        self.base += dropped as u64;
        (self.given, self.searched) = (0, self.buffer.len());
        let at = self.base + self.buffer.len() as u64;
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = self.chunk.max(self.buffer.len()).min(left);
        Ok(wanted > 0 && self.file.read_at(at, wanted, &mut self.buffer)? > 0)
    }
}

/// The lines of a file, the last one first.
pub(crate) struct Backwards<'f> {
    file: &'f OpenFile,
    buffer: Vec<u8>,
    /// Where the buffer's beginning lies in the file.
    base: u64,
    /// The end of what was not given yet.
    left: usize,
    /// Whether what was not given ends with the line feed of its last line.
    is_ended: bool,
    is_over: bool,
    chunk: usize,
}

impl<'f> Backwards<'f> {
    /// From the end of a file of `length` bytes.
    pub(crate) fn new(file: &'f OpenFile, length: u64) -> Self {
        let (buffer, chunk) = (Vec::new(), SMALL_CHUNK);
        Self { file, buffer, base: length, left: 0, is_ended: false, is_over: false, chunk }
    }

    /// For whoever wants more than the last line or two.
    pub(crate) fn large(mut self) -> Self {
        self.chunk = CHUNK / 4;
        self
    }

    /// The line before. The first one given is what stands behind the last line feed, and empty
    /// in a sound file.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, FsError> {
        if self.is_over {
            return Ok(None);
        }
        loop {
            let end = self.left - usize::from(self.is_ended);
            if let Some(found) = memrchr(b'\n', &self.buffer[..end]) {
                (self.left, self.is_ended) = (found + 1, true);
                return Ok(Some(&self.buffer[found + 1..end]));
            }
            if self.base == 0 {
                self.is_over = true;
                return Ok(Some(&self.buffer[..end]));
            }
            self.extend()?;
        }
    }

    fn extend(&mut self) -> Result<(), FsError> {
        if self.left > LONGEST_LINE {
            (self.left, self.is_ended) = (0, false);
        }
        self.buffer.truncate(self.left);
        let wanted = self.chunk.max(self.left) as u64;
        let start = self.base.saturating_sub(wanted);
        let mut front = Vec::new();
        let length = usize::try_from(self.base - start).unwrap_or(usize::MAX);
        // A file that was cut meanwhile has nothing there: what remains is read as it is.
        self.file.read_at(start, length, &mut front)?;
        self.left += front.len();
        front.append(&mut self.buffer);
        (self.buffer, self.base) = (front, start);
        Ok(())
    }
}

/// What is looked for in a file of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought {
    /// A sequence number.
    pub(crate) after: u64,
    /// A time, where the records are in its order too.
    pub(crate) since: Option<Timestamp>,
}

impl Sought {
    /// Whether a record comes before what is sought; `None` where it does not tell.
    fn is_behind(&self, record: &Record<'_>) -> Option<bool> {
        match self.since {
            Some(since) if record.seq > self.after => record.sent_at().map(|sent_at| sent_at <= since),
            _ => Some(record.seq <= self.after),
        }
    }

    /// Whether all that is in the file comes before, as far as its first record tells.
    pub(crate) fn is_behind_first(&self, file: &OpenFile, length: u64) -> Result<bool, FsError> {
        let mut lines = Lines::between(file, 0, length).small();
        while let Some(line) = lines.next()? {
            if let Some(is_behind) = checked(line.bytes).and_then(|record| self.is_behind(&record)) {
                return Ok(is_behind);
            }
        }
        Ok(false)
    }
}

/// Where what is sought begins in a file of `length` bytes, and the number of the last record
/// before it where there is one: behind the last record that comes before it.
pub(crate) fn locate(file: &OpenFile, length: u64, sought: &Sought) -> Result<(u64, Option<u64>), FsError> {
    let told = |line: Line<'_>| {
        let record = checked(line.bytes)?;
        sought.is_behind(&record).map(|is_behind| (record.seq, is_behind))
    };
    let (mut low, mut high, mut last) = (0, length, None);
    // A record that begins before `high` may end behind it: `low` can pass.
    while high.saturating_sub(low) > SMALL_CHUNK as u64 {
        let middle = low + (high - low) / 2;
        // From the byte before: where that is a line feed, a line begins at the middle.
        let mut lines = Lines::between(file, middle - 1, length).small();
        lines.next()?;
        let mut found = None;
        while lines.offset() < high
            && found.is_none()
            && let Some(line) = lines.next()?
        {
            found = told(line);
        }
        match found {
            Some((seq, true)) => (low, last) = (lines.offset(), Some(seq)),
            _ => high = middle,
        }
    }
    let mut lines = Lines::between(file, low, length).small();
    let mut behind = low;
    while let Some(line) = lines.next()? {
        match told(line) {
            Some((seq, true)) => (behind, last) = (lines.offset(), Some(seq)),
            Some(_) => break,
            None => {}
        }
    }
    Ok((behind, last))
}

/// The end of a file of records, as its next writer needs it.
pub(crate) struct Tail {
    /// The last record whose checksum holds.
    pub(crate) last: Option<Vec<u8>>,
    /// The last sequence number that may have been acknowledged, where the file tells.
    pub(crate) seq: Option<u64>,
    /// How many lines behind the last good record may have been acknowledged.
    pub(crate) lost: u64,
    /// What must be written before the next record.
    pub(crate) repair: &'static [u8],
    /// Whether it ends as one does that another follows: with an empty line.
    pub(crate) is_closed: bool,
}

/// Looks at the end of a file of `length` bytes.
///
/// A whole line that is broken may have been acknowledged before it broke, so its number is used
/// up. A torn one never was: the writer that finds it ends it with [`CANCEL`], by which it is
/// known from then on, and gives its number to the next record. A record that lacks its line feed
/// only is whole, and gets it.
pub(crate) fn tail(file: &OpenFile, length: u64) -> Result<Tail, FsError> {
    const CANCELLED: &[u8] = &[CANCEL, b'\n'];
    let mut lines = Backwards::new(file, length);
    let mut tail = Tail { last: None, seq: None, lost: 0, repair: b"", is_closed: false };
    if let Some(rest) = lines.next()?
        && !rest.is_empty()
    {
        if let Some(record) = checked(rest) {
            tail.repair = b"\n";
            tail.seq = Some(record.seq);
            tail.last = Some(record.bytes.to_vec());
            return Ok(tail);
        }
        tail.repair = CANCELLED;
        // Only its line feed is broken: it was whole once.
        tail.lost += u64::from(exactly(&rest[..rest.len() - 1]).is_some());
    }
    while let Some(line) = lines.next()? {
        if let Some(record) = checked(line) {
            tail.seq = Some(record.seq + tail.lost);
            tail.last = Some(record.bytes.to_vec());
            return Ok(tail);
        }
        tail.is_closed |= line.is_empty();
        tail.lost += u64::from(!line.is_empty() && line.last() != Some(&CANCEL));
    }
    Ok(tail)
}

/// The sequence number of the last good record of a file of `length` bytes.
pub(crate) fn last_seq(file: &OpenFile, length: u64) -> Result<Option<u64>, FsError> {
    let mut lines = Backwards::new(file, length);
    // What is not ended is not there yet.
    lines.next()?;
    while let Some(line) = lines.next()? {
        if let Some(record) = checked(line) {
            return Ok(Some(record.seq));
        }
    }
    Ok(None)
}
