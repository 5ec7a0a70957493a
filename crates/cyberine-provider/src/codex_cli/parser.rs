//! The `--json` output of `codex exec`: one JSON object a line, the last `turn.completed` or
//! `turn.failed`.

use cyberine_types::Usage;
use serde_json::Value;

use super::failure;
use super::item::{Items, text};
use crate::cost::Counted;
use crate::error::TurnError;
use crate::lenient::Figures;
use crate::lines::{MessageLines, MessageWire};
use crate::port::StopReason;
use crate::quote::Quoter;
use crate::wire::{End, Exit, Wire, WireEvent};

/// What the program says while it goes on trying.
const RECONNECTING: &str = "Reconnecting...";

/// Reads one turn. Every message of the model is a whole `item.completed`; the last is the answer,
/// and those before it are remarks on the way, which are taken back.
pub(crate) struct ExecParser {
    lines: MessageLines,
    quoter: Quoter,
    said: bool,
    items: Items,
    /// What it last complained of.
    complaint: Option<String>,
    end: Option<Result<(), String>>,
}

impl ExecParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            lines: MessageLines::new(answer_bytes, quoter.clone()),
            quoter,
            said: false,
            items: Items::default(),
            complaint: None,
            end: None,
        }
    }

    fn event(&mut self, event: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        match event["type"].as_str() {
            Some("item.started" | "item.updated") => self.items.told(&event["item"], out),
            Some("item.completed") => {
                self.complaint = None;
                self.items.told(&event["item"], out);
                self.message(&event["item"], out);
            }
            Some("error") => return self.complain(text(&event["message"]), out),
            Some("turn.completed") => {
                let mut figures = Figures::default();
                let tokens = usage(&event["usage"], &mut figures);
                let whole = figures.sound;
                out.push(WireEvent::Usage(Counted { tokens, whole, ..Counted::default() }));
                self.end = Some(Ok(()));
            }
            Some("turn.failed") => self.end = Some(Err(text(&event["error"]["message"]).to_owned())),
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, item: &Value, out: &mut Vec<WireEvent>) {
        let said = text(&item["text"]);
        if item["type"] != "agent_message" || said.is_empty() {
            return;
        }
        if std::mem::replace(&mut self.said, true) {
            out.push(WireEvent::Remarked);
        }
        out.push(WireEvent::Text(said.to_owned()));
    }

    /// It goes on trying after this, or says why it does not and then ends the turn.
    fn complain(&mut self, message: &str, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let (again, why) = match message.strip_prefix(RECONNECTING) {
            Some(attempt) => {
                let why = attempt.split_once('(').map_or(attempt, |(_, why)| why.trim_end_matches(')'));
                (true, why)
            }
            None => (false, message),
        };
        if again {
            let failure = failure::failure(why, &self.quoter);
            // It would try five times more; neither gets better by that.
            if matches!(failure, TurnError::Auth { .. } | TurnError::Billing { .. }) {
                return Err(failure);
            }
            out.push(WireEvent::Step(format!("reconnect {}", failure.code())));
        }
        self.complaint = Some(why.to_owned());
        Ok(())
    }

    /// Why the turn has no end of its own.
    fn missing(&self, exit: Option<Exit>) -> TurnError {
        if let Some(complaint) = self.complaint() {
            return complaint;
        }
        match exit {
            Some(Exit { success: false, stderr, .. }) if failure::refuses_input(&stderr) => {
                TurnError::Rejected { detail: stderr }
            }
            Some(Exit { success: false, status, stderr }) => {
                TurnError::Crashed { status, stderr: failure::masked(&stderr) }
            }
            Some(_) if self.lines.seen() == 0 => TurnError::Empty,
            _ => TurnError::Cut { detail: format!("{} lines, no `turn.completed`", self.lines.seen()) },
        }
    }
}

/// `input_tokens` holds what came from and went to a cache, `output_tokens` the reasoning; both are
/// sums over the turn.
fn usage(usage: &Value, figures: &mut Figures) -> Usage {
    let mut count = |key: &str| figures.count(usage, key);
    Usage {
        input: count("input_tokens"),
        cached_read: count("cached_input_tokens"),
        cache_write: count("cache_write_input_tokens"),
        output: count("output_tokens"),
        reasoning: count("reasoning_output_tokens"),
        ..Usage::default()
    }
}

impl MessageWire for ExecParser {
    fn lines(&mut self) -> &mut MessageLines {
        &mut self.lines
    }

    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.event(message, out)
    }
}

impl Wire for ExecParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.read(bytes, out)
    }

    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.read_rest(out)?;
        match &self.end {
            // The exit status says nothing more: an empty answer exits with 0.
            Some(Ok(())) => Ok(StopReason::EndTurn),
            Some(Err(why)) => Err(failure::failure(why, &self.quoter)),
            None => Err(self.missing(match end {
                End::Exit(exit) => Some(exit),
                End::Closed => None,
            })),
        }
    }

    fn complaint(&self) -> Option<TurnError> {
        self.complaint.as_deref().map(|why| failure::failure(why, &self.quoter))
    }
}
