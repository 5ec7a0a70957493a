//! Lines out of a stream of bytes, bounded.

/// Splits a stream into lines. A line beyond the limit is dropped and counted; the next is read.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    limit: usize,
    line: Vec<u8>,
    overlong: bool,
    dropped: usize,
}

impl LineSplitter {
    /// A splitter for lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), overlong: false, dropped: 0 }
    }

    /// Takes the next bytes and hands every line they complete, without its end, to `each`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Vec<u8>>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.end(out);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// Ends the input: what is left is a line.
    pub(crate) fn finish(&mut self, out: &mut Vec<Vec<u8>>) {
        self.end(out);
    }

    /// How many lines were too long.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.overlong || self.line.len() + bytes.len() > self.limit {
            self.overlong = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, out: &mut Vec<Vec<u8>>) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.overlong) {
            self.dropped += 1;
        } else if !line.trim_ascii().is_empty() {
            out.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlong_line_is_dropped_and_its_neighbours_kept() {
        let (mut splitter, mut out) = (LineSplitter::new(4), Vec::new());
        for piece in ["ab\r\n12", "345", "67\n\n", "cd\nlast"] {
            splitter.push(piece.as_bytes(), &mut out);
        }
        splitter.finish(&mut out);
        assert_eq!(out, [b"ab\r".to_vec(), b"cd".to_vec(), b"last".to_vec()]);
        assert_eq!(splitter.dropped(), 1);
    }
}
