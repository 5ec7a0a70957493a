//! One shots of Gemini CLI.

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::acp::GeminiParser;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/gemini.stream-json.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(GeminiParser::new(LIMIT, Quoter::default()))
}

#[test]
fn one_shots_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok_text", "ok", GREETING),
            ("ok_tool", "ok", "Done."),
            ("tool_denied_still_success", "ok", "I could not."),
            ("empty_exit_zero", "empty", ""),
            ("stream_cut_retried_duplicates_text", "cut", "half"),
            ("max_tokens_invisible", "ok", "trunc"),
            ("api_key_invalid", "auth", ""),
            ("no_auth_method", "auth", ""),
            ("no_prompt", "rejected", ""),
            ("rate_limit_only_on_stderr", "rate-limit", ""),
            ("stdout_truncated_at_128KiB_exit_zero", "cut", ""),
            ("json_mode_error_on_stderr", "auth", ""),
        ],
    );
    assert_eq!(of(&read, "ok_text").usage.unwrap().reasoning, 20);
    assert!(of(&read, "stream_cut_retried_duplicates_text").retracted);
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
}
