//! Chats of Ollama.

use super::{GREETING, LIMIT, Wire, check, check_damaged};
use crate::ollama::OllamaParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/ollama.chat.ndjson.txt");

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
}
