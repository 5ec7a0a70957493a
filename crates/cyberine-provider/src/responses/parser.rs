//! The stream of a response: typed events that end with `response.completed` or its like.

use cyberine_types::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::cost::Counted;
use crate::error::TurnError;
use crate::json;
use crate::lenient::lenient;
use crate::port::{StopReason, ToolCall};
use crate::quote::{QUOTE_BYTES, Quoter};
use crate::sse::{EventParser, SseWire};
use crate::wire::WireEvent;

/// Reads one response.
pub(crate) struct ResponseParser {
    quoter: Quoter,
    answer_bytes: usize,
    refusal: String,
    /// Why the response is not whole, where it ended so.
    incomplete: Option<String>,
    has_begun: bool,
    has_text: bool,
    /// Of the text that is coming, a piece has come.
    in_text: bool,
    calls: usize,
    call_bytes: usize,
    scripted: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.created")]
    Created { response: Response },
    #[serde(rename = "response.output_text.delta")]
    Text { delta: String },
    /// A text that came in pieces, or did not.
    #[serde(rename = "response.output_text.done")]
    TextDone { text: String },
    #[serde(rename = "response.refusal.delta")]
    Refusal { delta: String },
    #[serde(rename = "response.refusal.done")]
    RefusalDone { refusal: String },
    #[serde(
        rename = "response.reasoning_text.delta",
        alias = "response.reasoning_summary_text.delta",
        alias = "response.reasoning_summary_part.added",
        alias = "response.function_call_arguments.delta"
    )]
    Work,
    #[serde(rename = "response.output_item.done")]
    ItemDone { item: Item },
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    #[serde(rename = "response.failed")]
    Failed { response: Response },
    #[serde(rename = "error")]
    Error(Value),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    model: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<ResponseUsage>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(default, deserialize_with = "lenient")]
    output: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    FunctionCall {
        call_id: String,
        name: String,
        #[serde(default)]
        arguments: String,
    },
    Message {
        #[serde(default)]
        content: Vec<Part>,
    },
    Reasoning,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    OutputText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct ResponseUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl ResponseUsage {
    /// `input_tokens` includes what a cache took part in, `output_tokens` includes reasoning.
    fn normalised(&self) -> Usage {
        let read = self.input_tokens_details.as_ref();
        let written = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens,
            cached_read: read.and_then(|details| details.cached_tokens).unwrap_or(0),
            cache_write: read.and_then(|details| details.cache_write_tokens).unwrap_or(0),
            output: self.output_tokens,
            reasoning: written.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            ..Usage::default()
        }
    }
}

impl ResponseParser {
    /// A wire for an answer of at most `answer_bytes`.
    pub(crate) fn wire(answer_bytes: usize, quoter: Quoter) -> SseWire<Self> {
        let parser = Self {
            quoter: quoter.clone(),
            answer_bytes,
            refusal: String::new(),
            incomplete: None,
            has_begun: false,
            has_text: false,
            in_text: false,
            calls: 0,
            call_bytes: 0,
            scripted: false,
        };
        SseWire::new(answer_bytes, quoter, parser)
    }

    fn take(&mut self, event: Event, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        match event {
            Event::Created { response } => self.begin(&response, out),
            Event::Text { delta } => {
                self.in_text |= !delta.is_empty();
                self.text(delta, out);
            }
            Event::TextDone { text } => {
                if !std::mem::take(&mut self.in_text) {
                    self.text(text, out);
                }
            }
            Event::Work => out.push(WireEvent::Work),
            Event::Refusal { delta } if self.refusal.len() < QUOTE_BYTES => {
                self.refusal.push_str(&delta);
                out.push(WireEvent::Work);
            }
            Event::RefusalDone { refusal } if self.refusal.is_empty() => self.refusal = refusal,
            // Its texts have come by themselves, or come at the end.
            Event::ItemDone { item: Item::Message { .. } } => {}
            Event::ItemDone { item } => self.item(item, out)?,
            Event::Completed { response } => {
                self.conclude(response, false, out)?;
                return Ok(true);
            }
            Event::Incomplete { response } => {
                self.conclude(response, true, out)?;
                return Ok(true);
            }
            Event::Failed { response } => {
                self.count(&response, out);
                return Err(self.fault(response.error.unwrap_or_default()));
            }
            // The error stands in a member of its own, or is the event itself.
            Event::Error(mut event) => {
                let error = event["error"].take();
                return Err(self.fault(if error.is_null() { event } else { error }));
            }
            Event::Refusal { .. } | Event::RefusalDone { .. } | Event::Other => {}
        }
        Ok(false)
    }

    /// A stream that begins anew makes what was said before void.
    fn begin(&mut self, response: &Response, out: &mut Vec<WireEvent>) {
        if std::mem::replace(&mut self.has_begun, true) && self.has_text {
            out.push(WireEvent::Retract);
        }
        (self.has_text, self.in_text) = (false, false);
        self.refusal.clear();
        self.scripted = response.model.as_deref().is_some_and(crate::config::is_scripted_model);
    }

    /// The response as it ended, whatever the event was called that says so.
    fn conclude(
        &mut self,
        response: Response,
        incomplete: bool,
        out: &mut Vec<WireEvent>,
    ) -> Result<(), TurnError> {
        self.count(&response, out);
        let status = response.status.unwrap_or_default();
        let error = response.error.filter(|error| !error.is_null());
        if error.is_some() || status == "failed" {
            return Err(self.fault(error.unwrap_or_default()));
        }
        if status == "cancelled" {
            return Err(TurnError::Cut { detail: "the response was cancelled".to_owned() });
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        if incomplete || status == "incomplete" || reason.is_some() {
            self.incomplete = Some(reason.unwrap_or_default());
        }
        // Some servers send it whole, and nothing before.
        if !self.has_text && self.refusal.is_empty() && self.calls == 0 {
            for item in response.output.unwrap_or_default() {
                self.item(item, out)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, text: String, out: &mut Vec<WireEvent>) {
        if !text.is_empty() {
            self.has_text = true;
            out.push(WireEvent::Text(text));
        }
    }

    fn item(&mut self, item: Item, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        let (call_id, name, arguments) = match item {
            Item::FunctionCall { call_id, name, arguments } => (call_id, name, arguments),
            Item::Reasoning => {
                out.push(WireEvent::Work);
                return Ok(());
            }
            Item::Message { content } => {
                for part in content {
                    match part {
                        Part::OutputText { text } => self.text(text, out),
                        Part::Refusal { refusal } => self.refusal.push_str(&refusal),
                        Part::Other => {}
                    }
                }
                return Ok(());
            }
            Item::Other => return Ok(()),
        };
        self.call_bytes += call_id.len() + name.len() + arguments.len();
        if self.call_bytes > self.answer_bytes {
            return Err(TurnError::TooLong { limit: self.answer_bytes });
        }
        let text = if arguments.trim().is_empty() { "{}" } else { &arguments };
        let arguments = json::read(text).map_err(|_| TurnError::Protocol {
            detail: format!("the arguments of tool `{}` are not JSON", self.quoter.head(&name)),
        })?;
        self.calls += 1;
        out.push(WireEvent::ToolCall(ToolCall::new(call_id, name, arguments)));
        Ok(())
    }

    fn count(&self, response: &Response, out: &mut Vec<WireEvent>) {
        let Some(usage) = &response.usage else { return };
        let (tokens, scripted) = (usage.normalised(), self.scripted);
        out.push(WireEvent::Usage(Counted { tokens, scripted, whole: true, ..Counted::default() }));
    }

    fn fault(&self, error: Value) -> TurnError {
        crate::fault::error_fault(error).classify(&self.quoter)
    }
}

impl EventParser for ResponseParser {
    fn event(&mut self, data: &str, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        // Some servers end the stream as they end that of a chat completion.
        if data.trim() == "[DONE]" {
            return Ok(false);
        }
        let event = json::read(data).map_err(|_| TurnError::Protocol {
            detail: format!("not an event of a response: {}", self.quoter.head(data)),
        })?;
        self.take(event, out)
    }

    fn is_whole(&self, data: &str) -> bool {
        json::read::<Event>(data).is_ok()
    }

    fn stop(&mut self, _out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        if !self.refusal.trim().is_empty() {
            return Err(TurnError::Refused { detail: self.quoter.head(&self.refusal) });
        }
        match self.incomplete.as_deref() {
            None if self.calls > 0 => Ok(StopReason::ToolUse),
            None => Ok(StopReason::EndTurn),
            Some(reason) => {
                let detail = format!("the response is incomplete: `{}`", self.quoter.head(reason));
                Err(match reason {
                    "content_filter" => TurnError::Refused { detail },
                    "max_output_tokens" => TurnError::Truncated { detail },
                    _ => TurnError::Protocol { detail },
                })
            }
        }
    }

    fn cut(&self) -> TurnError {
        let seen = if self.has_text { "text" } else { "no text" };
        TurnError::Cut { detail: format!("{seen}, no `response.completed`") }
    }
}
