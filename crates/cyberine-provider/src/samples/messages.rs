//! Messages.

use cyberine_types::Usage;
use serde_json::json;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::anthropic::MessageParser;
use crate::port::ToolCall;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/anthropic.messages.sse.txt");

const MORE: &str = include_str!("../../tests/samples/more/messages.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(MessageParser::wire(LIMIT, Quoter::default()))
}

#[test]
fn messages_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok", "ok", GREETING),
            ("max_tokens", "truncated", "trunc"),
            ("refusal", "refused", ""),
            ("context_window", "truncated", ""),
            ("empty", "empty", ""),
            ("error_in_stream", "overloaded", "half"),
            ("cut", "cut", "half"),
            ("http_529", "overloaded", ""),
            ("http_429", "rate-limit", ""),
            ("http_400_billing", "billing", ""),
        ],
    );
    let usage = Usage { input: 2150, cached_read: 2000, cache_write: 30, output: 25, ..Usage::default() };
    assert_eq!(of(&read, "ok").usage, Some(usage));
    assert_eq!(of(&read, "cut").usage, Some(Usage { output: 1, ..usage }));
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
            ("parallel_calls_in_fragments", "tool-use", "I look."),
            ("thoughts_and_unknown_parts_are_not_the_answer", "ok", "A"),
            ("begun_anew", "ok", "whole"),
            ("senseless_usage", "ok", "A"),
            ("billing_in_stream", "billing", ""),
            ("key_in_stream", "auth", ""),
        ],
    );
    let calls = [ToolCall::new("a", "look", json!({ "q": "café" })), ToolCall::new("b", "add", json!({}))];
    assert_eq!(of(&read, "parallel_calls_in_fragments").calls, calls);
    assert!(of(&read, "begun_anew").retracted);
}
