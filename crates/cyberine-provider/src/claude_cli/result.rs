//! The `result` line of `claude -p`.

use std::time::Duration;

use cyberine_types::{Usage, Usd};
use serde::Deserialize;
use serde_json::Value;

use crate::anthropic::MessageUsage;
use crate::error::TurnError;
use crate::fault::Fault;
use crate::lenient::Figures;
use crate::port::StopReason;
use crate::quote::Quoter;

/// What the line says.
pub(super) struct ResultLine {
    /// The answer: the structured one where a schema was asked for, else the text.
    pub(super) answer: String,
    /// It is the structured one.
    pub(super) is_structured: bool,
    /// Tokens of the whole session.
    pub(super) tokens: Usage,
    /// `total_cost_usd`.
    pub(super) cost: Option<Usd>,
    /// The figures make sense.
    pub(super) is_sound: bool,
    is_error: bool,
    subtype: String,
    stop_reason: String,
    terminal_reason: String,
    fault: Fault,
}

impl ResultLine {
    /// Reads the line. `failure` is what the program called its last failure: where there was no
    /// answer with a status, the line itself may not say what kind it was. `wait` is how long it last
    /// waited before another try.
    pub(super) fn read(line: &Value, failure: &str, wait: Option<Duration>) -> Self {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let answer = match &line["structured_output"] {
            Value::Null => text("result"),
            structured => structured.to_string(),
        };
        let errors = line["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let said: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
        let message = if said.is_empty() { text("result") } else { said.join("; ") };
        let mut figures = Figures::default();
        let tokens = tokens(line, &mut figures);
        // Where the cost is told, it alone counts.
        let mut cost_alone = Figures::default();
        let cost = cost_alone.dollars(&line["total_cost_usd"]);
        Self {
            answer,
            is_structured: !line["structured_output"].is_null(),
            tokens,
            cost,
            is_sound: cost_alone.sound && (cost.is_some() || figures.sound),
            // A line without the member is no success.
            is_error: line["is_error"] != false,
            subtype: text("subtype"),
            stop_reason: text("stop_reason"),
            terminal_reason: text("terminal_reason"),
            fault: Fault {
                status: line["api_error_status"].as_u64().and_then(|status| u16::try_from(status).ok()),
                kind: [&text("api_error_type"), &text("api_error"), failure].join(" ").trim().to_owned(),
                message,
                retry_after: wait,
            },
        }
    }

    /// `subtype` is `success` also where the account cannot pay, so both members are needed.
    pub(super) fn is_success(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }

    /// Whether the session broke off because it was asked to.
    pub(super) fn is_aborted(&self) -> bool {
        self.terminal_reason.starts_with("aborted")
    }

    pub(super) fn verdict(&self, quoter: &Quoter) -> Result<StopReason, TurnError> {
        if self.is_success() {
            return Ok(StopReason::EndTurn);
        }
        let message = &self.fault.message;
        let detail = quoter.head(if message.is_empty() { &self.subtype } else { message });
        Err(match (self.subtype.as_str(), self.terminal_reason.as_str()) {
            _ if self.is_aborted() => TurnError::Cancelled,
            _ if self.stop_reason == "refusal" => TurnError::Refused { detail },
            ("error_max_turns" | "error_max_budget_usd", _) => TurnError::Truncated { detail },
            _ if self.is_kind("max_output_tokens") => TurnError::Truncated { detail },
            _ if self.is_kind("connection_failed") => unreachable(detail),
            (_, "prompt_too_long") => TurnError::Rejected { detail },
            _ => self.fault.classify(quoter),
        })
    }

    fn is_kind(&self, kind: &str) -> bool {
        self.fault.kind.split(' ').any(|word| word == kind)
    }
}

/// The program runs, and the service behind it does not answer.
pub(super) fn unreachable(detail: String) -> TurnError {
    TurnError::Unreachable { target: "the API that claude uses".to_owned(), detail }
}

/// `modelUsage` counts every turn of every model; `usage` has been seen to miss one.
fn tokens(line: &Value, figures: &mut Figures) -> Usage {
    let models = line["modelUsage"].as_object().filter(|models| !models.is_empty());
    let Some(models) = models else {
        return MessageUsage::deserialize(&line["usage"]).unwrap_or_default().normalised();
    };
    models.values().fold(Usage::default(), |sum, model| {
        let mut count = |key: &str| figures.count(model, key);
        let (read, written) = (count("cacheReadInputTokens"), count("cacheCreationInputTokens"));
        sum.plus(&Usage {
            input: count("inputTokens").saturating_add(read).saturating_add(written),
            cached_read: read,
            cache_write: written,
            output: count("outputTokens"),
            ..Usage::default()
        })
    })
}
