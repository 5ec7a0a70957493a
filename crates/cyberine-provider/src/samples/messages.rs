//! Messages.

use cyberine_types::Usage;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::anthropic::MessageParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/anthropic.messages.sse.txt");

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
}
