//! Generations of Gemini.

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::gemini::GeminiParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/gemini.stream-generate-content.sse.txt");

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
}
