//! Stand-ins for agents and for aider, in every form they are driven in.

use std::path::Path;

use cyberine_provider::contract::Scenario;
use serde_json::{Value, json};

use crate::support::script;

/// What a stand-in says and how it goes on, by scenario.
type Lines = (Scenario, Vec<Value>, &'static str);

fn update(update: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn chunk(text: &str) -> Value {
    update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
}

fn ended(reason: &str) -> Value {
    let usage = json!({ "inputTokens": 3, "outputTokens": 2, "totalTokens": 5 });
    json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": reason, "usage": usage } })
}

fn refused(code: u16, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": code, "message": message } })
}

/// Agents that answer three requests in turn and wait for the end of their input.
pub(super) fn agents(directory: &Path) -> Vec<(Scenario, Value)> {
    let lines: Vec<Lines> = vec![
        (Scenario::Answers, vec![chunk("Hello — "), chunk("café"), ended("end_turn")], "cat"),
        (Scenario::Talks, vec![chunk("on and on")], "exec sleep 600"),
        (Scenario::Silent, vec![], "exec sleep 600"),
        (Scenario::Empty, vec![ended("end_turn")], "cat"),
        (Scenario::Cut, vec![chunk("half")], ""),
        (Scenario::Unauthorized, vec![refused(401, "no")], "cat"),
        (Scenario::Unpaid, vec![refused(402, "no")], "cat"),
        (Scenario::Limited, vec![refused(429, "Suggested retry after 3s.")], "cat"),
        (Scenario::Overloaded, vec![refused(503, "no")], "cat"),
    ];
    let opening = concat!(
        "read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}'\n",
        "read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"sessionId\":\"s\"}}'\n",
        "read -r line\n",
    );
    let mut agents = stand_ins(directory, "acp", lines, opening, None);
    let absent = json!({ "kind": "acp", "command": ["no-such-agent-anywhere", "--acp"] });
    agents.push((Scenario::Absent, absent));
    agents
}

/// One shots of Gemini CLI.
pub(super) fn geminis(directory: &Path) -> Vec<(Scenario, Value)> {
    let said = |text: &str| json!({ "type": "message", "role": "assistant", "content": text, "delta": true });
    let stats = json!({ "total_tokens": 5, "input_tokens": 3, "output_tokens": 2 });
    let ended = |status: &str| json!({ "type": "result", "status": status, "stats": stats });
    let failed =
        |message: &str| json!({ "type": "result", "status": "error", "error": { "message": message } });
    let empty =
        json!({ "type": "error", "severity": "error", "message": "The model returned an empty response" });
    let lines: Vec<Lines> = vec![
        (Scenario::Answers, vec![said("Hello — "), said("café"), ended("success")], ""),
        (Scenario::Talks, vec![said("on and on")], "exec sleep 600"),
        (Scenario::Silent, vec![], "exec sleep 600"),
        (Scenario::Empty, vec![empty, ended("error")], ""),
        (Scenario::Cut, vec![said("half")], ""),
        (Scenario::Unauthorized, vec![failed("[API Error: no]")], "exit 145"),
        (Scenario::Unpaid, vec![failed("[API Error: no]")], "exit 146"),
        (Scenario::Limited, vec![failed("[API Error: no\nSuggested retry after 3s.]")], "exit 173"),
        (Scenario::Overloaded, vec![failed("[API Error: no]")], "exit 247"),
    ];
    stand_ins(directory, "gemini", lines, "cat > /dev/null\n", Some("gemini"))
}

/// One shots of opencode.
pub(super) fn opencodes(directory: &Path) -> Vec<(Scenario, Value)> {
    let start = || json!({ "type": "step_start", "part": {} });
    let said = |text: &str| json!({ "type": "text", "part": { "text": text } });
    let ended = || {
        let tokens = json!({ "input": 3, "output": 2, "reasoning": 0, "cache": { "write": 0, "read": 0 } });
        json!({ "type": "step_finish", "part": { "reason": "stop", "tokens": tokens, "cost": 0 } })
    };
    let failed = |status: u16| {
        let data =
            json!({ "message": "no", "statusCode": status, "responseHeaders": { "retry-after": "3" } });
        json!({ "type": "error", "error": { "name": "APIError", "data": data } })
    };
    let lines: Vec<Lines> = vec![
        (Scenario::Answers, vec![start(), said("Hello — "), said("café"), ended()], ""),
        (Scenario::Talks, vec![start(), said("on and on")], "exec sleep 600"),
        (Scenario::Silent, vec![], "exec sleep 600"),
        (Scenario::Empty, vec![start(), ended()], ""),
        (Scenario::Cut, vec![start(), said("half")], ""),
        (Scenario::Unauthorized, vec![failed(401)], "exit 1"),
        (Scenario::Unpaid, vec![failed(402)], "exit 1"),
        (Scenario::Limited, vec![failed(429)], "exit 1"),
        (Scenario::Overloaded, vec![failed(503)], "exit 1"),
    ];
    stand_ins(directory, "opencode", lines, "cat > /dev/null\n", Some("opencode"))
}

fn stand_ins(
    directory: &Path,
    name: &str,
    lines: Vec<Lines>,
    opening: &str,
    form: Option<&str>,
) -> Vec<(Scenario, Value)> {
    let stand_in = |(scenario, lines, end): Lines| {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut config =
            json!({ "kind": "acp", "command": [program(directory, name, scenario, opening, &lines, end)] });
        if let Some(form) = form {
            config["form"] = json!(form);
        }
        (scenario, config)
    };
    lines.into_iter().map(stand_in).collect()
}

/// A program that does what `opening` says, prints `text` and does `end`.
fn program(directory: &Path, name: &str, scenario: Scenario, opening: &str, text: &str, end: &str) -> String {
    let directory = directory.join(format!("{name}-{scenario:?}"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("text"), text).unwrap();
    let here = directory.display();
    script(&directory, name, &format!("#!/bin/sh\n{opening}cat {here}/text\n{end}\n"))
}

/// Aider, which ends with 0 whatever happened.
pub(super) fn aiders(directory: &Path) -> Vec<(Scenario, Value)> {
    const BANNER: &str =
        "Aider v0.86.2\nModel: m with ask edit format\nGit repo: none\nRepo-map: disabled\n\n";
    let failed = |name: &str| format!("litellm.{name}: {name}: OpenAIException - no; try again in 3s.\n");
    [
        (Scenario::Answers, "Hello — café\n\nTokens: 3 sent, 2 received.\n".to_owned(), ""),
        (Scenario::Talks, "on and on\nand on\n".to_owned(), "exec sleep 600"),
        (Scenario::Silent, String::new(), "exec sleep 600"),
        (Scenario::Empty, "Empty response received from LLM. Check your account?\n".to_owned(), ""),
        (Scenario::Unauthorized, failed("AuthenticationError"), ""),
        (Scenario::Limited, failed("RateLimitError") + "Retrying in 0.2 seconds...\n", "exec sleep 600"),
        (Scenario::Overloaded, failed("ServiceUnavailableError"), ""),
    ]
    .into_iter()
    .map(|(scenario, text, end)| {
        let program = program(directory, "aider", scenario, "", &(BANNER.to_owned() + &text), end);
        (scenario, json!({ "kind": "aider", "program": program }))
    })
    .collect()
}
