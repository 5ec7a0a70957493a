//! Responses.

use serde_json::json;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::port::ToolCall;
use crate::quote::Quoter;
use crate::responses::ResponseParser;

const FILE: &str = include_str!("../../tests/samples/openai.responses.sse.txt");

const MORE: &str = include_str!("../../tests/samples/more/responses.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(ResponseParser::wire(LIMIT, Quoter::default()))
}

#[test]
fn responses_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok", "ok", GREETING),
            ("incomplete", "truncated", ""),
            ("failed", "rate-limit", ""),
            ("error_event", "overloaded", ""),
            ("cut", "cut", ""),
        ],
    );
    assert_eq!(of(&read, "incomplete").usage, of(&read, "ok").usage);
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
            ("refusal_in_pieces", "refused", ""),
            ("filtered", "refused", "half"),
            ("begun_anew", "ok", "whole"),
            ("error_in_a_member", "billing", ""),
            ("limited_and_told_in_words", "rate-limit", "half"),
            ("not_allowed", "refused", ""),
            ("ends_as_a_chat_completion_does", "cut", "half"),
            ("empty", "empty", ""),
            ("completed_and_incomplete", "truncated", "half"),
            ("completed_and_failed", "rate-limit", "half"),
            ("text_in_one_piece", "ok", "A"),
            ("text_at_the_end_only", "ok", "A"),
            ("refusal_in_one_piece", "refused", ""),
            ("half_a_character", "ok", "a\u{fffd}"),
        ],
    );
    let calls = [ToolCall::new("a", "look", json!({ "q": "café" })), ToolCall::new("b", "add", json!({}))];
    assert_eq!(of(&read, "parallel_calls_in_fragments").calls, calls);
    assert!(of(&read, "begun_anew").retracted);
}
