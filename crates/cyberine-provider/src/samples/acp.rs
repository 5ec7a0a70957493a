//! Dialogues with agents over the Agent Client Protocol.

use super::{LIMIT, Wire, check, check_damaged, of};
use crate::acp::{AcpParser, Opening};
use crate::error::TurnError;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/acp.jsonrpc.txt");

fn wire() -> Box<dyn Wire> {
    let opening = Opening { cwd: "/w/repo".into(), prompt: "hi".into(), model: None, model_given: false };
    Box::new(AcpParser::new(opening, LIMIT, Quoter::default()))
}

#[test]
fn dialogues_are_held_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("prompt_tool_cancel", "ok", "Hello"),
            ("prompt_tool_cancel_second_turn", "cancelled", ""),
            ("silent_success_nothing_said", "empty", ""),
            ("gemini_cut_stream_called_end_turn", "cut", "half"),
            ("gemini_permission_denied", "ok", "I could not."),
            ("opencode_two_steps_with_cost", "ok", "Done."),
            ("opencode_two_steps_without_cost", "ok", "Done."),
            ("opencode_cut_endless_loop", "cut", "half"),
            ("login_first", "auth", ""),
            ("gemini_http_status_as_code", "auth", ""),
            ("gemini_stream_terminated", "cut", "half"),
            ("opencode_words_only", "auth", ""),
            ("asks_for_what_is_not_offered", "ok", "A"),
            ("max_tokens", "truncated", "trunc"),
            ("refusal", "refused", ""),
            ("not_an_agent", "protocol", ""),
            ("another_protocol_version", "protocol", ""),
            ("crash_within_the_answer", "crashed", "half"),
            ("half_a_character", "ok", "a\u{fffd}."),
            ("broken_line_is_no_success", "protocol", "Hello "),
            ("another_session_is_no_part_of_it", "ok", "Hello"),
            ("cancelled_by_nobody", "cut", ""),
        ],
    );
    let advice = of(&read, "login_first").outcome.as_ref().unwrap_err().to_string();
    assert!(advice.contains("log in with the program"), "{advice}");
    let unknown = &of(&read, "not_an_agent").outcome;
    assert!(
        matches!(unknown, Err(TurnError::Protocol { detail }) if detail.contains("Unknown argument: acp"))
    );
    assert_eq!(of(&read, "prompt_tool_cancel").calls[0].name, "execute");
    let late = &of(&read, "opencode_two_steps_with_cost").calls[0];
    assert_eq!((late.name.as_str(), &late.arguments["filePath"]), ("read", &"a.txt".into()));
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
}
