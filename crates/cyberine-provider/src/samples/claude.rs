//! Headless sessions of Claude Code.

use cyberine_types::{CostBasis, Usage, Usd};

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::claude_cli::StreamJsonParser;
use crate::error::TurnError;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/claude.stream-json.txt");

/// What the control channel adds.
const MORE: &str = include_str!("../../tests/samples/more/claude.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(StreamJsonParser::new("hi".to_owned(), vec!["WebFetch".to_owned()], LIMIT, Quoter::default()))
}

#[test]
fn headless_sessions_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok_text", "ok", GREETING),
            ("ok_tool_same_message_id_twice", "ok", "Done."),
            ("ok_structured", "ok", r#"{"winner":"B"}"#),
            ("empty_answer_looks_like_success", "empty", ""),
            ("billing_subtype_success", "billing", ""),
            ("auth_retry_then_fail", "auth", ""),
            ("rate_limited_killed_by_us", "rate-limit", ""),
            ("prompt_too_long", "rejected", ""),
            ("max_turns", "truncated", ""),
            ("budget_overshoot", "truncated", ""),
            ("refusal", "refused", ""),
            ("interrupted_exit_zero", "cancelled", ""),
            ("sigterm_no_result", "crashed", "partial"),
            ("no_result_after_success_then_hang", "ok", "A"),
            ("missing_verbose", "crashed", ""),
            ("resume_unknown_session", "rejected", ""),
            ("partial_messages_interrupt", "cancelled", "tick 0 tick 1 "),
            ("permission_request", "ok", "Not done."),
            ("garbage_and_unknown_lines", "ok", "A"),
        ],
    );
    let ok = of(&read, "ok_text");
    let cost = Usage { usd: Some(Usd::from_micros(1530)), basis: CostBasis::Reported, ..Usage::default() };
    assert_eq!(ok.usage, Some(Usage { input: 2150, cached_read: 2000, cache_write: 30, output: 25, ..cost }));
    let tool = of(&read, "ok_tool_same_message_id_twice");
    assert_eq!(tool.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["Bash"]);
    assert!(tool.retracted);
    // Of the result's own count, not of the two lines that carry one message's.
    let counted = tool.usage.unwrap();
    assert_eq!((counted.input, counted.output, counted.usd), (4300, 65, Some(Usd::from_micros(3360))));
    assert_eq!(of(&read, "max_turns").usage.unwrap().usd, Some(Usd::from_micros(5490)));
    let crashed = &of(&read, "missing_verbose").outcome;
    assert!(
        matches!(crashed, Err(TurnError::Crashed { stderr, .. }) if stderr.contains("requires --verbose"))
    );
}

#[test]
fn questions_of_the_program_are_answered_and_a_turn_that_is_stopped_is_counted() {
    let read = check(
        MORE,
        wire,
        &[
            ("denied", "ok", "Not done."),
            ("named", "ok", "A"),
            ("unknown_question", "ok", "A"),
            ("refused_to_begin", "protocol", ""),
            ("interrupted_while_streaming", "cancelled", "tick 0 "),
        ],
    );
    // The program reports no cost of the message it was in; none is not nothing.
    let counted = of(&read, "interrupted_while_streaming").usage.unwrap();
    assert_eq!((counted.usd, counted.basis), (None, CostBasis::Unknown));
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
    check_damaged(MORE, wire);
}
