//! What is written of the kinds that speak HTTP.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use cyberine_types::Billing;
use serde::{Deserialize, Serialize};

use crate::cost::Prices;

/// Kinds `openai`, `openai-responses`, `anthropic`, `gemini` and `ollama`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// The address of the service, such as `https://openrouter.ai/api/v1`; unset means the one of the
    /// kind's maker. Kind `openai` has none: every server speaks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The model, as the server names it.
    pub model: String,
    /// The environment variable that holds the key; unset means the maker's own where `base_url` is
    /// unset too, else that none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How it is paid for; unset means `free` on loopback, else `metered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// Prices, from which the cost is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// How many of its turns may run at once, over all runs of a home; unset means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<NonZeroUsize>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
    /// The most output tokens, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// Whether the server can be held to a JSON Schema.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub structured_output: bool,
    /// Lets the key travel over plain `http` beyond this machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_plain_http: bool,
}

impl HttpConfig {
    /// `model` of the service at `base_url`, without a key, and everything else as it is by default.
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: Some(base_url.into()),
            model: model.into(),
            api_key_env: None,
            billing: None,
            prices: None,
            max_parallel: None,
            idle_seconds: None,
            wall_seconds: None,
            max_tokens: None,
            structured_output: true,
            allow_plain_http: false,
        }
    }
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !*value
}
