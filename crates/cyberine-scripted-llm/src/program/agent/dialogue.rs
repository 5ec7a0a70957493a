//! An agent of the Agent Client Protocol: answers what it is asked until its input ends.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::{begin, print, said};
use crate::call::Call;
use crate::program::{ProgramError, Request, misbehave};
use crate::script::{Fault, Reply, Script, Stop, scripted_id};
use crate::wire::pieces;

/// Messages that are read ahead.
const AHEAD: usize = 16;

/// How the answer to a prompt went.
pub(super) enum Told {
    /// It was answered, or refused.
    Answered,
    /// The script wants it to break off.
    BrokenOff,
}

/// The messages that come on standard input.
pub(super) fn listen() -> Receiver<Value> {
    let (sender, heard) = sync_channel(AHEAD);
    // Ends with the process.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    heard
}

/// Holds one dialogue on the standard streams.
pub(super) fn hold_one(request: &Request, script: &Script) -> Result<ExitCode, ProgramError> {
    let heard = listen();
    while let Ok(message) = heard.recv() {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => {
                let agent = json!({ "name": "cyberine-scripted-llm", "version": env!("CARGO_PKG_VERSION") });
                let result = json!({ "protocolVersion": 1, "agentInfo": agent, "agentCapabilities": {} });
                say(&json!({ "id": id, "result": result }))?;
            }
            Some("session/new") => say(&json!({ "id": id, "result": { "sessionId": "scripted" } }))?,
            Some("session/prompt") => {
                let prompt = crate::call::text_of(&message["params"]["prompt"]);
                let reply = script.pick(&Call::program(scripted_id(&request.role), prompt));
                let _ignored = begin(request, &reply)?;
                if let Told::BrokenOff = answer(id, &reply, &heard)? {
                    return Ok(ExitCode::from(reply.program.exit));
                }
                misbehave(&reply.program, &mut std::io::stdout())?;
                if reply.program.exit != 0 {
                    return Ok(ExitCode::from(reply.program.exit));
                }
            }
            Some(method) if !id.is_null() => {
                let message = format!("this agent does not offer `{method}`");
                say(&json!({ "id": id, "error": { "code": -32601, "message": message } }))?;
            }
            _ => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(id: &Value, reply: &Reply, heard: &Receiver<Value>) -> Result<Told, ProgramError> {
    if let Some(Fault::Status { code, message, retry_after, .. }) = &reply.fault {
        let wait = retry_after.as_ref().map(|wait| format!(" Please retry in {wait}s.")).unwrap_or_default();
        let message = message.as_deref().unwrap_or("scripted failure, no model was called");
        say(&json!({ "id": id, "error": { "code": code, "message": format!("{message}{wait}") } }))?;
        return Ok(Told::Answered);
    }
    for (at, tool) in reply.tools.iter().enumerate() {
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        let call = json!({ "toolCallId": format!("t{at}"), "title": tool.name, "kind": "execute", "rawInput": tool.input });
        let params = json!({ "sessionId": "scripted", "options": options, "toolCall": call });
        say(&json!({ "id": format!("p{at}"), "method": "session/request_permission", "params": params }))?;
        if heard.recv().is_ok_and(|message| message["method"] == "session/cancel") {
            return cancelled(id);
        }
    }
    let (pieces_said, whole) = said(reply);
    for text in pieces_said {
        std::thread::sleep(reply.delay);
        chunk(text)?;
    }
    match reply.fault {
        Some(Fault::Hang { .. }) => loop {
            match heard.recv() {
                Ok(message) if message["method"] == "session/cancel" => return cancelled(id),
                Ok(_) => {}
                Err(_) => return Ok(Told::BrokenOff),
            }
        },
        Some(Fault::Drip { every_ms }) => loop {
            for text in pieces(&reply.text, reply.chunk) {
                chunk(text)?;
                match heard.recv_timeout(Duration::from_millis(every_ms)) {
                    Ok(message) if message["method"] == "session/cancel" => return cancelled(id),
                    Err(RecvTimeoutError::Disconnected) => return Ok(Told::BrokenOff),
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                }
            }
        },
        _ if !whole => return Ok(Told::BrokenOff),
        _ => {}
    }
    let reason = match reply.stop {
        Stop::End | Stop::Tool => "end_turn",
        Stop::Length | Stop::Context => "max_tokens",
        Stop::Filter | Stop::Refusal => "refusal",
    };
    let tokens = print::tokens(reply);
    let usage = json!({
        "inputTokens": tokens.input, "outputTokens": tokens.output, "totalTokens": tokens.input + tokens.output,
        "cachedReadTokens": tokens.cached, "cachedWriteTokens": tokens.cache_write, "thoughtTokens": tokens.reasoning,
    });
    say(&json!({ "id": id, "result": { "stopReason": reason, "usage": usage } }))?;
    Ok(Told::Answered)
}

fn cancelled(id: &Value) -> Result<Told, ProgramError> {
    say(&json!({ "id": id, "result": { "stopReason": "cancelled" } }))?;
    Ok(Told::Answered)
}

fn chunk(text: &str) -> std::io::Result<()> {
    let content = json!({ "type": "text", "text": text });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    say(&json!({ "method": "session/update", "params": { "sessionId": "scripted", "update": update } }))
}

fn say(message: &Value) -> std::io::Result<()> {
    let mut message = message.clone();
    message["jsonrpc"] = json!("2.0");
    write(&message)
}

pub(super) fn write(message: &Value) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
