/// The longest id of an event that is kept, in bytes; a longer one is ignored.
const ID_LIMIT: usize = 1024;

/// How much room for a line is kept when it is over, in bytes.
const KEPT: usize = 64 * 1024;

/// Takes a stream of events apart, in pieces of any size.
///
/// ```
/// use cyberine_protocol::sse::SseDecoder;
///
/// let (mut decoder, mut events) = (SseDecoder::new(1024), Vec::new());
/// decoder.push(b"id: 7\ndata: {\"jsonrpc\"", &mut events)?;
/// assert!(events.is_empty());
/// decoder.push(b":\"2.0\"}\n\n", &mut events)?;
/// assert_eq!(events[0].data, br#"{"jsonrpc":"2.0"}"#);
/// assert_eq!(decoder.last_event_id(), "7");
/// # Ok::<(), cyberine_protocol::sse::SseError>(())
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    start: Start,
    /// The line that is not over yet.
    line: Vec<u8>,
    /// The last line ended with a carriage return, to which a line feed may belong.
    returned: bool,
    /// The data of the event that is not over yet, each line with a line feed behind it.
    data: Vec<u8>,
    kind: String,
    id: String,
    last_event_id: String,
    retry_ms: Option<u64>,
    foreign: Option<String>,
}

/// How much is kept of a line that no event stream would hold, in bytes.
const FOREIGN: usize = 4096;

/// How much of the byte order mark that a stream may begin with was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Mark(usize),
    Past,
}

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The data, its lines parted by line feeds; empty where the event carries an id alone.
    pub data: Vec<u8>,
    /// What kind it is; empty for a message, as is `message`.
    pub kind: String,
}

impl SseEvent {
    /// Whether it carries a message of the protocol.
    #[must_use]
    pub fn is_message(&self) -> bool {
        !self.data.is_empty() && matches!(&*self.kind, "" | "message")
    }
}

/// An event that is too long. The stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes")]
pub struct SseError {
    /// The limit.
    pub limit: usize,
}

impl SseDecoder {
    /// A decoder at the beginning of a stream, for events whose data, and whose single lines, are
    /// `limit` bytes long at most.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            start: Start::Mark(0),
            line: Vec::new(),
            returned: false,
            data: Vec::new(),
            kind: String::new(),
            id: String::new(),
            last_event_id: String::new(),
            retry_ms: None,
            foreign: None,
        }
    }

    /// The id to come back with: that of the last event that was whole. Empty where there was none.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// How long to wait before coming back, in milliseconds, if the server said so.
    #[must_use]
    pub const fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// The first line that no event stream would hold, or its beginning, where there was one: what comes
    /// may be something else.
    #[must_use]
    pub fn foreign(&self) -> Option<&str> {
        self.foreign.as_deref()
    }

    /// Takes the next bytes in and adds the events they complete to `out`. What is not complete when the
    /// stream ends is none.
    ///
    /// # Errors
    /// An event is too long; those before it count.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = self.past_mark(bytes)?;
        while let Some((&first, after)) = rest.split_first() {
            if std::mem::take(&mut self.returned) && first == b'\n' {
                rest = after;
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let part = &rest[..end.unwrap_or(rest.len())];
            self.keep(part)?;
            let Some(end) = end else { break };
            self.returned = rest[end] == b'\r';
            rest = &rest[end + 1..];
            out.extend(self.end_of_line()?);
        }
        Ok(())
    }

    /// Takes the end of the stream for that of the event that is not complete. The standard drops it;
    /// servers exist that leave the last blank line out, so whoever asks for it judges whether it is whole.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if !self.line.is_empty() {
            out.extend(self.end_of_line()?);
        }
        out.extend(self.end_of_event());
        Ok(())
    }

    /// Skips the byte order mark at the beginning of the stream.
    fn past_mark<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], SseError> {
        let mut rest = bytes;
        while let (Start::Mark(seen), Some((&first, after))) = (self.start, rest.split_first()) {
            if first == MARK[seen] {
                self.start = if seen + 1 < MARK.len() { Start::Mark(seen + 1) } else { Start::Past };
                rest = after;
            } else {
                self.start = Start::Past;
                self.keep(&MARK[..seen])?;
            }
        }
        Ok(rest)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), SseError> {
        // The longest name of a field, its colon and a space stand in front of the data.
        if self.line.len() + part.len() > self.limit.saturating_add(7) {
            return Err(SseError { limit: self.limit });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_of_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        if self.line.is_empty() {
            return Ok(self.end_of_event());
        }
        let line = std::mem::take(&mut self.line);
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if self.data.len() + value.len() > self.limit {
                    return Err(SseError { limit: self.limit });
                }
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= ID_LIMIT && !value.contains(&0) => {
                self.id = String::from_utf8_lossy(value).into_owned();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.retry_ms = number.or(self.retry_ms);
            }
            // A comment has no name; an id or a delay that is none changes nothing.
            b"" | b"id" | b"retry" => {}
            _ if self.foreign.is_none() => {
                let start = &line[..line.len().min(FOREIGN)];
                self.foreign = Some(String::from_utf8_lossy(start).into_owned());
            }
            _ => {}
        }
        self.line = line;
        self.line.clear();
        self.line.shrink_to(KEPT);
        Ok(None)
    }

    fn end_of_event(&mut self) -> Option<SseEvent> {
        self.last_event_id.clone_from(&self.id);
        let kind = std::mem::take(&mut self.kind);
        let mut data = std::mem::take(&mut self.data);
        data.pop()?;
        Some(SseEvent { data, kind })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a stream gives when it is read at once, and as often as it has bytes, cut in two.
    fn read(stream: &[u8]) -> (Vec<(String, String)>, String, Option<u64>) {
        let of = |parts: &[&[u8]]| {
            let mut decoder = SseDecoder::new(100);
            let mut events = Vec::new();
            for part in parts {
                decoder.push(part, &mut events).unwrap();
            }
            let text = |event: SseEvent| (event.kind, String::from_utf8(event.data).unwrap());
            let events = events.into_iter().map(text).collect::<Vec<_>>();
            (events, decoder.last_event_id().to_owned(), decoder.retry_ms())
        };
        let whole = of(&[stream]);
        for at in 0..=stream.len() {
            let (start, end) = stream.split_at(at);
            assert_eq!(of(&[start, end]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(of(&bytes), whole, "byte by byte");
        whole
    }

    fn data(stream: &str) -> Vec<String> {
        read(stream.as_bytes()).0.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn every_line_end_and_every_cut_gives_the_same_events() {
        for end in ["\n", "\r", "\r\n"] {
            let stream =
                "\u{feff}: hi\nid: 1\nevent: message\ndata: a\ndata:b\ndata\n\n\nretry: 30\ndata: ü\n\n";
            let (events, id, retry) = read(stream.replace('\n', end).as_bytes());
            let expected = [("message", "a\nb\n"), ("", "ü")];
            assert_eq!(events, expected.map(|(kind, data)| (kind.to_owned(), data.to_owned())));
            assert_eq!((&*id, retry), ("1", Some(30)));
        }
        assert_eq!(data("data: a\n\r\ndata: b\r\r"), ["a", "b"], "line ends may be mixed");
    }

    #[test]
    fn only_data_makes_an_event() {
        assert_eq!(data(":\n\n:\n\nevent: x\n\nid: 2\n\n"), [""; 0]);
        assert_eq!(data("id: 2\ndata:\n\n"), [""], "an id alone comes with empty data");
        assert_eq!(data("data:  two\n\n"), [" two"], "one space belongs to the field");
        assert_eq!(data("dat: a\nDATA: b\n data: c\n\n"), [""; 0]);
        assert_eq!(data("data: never ended"), [""; 0]);
        assert_eq!(data("data: never ended\n"), [""; 0]);
        assert_eq!(data("\u{feff}\u{feff}data: a\n\n"), [""; 0], "one mark is skipped");
    }

    #[test]
    fn ids_and_delays_that_are_none_change_nothing() {
        let last = |stream: &str| read(stream.as_bytes()).1;
        assert_eq!(last("id: 1\ndata: a\n\nid: x\0y\ndata: b\n\n"), "1");
        assert_eq!(last("id: 1\ndata: a\n\ndata: b\n\n"), "1", "an id stays");
        assert_eq!(last("id: 1\ndata: a\n\nid\ndata: b\n\n"), "", "an empty one takes it back");
        assert_eq!(last("id: 1\ndata: a\n\nid: 2\ndata: b\n"), "1", "an event that never ended has none");
        for wrong in ["", "-1", "1.5", "5s", "  5", "٥", "99999999999999999999999"] {
            assert_eq!(read(format!("retry: 7\nretry:{wrong}\n\n").as_bytes()).2, Some(7), "{wrong}");
        }
    }

    #[test]
    fn an_event_without_its_blank_line_comes_at_the_end_for_who_asks() {
        let (mut decoder, mut out) = (SseDecoder::new(64), Vec::new());
        decoder.push(b"data: [DONE]", &mut out).unwrap();
        assert_eq!(out, []);
        decoder.finish(&mut out).unwrap();
        assert_eq!(out, [SseEvent { data: b"[DONE]".to_vec(), kind: String::new() }]);
    }

    #[test]
    fn what_is_no_event_stream_is_remembered() {
        let (mut decoder, mut out) = (SseDecoder::new(64), Vec::new());
        decoder.push(b": a comment\nid: x\0\nretry: soon\n<html>\n<body>\n", &mut out).unwrap();
        assert_eq!((decoder.foreign(), out), (Some("<html>"), vec![]));
    }

    #[test]
    fn what_is_too_long_is_refused_and_kept_nowhere() {
        let (mut decoder, mut events) = (SseDecoder::new(8), Vec::new());
        assert!(decoder.push(b"data: 12345678\n\ndata: 123456789\n", &mut events).is_err());
        assert_eq!(events.len(), 1, "what came before counts");
        for stream in ["data: 123456789\n", ":comment that does not end", "data: 1234\ndata: 5678\n"] {
            let mut decoder = SseDecoder::new(8);
            assert_eq!(
                decoder.push(stream.as_bytes(), &mut Vec::new()),
                Err(SseError { limit: 8 }),
                "{stream}"
            );
        }
        let mut endless = SseDecoder::new(8);
        assert!((0..100).any(|_| endless.push(b"data:\n", &mut Vec::new()).is_err()), "line feeds count too");
    }

    proptest! {
        #[test]
        fn no_stream_makes_it_panic(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(0xef), any::<u8>()], 0..80),
        ) {
            let mut decoder = SseDecoder::new(32);
            let mut at_once = SseDecoder::new(32);
            let (mut pieces, mut whole) = (Vec::new(), Vec::new());
            let outcome = bytes.chunks(3).try_for_each(|part| decoder.push(part, &mut pieces));
            prop_assert_eq!(outcome, at_once.push(&bytes, &mut whole));
            prop_assert_eq!(pieces, whole);
        }
    }
}
