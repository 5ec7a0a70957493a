//! The dialogue with `claude -p`: one JSON object a line in both directions, the last it says a
//! `result`.

use std::time::Duration;

use serde_json::Value;

use super::control;
use super::result::{ResultLine, unreachable};
use super::tally::{Tally, tokens};
use crate::cost::Counted;
use crate::error::TurnError;
use crate::fault::Fault;
use crate::lines::{MessageLines, MessageWire};
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::wire::{End, Exit, Said, Wire, WireEvent};

/// Reads one headless session.
///
/// The text of a message comes as deltas, again as a whole `assistant` line, and the last
/// message's once more in `result`, which decides: where it differs from what was streamed, the
/// stream is retracted. A message that ends at the limit on output is no end: the program has the
/// model go on in the next, so that the answer is both.
pub(crate) struct StreamJsonParser {
    /// What is asked, until it has been said.
    prompt: String,
    /// Tools the program may use.
    tools: Vec<String>,
    /// It was asked to stop, so that only what it has used still counts.
    interrupted: bool,
    tally: Tally,
    lines: MessageLines,
    quoter: Quoter,
    streamed: String,
    streamed_limit: usize,
    /// Of what was streamed, so many bytes are of messages that the current one goes on from.
    kept: usize,
    /// The last message has ended; whether at the limit on output.
    ended_at_limit: Option<bool>,
    /// A key pays, by the program's own account.
    keyed: bool,
    retry: Option<Fault>,
    /// What kind of failure the program calls its last message about one.
    failure: String,
    result: Option<ResultLine>,
}

impl StreamJsonParser {
    /// A dialogue that asks `prompt` for an answer of at most `answer_bytes`, with `tools`.
    pub(crate) fn new(prompt: String, tools: Vec<String>, answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            prompt,
            tools,
            interrupted: false,
            tally: Tally::default(),
            lines: MessageLines::new(answer_bytes, quoter.clone()),
            quoter,
            streamed: String::new(),
            streamed_limit: answer_bytes,
            kept: 0,
            ended_at_limit: None,
            keyed: false,
            retry: None,
            failure: String::new(),
            result: None,
        }
    }

    fn line(&mut self, line: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match line["type"].as_str() {
            Some("result") => {
                self.result(line, out);
                Ok(())
            }
            Some("control_request") => {
                out.push(WireEvent::Say(Said::Text(control::answer(line, &self.tools))));
                Ok(())
            }
            Some("control_response") => self.answered(&line["response"]),
            Some("system") if !self.interrupted => self.system(line, out),
            Some("stream_event") if line["parent_tool_use_id"].is_null() => {
                self.stream_event(&line["event"], out)
            }
            Some("assistant") if line["parent_tool_use_id"].is_null() && !self.interrupted => {
                self.assistant(line, out)
            }
            _ => Ok(()),
        }
    }

    /// The answer to one of our requests.
    fn answered(&self, response: &Value) -> Result<(), TurnError> {
        if response["subtype"] == "error" && response["request_id"] == control::INITIALIZE {
            let said = response["error"].as_str().unwrap_or_default();
            let detail = format!("it refused to begin: {}", self.quoter.head(said));
            return Err(TurnError::Protocol { detail });
        }
        Ok(())
    }

    fn system(&mut self, line: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match line["subtype"].as_str() {
            Some("init") => {
                // A subscription has no key; anything else names the key that pays.
                self.keyed =
                    line["apiKeySource"].as_str().is_some_and(|source| !matches!(source, "none" | "oauth"));
            }
            Some("api_retry") => {
                let fault = Fault {
                    status: line["error_status"].as_u64().and_then(|status| u16::try_from(status).ok()),
                    kind: line["error"].as_str().unwrap_or_default().to_owned(),
                    // It holds what the service asked for, where it asked for a wait.
                    retry_after: line["retry_delay_ms"].as_f64().and_then(delay),
                    ..Fault::default()
                };
                let failure = fault.classify(&self.quoter);
                // The program would try ten times over three minutes; neither gets better by that.
                if matches!(failure, TurnError::Auth { .. } | TurnError::Billing { .. }) {
                    return Err(failure);
                }
                out.push(WireEvent::Step(format!("api_retry {} {}", line["error_status"], line["error"])));
                self.retry = Some(fault);
            }
            _ => {}
        }
        Ok(())
    }

    fn stream_event(&mut self, event: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if self.tally.take(event) {
            let (tokens, keyed) = (self.tally.total(), self.keyed);
            out.push(WireEvent::Usage(Counted { tokens, keyed, ..Counted::default() }));
        }
        if self.interrupted {
            return Ok(());
        }
        match event["type"].as_str() {
            Some("message_start") => {
                self.retry = None;
                self.begin(out);
            }
            Some("message_delta") => {
                self.ended_at_limit = event["delta"]["stop_reason"].as_str().map(|why| why == "max_tokens");
            }
            Some("content_block_delta") => {
                match event["delta"]["text"].as_str() {
                    Some(text) => return self.text(text, out),
                    // A thought, or a piece of a call.
                    None => out.push(WireEvent::Work),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn assistant(&mut self, line: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if !line["error"].is_null() || line["is_api_error_message"] == true {
            self.failure = line["error"].as_str().unwrap_or_default().to_owned();
            return Ok(());
        }
        self.retry = None;
        self.failure.clear();
        let blocks = line["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut whole = String::new();
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => whole.push_str(block["text"].as_str().unwrap_or_default()),
                Some("tool_use") => out.push(WireEvent::ToolCall(ToolCall::new(
                    block["id"].as_str().unwrap_or_default(),
                    block["name"].as_str().unwrap_or_default(),
                    block["input"].clone(),
                ))),
                Some("thinking" | "redacted_thinking") => out.push(WireEvent::Work),
                _ => {}
            }
        }
        if whole.is_empty() || self.streamed.ends_with(&whole) {
            return Ok(());
        }
        self.begin(out);
        self.text(&whole, out)
    }

    fn result(&mut self, line: &Value, out: &mut Vec<WireEvent>) {
        let wait = self.retry.as_ref().and_then(|retry| retry.retry_after);
        let result = ResultLine::read(line, &self.failure, wait);
        // A session that broke off leaves out the message it was in, and the cost of it.
        let left_out = result.is_aborted() && tokens(&result.tokens) < tokens(&self.tally.total());
        let counted = if left_out { self.tally.total() } else { result.tokens };
        let (reported, whole, keyed) = (result.cost, result.is_sound && !left_out, self.keyed);
        out.push(WireEvent::Usage(Counted { tokens: counted, reported, whole, keyed, ..Counted::default() }));
        if result.is_structured {
            self.kept = 0;
        }
        let known = result.answer == self.streamed || result.answer == self.streamed[self.kept..];
        if result.is_success() && !known {
            self.retract(out);
            out.push(WireEvent::Text(result.answer.clone()));
        }
        self.result = Some(result);
        // It would wait for another question.
        out.push(WireEvent::Say(Said::End));
    }

    fn text(&mut self, text: &str, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if self.streamed.len() + text.len() > self.streamed_limit {
            return Err(TurnError::TooLong { limit: self.streamed_limit });
        }
        self.streamed.push_str(text);
        out.push(WireEvent::Text(text.to_owned()));
        Ok(())
    }

    /// A message begins: another one, the rest of the last, or the last once more.
    fn begin(&mut self, out: &mut Vec<WireEvent>) {
        match self.ended_at_limit.take() {
            Some(true) => self.kept = self.streamed.len(),
            Some(false) => self.kept = 0,
            // The last one broke off.
            None => {}
        }
        self.retract(out);
    }

    /// Takes back what the current message has said.
    fn retract(&mut self, out: &mut Vec<WireEvent>) {
        if self.streamed.len() > self.kept {
            self.streamed.truncate(self.kept);
            out.push(WireEvent::Retract);
            if !self.streamed.is_empty() {
                out.push(WireEvent::Text(self.streamed.clone()));
            }
        }
    }

    /// Why there is no result.
    fn missing(&self, exit: Option<Exit>) -> TurnError {
        if let Some(complaint) = self.complaint() {
            return complaint;
        }
        match exit {
            Some(exit) if !exit.success => TurnError::Crashed { status: exit.status, stderr: exit.stderr },
            Some(_) if self.lines.seen() == 0 => TurnError::Empty,
            _ => TurnError::Cut { detail: format!("{} lines, no `result`", self.lines.seen()) },
        }
    }
}

/// A wait in milliseconds.
fn delay(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

impl MessageWire for StreamJsonParser {
    fn lines(&mut self) -> &mut MessageLines {
        &mut self.lines
    }

    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.line(message, out)
    }
}

impl Wire for StreamJsonParser {
    fn begin(&mut self, out: &mut Vec<WireEvent>) {
        let prompt = std::mem::take(&mut self.prompt);
        out.push(WireEvent::Say(Said::Text(control::opening(&prompt))));
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.read(bytes, out)
    }

    fn is_over(&self) -> bool {
        self.result.is_some()
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.read_rest(out)?;
        match &self.result {
            // The exit status says nothing more: an empty answer exits with 0, and a program that
            // hangs after its result is killed.
            Some(result) => result.verdict(&self.quoter),
            None => Err(self.missing(match end {
                End::Exit(exit) => Some(exit),
                End::Closed => None,
            })),
        }
    }

    fn interrupt(&mut self, out: &mut Vec<WireEvent>) -> bool {
        if self.is_over() {
            return false;
        }
        self.interrupted = true;
        out.push(WireEvent::Say(Said::Text(control::interrupt())));
        true
    }

    fn complaint(&self) -> Option<TurnError> {
        let fault = self.retry.as_ref()?;
        Some(match fault.status {
            Some(_) => fault.classify(&self.quoter),
            None => unreachable("no answer to its requests came".to_owned()),
        })
    }
}
