//! Chat completions.

use cyberine_types::Usage;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::error::TurnError;
use crate::openai::ChatParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/openai.chat-completions.sse.txt");

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
}
