//! Splits a byte stream into lines, within bounded memory.

use std::io::{self, BufRead};

/// What the buffer holds between large lines.
const USUAL: usize = 64 * 1024;

/// One line of the stream, without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A line to serve.
    Whole(&'a [u8]),
    /// A line over the limit went by; its bytes were not kept.
    TooLong,
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
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: vec![0; USUAL], start: 0, scanned: 0, end: 0, limit, skipping: false }
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
        let overlong = std::mem::take(&mut self.skipping) || line.len() > self.limit;
        Some(if overlong { Line::TooLong } else { Line::Whole(&self.buffer[line]) })
    }

    /// What is left at the end of the stream, without a line feed.
    pub(crate) fn last(&mut self) -> Option<Line<'_>> {
        let line = self.start..self.end;
        (self.start, self.scanned) = (self.end, self.end);
        match (std::mem::take(&mut self.skipping), line.is_empty()) {
            (true, _) => Some(Line::TooLong),
            (false, true) => None,
            (false, false) => Some(Line::Whole(&self.buffer[line])),
        }
    }

    /// Forgets the bytes of a line that has grown too long, up to its end.
    fn drop_overlong(&mut self) {
        if self.skipping || self.end - self.start > self.limit {
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

    const MAX_LINE: usize = 4 * 1024 * 1024;

    /// Feeds `bytes` in pieces of `step` and gives back what comes out: text, or `None` for a
    /// line that was too long.
    fn lines_of(bytes: &[u8], step: usize) -> (Vec<Option<Vec<u8>>>, usize) {
        fn keep(line: Line<'_>) -> Option<Vec<u8>> {
            match line {
                Line::Whole(text) => Some(text.to_vec()),
                Line::TooLong => None,
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
