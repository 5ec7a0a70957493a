//! Splits a byte stream into lines, within bounded memory.

use std::io::{self, BufRead};
use std::ops::Range;

use cyberine_protocol::ServerSession;

/// What the buffer holds between large lines.
const USUAL: usize = 64 * 1024;

/// One line of the stream, without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A line to serve.
    Whole(&'a [u8]),
    /// A line over the limit went by; only its first and its last bytes were kept.
    TooLong {
        /// The first ones, at most [`ServerSession::ENDS`].
        start: &'a [u8],
        /// The last ones, as many.
        end: &'a [u8],
    },
}

/// The lines of a byte stream. Holds at most one line and what was read behind it; goes back to
/// 64 KiB after a larger one.
pub(crate) struct Lines {
    /// Every byte is initialised; those in `start..end` are of the stream.
    buffer: Vec<u8>,
    start: usize,
    /// No line feed stands before this place.
    scanned: usize,
    end: usize,
    /// The longest line served, without its end.
    limit: usize,
    skipping: bool,
    ends: Ends,
}

/// The ends of a line that is too long to keep.
#[derive(Default)]
struct Ends {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl Ends {
    const KEPT: usize = ServerSession::ENDS;

    /// Takes in the next bytes of the line.
    fn extend(&mut self, bytes: &[u8]) {
        let missing = Self::KEPT - self.start.len();
        self.start.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        let last = &bytes[bytes.len().saturating_sub(Self::KEPT)..];
        let surplus = (self.end.len() + last.len()).saturating_sub(Self::KEPT);
        self.end.drain(..surplus);
        self.end.extend_from_slice(last);
    }

    fn clear(&mut self) {
        self.start.clear();
        self.end.clear();
    }

    fn line(&self) -> Line<'_> {
        Line::TooLong { start: &self.start, end: &self.end }
    }
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: vec![0; USUAL],
            start: 0,
            scanned: 0,
            end: 0,
            limit,
            skipping: false,
            ends: Ends::default(),
        }
    }

    /// Where to read more bytes to; never empty. Call [`filled`](Self::filled) afterwards.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end && self.buffer.len() > USUAL {
            self.buffer = vec![0; USUAL];
            (self.start, self.scanned, self.end) = (0, 0, 0);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.scanned, self.end, self.start) = (self.scanned - self.start, self.end - self.start, 0);
        }
        if self.end == self.buffer.len() {
            let wanted = (self.buffer.len() * 2).min(self.limit + USUAL);
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Takes note of `count` bytes read to [`space`](Self::space).
    pub(crate) fn filled(&mut self, count: usize) {
        self.end += count;
    }

    /// The next line, where the buffer holds all of it.
    pub(crate) fn next(&mut self) -> Option<Line<'_>> {
        let mut rest = &self.buffer[self.scanned..self.end];
        // Reading from a slice cannot fail.
        self.scanned += rest.skip_until(b'\n').unwrap_or(0);
        if self.scanned == self.start || self.buffer[self.scanned - 1] != b'\n' {
            self.drop_overlong();
            return None;
        }
        let line = self.start..self.scanned - 1;
        self.start = self.scanned;
        if self.skipping || line.len() > self.limit {
            return Some(self.overlong(line));
        }
        Some(Line::Whole(&self.buffer[line]))
    }

    /// What is left at the end of the stream, without a line feed.
    pub(crate) fn last(&mut self) -> Option<Line<'_>> {
        let line = self.start..self.end;
        (self.start, self.scanned) = (self.end, self.end);
        match (self.skipping, line.is_empty()) {
            (true, _) => Some(self.overlong(line)),
            (false, true) => None,
            (false, false) => Some(Line::Whole(&self.buffer[line])),
        }
    }

    /// What is kept of a line that is too long, whose last bytes in the buffer are these.
    fn overlong(&mut self, rest: Range<usize>) -> Line<'_> {
        if !std::mem::take(&mut self.skipping) {
            self.ends.clear();
        }
        self.ends.extend(&self.buffer[rest]);
        self.ends.line()
    }

    /// Forgets the bytes of a line that has grown too long, up to its end, but for its ends.
    fn drop_overlong(&mut self) {
        if self.skipping || self.end - self.start > self.limit {
            if !self.skipping {
                self.ends.clear();
            }
            self.ends.extend(&self.buffer[self.start..self.end]);
            self.skipping = true;
            (self.start, self.scanned, self.end) = (0, 0, 0);
        }
    }
}

/// Reads from a blocking stream once; `Ok(0)` is its end.
pub(crate) fn fill(
    lines: &mut Lines,
    read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let count = read(lines.space())?;
    lines.filled(count);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_LINE: usize = cyberine_protocol::strict::FRAME_LIMIT;

    /// Feeds `bytes` in pieces of `step` and gives back what comes out: text, or `None` for a
    /// line that was too long.
    fn lines_of(bytes: &[u8], step: usize) -> (Vec<Option<Vec<u8>>>, usize) {
        fn keep(line: Line<'_>) -> Option<Vec<u8>> {
            match line {
                Line::Whole(text) => Some(text.to_vec()),
                Line::TooLong { .. } => None,
            }
        }
        let (mut lines, mut found, mut largest, mut rest) = (Lines::new(MAX_LINE), Vec::new(), 0, bytes);
        while !rest.is_empty() {
            fill(&mut lines, |space| {
                let count = step.min(rest.len()).min(space.len());
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                Ok(count)
            })
            .unwrap();
            largest = largest.max(lines.buffer.len());
            while let Some(line) = lines.next() {
                found.push(keep(line));
            }
        }
        found.extend(lines.last().map(keep));
        (found, largest)
    }

    #[test]
    fn lines_come_out_whole_however_the_bytes_arrive() {
        for step in [1, 2, 3, 7, 100] {
            let (found, _) = lines_of(b"one\n\n\ntwo\r\nthree", step);
            let texts: Vec<_> =
                found.into_iter().map(|line| String::from_utf8(line.unwrap()).unwrap()).collect();
            assert_eq!(texts, ["one", "", "", "two\r", "three"], "{step}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_within_bounded_memory() {
        let mut bytes = vec![b'x'; 20 * 1024 * 1024];
        bytes.extend_from_slice(b"\nnext\n");
        let (found, largest) = lines_of(&bytes, 1 << 16);
        assert_eq!(found, [None, Some(b"next".to_vec())]);
        assert!(largest <= MAX_LINE + 2 * USUAL, "{largest}");
        assert_eq!(lines_of(&bytes[..MAX_LINE + 1], 1 << 16).0, [None]);
    }

    #[test]
    fn the_ends_of_a_line_over_the_limit_are_kept_however_the_bytes_arrive() {
        let long: Vec<u8> = (0..3 * Ends::KEPT).map(|at| b'a' + u8::try_from(at % 23).unwrap()).collect();
        let short = &long[..90];
        let stream = [&long[..], b"\n", short, b"\nnext\n", short].concat();
        for step in [1, 7, 100, 5000, stream.len()] {
            let (mut lines, mut found) = (Lines::new(64), Vec::new());
            let mut keep = |line: Line<'_>| {
                found.push(match line {
                    Line::Whole(text) => (text.to_vec(), Vec::new()),
                    Line::TooLong { start, end } => (start.to_vec(), end.to_vec()),
                });
            };
            for piece in stream.chunks(step) {
                let space = lines.space();
                assert!(space.len() >= piece.len());
                space[..piece.len()].copy_from_slice(piece);
                lines.filled(piece.len());
                while let Some(line) = lines.next() {
                    keep(line);
                }
            }
            lines.last().into_iter().for_each(&mut keep);
            let ends = (long[..Ends::KEPT].to_vec(), long[long.len() - Ends::KEPT..].to_vec());
            let whole = (short.to_vec(), short.to_vec());
            assert_eq!(found, [ends, whole.clone(), (b"next".to_vec(), Vec::new()), whole], "{step}");
        }
    }

    #[test]
    fn the_limit_itself_is_served() {
        let mut bytes = vec![b'x'; MAX_LINE];
        bytes.push(b'\n');
        bytes.extend(vec![b'y'; MAX_LINE + 1]);
        bytes.push(b'\n');
        let (found, _) = lines_of(&bytes, 1 << 20);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].as_ref().map(Vec::len), &found[1]), (Some(MAX_LINE), &None));
    }

    #[test]
    fn the_buffer_shrinks_after_a_large_line() {
        let mut lines = Lines::new(MAX_LINE);
        let mut rest = 1_000_000;
        while rest > 0 {
            let count = lines.space().len().min(rest);
            lines.filled(count);
            rest -= count;
            assert_eq!(lines.next(), None);
        }
        lines.space()[0] = b'\n';
        lines.filled(1);
        assert!(matches!(lines.next(), Some(Line::Whole(text)) if text.len() == 1_000_000));
        assert!(lines.space().len() <= USUAL);
    }
}
