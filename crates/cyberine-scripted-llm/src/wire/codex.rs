//! The lines of `codex exec --json`: `thread.started`, items, `turn.completed` or `turn.failed`.

use serde_json::{Value, json};

use super::claude::Session;
use crate::script::{Fault, Reply, ReplyUsage, Stop};

/// The lines of one turn that answers with `reply`.
///
/// Of the wire's faults, a status becomes the reconnects and the failed turn of the real program, and
/// a stream that breaks or ends early loses its last lines.
pub(crate) fn session(reply: &Reply) -> Session {
    let mut lines = vec![
        json!({"type": "thread.started", "thread_id": format!("00000000-0000-7000-8000-0000{:08x}", reply.id & 0xffff_ffff)}),
        json!({"type": "turn.started"}),
    ];
    if let Some(Fault::Status { code, message, .. }) = &reply.fault {
        lines.extend(failed(*code, message.as_deref()));
        return printed(lines, true);
    }
    for (at, tool) in reply.tools.iter().enumerate() {
        let command =
            tool.input["cmd"].as_str().or_else(|| tool.input["command"].as_str()).unwrap_or(&tool.name);
        let item = |status: &str, exit: Value| {
            json!({"id": format!("item_{}", at + 1), "type": "command_execution", "command": command,
                "aggregated_output": "", "exit_code": exit, "status": status})
        };
        lines.push(json!({"type": "item.started", "item": item("in_progress", Value::Null)}));
        lines.push(json!({"type": "item.completed", "item": item("completed", json!(0))}));
    }
    if !reply.text.is_empty() {
        let item = json!({"id": format!("item_{}", reply.tools.len() + 1), "type": "agent_message", "text": reply.text});
        lines.push(json!({"type": "item.completed", "item": item}));
    }
    let mut failure = true;
    match broken(reply.stop) {
        Some(why) => lines.extend(end(why)),
        None => {
            failure = false;
            lines.push(json!({"type": "turn.completed", "usage": usage(reply)}));
        }
    }
    if let Some(Fault::Disconnect { after } | Fault::EndEarly { after }) = reply.fault {
        lines.truncate(after);
        failure = true;
    }
    if reply.fault == Some(Fault::NoTerminator) {
        lines.pop();
    }
    printed(lines, failure)
}

fn printed(lines: Vec<Value>, failed: bool) -> Session {
    Session { lines: lines.into_iter().map(|line| format!("{line}\n")).collect(), exit: u8::from(failed) }
}

/// What the real program says of an answer that stopped for this; a refusal is dropped, so that the
/// turn is an empty one.
pub(crate) fn broken(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::End | Stop::Tool | Stop::Refusal => None,
        Stop::Length => Some("Incomplete response returned, reason: max_output_tokens"),
        Stop::Filter => Some("Incomplete response returned, reason: content_filter"),
        Stop::Context => Some(
            "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
        ),
    }
}

fn end(why: &str) -> [Value; 2] {
    [json!({"type": "error", "message": why}), json!({"type": "turn.failed", "error": {"message": why}})]
}

/// The real program tries five times more whatever the status, and says so each time.
fn failed(status: u16, message: Option<&str>) -> Vec<Value> {
    let why = why(status, message);
    let again =
        (1..=5).map(|n| json!({"type": "error", "message": format!("Reconnecting... {n}/5 ({why})")}));
    again.chain(end(&why)).collect()
}

/// What the real program says of an answer with this status.
pub(crate) fn why(status: u16, message: Option<&str>) -> String {
    let said = message.unwrap_or("scripted failure");
    match status {
        401 => format!("unexpected status 401 Unauthorized: {said}, url: http://127.0.0.1/v1/responses"),
        402 => format!("unexpected status 402 Payment Required: {said}, url: http://127.0.0.1/v1/responses"),
        429 => "exceeded retry limit, last status: 429 Too Many Requests".to_owned(),
        status => format!("unexpected status {status}: {said}, url: http://127.0.0.1/v1/responses"),
    }
}

fn usage(reply: &Reply) -> Value {
    let ReplyUsage::Tokens(tokens) = reply.usage else { return json!({}) };
    json!({"input_tokens": tokens.input, "cached_input_tokens": tokens.cached,
        "cache_write_input_tokens": tokens.cache_write, "output_tokens": tokens.output,
        "reasoning_output_tokens": tokens.reasoning})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn run(rule: &str) -> (Vec<Value>, u8) {
        let session = session(&reply(rule));
        (session.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect(), session.exit)
    }

    fn types(lines: &[Value]) -> Vec<&str> {
        lines.iter().skip(2).map(|line| line["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_turn_is_its_calls_its_answer_and_its_end() {
        let rule = "text='café'\ntools=[{name='exec_command',input={cmd='ls'}}]\nusage={input=10,cached=4,output=2,reasoning=1}";
        let (lines, exit) = run(rule);
        assert_eq!(types(&lines), ["item.started", "item.completed", "item.completed", "turn.completed"]);
        assert_eq!((&lines[2]["item"]["command"], &lines[4]["item"]["text"]), (&json!("ls"), &json!("café")));
        let usage = &lines[5]["usage"];
        assert_eq!((&usage["input_tokens"], &usage["cached_input_tokens"]), (&json!(10), &json!(4)));
        assert_eq!(exit, 0);
    }

    #[test]
    fn nothing_said_and_a_refusal_look_like_success() {
        for rule in ["", "refusal='no'"] {
            let (lines, exit) = run(rule);
            assert_eq!((types(&lines), exit), (vec!["turn.completed"], 0));
        }
    }

    #[test]
    fn failures_end_with_one_and_say_why() {
        let (lines, exit) = run("fault={status={code=401,message='bad sk-x'}}");
        assert_eq!((lines.len(), exit), (2 + 5 + 2, 1));
        assert!(
            lines[2]["message"].as_str().unwrap().starts_with("Reconnecting... 1/5 (unexpected status 401")
        );
        assert!(lines[8]["error"]["message"].as_str().unwrap().contains("bad sk-x"));
        let (lines, exit) = run("text='trunc'\nstop='length'");
        assert_eq!((types(&lines), exit), (vec!["item.completed", "error", "turn.failed"], 1));
        assert_eq!(types(&run("text='x'\nfault='no-terminator'").0), ["item.completed"]);
    }
}
