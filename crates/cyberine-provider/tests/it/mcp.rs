//! A program that behaves like an MCP server, in either era, and a tool of it that answers.

use std::path::Path;
use std::time::Duration;

use cyberine_process::find_marked;
use cyberine_provider::contract::Scenario;
use cyberine_provider::{Limits, Turn, TurnError};
use cyberine_types::Billing;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{KEY, Taken, block_on, provider, script, take, take_with, try_provider, turn};

const PRELUDE: &str = r#"
hear() { IFS= read -r line || exit 0; printf '%s\n' "$line" >> heard; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' $id "$1"; id=$((id + 1)); }
says() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
progress() { printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}\n' $id $1; }
id=1; env > env
"#;
const STATELESS: &str = r#"
hear; answer '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"1"}}}'
"#;
const LEGACY: &str = r#"
hear; printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}\n'; id=2
hear; answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}'
hear
"#;
const TOOLS: &str = r#"
hear; answer '{"tools":[{"name":"other"}],"nextCursor":"2"}'
hear; answer '{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}'
"#;

/// A server that opens, lists its tools, hears the call and then does `end`.
fn server(directory: &Path, opening: &str, end: &str) -> Value {
    let text = format!("#!/bin/sh\ncd '{}'\n{PRELUDE}{opening}{TOOLS}hear\n{end}\n", directory.display());
    json!({ "kind": "mcp", "command": [script(directory, "server", &text)], "tool": "ask" })
}

/// What comes of a turn with a stateless server that does `end` when it is called.
fn run(end: &str) -> Taken {
    run_as(json!({}), end)
}

fn run_as(extra: Value, end: &str) -> Taken {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = server(scratch.path(), STATELESS, end);
    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let provider = provider(config);
    let asked = turn("x");
    let mark = asked.mark.clone();
    let taken = block_on(async { take(&provider, asked).await });
    assert_eq!(find_marked(&mark), [], "nothing is left");
    taken
}

/// The servers of the contract suite.
pub(crate) fn servers(directory: &Path) -> Vec<(Scenario, Value)> {
    let server = |scenario: Scenario, opening: &str, end: &str| {
        let directory = directory.join(format!("mcp-{scenario:?}"));
        std::fs::create_dir(&directory).unwrap();
        (scenario, server(&directory, opening, end))
    };
    vec![
        server(Scenario::Answers, STATELESS, "says 'Hello — café'"),
        server(Scenario::Silent, LEGACY, "sleep 600"),
        server(Scenario::Empty, LEGACY, "answer '{\"content\":[]}'"),
        server(Scenario::Cut, STATELESS, "progress 1"),
        server(
            Scenario::Unpaid,
            STATELESS,
            "answer '{\"content\":[{\"type\":\"text\",\"text\":\"Credit balance is too low\"}],\"isError\":true}'",
        ),
        (Scenario::Absent, json!({ "kind": "mcp", "command": ["no-such-program-anywhere"], "tool": "ask" })),
    ]
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap_or_default()
}

#[test]
fn a_turn_is_one_call_whose_result_is_the_answer_in_either_era() {
    for opening in [STATELESS, LEGACY] {
        let scratch = tempfile::tempdir().unwrap();
        let mut config = server(scratch.path(), opening, "says 'forty-two'; hear");
        config["arguments"] = json!({ "depth": 3, "tags": ["a"] });
        config["argument"] = json!("question");
        config["env"] = json!(["TEST_KEY", "TEST_MODE"]);
        let provider = provider(config);
        assert_eq!(provider.info().billing, Billing::Free);
        let taken = block_on(async { take(&provider, turn("why \"é\"?")).await });
        assert_eq!((taken.code(), taken.text.as_str()), ("ok", "forty-two"));

        let heard = read(scratch.path(), "heard");
        let called: Value = serde_json::from_str(heard.lines().last().unwrap()).unwrap();
        assert_eq!(called["method"], "tools/call");
        let arguments = json!({ "depth": 3, "tags": ["a"], "question": "why \"é\"?" });
        assert_eq!(called["params"]["arguments"], arguments);
        let environment = read(scratch.path(), "env");
        assert!(environment.contains(&format!("TEST_KEY={KEY}\n")), "{environment}");
        assert!(environment.contains("TMPDIR=") && environment.contains("cyberine-turn-"), "{environment}");
        assert!(!environment.contains("STRAY") && !environment.contains("ANTHROPIC"), "{environment}");
    }
}

#[test]
fn a_tool_that_is_not_there_is_told_with_those_that_are() {
    let taken = run_as(json!({ "tool": "aks" }), "says never");
    let expected =
        "the provider refused the request: the server `peer 1` has no tool `aks`; it has `other`, `ask`";
    assert_eq!(taken.error(), expected);
}

#[test]
fn a_tool_that_fails_is_a_failure_with_its_words() {
    let taken = run("answer '{\"content\":[{\"type\":\"text\",\"text\":\"no such run\"}],\"isError\":true}'");
    assert_eq!((taken.code(), taken.text.as_str()), ("rejected", ""));
    assert_eq!(taken.error(), "the provider refused the request: no such run");
    let taken =
        run("printf '{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32602,\"message\":\"bad\"}}\\n'");
    assert_eq!(taken.error(), "the provider refused the request: bad (code -32602)");
    let taken = run(
        "answer '{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\"}}}'",
    );
    assert_eq!(taken.code(), "rejected");
    assert!(taken.error().contains("wants `elicitation/create` before it answers"), "{}", taken.error());
}

#[test]
fn the_key_a_server_was_given_is_not_told_by_it() {
    let keyed = json!({ "env": ["TEST_KEY"] });
    let taken = run_as(keyed.clone(), "says \"it is $TEST_KEY!\"");
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "it is [redacted]!"));
    for end in [
        "answer \"{\\\"content\\\":[{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"bad $TEST_KEY\\\"}],\\\"isError\\\":true}\"",
        "echo \"key: $TEST_KEY\" >&2; exit 3",
        "echo \"key: $TEST_KEY\"",
    ] {
        let taken = run_as(keyed.clone(), end);
        let error = taken.error();
        assert!(error.contains("[redacted]") && !error.contains(KEY), "{error}");
    }
}

#[test]
fn what_ends_badly_is_told_as_what_it_is() {
    let taken = run("echo 'out of memory' >&2; exit 9");
    assert_eq!(taken.error(), "the program ended with exit status: 9: out of memory");
    let taken = run("exit 0");
    assert_eq!(taken.code(), "cut");
    let taken = run("echo 'why' >&2; echo 'Thinking...'; hear");
    assert_eq!(taken.code(), "protocol");
    assert!(
        taken.error().contains("`Thinking...`") && taken.error().ends_with("ends: `why`"),
        "{}",
        taken.error()
    );
    // One that cannot start says why, and is not taken for one that answered nothing.
    let shell = json!({ "command": ["sh", "-c", "echo 'API_KEY is not set' >&2; exit 0"] });
    let taken = run_as(shell, "");
    assert_eq!(taken.error(), "the program ended with exit status: 0: API_KEY is not set");
}

#[test]
fn progress_is_a_sign_of_life() {
    let scratch = tempfile::tempdir().unwrap();
    let working = "for step in 1 2 3 4; do sleep 0.5; progress $step; done; says done";
    let provider = provider(server(scratch.path(), STATELESS, working));
    let limits = Limits { idle: Duration::from_millis(1800), ..Limits::default() };
    let taken = block_on(async { take(&provider, Turn { limits, ..turn("x") }).await });
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "done"));
}

#[test]
fn a_turn_that_is_cancelled_cancels_its_call_and_leaves_nothing() {
    for opening in [STATELESS, LEGACY] {
        let scratch = tempfile::tempdir().unwrap();
        let provider = provider(server(scratch.path(), opening, "sleep 600 & hear"));
        let asked = turn("x");
        let (mark, cancel) = (asked.mark.clone(), CancellationToken::new());
        let called = async {
            while !read(scratch.path(), "heard").contains("tools/call") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            cancel.cancel();
        };
        let taken =
            block_on(async { tokio::join!(take_with(&provider, asked, cancel.clone(), |_| {}), called).0 });
        assert_eq!(taken.outcome, Err(TurnError::Cancelled));
        assert_eq!(find_marked(&mark), []);
        let heard = read(scratch.path(), "heard");
        assert!(heard.lines().last().unwrap().contains("notifications/cancelled"), "{heard}");
    }
}

#[test]
fn a_turn_that_takes_too_long_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let provider = provider(server(scratch.path(), STATELESS, "sleep 600 & hear"));
    let wall = Duration::from_secs(1);
    let asked = Turn { limits: Limits { wall, ..Limits::default() }, ..turn("x") };
    let mark = asked.mark.clone();
    let taken = block_on(async { take(&provider, asked).await });
    assert_eq!(taken.outcome, Err(TurnError::WallTimeout { limit: wall }));
    assert_eq!(find_marked(&mark), []);
}

#[test]
fn a_server_is_looked_at_without_a_call() {
    for opening in [STATELESS, LEGACY] {
        let scratch = tempfile::tempdir().unwrap();
        let config = server(scratch.path(), opening, "says never");
        let found = block_on(async { provider(config.clone()).probe().await });
        assert_eq!((found.version.as_deref(), found.reached), (Some("peer 1"), Ok(())));
        let mut other = config;
        other["tool"] = json!("aks");
        let found = block_on(async { provider(other).probe().await });
        assert_eq!(found.reached.unwrap_err().code(), "rejected");
        assert!(!read(scratch.path(), "heard").contains("tools/call"));
    }
    let absent = json!({ "kind": "mcp", "command": ["no-such-program-anywhere"], "tool": "ask" });
    let found = block_on(async { provider(absent).probe().await });
    assert_eq!(found.reached.unwrap_err().code(), "unreachable");
}

#[test]
fn a_prompt_has_one_place() {
    let twice = json!({ "kind": "mcp", "command": ["x"], "tool": "ask", "arguments": { "prompt": "p" } });
    let error = try_provider(twice).err().unwrap().to_string();
    assert_eq!(error, "`arguments` of provider `under-test` must not set `prompt`: it gets the prompt");
    for missing in [json!({ "tool": "" }), json!({ "argument": " " }), json!({ "command": [] })] {
        let mut config = json!({ "kind": "mcp", "command": ["x"], "tool": "ask" });
        config.as_object_mut().unwrap().extend(missing.as_object().unwrap().clone());
        assert!(try_provider(config).is_err(), "{missing}");
    }
}
