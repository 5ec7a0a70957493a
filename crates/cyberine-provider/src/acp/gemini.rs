//! Gemini CLI's one-shot form: `--output-format=stream-json`, one JSON object a line, the last a
//! `result`.

use cyberine_types::Usage;
use serde_json::Value;

use super::words;
use crate::cost::Counted;
use crate::error::TurnError;
use crate::lenient::Figures;
use crate::lines::{MessageLines, MessageWire};
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::said::Answer;
use crate::wire::{End, Exit, Wire, WireEvent};

/// Its exit codes for no usable login and for no usable input.
const NO_LOGIN: u16 = 41;
const NO_INPUT: u16 = 42;

/// What it says when it reads only the beginning of a prompt.
const INPUT_CUT: &str = "stdin input truncated";

/// Reads one session.
pub(crate) struct GeminiParser {
    lines: MessageLines,
    quoter: Quoter,
    answer: Answer,
    /// The last failure it told of, in its words.
    told: String,
    /// The `result` line's own account of a failure; `None` where it was a success.
    result: Option<Option<String>>,
    stderr: String,
}

impl GeminiParser {
    /// A parser for an answer of at most `answer_bytes`.
    pub(crate) fn new(answer_bytes: usize, quoter: Quoter) -> Self {
        Self {
            lines: MessageLines::new(answer_bytes, quoter.clone()),
            quoter,
            answer: Answer::new(answer_bytes),
            told: String::new(),
            result: None,
            stderr: String::new(),
        }
    }

    fn line(&mut self, line: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        match line["type"].as_str() {
            Some("message") if line["role"] == "assistant" => self.answer.push(&text("content"), out)?,
            Some("tool_use") => {
                self.answer.turn_away();
                let arguments = line["parameters"].clone();
                out.push(WireEvent::ToolCall(ToolCall::new(text("tool_id"), text("tool_name"), arguments)));
            }
            Some("error") if line["severity"] == "error" => self.told = text("message"),
            Some("result") => {
                let mut figures = Figures::default();
                let tokens = tokens(&line["stats"], &mut figures);
                let whole = figures.sound;
                out.push(WireEvent::Usage(Counted { tokens, whole, ..Counted::default() }));
                let why = line["error"]["message"].as_str().map(str::to_owned);
                let failed = line["status"] != "success";
                self.result = Some(failed.then(|| why.unwrap_or_else(|| self.told.clone())));
                if failed {
                    self.answer.fold_copies(out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Why there is no `result`.
    fn missing(&self, exit: Option<Exit>) -> TurnError {
        let cut = || TurnError::Cut { detail: format!("{} lines and no `result`", self.lines.seen()) };
        let Some(exit) = exit else { return cut() };
        let detail = exit.stderr.clone();
        match code(&exit) {
            Some(0) if self.lines.seen() == 0 => TurnError::Empty,
            Some(0) => cut(),
            Some(NO_LOGIN) => TurnError::Auth { detail },
            Some(NO_INPUT) => TurnError::Rejected { detail },
            _ => words::in_stderr(&exit.stderr, &self.quoter)
                .unwrap_or(TurnError::Crashed { status: exit.status, stderr: exit.stderr }),
        }
    }
}

impl MessageWire for GeminiParser {
    fn lines(&mut self) -> &mut MessageLines {
        &mut self.lines
    }

    fn take(&mut self, message: &Value, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.line(message, out)
    }
}

impl Wire for GeminiParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.read(bytes, out)
    }

    fn is_over(&self) -> bool {
        self.result.is_some()
    }

    fn finish(&mut self, end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        self.read_rest(out)?;
        let exit = match end {
            End::Exit(exit) => Some(exit),
            End::Closed => None,
        };
        match self.result.take() {
            Some(None) if exit.as_ref().is_some_and(|exit| exit.stderr.contains(INPUT_CUT)) => {
                let detail = "gemini reads no more than 8 MiB of a prompt, and answered its beginning only";
                Err(TurnError::Rejected { detail: detail.to_owned() })
            }
            Some(None) => Ok(StopReason::EndTurn),
            Some(Some(why)) => Err(words::failure(exit.as_ref().and_then(http_status), &why, &self.quoter)),
            None => Err(self.missing(exit)),
        }
    }

    fn overhear(&mut self, stderr: &str) {
        stderr.clone_into(&mut self.stderr);
    }

    fn complaint(&self) -> Option<TurnError> {
        // It tells of its own tries on its error stream only.
        let told = self.answer.is_empty().then(|| words::in_stderr(&self.stderr, &self.quoter));
        told.flatten()
    }
}

/// The exit code, of `exit status: 41`.
fn code(exit: &Exit) -> Option<u16> {
    exit.status.strip_prefix("exit status: ")?.parse().ok()
}

/// Where the API's answer ended it, it exits with that status modulo 256.
fn http_status(exit: &Exit) -> Option<u16> {
    code(exit).map(|code| code + 256).filter(|status| (400..512).contains(status))
}

/// `output_tokens` leaves out what the model thought; the total does not.
fn tokens(stats: &Value, figures: &mut Figures) -> Usage {
    let mut count = |key: &str| figures.count(stats, key);
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let output = count("total_tokens").saturating_sub(input).max(output);
    let reasoning = output - count("output_tokens").min(output);
    Usage { input, cached_read: count("cached"), output, reasoning, ..Usage::default() }
}
