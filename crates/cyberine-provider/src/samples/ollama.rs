//! Chats of Ollama.

use serde_json::json;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::ollama::OllamaParser;
use crate::port::ToolCall;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/ollama.chat.ndjson.txt");

const MORE: &str = include_str!("../../tests/samples/more/ollama.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(OllamaParser::wire(LIMIT, Quoter::default()))
}

#[test]
fn chats_are_read_however_they_arrive() {
    check(
        FILE,
        wire,
        &[
            ("ok", "ok", GREETING),
            ("prompt_cached_no_prompt_eval_count", "ok", "A"),
            ("length", "truncated", "trunc"),
            ("error_line_in_200", "overloaded", "half"),
            ("model_missing", "rejected", ""),
            ("cut", "cut", "half"),
        ],
    );
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
    check_damaged(MORE, wire);
}

#[test]
fn calls_thoughts_and_oddities_are_read_however_they_arrive() {
    let read = check(
        MORE,
        wire,
        &[
            ("parallel_calls", "tool-use", "I look."),
            ("no_reason", "ok", "A"),
            ("thoughts_only", "empty", ""),
            ("only_loaded", "empty", ""),
            ("no_line_of_a_chat", "protocol", ""),
            ("last_line_without_its_end", "ok", "A"),
            ("http_503", "overloaded", ""),
            ("http_401", "auth", ""),
        ],
    );
    let calls =
        [ToolCall::new("a", "look", json!({ "q": "café" })), ToolCall::new("call_1", "add", json!({}))];
    assert_eq!(of(&read, "parallel_calls").calls, calls);
}
