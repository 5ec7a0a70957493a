//! A decoder of event streams (WHATWG HTML, section 9.2.6, "Interpreting an event stream"),
//! and the wires that are made of such streams.

mod wire;

pub(crate) use wire::{EventParser, SseWire};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SseEvent {
    /// The `event` field; empty where the stream names none.
    pub(crate) name: String,
    /// The `data` lines, joined by line feeds.
    pub(crate) data: String,
}

/// An event or a line is larger than the limit; the stream cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLarge;

/// Decodes a stream that arrives in pieces. Holds at most one line and one event, together never
/// more than twice the limit.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    /// A carriage return ended the last line: a line feed right after it belongs to it.
    after_return: bool,
    at_start: bool,
    foreign: Option<String>,
}

const BOM: &[u8] = b"\xef\xbb\xbf";
/// How much is kept of a line that no event stream would hold.
const FOREIGN_BYTES: usize = 4096;

impl SseDecoder {
    /// A decoder that refuses a line or an event of more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
            foreign: None,
        }
    }

    /// Takes the next bytes and appends the events they complete to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend_line(bytes);
            };
            self.extend_line(&bytes[..end])?;
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(out)?;
        }
        Ok(())
    }

    /// Ends the input. The specification drops what no blank line has ended; servers exist that
    /// leave the last blank line out, so it is handed over, and the caller judges whether it is whole.
    pub(crate) fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        self.dispatch(out);
        Ok(())
    }

    /// The first line that no event stream would hold, where there was one.
    pub(crate) fn foreign(&self) -> Option<&str> {
        self.foreign.as_deref()
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + bytes.len() > self.limit {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        let mut buffer = std::mem::take(&mut self.line);
        let mut line = &buffer[..];
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(out);
        } else {
            self.field(line)?;
        }
        buffer.clear();
        self.line = buffer;
        Ok(())
    }

    fn field(&mut self, line: &[u8]) -> Result<(), EventTooLarge> {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => return self.append_data(value),
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // A comment, and two fields that only matter to a client that reconnects.
            b"" | b"id" | b"retry" => {}
            _ if self.foreign.is_none() => {
                let start = &line[..line.len().min(FOREIGN_BYTES)];
                self.foreign = Some(String::from_utf8_lossy(start).into_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn append_data(&mut self, value: &[u8]) -> Result<(), EventTooLarge> {
        if self.data.len() + value.len() + 1 > self.limit {
            return Err(EventTooLarge);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch(&mut self, out: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.has_data) {
            out.push(SseEvent { name, data: String::from_utf8_lossy(&self.data).into_owned() });
            self.data.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.to_owned(), data: data.to_owned() }
    }

    fn decode(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let (mut decoder, mut out) = (SseDecoder::new(1024), Vec::new());
        for piece in pieces {
            decoder.push(piece, &mut out).unwrap();
        }
        out
    }

    fn check(stream: &str, expected: &[SseEvent]) {
        let bytes = stream.as_bytes();
        for cut in 0..=bytes.len() {
            assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), expected, "{stream:?} cut at {cut}");
        }
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn the_forms_of_the_specification_are_read() {
        check("data: YHOO\ndata: +2\ndata: 10\n\n", &[event("", "YHOO\n+2\n10")]);
        check(
            ": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n",
            &[event("", "first"), event("", "second"), event("", " third")],
        );
        check("data\n\ndata\ndata\n\ndata:", &[event("", ""), event("", "\n")]);
        check("event: ping\n\nevent: a\ndata: é🦉\n\n", &[event("a", "é🦉")]);
    }

    #[test]
    fn every_line_ending_and_a_byte_order_mark_are_taken() {
        check(
            "\u{feff}data: a\r\n\r\ndata: b\r\rdata: c\n\n",
            &[event("", "a"), event("", "b"), event("", "c")],
        );
        check("data: a\r\ndata: b\r\n\r\n", &[event("", "a\nb")]);
    }

    #[test]
    fn an_event_without_its_blank_line_comes_at_the_end_only() {
        let (mut decoder, mut out) = (SseDecoder::new(64), Vec::new());
        decoder.push(b"data: [DONE]", &mut out).unwrap();
        assert_eq!(out, []);
        decoder.finish(&mut out).unwrap();
        assert_eq!(out, [event("", "[DONE]")]);
    }

    #[test]
    fn a_line_or_an_event_beyond_the_limit_is_refused() {
        let mut out = Vec::new();
        let mut decoder = SseDecoder::new(16);
        assert_eq!(decoder.push(b"data: 0123456789a", &mut out), Err(EventTooLarge));
        let mut decoder = SseDecoder::new(16);
        assert_eq!(decoder.push(b"data: 01234567\ndata: 01234567\n\n", &mut out), Err(EventTooLarge));
        assert_eq!(out, []);
    }

    #[test]
    fn what_is_no_event_stream_is_remembered() {
        let (mut decoder, mut out) = (SseDecoder::new(64), Vec::new());
        decoder.push(b"<html>\n<body>\n", &mut out).unwrap();
        assert_eq!((decoder.foreign(), out), (Some("<html>"), vec![]));
    }

    #[test]
    fn broken_utf_8_is_replaced() {
        assert_eq!(decode(&[b"data: a\xff\n\n"]), [event("", "a\u{fffd}")]);
    }
}
