//! Messages out of a stream of bytes: one JSON value a line, bounded.

use serde_json::Value;

use crate::error::TurnError;
use crate::json;
use crate::quote::Quoter;
use crate::wire::{Wire, WireEvent};

/// A wire whose stream is one message a line, up to the one that ends the turn.
pub(crate) trait MessageWire: Wire {
    /// What splits its stream.
    fn lines(&mut self) -> &mut MessageLines;

    /// Takes one message.
    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError>;

    /// Takes the messages that `bytes` complete.
    fn read(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let mut messages = Vec::new();
        self.lines().push(bytes, &mut messages);
        self.take_all(messages, out)
    }

    /// Takes what the end of the stream completes.
    fn read_rest(&mut self, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let mut messages = Vec::new();
        self.lines().finish(&mut messages);
        self.take_all(messages, out)
    }

    /// What comes after the end of the turn is not looked at.
    fn take_all(
        &mut self,
        messages: Vec<Result<Value, TurnError>>,
        out: &mut Vec<WireEvent>,
    ) -> Result<(), TurnError> {
        for message in messages {
            if !self.is_over() {
                self.take(&message?, out)?;
            }
        }
        Ok(())
    }
}

/// Splits a stream into messages. A line that is none is passed over, such as a word of a library; one
/// that begins like a message and cannot be read, or is too long, is a failure: nobody knows what of
/// the answer is in it.
pub(crate) struct MessageLines {
    limit: usize,
    quoter: Quoter,
    line: Vec<u8>,
    overlong: bool,
    seen: usize,
}

impl MessageLines {
    /// A splitter for the messages of an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter) -> Self {
        let limit = crate::http::event_limit(answer_bytes);
        Self { limit, quoter, line: Vec::new(), overlong: false, seen: 0 }
    }

    /// Takes the next bytes and appends every message that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Result<Value, TurnError>>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end], out);
            let line = self.end();
            out.extend(message(&line, &self.quoter).transpose());
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, out);
    }

    /// Ends the input: what is left is a message if it is whole. Where it is not, the missing end tells.
    pub(crate) fn finish(&mut self, out: &mut Vec<Result<Value, TurnError>>) {
        let line = self.end();
        out.extend(message(&line, &self.quoter).ok().flatten().map(Ok));
    }

    /// How many lines there were.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    fn extend(&mut self, bytes: &[u8], out: &mut Vec<Result<Value, TurnError>>) {
        if self.overlong {
            return;
        }
        if self.line.len() + bytes.len() > self.limit {
            self.overlong = true;
            self.line = Vec::new();
            out.push(Err(TurnError::TooLong { limit: self.limit }));
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self) -> Vec<u8> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.overlong) || !line.trim_ascii().is_empty() {
            self.seen += 1;
        }
        line
    }
}

/// The message that `line` is; `None` where it is none.
fn message(line: &[u8], quoter: &Quoter) -> Result<Option<Value>, TurnError> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_start_matches('\u{feff}').trim();
    match json::read(line) {
        Ok(message) => Ok(Some(message)),
        Err(_) if begins(line) => {
            let detail = format!("a line that begins like a message is not JSON: {}", quoter.head(line));
            Err(TurnError::Protocol { detail })
        }
        Err(_) => {
            if !line.is_empty() {
                tracing::debug!(bytes = line.len(), "a line of a program is no message");
            }
            Ok(None)
        }
    }
}

/// Whether `line` begins like an object of JSON, and not like the way a language shows one.
fn begins(line: &str) -> bool {
    line.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(limit: usize, pieces: &[&str]) -> (Vec<Result<Value, &'static str>>, usize) {
        let mut lines = MessageLines { limit, ..MessageLines::new(0, Quoter::default()) };
        let mut out = Vec::new();
        pieces.iter().for_each(|piece| lines.push(piece.as_bytes(), &mut out));
        lines.finish(&mut out);
        (out.into_iter().map(|one| one.map_err(|error| error.code())).collect(), lines.seen())
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_its_neighbours_are_read() {
        let pieces = ["12\r\n12", "345", "67\n\n", "34\n56"];
        assert_eq!(read(4, &pieces), (vec![Ok(12.into()), Err("too-long"), Ok(34.into()), Ok(56.into())], 4));
    }

    #[test]
    fn half_a_character_is_replaced() {
        let whole = serde_json::json!({ "text": "a\u{fffd}" });
        assert_eq!(read(99, &[r#"{"text":"a\ud83d"}"#, "\n"]).0, [Ok(whole)]);
    }

    #[test]
    fn what_begins_like_a_message_must_be_one_and_what_does_not_is_passed_over() {
        assert_eq!(read(99, &["{\"a\": }\n"]).0, [Err("protocol")]);
        assert_eq!(read(99, &[" { \"a\": \n"]).0, [Err("protocol")]);
        assert_eq!(read(99, &["{ a: 1 }\n{'a': 1}\n{\nwarning\n"]), (vec![], 4));
        assert_eq!(read(99, &["{\"a\":"]).0, [], "the end of the input cut it");
    }
}
