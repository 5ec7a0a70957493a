//! Chat completions.

use cyberine_types::Usage;
use serde_json::json;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::error::TurnError;
use crate::openai::ChatParser;
use crate::port::ToolCall;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/openai.chat-completions.sse.txt");

const MORE: &str = include_str!("../../tests/samples/more/chat.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(ChatParser::wire(LIMIT, Quoter::default()))
}

#[test]
fn chat_completions_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok", "ok", GREETING),
            ("no_usage_chunk", "ok", "A"),
            ("length", "truncated", "trunc"),
            ("content_filter", "refused", ""),
            ("refusal_field", "refused", ""),
            ("cut_before_done", "cut", "half"),
            ("error_inside_stream", "overloaded", ""),
            ("http_429", "rate-limit", ""),
            ("http_429_quota", "billing", ""),
            ("http_401", "auth", ""),
            ("http_502_html", "overloaded", ""),
        ],
    );
    let usage = Usage { input: 1200, cached_read: 1000, output: 44, reasoning: 20, ..Usage::default() };
    assert_eq!(of(&read, "ok").usage, Some(usage));
    assert_eq!(of(&read, "length").usage, Some(usage));
    assert_eq!(of(&read, "no_usage_chunk").usage, None);
    let one = std::time::Duration::from_secs(1);
    let limited = &of(&read, "http_429").outcome;
    assert!(matches!(limited, Err(TurnError::RateLimited { retry_after, .. }) if *retry_after == Some(one)));
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
            ("parallel_calls_in_fragments", "tool-use", ""),
            ("calls_that_share_an_index", "tool-use", ""),
            ("calls_counted_from_one", "tool-use", "I look."),
            ("arguments_that_are_no_json", "protocol", ""),
            ("calls_that_never_come", "protocol", "I look."),
            ("reasoning_is_not_the_answer", "ok", "A"),
            ("senseless_usage", "ok", "A"),
            ("no_credit_inside_stream", "billing", "half"),
            ("filtered_prompt", "refused", ""),
            ("limited_and_told_in_words", "rate-limit", ""),
            ("length_then_stop", "truncated", "half"),
            ("stop_then_filtered", "refused", "half"),
            ("half_a_character", "ok", "a\u{fffd}"),
        ],
    );
    let calls =
        [ToolCall::new("a", "look", json!({ "q": "café" })), ToolCall::new("b", "add", json!({ "x": [1] }))];
    assert_eq!(of(&read, "parallel_calls_in_fragments").calls, calls);
    let calls = [1, 2].map(|q| ToolCall::new(["a", "b"][q - 1], "look", json!({ "q": q })));
    assert_eq!(of(&read, "calls_that_share_an_index").calls, calls);
    assert_eq!(of(&read, "calls_counted_from_one").calls, [ToolCall::new("a", "look", json!({}))]);
}

#[test]
fn names_and_ids_of_calls_are_part_of_what_is_bounded() {
    for member in ["name", "id"] {
        let mut wire = ChatParser::wire(1 << 10, Quoter::default());
        let outcome = (0..1000).find_map(|n| {
            let call = match member {
                "name" => json!({ "index": 0, "function": { "name": "name" } }),
                _ => json!({ "index": 0, "id": format!("{n:08}") }),
            };
            let chunk = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
            wire.push(format!("data: {chunk}\n\n").as_bytes(), &mut Vec::new()).err()
        });
        assert_eq!(
            outcome.map(|error| error.code()),
            Some(if member == "name" { "too-long" } else { "protocol" })
        );
    }
}
