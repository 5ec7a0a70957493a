//! Responses.

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::quote::Quoter;
use crate::responses::ResponseParser;

const FILE: &str = include_str!("../../tests/samples/openai.responses.sse.txt");

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
}
