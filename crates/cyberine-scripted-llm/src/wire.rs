//! From a reply to the bytes of a wire: pure functions, one module per wire.

pub(crate) mod anthropic;
pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod gemini;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod responses;

use serde_json::Value;

use crate::call::{Call, Wire};
use crate::script::Reply;

/// The moment every scripted answer says it was made at (2026-01-01T00:00:00Z, Unix seconds): an
/// answer that depends on nothing but the script has no time of its own.
pub(crate) const CREATED: u64 = 1_767_225_600;

/// An HTTP failure in the words of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure<'a> {
    pub(crate) status: u16,
    pub(crate) kind: Option<&'a str>,
    pub(crate) message: &'a str,
    /// What the `Retry-After` header says; one wire says it in the body too.
    pub(crate) retry_after: Option<&'a str>,
}

/// The body of a failure.
pub(crate) fn failure(wire: Wire, failure: Failure<'_>) -> Value {
    match wire {
        Wire::Anthropic => anthropic::failure(failure),
        Wire::Responses => responses::failure(failure),
        Wire::Gemini => gemini::failure(failure),
        Wire::Ollama => ollama::failure(failure),
        Wire::OpenAi | Wire::Program => openai::failure(failure),
    }
}

/// The whole answer as one JSON value.
pub(crate) fn whole(call: &Call, reply: &Reply) -> Value {
    match call.wire {
        Wire::Anthropic => anthropic::whole(reply),
        Wire::Responses => responses::whole(reply),
        Wire::Gemini => gemini::whole(reply),
        Wire::Ollama => ollama::whole(reply),
        Wire::OpenAi | Wire::Program => openai::whole(reply),
    }
}

/// The answer as events of a stream; the last one is the wire's terminator.
pub(crate) fn events(call: &Call, reply: &Reply) -> Vec<Event> {
    match call.wire {
        Wire::Anthropic => anthropic::events(reply),
        Wire::Responses => responses::events(reply),
        Wire::Gemini => gemini::events(reply),
        Wire::Ollama => ollama::events(reply),
        Wire::OpenAi | Wire::Program => openai::events(call, reply),
    }
}

/// One more piece of text, as an event.
pub(crate) fn piece(wire: Wire, reply: &Reply, text: &str) -> Event {
    match wire {
        Wire::Anthropic => anthropic::piece(text),
        Wire::Responses => responses::piece(reply, text),
        Wire::Gemini => gemini::piece(reply, text),
        Wire::Ollama => ollama::piece(reply, text),
        Wire::OpenAi | Wire::Program => openai::piece(reply, text),
    }
}

/// An error inside a stream.
pub(crate) fn stream_error(wire: Wire, kind: Option<&str>) -> Event {
    match wire {
        Wire::Anthropic => anthropic::stream_error(kind),
        Wire::Responses => responses::stream_error(kind),
        Wire::Gemini => gemini::stream_error(kind),
        Wire::Ollama => ollama::stream_error(kind),
        Wire::OpenAi | Wire::Program => openai::stream_error(kind),
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its bytes, with the line end or the empty line that ends it.
    pub(crate) text: String,
    /// Whether it carries a piece of the answer, and so waits for its turn.
    pub(crate) piece: bool,
}

impl Event {
    /// An event of a wire that names its events.
    fn named(name: &str, data: &Value) -> Self {
        Self { text: format!("event: {name}\ndata: {data}\n\n"), piece: false }
    }

    /// An event of a wire that does not.
    fn data(data: &str) -> Self {
        Self { text: format!("data: {data}\n\n"), piece: false }
    }

    /// An event of a wire whose events are lines.
    fn line(data: &Value) -> Self {
        Self { text: format!("{data}\n"), piece: false }
    }

    fn into_piece(self) -> Self {
        Self { piece: true, ..self }
    }
}

/// Cuts `text` into pieces of `chunk` characters; an empty text has none.
pub(crate) fn pieces(text: &str, chunk: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chunk).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::script::Script;

    /// The reply of a script of one rule to "hi there".
    pub(crate) fn reply(rule: &str) -> Reply {
        let call = Call::program("scripted/m".into(), "hi there".into());
        Script::parse(&format!("[[rule]]\n{rule}")).unwrap().pick(&call)
    }

    #[test]
    fn pieces_are_cut_by_characters_and_lose_nothing() {
        assert_eq!(pieces("café 🦉.", 3), ["caf", "é 🦉", "."]);
        assert_eq!(pieces("", 3), [""; 0]);
    }
}
