//! Dialogues with `codex app-server`.

use super::{LIMIT, Wire, check, check_damaged, of};
use crate::codex_cli::{AppServerParser, Opening};
use crate::error::TurnError;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/codex.app-server.jsonrpc.txt");
const MORE: &str = include_str!("../../tests/samples/more/codex.app-server.txt");

fn wire() -> Box<dyn Wire> {
    let opening = Opening { cwd: "/w/repo".into(), prompt: "hi".into(), model: None, schema: None };
    Box::new(AppServerParser::new(opening, LIMIT, Quoter::default()))
}

#[test]
fn dialogues_are_held_however_they_arrive() {
    let read = check(FILE, wire, &[("turn_with_deltas", "ok", "Hello")]);
    let usage = of(&read, "turn_with_deltas").usage.unwrap();
    assert_eq!((usage.cached_read, usage.reasoning), (1000, 20));
}

#[test]
fn what_goes_wrong_is_told_however_it_arrives() {
    let read = check(
        MORE,
        wire,
        &[
            ("real_text", "ok", "Six times seven is 42."),
            ("tool_after_a_remark", "ok", "Done."),
            ("no_delta_only_whole_messages", "ok", "Final."),
            ("answer_in_the_last_word_only", "ok", "Hello"),
            ("whole_text_is_another", "ok", "Whole."),
            ("empty_answer", "empty", ""),
            ("auth", "auth", ""),
            ("payment", "billing", ""),
            ("rate_limit", "rate-limit", ""),
            ("overloaded", "overloaded", ""),
            ("recovered_after_a_cut", "ok", "whole"),
            ("recovered_with_the_same_id", "ok", "whole"),
            ("cut_for_good", "cut", "half"),
            ("max_tokens", "truncated", "trunc"),
            ("context", "truncated", ""),
            ("filter", "refused", ""),
            ("stopped", "cancelled", "half said"),
            ("stopped_by_nobody", "cut", ""),
            ("cut_before_the_end", "cut", "half"),
            ("silent_end_after_a_complaint", "overloaded", ""),
            ("crash_within_the_answer", "crashed", "half"),
            ("thread_refused", "rejected", ""),
            ("input_too_large", "rejected", ""),
            ("no_app_server", "protocol", ""),
            ("refuses_to_begin", "protocol", ""),
            ("says_back_what_it_is_told", "protocol", ""),
            ("works_in_a_loose_sandbox", "rejected", ""),
            ("asks_for_approval", "ok", "I could not."),
            ("asks_for_what_is_not_offered", "ok", "A"),
            ("another_thread_is_no_part_of_it", "ok", "Hello"),
            ("half_a_character", "ok", "a\u{fffd}."),
            ("broken_line_is_no_success", "protocol", "Remark."),
            ("unknown_status", "protocol", ""),
            ("has_the_network", "rejected", ""),
            ("says_nothing_of_its_sandbox", "rejected", ""),
            ("would_ask_somebody", "rejected", ""),
            ("answers_twice", "ok", "Hello"),
        ],
    );
    let tool = &of(&read, "tool_after_a_remark");
    assert!(tool.retracted, "the remark is taken back");
    assert_eq!(tool.calls.len(), 1, "once, although it is told twice");
    assert_eq!(
        (tool.calls[0].name.as_str(), &tool.calls[0].arguments["command"]),
        ("command_execution", &serde_json::json!("/bin/bash -lc 'echo 42'"))
    );
    assert!(of(&read, "recovered_with_the_same_id").retracted);
    let error = |name: &str| of(&read, name).outcome.as_ref().unwrap_err().to_string();
    for name in ["auth", "crash_within_the_answer"] {
        assert!(error(name).contains("[redacted]") && !error(name).contains("sk-"), "{}", error(name));
    }
    assert!(error("no_app_server").contains("unrecognized subcommand"), "{}", error("no_app_server"));
    assert!(error("thread_refused").contains("no such model provider"), "{}", error("thread_refused"));
    assert_eq!(of(&read, "stopped").outcome, Err(TurnError::Cancelled));
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
    check_damaged(MORE, wire);
}
