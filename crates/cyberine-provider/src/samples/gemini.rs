//! Generations of Gemini.

use serde_json::json;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::gemini::GeminiParser;
use crate::port::ToolCall;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/gemini.stream-generate-content.sse.txt");

const MORE: &str = include_str!("../../tests/samples/more/gemini.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(GeminiParser::wire(LIMIT, Quoter::default()))
}

#[test]
fn generations_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok", "ok", GREETING),
            ("max_tokens", "truncated", "trunc"),
            ("blocked_prompt", "refused", ""),
            ("blocked_answer", "refused", ""),
            ("empty_stop", "empty", ""),
            ("cut", "cut", "half"),
            ("http_429", "rate-limit", ""),
            ("http_400_key", "auth", ""),
        ],
    );
    assert_eq!(of(&read, "ok").usage.unwrap().reasoning, 20);
    assert_eq!(of(&read, "blocked_prompt").usage, of(&read, "ok").usage);
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
            ("parallel_calls_with_a_signature", "tool-use", "I look."),
            ("reason_without_figures", "ok", "A"),
            ("figures_after_the_reason", "ok", "A"),
            ("thoughts_only", "empty", ""),
            ("unknown_parts", "ok", "A"),
            ("recitation", "refused", "half"),
            ("malformed_call", "protocol", ""),
            ("limited_inside_stream", "rate-limit", "half"),
            ("overloaded_inside_stream", "overloaded", ""),
            ("http_403", "auth", ""),
            ("http_429_credits", "billing", ""),
        ],
    );
    let signed =
        ToolCall { signature: Some("c2ln".into()), ..ToolCall::new("a", "look", json!({ "q": "café" })) };
    let calls = [signed, ToolCall::new("call_1", "add", json!({}))];
    assert_eq!(of(&read, "parallel_calls_with_a_signature").calls, calls);
}
