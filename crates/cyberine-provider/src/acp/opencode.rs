//! opencode's one-shot form: `run --format=json`, one JSON object a line, without an event that ends
//! the turn.

use std::time::Duration;

use cyberine_types::{Timestamp, Usage, Usd};
use serde_json::Value;

use super::words;
use crate::cost::Counted;
use crate::error::TurnError;
use crate::fault::{self, Fault};
use crate::lenient::Figures;
use crate::lines::{MessageLines, MessageWire};
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::said::{Answer, Fruitless};
use crate::wire::{End, Exit, Wire, WireEvent};

/// Reads one session.
pub(crate) struct OpencodeParser {
    lines: MessageLines,
    quoter: Quoter,
    answer: Answer,
    tokens: Usage,
    cost: Usd,
    figures: Figures,
    /// A step has begun.
    begun: bool,
    fruitless: Fruitless,
    /// Why the last step ended; empty while one goes on.
    reason: Option<String>,
    failure: Option<TurnError>,
}

impl OpencodeParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            lines: MessageLines::new(answer_bytes, quoter.clone()),
            quoter,
            answer: Answer::new(answer_bytes),
            tokens: Usage::default(),
            cost: Usd::ZERO,
            figures: Figures::default(),
            begun: false,
            fruitless: Fruitless::default(),
            reason: None,
            failure: None,
        }
    }

    fn line(&mut self, line: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let part = &line["part"];
        let text = |key: &str| part[key].as_str().unwrap_or_default();
        match line["type"].as_str() {
            Some("step_start") => self.step(out)?,
            Some("reasoning") => out.push(WireEvent::Work),
            Some("text") => self.answer.push(text("text"), out)?,
            Some("tool_use") => {
                self.answer.turn_away();
                let arguments = part["state"]["input"].clone();
                out.push(WireEvent::ToolCall(ToolCall::new(text("callID"), text("tool"), arguments)));
            }
            Some("step_finish") => self.finish_step(part, out)?,
            Some("error") => self.failure = Some(self.complaint_of(&line["error"])),
            _ => {}
        }
        Ok(())
    }

    /// A step begins: the next, or the last once more where it came to nothing.
    fn step(&mut self, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if std::mem::replace(&mut self.begun, true)
            && !self.reason.take().is_some_and(|reason| is_end(&reason))
        {
            // Nobody counted it.
            self.figures.sound = false;
            self.fruitless.count()?;
            self.answer.retract(out);
        }
        Ok(())
    }

    fn finish_step(&mut self, part: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let reason = part["reason"].as_str().unwrap_or("unknown").to_owned();
        self.tokens = self.tokens.plus(&tokens(&part["tokens"], &mut self.figures));
        self.cost += self.figures.dollars(&part["cost"]).unwrap_or_default();
        // Nothing is what it says of a model whose price it does not know.
        let reported = Some(self.cost).filter(|cost| *cost > Usd::ZERO);
        // After a call another step follows.
        let whole = self.figures.sound && matches!(reason.as_str(), "stop" | "length" | "content-filter");
        out.push(WireEvent::Usage(Counted { tokens: self.tokens, reported, whole, ..Counted::default() }));
        if is_end(&reason) {
            self.fruitless.got_on();
        } else if self.fruitless.is_last() {
            self.fruitless.count()?;
        }
        self.reason = Some(reason);
        Ok(())
    }

    fn complaint_of(&self, error: &Value) -> TurnError {
        let data = &error["data"];
        let message = data["message"].as_str().unwrap_or_default().to_owned();
        let detail = self.quoter.head(&message);
        match error["name"].as_str().unwrap_or_default() {
            "ProviderAuthError" => return TurnError::Auth { detail },
            "MessageAbortedError" => return TurnError::Cut { detail },
            "MessageOutputLengthError" | "ContextOverflowError" => return TurnError::Truncated { detail },
            _ => {}
        }
        let status = data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
        let stated = fault::body_fault(data["responseBody"].as_str().unwrap_or_default());
        words::of(Fault { status, kind: stated.kind, message, retry_after: wait(data) }, &self.quoter)
    }

    /// Why the program ended without a step that says so.
    fn missing(&self, exit: Exit) -> TurnError {
        match self.lines.seen() {
            _ if !exit.success => TurnError::Crashed { status: exit.status, stderr: exit.stderr },
            0 => TurnError::Empty,
            seen => TurnError::Cut { detail: format!("{seen} lines, and the last step did not end") },
        }
    }
}

impl MessageWire for OpencodeParser {
    fn lines(&mut self) -> &mut MessageLines {
        &mut self.lines
    }

    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.line(message, out)
    }
}

impl Wire for OpencodeParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.read(bytes, out)
    }

    fn is_over(&self) -> bool {
        // Its end is the end of its output.
        false
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.read_rest(out)?;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let End::Exit(exit) = end else {
            return Err(TurnError::Cut { detail: "opencode did not end".to_owned() });
        };
        let detail = |reason: &str| format!("its last step ended with `{}`", self.quoter.head(reason));
        match self.reason.as_deref() {
            Some("stop") if exit.success => Ok(StopReason::EndTurn),
            Some(reason @ "length") => Err(TurnError::Truncated { detail: detail(reason) }),
            Some(reason @ "content-filter") => Err(TurnError::Refused { detail: detail(reason) }),
            Some(reason) if exit.success => Err(TurnError::Cut { detail: detail(reason) }),
            _ => Err(self.missing(exit)),
        }
    }
}

/// Whether a step that ended for `reason` came to something.
fn is_end(reason: &str) -> bool {
    matches!(reason, "stop" | "tool-calls" | "length" | "content-filter")
}

fn wait(data: &Value) -> Option<Duration> {
    // The moment only matters for a wait until a date, which no API of theirs asks for.
    fault::retry_after(data["responseHeaders"]["retry-after"].as_str()?, Timestamp::from_unix_ms(0))
}

/// One step's tokens: its input leaves out the cache, its output what the model thought.
fn tokens(tokens: &Value, figures: &mut Figures) -> Usage {
    let mut count = |of: &Value, key: &str| figures.count(of, key);
    let (read, written) = (count(&tokens["cache"], "read"), count(&tokens["cache"], "write"));
    let reasoning = count(tokens, "reasoning");
    Usage {
        input: count(tokens, "input").saturating_add(read).saturating_add(written),
        cached_read: read,
        cache_write: written,
        output: count(tokens, "output").saturating_add(reasoning),
        reasoning,
        ..Usage::default()
    }
}
