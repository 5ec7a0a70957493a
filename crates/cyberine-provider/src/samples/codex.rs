//! Turns of Codex.

use cyberine_types::Usage;

use super::{GREETING, LIMIT, Wire, check, check_damaged, of};
use crate::codex_cli::ExecParser;
use crate::error::TurnError;
use crate::quote::Quoter;

const FILE: &str = include_str!("../../tests/samples/codex.exec-json.txt");

fn wire() -> Box<dyn Wire> {
    Box::new(ExecParser::new(LIMIT, Quoter::default()))
}

#[test]
fn turns_are_read_however_they_arrive() {
    let read = check(
        FILE,
        wire,
        &[
            ("ok_text", "ok", GREETING),
            ("warning_item_is_not_a_failure", "ok", "A"),
            ("ok_tool", "ok", "Done."),
            ("multi_message_last_wins", "ok", "Final answer."),
            ("ok_structured", "ok", r#"{"winner": "B"}"#),
            ("empty_answer", "empty", ""),
            ("auth", "auth", ""),
            ("recovered_after_reconnect", "ok", "A"),
            ("quota", "billing", ""),
            ("rate_limit", "rate-limit", ""),
            ("context", "truncated", ""),
            ("incomplete", "truncated", "truncated answ"),
            ("not_a_git_repo", "crashed", ""),
            ("input_too_large", "rejected", ""),
            ("dash_prompt_in_argv", "crashed", ""),
            ("stdin_never_closed", "crashed", ""),
            ("half_a_character", "ok", "a\u{fffd}."),
            ("broken_line_is_no_success", "protocol", "Remark."),
            ("twenty_remarks", "ok", "Answer."),
        ],
    );
    let usage = Usage { input: 1200, cached_read: 1000, output: 44, reasoning: 20, ..Usage::default() };
    assert_eq!(of(&read, "ok_text").usage, Some(usage));
    let tool = &of(&read, "ok_tool").calls;
    assert_eq!(tool.len(), 1, "once, although it is told twice");
    assert_eq!(
        (tool[0].name.as_str(), &tool[0].arguments["command"]),
        ("command_execution", &serde_json::json!("/bin/bash -lc 'echo hi'"))
    );
    assert!(of(&read, "multi_message_last_wins").retracted);
    let refused = of(&read, "auth").outcome.as_ref().unwrap_err().to_string();
    assert!(refused.contains("[redacted]") && !refused.contains("sk-"), "{refused}");
    let crashed = &of(&read, "not_a_git_repo").outcome;
    assert!(matches!(crashed, Err(TurnError::Crashed { stderr, .. }) if stderr.contains("skip-git-repo")));
}

#[test]
fn damage_stops_nothing_and_chunks_never_matter() {
    check_damaged(FILE, wire);
}
