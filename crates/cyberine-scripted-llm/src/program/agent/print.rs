//! What agents print for one prompt: pure functions.

use serde_json::{Value, json};

use super::{Agent, said};
use crate::script::{Fault, Reply, ReplyUsage, Stop, Tokens};

/// What is printed, and how the program ends.
pub(super) struct Printed {
    pub(super) lines: Vec<String>,
    pub(super) exit: u8,
}

/// Everything that `agent` prints of `reply` before it ends, or before a fault that never does.
pub(super) fn all(agent: &Agent, reply: &Reply) -> Printed {
    let failed = match &reply.fault {
        Some(Fault::Status { code, message, retry_after, .. }) => {
            let message = message.as_deref().unwrap_or("scripted failure, no model was called");
            Some(failure(agent, *code, message, retry_after.as_deref()))
        }
        _ => None,
    };
    if let Some((lines, exit)) = failed {
        return Printed { lines: begin(agent, reply).into_iter().chain(lines).collect(), exit };
    }
    let (pieces, whole) = said(reply);
    let mut lines = begin(agent, reply);
    match agent {
        // It prints whole parts, and none at all of an empty one.
        Agent::Opencode | Agent::Aider(_) => {
            let text = pieces.concat();
            lines.extend((!text.is_empty()).then(|| piece(agent, &text)));
        }
        Agent::Acp | Agent::Gemini => lines.extend(pieces.iter().map(|text| piece(agent, text))),
    }
    if whole {
        lines.extend(end(agent, reply));
    }
    Printed { lines, exit: 0 }
}

/// One more piece of text.
pub(super) fn piece(agent: &Agent, text: &str) -> String {
    match agent {
        Agent::Acp | Agent::Gemini => {
            line(&json!({ "type": "message", "role": "assistant", "content": text, "delta": true }))
        }
        Agent::Opencode => line(&json!({ "type": "text", "part": { "type": "text", "text": text } })),
        Agent::Aider(_) => format!("{text}\n"),
    }
}

fn begin(agent: &Agent, reply: &Reply) -> Vec<String> {
    match agent {
        Agent::Acp | Agent::Gemini => vec![
            line(&json!({ "type": "init", "session_id": reply.id.to_string(), "model": reply.model })),
            line(&json!({ "type": "message", "role": "user", "content": "…" })),
        ],
        Agent::Opencode => vec![line(&json!({ "type": "step_start", "part": { "type": "step-start" } }))],
        Agent::Aider(_) => vec![format!(
            "Aider v{} (scripted, no model was called)\nModel: {} with ask edit format\nGit repo: none\nRepo-map: disabled\n\n",
            env!("CARGO_PKG_VERSION"),
            reply.model
        )],
    }
}

fn end(agent: &Agent, reply: &Reply) -> Vec<String> {
    let tokens = tokens(reply);
    match agent {
        Agent::Acp | Agent::Gemini => {
            let complaint = match reply.stop {
                Stop::Filter | Stop::Refusal => {
                    Some("The model response was blocked due to safety settings.")
                }
                _ if reply.text.is_empty() => {
                    Some("The model returned an empty response with no text or thoughts.")
                }
                _ => None,
            };
            let stats = json!({
                "total_tokens": tokens.input + tokens.output, "input_tokens": tokens.input,
                "output_tokens": tokens.output - tokens.reasoning, "cached": tokens.cached, "tool_calls": 0,
            });
            let status = if complaint.is_some() { "error" } else { "success" };
            let error = complaint
                .map(|message| line(&json!({ "type": "error", "severity": "error", "message": message })));
            error
                .into_iter()
                .chain([line(&json!({ "type": "result", "status": status, "stats": stats }))])
                .collect()
        }
        Agent::Opencode => {
            let reason = match reply.stop {
                Stop::End | Stop::Refusal => "stop",
                Stop::Tool => "tool-calls",
                Stop::Length | Stop::Context => "length",
                Stop::Filter => "content-filter",
            };
            let counts = json!({
                "input": tokens.input - tokens.cached - tokens.cache_write, "output": tokens.output - tokens.reasoning,
                "reasoning": tokens.reasoning, "cache": { "read": tokens.cached, "write": tokens.cache_write },
            });
            let part = json!({ "type": "step-finish", "reason": reason, "tokens": counts, "cost": 0 });
            vec![line(&json!({ "type": "step_finish", "part": part }))]
        }
        Agent::Aider(_) => {
            let used = format!("\nTokens: {} sent, {} received.\n", tokens.input, tokens.output);
            match reply.stop {
                Stop::Length | Stop::Context => {
                    vec![format!("\nModel {} has hit a token limit!\n", reply.model)]
                }
                _ if reply.text.is_empty() => {
                    vec!["Empty response received from LLM. Check your provider account?\n".to_owned(), used]
                }
                _ => vec![used],
            }
        }
    }
}

fn failure(agent: &Agent, status: u16, message: &str, wait: Option<&str>) -> (Vec<String>, u8) {
    let waits = wait.map(|wait| format!("\nSuggested retry after {wait}s.")).unwrap_or_default();
    match agent {
        Agent::Acp | Agent::Gemini => {
            // Of some failures the real program tells the whole body, of others only the message.
            let body = json!({ "error": { "code": status, "message": message } }).to_string();
            let told = if matches!(status, 400..=403) { body } else { format!("{message}{waits}") };
            let error = json!({ "type": "unknown", "message": format!("[API Error: {told}]") });
            // The real program exits with the status modulo 256.
            let exit = status.to_le_bytes()[0];
            (vec![line(&json!({ "type": "result", "status": "error", "error": error, "stats": {} }))], exit)
        }
        Agent::Opencode => {
            let data = json!({ "message": message, "statusCode": status, "responseHeaders": { "retry-after": wait } });
            (vec![line(&json!({ "type": "error", "error": { "name": "APIError", "data": data } }))], 1)
        }
        Agent::Aider(_) => {
            let name = match status {
                401 | 403 => "AuthenticationError",
                429 => "RateLimitError",
                500.. => "ServiceUnavailableError",
                _ => "BadRequestError",
            };
            let told = wait.map(|wait| format!("; try again in {wait}s")).unwrap_or_default();
            (vec![format!("litellm.{name}: {name}: {message}{told}\n")], 0)
        }
    }
}

/// The counts of a reply; none where they are to be missing or wrong, which these forms cannot be.
pub(super) fn tokens(reply: &Reply) -> Tokens {
    match reply.usage {
        ReplyUsage::Tokens(tokens) => tokens,
        ReplyUsage::Missing | ReplyUsage::Wrong => Tokens::default(),
    }
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
