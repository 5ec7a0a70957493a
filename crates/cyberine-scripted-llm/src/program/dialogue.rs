//! The control channel of `claude -p --input-format stream-json`: the prompt comes as a line, the
//! program asks and is asked, and it lives until its input ends.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::{Value, json};

use super::{ProgramError, Request, Streams, answer};

/// Lines that were read and wait to be taken.
const QUEUE: usize = 16;

/// What came on the input.
enum Heard {
    /// The question.
    Prompt(String),
    /// The answer to a request of ours.
    Answer(Value),
}

/// Does what `request` asks in the form of a dialogue over the process's own streams.
pub(crate) fn converse(request: &Request) -> Result<ExitCode, ProgramError> {
    let own = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let (sender, heard) = sync_channel(QUEUE);
    std::thread::spawn(move || listen(BufReader::new(std::io::stdin()), own, &sender));
    let Ok(Heard::Prompt(prompt)) = heard.recv() else { return Ok(ExitCode::from(1)) };
    let mut out = Lines { ask: Asking { heard: &heard, out: std::io::stdout() }, last: Vec::new() };
    let (mut stdin, mut stderr) = (prompt.as_bytes(), std::io::stderr());
    let exit = answer(request, &mut Streams { stdin: &mut stdin, stdout: &mut out, stderr: &mut stderr })?;
    if out.last.windows(RESULT.len()).any(|part| part == RESULT) {
        // It waits for another question; the end of its input is its own.
        while heard.recv().is_ok() {}
    }
    Ok(exit)
}

/// How a result is told from other lines.
const RESULT: &[u8] = br#""type":"result""#;

/// Reads the input to its end. What stops the turn is done here, whatever the turn waits for.
#[expect(
    clippy::disallowed_methods,
    reason = "the other thread may be asleep for good, and nothing of it is kept"
)]
fn listen(input: impl BufRead, mut out: impl Write, heard: &SyncSender<Heard>) {
    for line in input.lines().map_while(Result::ok) {
        let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
        let id = &line["request_id"];
        let said = match (line["type"].as_str(), line["request"]["subtype"].as_str()) {
            (Some("user"), _) => heard.send(Heard::Prompt(text(&line["message"]["content"]))),
            (Some("control_response"), _) => heard.send(Heard::Answer(line["response"].clone())),
            (Some("control_request"), Some("interrupt")) => {
                let lines = format!("\n{}\n{}\n", response(id), aborted());
                // Nobody may be left to read it.
                let _unread = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
                std::process::exit(1);
            }
            (Some("control_request"), _) => {
                let _unread = writeln!(out, "{}", response(id)).and_then(|()| out.flush());
                Ok(())
            }
            _ => Ok(()),
        };
        if said.is_err() {
            return;
        }
    }
}

fn text(content: &Value) -> String {
    crate::call::text_of(content)
}

fn response(id: &Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": {}}})
}

/// The result of a turn that was stopped.
fn aborted() -> Value {
    json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "result": "",
        "stop_reason": null, "terminal_reason": "aborted_streaming", "num_turns": 1, "total_cost_usd": 0,
        "usage": {"input_tokens": 7, "output_tokens": 1}, "permission_denials": [],
        "modelUsage": {"scripted": {"inputTokens": 7, "outputTokens": 1, "costUSD": 0}},
    })
}

/// Asks before a tool is used, as the real program does, and one thing that nobody knows.
struct Asking<'a, W> {
    heard: &'a Receiver<Heard>,
    out: W,
}

impl<W: Write> Asking<'_, W> {
    fn about(&mut self, tool: &Value) -> std::io::Result<()> {
        let permission = json!({"subtype": "can_use_tool", "tool_name": tool["name"], "input": tool["input"],
            "tool_use_id": tool["id"]});
        for request in [json!({"subtype": "scripted_question"}), permission] {
            let id = format!("ask-{}", request["subtype"].as_str().unwrap_or_default());
            writeln!(
                self.out,
                "{}",
                json!({"type": "control_request", "request_id": id, "request": request})
            )?;
            self.out.flush()?;
            let answer = loop {
                match self.heard.recv() {
                    Ok(Heard::Answer(answer)) if answer["request_id"] == *id => break answer,
                    Ok(_) => {}
                    Err(_) => {
                        return Err(std::io::Error::other("the input ended before a question was answered"));
                    }
                }
            };
            if request["subtype"] == "can_use_tool" {
                let denied = answer["response"]["behavior"] != "allow";
                let content = answer["response"]["message"].as_str().unwrap_or("scripted output");
                let result = json!({"type": "tool_result", "tool_use_id": tool["id"], "content": content, "is_error": denied});
                let message = json!({"role": "user", "content": [result]});
                writeln!(
                    self.out,
                    "{}",
                    json!({"type": "user", "message": message, "parent_tool_use_id": null})
                )?;
            }
        }
        Ok(())
    }
}

/// The output, line by line: after a line that uses a tool, the questions about it.
struct Lines<'a, W> {
    ask: Asking<'a, W>,
    last: Vec<u8>,
}

impl<W: Write> Write for Lines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.ask.out.write_all(bytes)?;
        if self.last.ends_with(b"\n") {
            self.last.clear();
        }
        self.last.extend_from_slice(bytes);
        if self.last.ends_with(b"\n")
            && let Ok(line) = serde_json::from_slice::<Value>(&self.last)
            && line["type"] == "assistant"
        {
            let blocks = line["message"]["content"].as_array().cloned().unwrap_or_default();
            for tool in blocks.iter().filter(|block| block["type"] == "tool_use") {
                self.ask.about(tool)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.ask.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(input: &str) -> (Vec<String>, Vec<Value>) {
        let (sender, receiver) = sync_channel(QUEUE);
        let mut out = Vec::new();
        listen(input.as_bytes(), &mut out, &sender);
        drop(sender);
        let heard = receiver.iter().map(|heard| match heard {
            Heard::Prompt(prompt) => prompt,
            Heard::Answer(answer) => answer.to_string(),
        });
        let heard = heard.collect();
        let said = String::from_utf8(out).unwrap();
        (heard, said.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    #[test]
    fn a_handshake_is_answered_and_a_prompt_is_heard() {
        let hello = r#"{"type":"control_request","request_id":"r0","request":{"subtype":"initialize"}}"#;
        let user = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#;
        let (heard, said) = heard(&format!("{hello}\nnoise\n{user}\n"));
        assert_eq!(heard, ["hi"]);
        assert_eq!(said[0]["response"]["request_id"], "r0");
    }

    #[test]
    fn a_tool_is_asked_about_and_what_is_answered_is_its_result() {
        let (sender, receiver) = sync_channel(QUEUE);
        for (id, response) in [
            ("ask-scripted_question", json!({"subtype": "error"})),
            ("ask-can_use_tool", json!({"behavior": "deny", "message": "no"})),
        ] {
            sender.send(Heard::Answer(json!({"request_id": id, "response": response}))).unwrap();
        }
        let mut lines = Lines { ask: Asking { heard: &receiver, out: Vec::new() }, last: Vec::new() };
        let block = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}});
        let line = json!({"type": "assistant", "message": {"content": [block]}}).to_string() + "\n";
        line.as_bytes().chunks(7).for_each(|piece| lines.write_all(piece).unwrap());
        let out = String::from_utf8(lines.ask.out).unwrap();
        let said: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((said.len(), &said[2]["request"]["tool_name"]), (4, &json!("Bash")));
        let result = &said[3]["message"]["content"][0];
        assert_eq!((&result["content"], &result["is_error"]), (&json!("no"), &json!(true)));
    }
}
