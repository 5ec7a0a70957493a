//! The lines of `claude -p --output-format stream-json`: `system/init`, `assistant`, `result`.

use serde_json::{Value, json};

use super::anthropic;
use crate::call::{Call, Wire};
use crate::script::{Fault, Reply, ReplyUsage, Stop};

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Options {
    /// `--json-schema` was given: JSON answers are repeated as `structured_output`.
    pub(crate) structured: bool,
    /// `--include-partial-messages` was given: the deltas come as `stream_event` lines.
    pub(crate) partial: bool,
    /// `--input-format stream-json` was given: prompt, questions and answers are lines on the input.
    pub(crate) dialogue: bool,
    /// It is `codex exec` that is played.
    pub(crate) codex: bool,
    /// The directory the program works in.
    pub(crate) cwd: String,
}

/// What is printed, and how the program ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) lines: Vec<String>,
    pub(crate) exit: u8,
}

/// The lines of one session that answers `call` with `reply`.
///
/// Of the wire's faults, a status becomes the retries and the failed result of the real program,
/// and a stream that breaks or ends early loses its last lines.
pub(crate) fn session(call: &Call, reply: &Reply, options: &Options) -> Session {
    let mut lines = vec![init(reply, options)];
    let mut failure = failure_of(reply.stop).is_some();
    if let Some(Fault::Status { code, message, .. }) = &reply.fault {
        lines.extend(failed(reply, *code, message.as_deref()));
        return printed(lines, true);
    }
    if options.partial {
        let call = Call { wire: Wire::Anthropic, ..call.clone() };
        lines.extend(super::events(&call, reply).iter().filter_map(|event| partial(reply, &event.text)));
    }
    lines.extend(blocks(reply).into_iter().map(|block| assistant(reply, &block)));
    lines.push(result(reply, options));
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

fn session_id(reply: &Reply) -> String {
    let [high, low] = [reply.id >> 32, reply.id & 0xffff_ffff];
    format!("{high:08x}-0000-4000-8000-0000{low:08x}")
}

fn init(reply: &Reply, options: &Options) -> Value {
    json!({
        "type": "system", "subtype": "init", "cwd": options.cwd, "session_id": session_id(reply), "tools": [],
        "mcp_servers": [], "model": reply.model, "permissionMode": "default", "apiKeySource": "none",
        "claude_code_version": concat!(env!("CARGO_PKG_VERSION"), " (scripted, no model was called)"), "uuid": "u0",
    })
}

fn blocks(reply: &Reply) -> Vec<Value> {
    let whole = anthropic::whole(reply);
    whole["content"].as_array().cloned().unwrap_or_default()
}

fn assistant(reply: &Reply, block: &Value) -> Value {
    let mut message = anthropic::whole(reply);
    message["content"] = json!([block]);
    message["stop_reason"] = Value::Null;
    // The real program reports one output token on these lines; only `result` counts.
    if message["usage"]["output_tokens"].is_u64() {
        message["usage"]["output_tokens"] = json!(1);
    }
    json!({"type": "assistant", "message": message, "parent_tool_use_id": null, "session_id": session_id(reply), "uuid": "u1"})
}

/// A server-sent event as the line that wraps it; pings are not passed on.
fn partial(reply: &Reply, event: &str) -> Option<Value> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
    let event: Value = serde_json::from_str(data).ok()?;
    (event["type"] != "ping").then(|| {
        json!({"type": "stream_event", "event": event, "session_id": session_id(reply), "parent_tool_use_id": null, "uuid": "u2"})
    })
}

/// What makes a result a failed one: its terminal reason.
fn failure_of(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::End | Stop::Tool => None,
        Stop::Length | Stop::Filter | Stop::Refusal => Some("api_error"),
        Stop::Context => Some("prompt_too_long"),
    }
}

fn result(reply: &Reply, options: &Options) -> Value {
    let failure = failure_of(reply.stop);
    let whole = anthropic::whole(reply);
    let text = match reply.stop {
        Stop::Context => "Prompt is too long",
        Stop::Length => "API Error: the answer exceeded the output token maximum",
        Stop::Filter | Stop::Refusal => "API Error: safeguards flagged this message",
        Stop::End | Stop::Tool => &reply.text,
    };
    let mut result = json!({
        "type": "result", "subtype": "success", "is_error": failure.is_some(), "result": text,
        "stop_reason": whole["stop_reason"], "terminal_reason": failure.unwrap_or("completed"),
        "api_error_status": (reply.stop == Stop::Context).then_some(400), "session_id": session_id(reply), "num_turns": 1,
        "duration_ms": 1, "duration_api_ms": 1, "total_cost_usd": 0, "permission_denials": [], "uuid": "u9",
        "modelUsage": model_usage(reply),
    });
    if let Some(usage) = whole.get("usage") {
        result["usage"] = usage.clone();
    }
    if options.structured && failure.is_none() {
        let answered = reply.tools.first().map(|tool| tool.input.clone());
        if let Some(value) = answered.or_else(|| serde_json::from_str(&reply.text).ok()) {
            result["structured_output"] = value;
        }
    }
    result
}

fn model_usage(reply: &Reply) -> Value {
    let ReplyUsage::Tokens(tokens) = reply.usage else { return json!({}) };
    json!({reply.model.as_str(): {
        "inputTokens": tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_write),
        "outputTokens": tokens.output, "cacheReadInputTokens": tokens.cached,
        "cacheCreationInputTokens": tokens.cache_write, "costUSD": 0,
    }})
}

/// The real program retries what the service refuses, says so, and then fails with
/// `subtype: "success"` and `is_error: true`.
fn failed(reply: &Reply, status: u16, message: Option<&str>) -> Vec<Value> {
    let (kind, retried, text) = match status {
        401 => ("authentication_error", Some("authentication_failed"), "Invalid API key"),
        402 => ("billing_error", None, "Credit balance is too low"),
        429 => ("rate_limit_error", Some("rate_limit"), "API Error: 429 would exceed your rate limit"),
        529 => ("overloaded_error", Some("overloaded"), "API Error: 529 Overloaded"),
        400..=499 => ("invalid_request_error", None, "API Error: the request was refused"),
        _ => ("api_error", Some("server_error"), "API Error: internal server error"),
    };
    let retry = json!({
        "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1, "retry_delay_ms": 1,
        "error_status": status, "error": retried, "session_id": session_id(reply), "uuid": "r1",
    });
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "result": message.unwrap_or(text),
        "stop_reason": null, "terminal_reason": "api_error", "api_error_status": status, "api_error_type": kind,
        "session_id": session_id(reply), "num_turns": 1, "duration_ms": 1, "duration_api_ms": 1, "total_cost_usd": 0,
        "usage": {"input_tokens": 0, "output_tokens": 0}, "modelUsage": {}, "permission_denials": [], "uuid": "u9",
    });
    retried.map(|_| retry).into_iter().chain([result]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn run(rule: &str, options: &Options) -> (Vec<Value>, u8) {
        let call = Call::program("scripted/m".into(), "hi".into());
        let session = session(&call, &reply(rule), options);
        (session.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect(), session.exit)
    }

    fn types(lines: &[Value]) -> Vec<&str> {
        lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_session_is_init_assistant_and_a_result_that_costs_nothing() {
        let (lines, exit) = run("text='café'\nusage={input=10,cached=4,output=2}", &Options::default());
        assert_eq!((types(&lines), exit), (vec!["system", "assistant", "result"], 0));
        assert_eq!(lines[1]["message"]["content"][0]["text"], "café");
        assert_eq!(lines[2]["result"], "café");
        assert_eq!(lines[2]["is_error"], false);
        assert_eq!(lines[2]["total_cost_usd"], 0);
        assert_eq!(lines[2]["usage"]["input_tokens"], 6);
        assert_eq!(lines[2]["usage"]["cache_read_input_tokens"], 4);
        assert_eq!(lines[2]["usage"]["output_tokens"], 2);
        assert!(lines[0]["claude_code_version"].as_str().unwrap().contains("no model was called"));
    }

    #[test]
    fn partial_messages_come_as_stream_events() {
        let options = Options { partial: true, ..Options::default() };
        let (lines, _) = run("text='abcdef'\nchunk=3", &options);
        let deltas: String =
            lines.iter().filter_map(|line| line["event"]["delta"]["text"].as_str()).collect();
        assert_eq!(deltas, "abcdef");
    }

    #[test]
    fn json_is_repeated_as_structured_output_when_a_schema_was_given() {
        let options = Options { structured: true, ..Options::default() };
        assert_eq!(run("json={winner='B'}", &options).0[2]["structured_output"], json!({"winner": "B"}));
        assert_eq!(run("json={winner='B'}", &Options::default()).0[2].get("structured_output"), None);
    }

    #[test]
    fn an_empty_answer_looks_like_success() {
        let (lines, exit) = run("", &Options::default());
        assert_eq!((types(&lines), exit), (vec!["system", "result"], 0));
        assert_eq!((&lines[1]["result"], &lines[1]["subtype"]), (&json!(""), &json!("success")));
    }

    #[test]
    fn failures_end_with_one_and_say_why() {
        let (lines, exit) = run("fault={status={code=401}}", &Options::default());
        assert_eq!((types(&lines), exit), (vec!["system", "system", "result"], 1));
        assert_eq!(lines[2]["is_error"], true);
        assert_eq!(lines[2]["api_error_status"], 401);
        assert_eq!(
            run("fault={status={code=402}}", &Options::default()).0[1]["result"],
            "Credit balance is too low"
        );
        assert_eq!(run("refusal='no'", &Options::default()).1, 1);
    }

    #[test]
    fn a_broken_session_has_no_result() {
        assert_eq!(types(&run("text='x'\nfault={disconnect={after=1}}", &Options::default()).0), ["system"]);
        assert_eq!(
            types(&run("text='x'\nfault='no-terminator'", &Options::default()).0),
            ["system", "assistant"]
        );
    }
}
