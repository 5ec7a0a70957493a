//! Answers of aider.

use super::{LIMIT, Wire, check, check_damaged, of};
use crate::aider::AiderParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/aider.text.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(AiderParser::new(LIMIT, Quoter::default()))
}

#[test]
fn answers_are_read_however_they_arrive() {
    let several = "one\n\nTokens: 5 sent, 3 received.\n\nlitellm.AuthenticationError: quoted\ntwo";
    let read = check(
        FILE,
        wire,
        &[
            ("ok", "ok", "Hello — café 🦉."),
            ("auth_exit_zero", "auth", ""),
            ("empty_exit_zero", "empty", ""),
            ("with_cost", "ok", "Answer."),
            ("rate_limit_asks_again_by_itself", "rate-limit", ""),
            ("max_tokens", "truncated", "trunc"),
            ("answer_with_such_lines_in_it", "ok", several),
            ("not_aider", "protocol", ""),
            ("usage_error", "crashed", ""),
        ],
    );
    assert_eq!(of(&read, "with_cost").usage.unwrap().input, 12_000);
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
}
