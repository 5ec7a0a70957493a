//! The `stream-json` output of `claude -p`: one JSON object a line, the last a `result`.

use serde_json::Value;

use super::lines::LineSplitter;
use super::result::{ResultLine, unreachable};
use crate::cost::Counted;
use crate::error::TurnError;
use crate::fault::Fault;
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::wire::{End, Exit, Wire, WireEvent};

/// Reads one headless session.
///
/// The text of a message comes as deltas, again as a whole `assistant` line, and the last
/// message's once more in `result`, which decides: where it differs from what was streamed, the
/// stream is retracted. A message that ends at the limit on output is no end: the program has the
/// model go on in the next, so that the answer is both.
pub(crate) struct StreamJsonParser {
    lines: LineSplitter,
    quoter: Quoter,
    streamed: String,
    streamed_limit: usize,
    /// Of what was streamed, so many bytes are of messages that the current one goes on from.
    kept: usize,
    /// The last message has ended; whether at the limit on output.
    ended_at_limit: Option<bool>,
    /// A key pays, by the program's own account.
    keyed: bool,
    seen: usize,
    retry: Option<Fault>,
    /// What kind of failure the program calls its last message about one.
    failure: String,
    result: Option<ResultLine>,
}

impl StreamJsonParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            lines: LineSplitter::new(crate::http::event_limit(answer_bytes)),
            quoter,
            streamed: String::new(),
            streamed_limit: answer_bytes,
            kept: 0,
            ended_at_limit: None,
            keyed: false,
            seen: 0,
            retry: None,
            failure: String::new(),
            result: None,
        }
    }

    fn take(&mut self, lines: Vec<Vec<u8>>, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        for line in lines {
            self.seen += 1;
            match serde_json::from_str::<Value>(&String::from_utf8_lossy(&line)) {
                Ok(value) if self.result.is_none() => self.line(&value, out)?,
                Ok(_) => {}
                Err(_) => tracing::debug!(bytes = line.len(), "a line of claude is not JSON"),
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match line["type"].as_str() {
            Some("system") => self.system(line, out),
            Some("stream_event") if line["parent_tool_use_id"].is_null() => {
                self.stream_event(&line["event"], out)
            }
            Some("assistant") if line["parent_tool_use_id"].is_null() => self.assistant(line, out),
            Some("result") => {
                self.result(line, out);
                Ok(())
            }
            _ => Ok(()),
        }
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
        match event["type"].as_str() {
            Some("message_start") => {
                self.retry = None;
                self.begin(out);
            }
            Some("message_delta") => {
                self.ended_at_limit = event["delta"]["stop_reason"].as_str().map(|why| why == "max_tokens");
            }
            Some("content_block_delta") => {
                if let Some(text) = event["delta"]["text"].as_str() {
                    return self.text(text, out);
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
        let result = ResultLine::read(line, &self.failure);
        out.push(WireEvent::Usage(Counted {
            tokens: result.tokens,
            reported: result.cost,
            keyed: self.keyed,
            ..Counted::default()
        }));
        if result.is_structured {
            self.kept = 0;
        }
        let known = result.answer == self.streamed || result.answer == self.streamed[self.kept..];
        if result.is_success() && !known {
            self.retract(out);
            out.push(WireEvent::Text(result.answer.clone()));
        }
        self.result = Some(result);
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
            Some(_) if self.seen == 0 && self.lines.dropped() == 0 => TurnError::Empty,
            _ => TurnError::Cut {
                detail: format!(
                    "{} lines, {} of them too long, no `result`",
                    self.seen,
                    self.lines.dropped()
                ),
            },
        }
    }
}

impl Wire for StreamJsonParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let mut lines = Vec::new();
        self.lines.push(bytes, &mut lines);
        self.take(lines, out)
    }

    fn is_over(&self) -> bool {
        self.result.is_some()
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let mut lines = Vec::new();
        self.lines.finish(&mut lines);
        self.take(lines, out)?;
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

    fn complaint(&self) -> Option<TurnError> {
        let fault = self.retry.as_ref()?;
        Some(match fault.status {
            Some(_) => fault.classify(&self.quoter),
            None => unreachable("no answer to its requests came".to_owned()),
        })
    }
}
