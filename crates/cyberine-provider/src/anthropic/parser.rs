//! The stream of a message: typed events that end with `message_stop`.

use std::collections::BTreeMap;

use cyberine_types::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::cost::Counted;
use crate::error::TurnError;
use crate::json;
use crate::lenient::lenient;
use crate::port::{StopReason, ToolCall};
use crate::quote::Quoter;
use crate::sse::{EventParser, SseWire};
use crate::wire::WireEvent;

/// Most content blocks that may be open at once; the wire opens one at a time.
const OPEN_BLOCKS_MAX: usize = 128;

/// Reads one message.
pub(crate) struct MessageParser {
    quoter: Quoter,
    answer_bytes: usize,
    usage: MessageUsage,
    stop_reason: Option<String>,
    has_text: bool,
    /// Tool calls whose arguments are still coming, by index of their block.
    open: BTreeMap<u64, ToolUse>,
    call_bytes: usize,
    scripted: bool,
    last: &'static str,
}

struct ToolUse {
    id: String,
    name: String,
    input: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: MessageDelta,
        #[serde(default, deserialize_with = "lenient")]
        usage: Option<MessageUsage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    model: String,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<MessageUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
    },
    RedactedThinking,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

/// Figures of one event; each replaces the one before, none is added.
#[derive(Deserialize, Default, Clone, Copy)]
pub(crate) struct MessageUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Clone, Copy)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl MessageUsage {
    pub(crate) fn replace(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.output_tokens_details = newer.output_tokens_details.or(self.output_tokens_details);
    }

    /// `input_tokens` leaves out what was read from or written to a cache.
    pub(crate) fn normalised(&self) -> Usage {
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let read = self.cache_read_input_tokens.unwrap_or(0);
        Usage {
            input: self.input_tokens.unwrap_or(0).saturating_add(written).saturating_add(read),
            cached_read: read,
            cache_write: written,
            output: self.output_tokens.unwrap_or(0),
            reasoning: self.output_tokens_details.and_then(|details| details.thinking_tokens).unwrap_or(0),
            ..Usage::default()
        }
    }
}

impl MessageParser {
    /// A wire for an answer of at most `answer_bytes`.
    pub(crate) fn wire(answer_bytes: usize, quoter: Quoter) -> SseWire<Self> {
        let parser = Self {
            quoter: quoter.clone(),
            answer_bytes,
            usage: MessageUsage::default(),
            stop_reason: None,
            has_text: false,
            open: BTreeMap::new(),
            call_bytes: 0,
            scripted: false,
            last: "nothing",
        };
        SseWire::new(answer_bytes, quoter, parser)
    }

    fn take(&mut self, event: Event, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        match event {
            Event::MessageStart { message } => {
                self.last = "message_start";
                self.begin(out);
                self.scripted = crate::config::is_scripted_model(&message.model);
                self.count(message.usage, false, out);
            }
            Event::ContentBlockStart { index, content_block } => {
                self.open_block(index, content_block, out)?
            }
            Event::ContentBlockDelta { index, delta } => self.delta(index, delta, out)?,
            Event::ContentBlockStop { index } => {
                self.last = "content_block_stop";
                if let Some(call) = self.open.remove(&index) {
                    out.push(WireEvent::ToolCall(call.whole(&self.quoter)?));
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.last = "message_delta";
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                let is_last = usage.is_some_and(|usage| usage.output_tokens.is_some());
                self.count(usage, is_last && self.stop_reason.is_some(), out);
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(crate::fault::error_fault(error).classify(&self.quoter)),
            Event::Other => {}
        }
        Ok(false)
    }

    /// A message that begins anew makes what was said before void.
    fn begin(&mut self, out: &mut Vec<WireEvent>) {
        if std::mem::take(&mut self.has_text) {
            out.push(WireEvent::Retract);
        }
        self.open.clear();
        self.stop_reason = None;
    }

    fn text(&mut self, text: String, out: &mut Vec<WireEvent>) {
        if !text.is_empty() {
            self.has_text = true;
            out.push(WireEvent::Text(text));
        }
    }

    fn open_block(&mut self, index: u64, block: Block, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.last = "content_block_start";
        match block {
            Block::Text { text } => self.text(text, out),
            Block::ToolUse { id, name } => {
                if self.open.len() >= OPEN_BLOCKS_MAX {
                    return Err(TurnError::Protocol { detail: "too many open content blocks".to_owned() });
                }
                self.call_bytes += id.len() + name.len();
                self.bound()?;
                self.open.insert(index, ToolUse { id, name, input: String::new() });
                out.push(WireEvent::Work);
            }
            Block::RedactedThinking => out.push(WireEvent::Work),
            Block::Other => {}
        }
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        self.last = "content_block_delta";
        match delta {
            Delta::Text { text } => self.text(text, out),
            Delta::InputJson { partial_json } => {
                if let Some(call) = self.open.get_mut(&index) {
                    call.input.push_str(&partial_json);
                    self.call_bytes += partial_json.len();
                }
                self.bound()?;
            }
            Delta::Thinking => out.push(WireEvent::Work),
            Delta::Other => {}
        }
        Ok(())
    }

    fn bound(&self) -> Result<(), TurnError> {
        let limit = self.answer_bytes;
        if self.call_bytes > limit { Err(TurnError::TooLong { limit }) } else { Ok(()) }
    }

    fn count(&mut self, newer: Option<MessageUsage>, whole: bool, out: &mut Vec<WireEvent>) {
        let Some(newer) = newer else { return };
        self.usage.replace(newer);
        out.push(WireEvent::Usage(Counted {
            tokens: self.usage.normalised(),
            scripted: self.scripted,
            whole,
            ..Counted::default()
        }));
    }
}

impl EventParser for MessageParser {
    fn event(&mut self, data: &str, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        let event = json::read(data).map_err(|_| TurnError::Protocol {
            detail: format!("not an event of a message: {}", self.quoter.head(data)),
        })?;
        self.take(event, out)
    }

    fn is_whole(&self, data: &str) -> bool {
        json::read::<Event>(data).is_ok()
    }

    fn stop(&mut self, _out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let said = |reason: &str| format!("stop_reason is `{reason}`");
        match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => Ok(StopReason::EndTurn),
            Some("tool_use") => Ok(StopReason::ToolUse),
            Some(reason @ ("max_tokens" | "model_context_window_exceeded")) => {
                Err(TurnError::Truncated { detail: said(reason) })
            }
            Some(reason @ "refusal") => Err(TurnError::Refused { detail: said(reason) }),
            Some(other) => {
                let detail = format!("stop_reason `{}` is not known", self.quoter.head(other));
                Err(TurnError::Protocol { detail })
            }
            None => Err(TurnError::Cut { detail: "`message_stop` came without a stop_reason".to_owned() }),
        }
    }

    fn cut(&self) -> TurnError {
        TurnError::Cut { detail: format!("`{}` was the last event, not `message_stop`", self.last) }
    }
}

impl ToolUse {
    fn whole(self, quoter: &Quoter) -> Result<ToolCall, TurnError> {
        let text = if self.input.trim().is_empty() { "{}" } else { &self.input };
        let arguments = json::read(text).map_err(|_| TurnError::Protocol {
            detail: format!("the arguments of tool `{}` are not JSON", quoter.head(&self.name)),
        })?;
        Ok(ToolCall::new(self.id, self.name, arguments))
    }
}
