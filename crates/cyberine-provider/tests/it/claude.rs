//! A program that behaves like `claude`, as the recordings have it.

use std::path::Path;
use std::time::Duration;

use cyberine_process::find_marked;
use cyberine_provider::{Limits, Turn, TurnError};
use cyberine_types::{Billing, CostBasis};
use serde_json::{Value, json};

use crate::support::{KEY, Taken, block_on, provider, script, take, turn};

const INIT: &str = r#"{"type":"system","subtype":"init","model":"claude-sample-1","apiKeySource":"none"}"#;
const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hel"}}}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Hello","total_cost_usd":0.5,"usage":{"input_tokens":3,"output_tokens":2}}"#;
const UNAUTHORIZED: &str = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":401,"error":"authentication_failed"}"#;
const LIMITED: &str =
    r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":429,"error":"rate_limit"}"#;

/// A stand-in that writes down what it was given, prints `lines` and then does `end`.
pub(crate) fn stand_in(directory: &Path, lines: &[&str], end: &str) -> Value {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(directory.join("lines"), lines).unwrap();
    let here = directory.to_str().unwrap();
    let text = format!(
        "#!/bin/sh\nenv > {here}/env\nfor arg; do echo \"$arg\"; done > {here}/args\nread -r hello\nread -r prompt\nprintf '%s\\n' \"$hello\" \"$prompt\" > {here}/prompt\ncat {here}/lines\n{end}\n"
    );
    json!({ "kind": "claude-cli", "program": script(directory, "claude", &text) })
}

fn run(lines: &[&str], end: &str) -> Taken {
    run_limited(lines, end, Limits::default())
}

fn run_limited(lines: &[&str], end: &str, limits: Limits) -> Taken {
    let scratch = tempfile::tempdir().unwrap();
    let provider = provider(stand_in(scratch.path(), lines, end));
    block_on(async { take(&provider, Turn { limits, ..turn("x") }).await })
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn a_session_is_started_bare_and_its_prompt_goes_by_its_input() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = stand_in(scratch.path(), &[INIT, DELTA, RESULT], "");
    config["model"] = json!("-opus");
    let mut asked = turn("-p is a prompt");
    asked.output_schema = Some(json!({ "type": "object" }));
    let provider = provider(config);
    let taken = block_on(async { take(&provider, asked).await });

    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
    assert_eq!(provider.info().billing, Billing::Subscription);
    let usage = taken.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.basis), (3, 2, CostBasis::Included));
    let said = read(scratch.path(), "prompt");
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said[0]["request"], json!({ "subtype": "initialize", "hooks": null }));
    assert_eq!(said[1]["message"], json!({ "role": "user", "content": "-p is a prompt" }));
    let expected = concat!(
        "-p\n--input-format\nstream-json\n--output-format\nstream-json\n--permission-prompt-tool\nstdio\n",
        "--setting-sources\n\n--strict-mcp-config\n--no-session-persistence\n--disable-slash-commands\n",
        "--include-partial-messages\n--tools\n\n--model=-opus\n--json-schema={\"type\":\"object\"}\n--verbose\n",
    );
    assert_eq!(read(scratch.path(), "args"), expected);
    let environment = read(scratch.path(), "env");
    assert!(!environment.contains("ANTHROPIC") && !environment.contains("stray"), "{environment}");
    for fixed in ["\nCLAUDE_CODE_MAX_RETRIES=2\n", "\nCLAUDE_CODE_DISABLE_ATTACHMENTS=1\n"] {
        assert!(environment.contains(fixed), "{environment}");
    }
}

#[test]
fn a_key_reaches_the_program_only_where_it_is_configured_and_then_it_is_charged() {
    let scratch = tempfile::tempdir().unwrap();
    let keyed = INIT.replace("none", "ANTHROPIC_API_KEY");
    let mut config = stand_in(scratch.path(), &[&keyed, RESULT], "");
    config["api_key_env"] = json!("TEST_KEY");
    config["tools"] = json!(["Read", "Grep"]);
    let provider = provider(config);
    assert_eq!(provider.info().billing, Billing::Metered);
    let usage = block_on(async { take(&provider, turn("x")).await.usage.unwrap() });
    assert_eq!((usage.usd.unwrap().micros(), usage.basis), (500_000, CostBasis::Reported));
    assert!(read(scratch.path(), "env").contains(&format!("ANTHROPIC_API_KEY={KEY}\n")));
    let args = read(scratch.path(), "args");
    assert!(args.contains("--tools\nRead,Grep\n--restricted\n--permission-mode\ndefault\n"), "{args}");
}

#[test]
fn what_the_configuration_hands_on_goes_before_our_own() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = stand_in(scratch.path(), &[INIT, RESULT], "");
    config["env"] = json!(["CLAUDE_CODE_MAX_RETRIES"]);
    let provider = provider(config);
    assert_eq!(block_on(async { take(&provider, turn("x")).await.code() }), "ok");
    assert!(read(scratch.path(), "env").contains("CLAUDE_CODE_MAX_RETRIES=7\n"));
}

#[test]
fn a_refused_key_ends_the_turn_at_once() {
    block_on(async {
        let scratch = tempfile::tempdir().unwrap();
        let provider = provider(stand_in(scratch.path(), &[INIT, UNAUTHORIZED], "sleep 600"));
        let asked = turn("x");
        let mark = asked.mark.clone();
        assert_eq!(take(&provider, asked).await.code(), "auth");
        assert_eq!(find_marked(&mark), []);
    });
}

#[test]
fn a_silence_after_a_complaint_is_the_complaint() {
    let idle = Duration::from_secs(2);
    let limits = Limits { idle, ..Limits::default() };
    assert_eq!(run_limited(&[INIT, LIMITED], "sleep 600", limits).code(), "rate-limit");
    // Unless the program went on after it.
    let begun = DELTA.replace("content_block_delta", "message_start");
    let taken = run_limited(&[INIT, LIMITED, &begun], "sleep 600", limits);
    assert_eq!(taken.outcome, Err(TurnError::IdleTimeout { limit: idle }));
}

#[test]
fn a_result_counts_although_the_program_never_ends() {
    let taken = run(&[INIT, RESULT], "exec sleep 600");
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
}

/// What it says of a failure of which no status tells, and the result that follows.
fn failed(error: &str, result: &str) -> Taken {
    let message = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"It failed"}}]}},"error":"{error}","is_api_error_message":true}}"#
    );
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"It failed"{result}}}"#
    );
    run(&[INIT, &message, &result], "exit 1")
}

#[test]
fn a_failure_without_a_status_is_known_by_its_kind() {
    assert_eq!(failed("authentication_failed", "").error(), "the provider refused the credential: It failed");
    let lost = failed("server_error", r#","api_error":"connection_failed""#);
    assert_eq!(lost.error(), "`the API that claude uses` could not be reached: It failed");
    assert_eq!(failed("max_output_tokens", "").code(), "truncated");
    assert_eq!(failed("unknown", "").code(), "rejected");
}

#[test]
fn retries_that_no_answer_came_to_are_a_service_out_of_reach() {
    let unanswered =
        r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":null,"error":"unknown"}"#;
    assert_eq!(run(&[INIT, unanswered], "exit 1").code(), "unreachable");
}

fn event(event: &str) -> String {
    format!(r#"{{"type":"stream_event","event":{event}}}"#)
}

fn says(text: &str) -> String {
    event(&format!(r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}"#))
}

#[test]
fn an_answer_that_goes_on_in_the_next_message_is_both() {
    let start = event(r#"{"type":"message_start"}"#);
    let end = |why: &str| event(&format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{why}"}}}}"#));
    let result = RESULT.replace("Hello", "the end");
    let (first, last) = (says("begun, "), says("the end"));
    let taken = run(&[&start, &first, &end("max_tokens"), &start, &last, &end("end_turn"), &result], "");
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "begun, the end"));
    // A second half that breaks off is said again, also without a stream, and the first is kept.
    let broken = says("bro");
    let whole = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"the end"}]}}"#;
    for again in [vec![start.as_str(), &last], vec![whole]] {
        let begun = [start.as_str(), &first, &end("max_tokens"), &start, &broken].map(str::to_owned);
        let lines: Vec<&str> =
            begun.iter().map(String::as_str).chain(again).chain([result.as_str()]).collect();
        assert_eq!(run(&lines, "").text, "begun, the end");
    }
    let taken = run(&[&start, &first, &end("max_tokens"), whole, &result], "");
    assert_eq!(taken.text, "begun, the end");
    // A message after one that ended by itself is another.
    let taken = run(&[&start, &first, &end("tool_use"), &start, &last, &end("end_turn"), &result], "");
    assert_eq!(taken.text, "the end");
}

#[test]
fn without_a_result_nothing_is_an_answer() {
    assert_eq!(run(&[INIT, DELTA], "exit 0").code(), "cut");
    assert_eq!(run(&[], "exit 0").code(), "empty");
    let taken = run(&[INIT], "echo 'unknown option' >&2; exit 1");
    assert_eq!(taken.error(), "the program ended with exit status: 1: unknown option");
}
