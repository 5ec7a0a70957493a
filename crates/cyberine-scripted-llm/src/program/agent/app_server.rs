//! `codex app-server`: one thread, whose turns are answered until the input ends.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

use super::dialogue::{Told, listen, write};
use super::{begin, print, said};
use crate::call::Call;
use crate::program::{ProgramError, Request, misbehave};
use crate::script::{Fault, Reply, ReplyUsage, Script, scripted_id};
use crate::wire::{codex, pieces};

const THREAD: &str = "scripted-thread";
const TURN: &str = "scripted-turn";
const MESSAGE: &str = "scripted-message";

/// How often the real program tries again.
const RETRIES: usize = 5;

/// Holds one dialogue on the standard streams. The model that is asked for is the role.
pub(super) fn hold_one(request: &Request, script: &Script) -> Result<ExitCode, ProgramError> {
    let heard = listen();
    let mut role = request.role.clone();
    while let Ok(message) = heard.recv() {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => {
                let agent = format!("cyberine-scripted-llm/{}", env!("CARGO_PKG_VERSION"));
                write(&json!({ "id": id, "result": { "userAgent": agent } }))?;
            }
            Some("thread/start") => {
                if let Some(model) = params["model"].as_str() {
                    model.clone_into(&mut role);
                }
                let sandbox = json!({ "type": "readOnly", "networkAccess": false });
                let thread = json!({ "id": THREAD });
                write(
                    &json!({ "id": id, "result": { "thread": thread, "sandbox": sandbox, "approvalPolicy": "never" } }),
                )?;
            }
            Some("turn/start") => {
                write(&json!({ "id": id, "result": { "turn": { "id": TURN, "status": "inProgress" } } }))?;
                let prompt = crate::call::text_of(&params["input"]);
                let reply = script.pick(&Call::program(scripted_id(&role), prompt));
                let _ignored = begin(request, &reply)?;
                if let Told::BrokenOff = answer(&reply, &heard)? {
                    return Ok(ExitCode::from(reply.program.exit));
                }
                misbehave(&reply.program, &mut std::io::stdout())?;
                if reply.program.exit != 0 {
                    return Ok(ExitCode::from(reply.program.exit));
                }
            }
            Some(method) if !id.is_null() => {
                let message = format!("unknown method `{method}`");
                write(&json!({ "id": id, "error": { "code": -32600, "message": message } }))?;
            }
            _ => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(reply: &Reply, heard: &Receiver<Value>) -> Result<Told, ProgramError> {
    if let Some(Fault::Status { code, message, .. }) = &reply.fault {
        return refused(*code, &codex::why(*code, message.as_deref()));
    }
    for (at, tool) in reply.tools.iter().enumerate() {
        let command = tool.input["cmd"].as_str().or_else(|| tool.input["command"].as_str());
        let id = format!("scripted-call-{at}");
        let item = |status: &str| json!({ "type": "commandExecution", "id": id, "command": command.unwrap_or(&tool.name), "status": status });
        notice("item/started", json!({ "item": item("inProgress") }))?;
        let asked = json!({ "threadId": THREAD, "turnId": TURN, "itemId": id, "command": command });
        write(&json!({ "id": at, "method": "item/commandExecution/requestApproval", "params": asked }))?;
        if let Some(told) = heard.recv().ok().and_then(|message| stopped(&message)) {
            return told;
        }
        notice("item/completed", json!({ "item": item("declined") }))?;
    }
    let (pieces_said, whole) = said(reply);
    if !reply.text.is_empty() {
        notice("item/started", json!({ "item": { "type": "agentMessage", "id": MESSAGE, "text": "" } }))?;
    }
    for text in pieces_said {
        if let Some(told) = delta(text, reply.delay, heard)? {
            return told;
        }
    }
    match reply.fault {
        Some(Fault::Hang { .. }) => loop {
            match heard.recv() {
                Ok(message) => {
                    if let Some(told) = stopped(&message) {
                        return told;
                    }
                }
                Err(_) => return Ok(Told::BrokenOff),
            }
        },
        Some(Fault::Drip { every_ms }) => loop {
            for text in pieces(&reply.text, reply.chunk) {
                if let Some(told) = delta(text, Duration::from_millis(every_ms), heard)? {
                    return told;
                }
            }
        },
        _ if !whole => Ok(Told::BrokenOff),
        _ => end(reply),
    }
}

/// Says one more piece and waits, or stops where that is asked meanwhile or nobody is there any more.
fn delta(
    text: &str,
    wait: Duration,
    heard: &Receiver<Value>,
) -> std::io::Result<Option<Result<Told, ProgramError>>> {
    notice("item/agentMessage/delta", json!({ "itemId": MESSAGE, "delta": text }))?;
    Ok(match heard.recv_timeout(wait) {
        Ok(message) => stopped(&message),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Ok(Told::BrokenOff)),
    })
}

/// What becomes of the turn where `message` asks for its end.
fn stopped(message: &Value) -> Option<Result<Told, ProgramError>> {
    (message["method"] == "turn/interrupt").then(|| {
        write(&json!({ "id": message["id"], "result": {} }))?;
        completed("interrupted", json!([]), Value::Null)?;
        Ok(Told::Answered)
    })
}

fn end(reply: &Reply) -> Result<Told, ProgramError> {
    // It drops what is said in the place of an answer.
    let message = json!({ "type": "agentMessage", "id": MESSAGE, "text": reply.text });
    let items = if reply.text.is_empty() { vec![] } else { vec![message.clone()] };
    let broken = codex::broken(reply.stop);
    if broken.is_none() && !items.is_empty() {
        notice("item/completed", json!({ "item": message }))?;
    }
    if let ReplyUsage::Tokens(_) = reply.usage {
        let tokens = print::tokens(reply);
        let total = json!({
            "totalTokens": tokens.input + tokens.output, "inputTokens": tokens.input,
            "cachedInputTokens": tokens.cached, "cacheWriteInputTokens": tokens.cache_write,
            "outputTokens": tokens.output, "reasoningOutputTokens": tokens.reasoning,
        });
        notice("thread/tokenUsage/updated", json!({ "tokenUsage": { "total": total } }))?;
    }
    match broken {
        Some(why) => failed(why, &json!("other"))?,
        None => completed("completed", Value::Array(items), Value::Null)?,
    }
    Ok(Told::Answered)
}

/// The real program tries again whatever the status, and says so each time.
fn refused(status: u16, why: &str) -> Result<Told, ProgramError> {
    let info = |name: &str| json!({ name: { "httpStatusCode": status } });
    for n in 1..=RETRIES {
        let again = format!("Reconnecting... {n}/{RETRIES}");
        let error = json!({
            "message": again, "additionalDetails": why, "codexErrorInfo": info("responseStreamDisconnected"),
        });
        notice("error", json!({ "error": error, "willRetry": true }))?;
    }
    failed(why, &info("httpConnectionFailed"))?;
    Ok(Told::Answered)
}

fn failed(why: &str, info: &Value) -> std::io::Result<()> {
    let error = json!({ "message": why, "codexErrorInfo": info, "additionalDetails": null });
    notice("error", json!({ "error": error, "willRetry": false }))?;
    completed("failed", json!([]), error)
}

fn completed(status: &str, items: Value, error: Value) -> std::io::Result<()> {
    let turn = json!({ "id": TURN, "items": items, "status": status, "error": error });
    write(&json!({ "method": "turn/completed", "params": { "threadId": THREAD, "turn": turn } }))
}

/// Tells something of the turn.
fn notice(method: &str, mut params: Value) -> std::io::Result<()> {
    params["threadId"] = json!(THREAD);
    params["turnId"] = json!(TURN);
    write(&json!({ "method": method, "params": params }))
}
