//! The stream of `streamGenerateContent`: `data:` events, the last of which says why it is the last.

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

/// Why an answer was withheld or broken off for what it says.
const REFUSALS: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Reads one generation.
pub(crate) struct GeminiParser {
    quoter: Quoter,
    answer_bytes: usize,
    finish_reason: Option<String>,
    finish_message: String,
    /// There is something in the answer: a word, or a call.
    has_said: bool,
    calls: usize,
    call_bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default, deserialize_with = "lenient")]
    usage_metadata: Option<GeminiUsage>,
    #[serde(default)]
    model_version: Option<String>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default)]
    function_call: Option<FunctionCall>,
    #[serde(default)]
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct FunctionCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
    #[serde(default)]
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct GeminiUsage {
    prompt_token_count: u64,
    tool_use_prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

impl GeminiUsage {
    /// The prompt includes what was cached; the candidates leave out the thoughts.
    fn normalised(&self) -> Usage {
        Usage {
            input: self.prompt_token_count.saturating_add(self.tool_use_prompt_token_count),
            cached_read: self.cached_content_token_count,
            output: self.candidates_token_count.saturating_add(self.thoughts_token_count),
            reasoning: self.thoughts_token_count,
            ..Usage::default()
        }
    }
}

impl GeminiParser {
    /// A wire for an answer of at most `answer_bytes`.
    pub(crate) fn wire(answer_bytes: usize, quoter: Quoter) -> SseWire<Self> {
        let parser = Self {
            quoter: quoter.clone(),
            answer_bytes,
            finish_reason: None,
            finish_message: String::new(),
            has_said: false,
            calls: 0,
            call_bytes: 0,
        };
        SseWire::new(answer_bytes, quoter, parser)
    }

    /// Says whether the chunk was the last: it has the reason, and the figures have come.
    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(crate::fault::error_fault(error).classify(&self.quoter));
        }
        let scripted = chunk.model_version.as_deref().is_some_and(crate::config::is_scripted_model);
        if let Some(reason) = chunk.prompt_feedback.as_ref().and_then(|f| f.block_reason.as_deref()) {
            let why = chunk.prompt_feedback.as_ref().and_then(|f| f.block_reason_message.as_deref());
            self.count(chunk.usage_metadata, scripted, out);
            let detail = format!("the prompt was blocked: {reason} {}", why.unwrap_or_default());
            return Err(TurnError::Refused { detail: self.quoter.head(&detail) });
        }
        // A request asks for one candidate; a server that sends more is read for the first.
        for candidate in chunk.candidates.unwrap_or_default().into_iter().filter(|c| c.index == 0) {
            for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
                self.part(part, out)?;
            }
            if candidate.finish_reason.is_some() {
                self.finish_reason = candidate.finish_reason;
                self.finish_message = candidate.finish_message.unwrap_or_default();
            }
        }
        let counted = chunk.usage_metadata.is_some();
        self.count(chunk.usage_metadata, scripted, out);
        Ok(counted && self.finish_reason.is_some())
    }

    /// The figures grow with the answer: the last ones come with the reason.
    fn count(&self, usage: Option<GeminiUsage>, scripted: bool, out: &mut Vec<WireEvent>) {
        let Some(usage) = usage else { return };
        let is_last = self.finish_reason.is_some() && (usage.candidates_token_count > 0 || !self.has_said);
        out.push(WireEvent::Usage(Counted {
            tokens: usage.normalised(),
            scripted,
            whole: is_last,
            ..Counted::default()
        }));
    }

    fn part(&mut self, part: Part, out: &mut Vec<WireEvent>) -> Result<(), TurnError> {
        if part.thought == Some(true) {
            out.push(WireEvent::Work);
            return Ok(());
        }
        if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            self.has_said = true;
            out.push(WireEvent::Text(text));
        }
        let Some(call) = part.function_call else { return Ok(()) };
        let arguments = call.args.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let named = call.name.len() + call.id.as_ref().map_or(0, String::len);
        self.call_bytes += named + arguments.to_string().len();
        if self.call_bytes > self.answer_bytes {
            return Err(TurnError::TooLong { limit: self.answer_bytes });
        }
        // Older models name no call.
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{}", self.calls));
        self.calls += 1;
        self.has_said = true;
        let signature = part.thought_signature;
        out.push(WireEvent::ToolCall(ToolCall { signature, ..ToolCall::new(id, call.name, arguments) }));
        Ok(())
    }
}

impl EventParser for GeminiParser {
    fn event(&mut self, data: &str, out: &mut Vec<WireEvent>) -> Result<bool, TurnError> {
        let chunk = json::read(data).map_err(|_| TurnError::Protocol {
            detail: format!("not a chunk of a generation: {}", self.quoter.head(data)),
        })?;
        self.chunk(chunk, out)
    }

    fn is_whole(&self, data: &str) -> bool {
        json::read::<Chunk>(data).is_ok()
    }

    /// The reason ends an answer whose figures never came.
    fn may_end(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn stop(&mut self, _out: &mut Vec<WireEvent>) -> Result<StopReason, TurnError> {
        let reason = self.finish_reason.take().unwrap_or_default();
        let detail = self.quoter.head(&format!("finishReason is `{reason}` {}", self.finish_message));
        match reason.as_str() {
            "STOP" if self.calls > 0 => Ok(StopReason::ToolUse),
            "STOP" => Ok(StopReason::EndTurn),
            "MAX_TOKENS" => Err(TurnError::Truncated { detail }),
            reason if REFUSALS.contains(&reason) => Err(TurnError::Refused { detail }),
            _ => Err(TurnError::Protocol { detail }),
        }
    }

    fn cut(&self) -> TurnError {
        TurnError::Cut { detail: "no finishReason".to_owned() }
    }
}
