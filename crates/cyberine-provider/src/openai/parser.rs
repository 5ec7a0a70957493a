//! The stream of a chat completion: `data:` events that end with `[DONE]`.

use cyberine_types::{Usage, Usd};
use serde::Deserialize;
use serde_json::Value;

use crate::cost::Counted;
use crate::error::TurnError;
use crate::json;
use crate::lenient::{Figures, lenient};
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::sse::{EventParser, SseWire};
use crate::wire::WireEvent;

/// Most parallel tool calls that are read; more is no sane answer.
const CALLS_MAX: usize = 128;

/// Reads one chat completion.
pub(crate) struct ChatParser {
    quoter: Quoter,
    answer_bytes: usize,
    finish_reason: Option<String>,
    refusal: String,
    calls: Vec<PartialCall>,
    call_bytes: usize,
    scripted: bool,
}

#[derive(Default)]
struct PartialCall {
    index: usize,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<ChatUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
    /// What it thinks, which is written in three ways.
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    reasoning_details: Option<Value>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: usize,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct ChatUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// What the answer cost in dollars, where the server says so, as OpenRouter does.
    #[serde(default)]
    cost: Option<Value>,
    /// The key of another account pays the model, and the cost is that of handing on only.
    #[serde(default)]
    is_byok: Option<Value>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl ChatParser {
    /// A wire for an answer of at most `answer_bytes`.
    pub(crate) fn wire(answer_bytes: usize, quoter: Quoter) -> SseWire<Self> {
        let parser = Self {
            quoter: quoter.clone(),
            answer_bytes,
            finish_reason: None,
            refusal: String::new(),
            calls: Vec::new(),
            call_bytes: 0,
            scripted: false,
        };
        SseWire::new(answer_bytes, quoter, parser)
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(crate::fault::error_fault(error).classify(&self.quoter));
        }
        self.scripted |= chunk.model.is_some_and(|model| crate::config::is_scripted_model(&model));
        // A request asks for one choice; a server that sends more is read for the first.
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                self.delta(delta, out)?;
            }
            self.end(choice.finish_reason);
        }
        if let Some(usage) = chunk.usage {
            let mut figures = Figures::default();
            let reported = usage.reported(&mut figures);
            out.push(WireEvent::Usage(Counted {
                tokens: usage.normalised(),
                reported,
                free_is_said: true,
                scripted: self.scripted,
                // Some servers count as they go.
                whole: self.finish_reason.is_some() && figures.sound,
                ..Counted::default()
            }));
        }
        Ok(())
    }

    /// The first end counts, unless a worse one follows.
    fn end(&mut self, reason: Option<String>) {
        if self.finish_reason.as_deref().is_none_or(is_good) && reason.is_some() {
            let better = self.finish_reason.is_some() && reason.as_deref().is_some_and(is_good);
            if !better {
                self.finish_reason = reason;
            }
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            out.push(WireEvent::Text(text));
        }
        let thoughts = [&delta.reasoning_content, &delta.reasoning, &delta.reasoning_details];
        if thoughts.into_iter().flatten().any(is_something)
            || delta.refusal.as_ref().is_some_and(|said| !said.is_empty())
        {
            out.push(WireEvent::Work);
        }
        if let Some(refusal) = delta.refusal
            && self.refusal.len() < crate::quote::QUOTE_BYTES
        {
            self.refusal.push_str(&refusal);
        }
        for call in delta.tool_calls.unwrap_or_default() {
            out.push(WireEvent::Work);
            self.call(call)?;
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta) -> Result<(), TurnError> {
        let id = delta.id.filter(|id| !id.is_empty());
        // Some servers give all calls one index: another id is another call.
        let same = |call: &PartialCall| {
            call.index == delta.index && id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id)
        };
        let place = match self.calls.iter().rposition(same) {
            Some(place) => place,
            None if self.calls.len() < CALLS_MAX => {
                self.calls.push(PartialCall { index: delta.index, ..PartialCall::default() });
                self.calls.len() - 1
            }
            None => return Err(TurnError::Protocol { detail: "too many tool calls".to_owned() }),
        };
        let call = &mut self.calls[place];
        if let Some(id) = id.filter(|id| call.id != *id) {
            self.call_bytes += id.len();
            call.id = id;
        }
        let Some(function) = delta.function else { return Ok(()) };
        if let Some(name) = function.name {
            self.call_bytes += name.len();
            call.name.push_str(&name);
        }
        if let Some(arguments) = function.arguments {
            call.arguments.push_str(&arguments);
            self.call_bytes += arguments.len();
        }
        if self.call_bytes > self.answer_bytes {
            return Err(TurnError::TooLong { limit: self.answer_bytes });
        }
        Ok(())
    }
}

impl EventParser for ChatParser {
    fn event(&mut self, data: &str, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        match data.trim() {
            "[DONE]" => return Ok(true),
            "" => return Ok(false),
            _ => {}
        }
        let chunk = json::read(data).map_err(|_| TurnError::Protocol {
            detail: format!("not a chunk of a chat completion: {}", self.quoter.head(data)),
        })?;
        self.chunk(chunk, out).map(|()| false)
    }

    fn is_whole(&self, data: &str) -> bool {
        data.trim() == "[DONE]"
    }

    fn stop(&mut self, out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        if !self.refusal.trim().is_empty() {
            return Err(TurnError::Refused { detail: self.quoter.head(&self.refusal) });
        }
        let calls = std::mem::take(&mut self.calls);
        match self.finish_reason.as_deref() {
            // Some servers report `stop` although they called tools.
            Some("stop") if calls.is_empty() => Ok(StopReason::EndTurn),
            Some("stop" | "tool_calls" | "function_call") => {
                for call in calls {
                    out.push(WireEvent::ToolCall(call.whole(&self.quoter)?));
                }
                Ok(StopReason::ToolUse)
            }
            Some("length") => Err(TurnError::Truncated { detail: "finish_reason is `length`".to_owned() }),
            Some("content_filter") => {
                Err(TurnError::Refused { detail: "finish_reason is `content_filter`".to_owned() })
            }
            Some(other) => {
                let detail = format!("finish_reason `{}` is not known", self.quoter.head(other));
                Err(TurnError::Protocol { detail })
            }
            None => Err(TurnError::Cut { detail: "`[DONE]` came without a finish_reason".to_owned() }),
        }
    }

    fn cut(&self) -> TurnError {
        let seen = match &self.finish_reason {
            Some(reason) => format!("finish_reason `{}`, no `[DONE]`", self.quoter.head(reason)),
            None => "no finish_reason, no `[DONE]`".to_owned(),
        };
        TurnError::Cut { detail: seen }
    }
}

/// Whether `reason` ends an answer that is whole.
fn is_good(reason: &str) -> bool {
    matches!(reason, "stop" | "tool_calls" | "function_call")
}

/// Whether anything stands in a member that may be there and empty.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => true,
    }
}

impl PartialCall {
    fn whole(self, quoter: &Quoter) -> Result<ToolCall, TurnError> {
        let text = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        let arguments = json::read(text).map_err(|_| TurnError::Protocol {
            detail: format!("the arguments of tool `{}` are not JSON", quoter.head(&self.name)),
        })?;
        Ok(ToolCall::new(self.id, self.name, arguments))
    }
}

impl ChatUsage {
    /// The cost in dollars; what is no number is some other server's own.
    fn reported(&self, figures: &mut Figures) -> Option<Usd> {
        let whole = self.is_byok != Some(Value::Bool(true));
        self.cost.as_ref().filter(|cost| whole && cost.is_number()).and_then(|cost| figures.dollars(cost))
    }

    /// `prompt_tokens` includes what was cached, `completion_tokens` includes reasoning.
    fn normalised(&self) -> Usage {
        let read = self.prompt_tokens_details.as_ref();
        Usage {
            input: self.prompt_tokens,
            cached_read: read.and_then(|details| details.cached_tokens).unwrap_or(0),
            cache_write: read.and_then(|details| details.cache_write_tokens).unwrap_or(0),
            output: self.completion_tokens,
            reasoning: self.completion_tokens_details.as_ref().and_then(|d| d.reasoning_tokens).unwrap_or(0),
            ..Usage::default()
        }
    }
}
