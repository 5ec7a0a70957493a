//! One shots of opencode.

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::acp::OpencodeParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/opencode.run-json.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(OpencodeParser::new(LIMIT, Quoter::default()))
}

#[test]
fn one_shots_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok_text", "ok", GREETING),
            ("ok_tool_two_steps", "ok", "Done."),
            ("empty_exit_zero", "empty", ""),
            ("auth", "auth", ""),
            ("stream_cut_endless_loop", "cut", "half"),
            ("rate_limit_silent", "crashed", ""),
            ("bad_model", "rejected", ""),
            ("bad_session_ansi_stderr", "crashed", ""),
        ],
    );
    assert_eq!(of(&read, "ok_tool_two_steps").usage.unwrap().input, 2400);
    let crash = of(&read, "bad_session_ansi_stderr").outcome.as_ref().unwrap_err().to_string();
    assert!(crash.ends_with("Error: Session not found"), "{crash}");
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
}
