//! The stream of Ollama's chat: a line of JSON each, the last of which is `done`.

use cyberine_types::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::cost::Counted;
use crate::error::TurnError;
use crate::fault::{self, Fault};
use crate::json;
use crate::lenient::lenient;
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::wire::{End, Wire, WireEvent};

/// Reads one chat.
pub(crate) struct OllamaParser {
    quoter: Quoter,
    answer_bytes: usize,
    /// The start of a line whose rest has not come.
    line: Vec<u8>,
    done: Option<String>,
    calls: usize,
    call_bytes: usize,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl OllamaParser {
    /// A wire for an answer of at most `answer_bytes`.
    pub(crate) fn wire(answer_bytes: usize, quoter: Quoter) -> Self {
        Self { quoter, answer_bytes, line: Vec::new(), done: None, calls: 0, call_bytes: 0 }
    }

    fn read(&mut self, line: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if line.trim_ascii().is_empty() || self.done.is_some() {
            return Ok(());
        }
        let line = String::from_utf8_lossy(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
        let line = json::read(&line).map_err(|_| TurnError::Protocol {
            detail: format!("not a line of a chat: {}", self.quoter.head(&line)),
        })?;
        self.take(line, out)
    }

    fn take(&mut self, line: Line, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if let Some(error) = line.error.filter(|error| !error.is_null()) {
            // The head of the answer said that all is well: what went wrong since is the server's.
            let fault = fault::error_fault(error);
            let kind = if fault.kind.is_empty() { "server_error".to_owned() } else { fault.kind };
            return Err(Fault { kind, ..fault }.classify(&self.quoter));
        }
        if let Some(said) = line.message {
            if said.thinking.is_some_and(|thought| !thought.is_empty()) {
                out.push(WireEvent::Work);
            }
            if let Some(text) = said.content.filter(|text| !text.is_empty()) {
                out.push(WireEvent::Text(text));
            }
            for call in said.tool_calls.unwrap_or_default() {
                self.call(call, out)?;
            }
        }
        if !line.done {
            return Ok(());
        }
        self.done = Some(line.done_reason.unwrap_or_default());
        // Where the whole prompt was cached, it is not counted.
        if let (input, Some(output)) = (line.prompt_eval_count.unwrap_or(0), line.eval_count) {
            let scripted = line.model.as_deref().is_some_and(crate::config::is_scripted_model);
            let tokens = Usage { input, output, ..Usage::default() };
            out.push(WireEvent::Usage(Counted { tokens, scripted, whole: true, ..Counted::default() }));
        }
        Ok(())
    }

    fn call(&mut self, call: Call, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let Function { name, arguments } = call.function;
        let arguments = if arguments.is_null() { serde_json::json!({}) } else { arguments };
        let id = call.id.as_ref().map_or(0, String::len);
        self.call_bytes += id + name.len() + arguments.to_string().len();
        if self.call_bytes > self.answer_bytes {
            return Err(self.too_long());
        }
        // Older servers name no call.
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{}", self.calls));
        self.calls += 1;
        out.push(WireEvent::ToolCall(ToolCall::new(id, name, arguments)));
        Ok(())
    }

    fn too_long(&self) -> TurnError {
        TurnError::TooLong { limit: self.answer_bytes }
    }
}

impl Wire for OllamaParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let limit = crate::http::event_limit(self.answer_bytes);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.done.is_some() {
                break;
            }
            if self.line.len() + piece.len() > limit {
                return Err(self.too_long());
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.read(&line, out)?;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.done.is_some()
    }

    fn finish(&mut self, _end: End, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let line = std::mem::take(&mut self.line);
        // What the connection cut in half is no line; the missing end tells of it.
        if json::read::<Line>(&String::from_utf8_lossy(&line)).is_ok() {
            self.read(&line, out)?;
        }
        match self.done.as_deref() {
            None => Err(TurnError::Cut { detail: "no line was `done`".to_owned() }),
            Some("length") => Err(TurnError::Truncated { detail: "done_reason is `length`".to_owned() }),
            Some(_) if self.calls > 0 => Ok(StopReason::ToolUse),
            // Older servers give no reason; a model that was only loaded has said nothing.
            Some("stop" | "load" | "unload" | "") => Ok(StopReason::EndTurn),
            Some(other) => {
                let detail = format!("done_reason `{}` is not known", self.quoter.head(other));
                Err(TurnError::Protocol { detail })
            }
        }
    }
}
