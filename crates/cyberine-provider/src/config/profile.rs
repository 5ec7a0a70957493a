//! What a configuration comes to, whatever its kind.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::time::Duration;

use cyberine_types::Billing;

use super::HttpConfig;
use super::check::is_loopback_url;
use crate::cost::{Prices, Tariff};
use crate::http_provider::Dialect;
use crate::port::Limits;

/// What a configuration comes to: whom it asks, with what, and how that is paid for.
#[derive(Debug, Clone, Default)]
pub struct Profile<'a> {
    /// The wire, as `kind` spells it.
    pub kind: &'static str,
    /// The model, where one is named.
    pub model: Option<&'a str>,
    /// The address that prompts are sent to; empty for a program, and where one is missing.
    pub url: &'a str,
    /// Whether a key may travel to that address unencrypted.
    pub plain_http: bool,
    /// The program that is started: a name to find on the `PATH`, or a path. `None` for a service.
    pub program: Option<&'a Path>,
    /// The arguments that the configuration gives to it.
    pub args: &'a [String],
    /// The directory it works in, in place of the turn's own.
    pub cwd: Option<&'a Path>,
    /// The tools it may use.
    pub tools: &'a [String],
    /// The environment variable that holds the key to pay with.
    pub key_env: Option<&'a str>,
    /// The environment variables that are handed on.
    pub env: &'a [String],
    /// How it is paid for, where the configuration says so.
    pub configured_billing: Option<Billing>,
    /// How it is paid for where nobody says so.
    pub usual_billing: Option<Billing>,
    /// Configured prices.
    pub prices: Option<Prices>,
    /// How many of its turns may run at once.
    pub max_parallel: Option<NonZeroUsize>,
    /// The longest silence.
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn.
    pub wall_seconds: Option<NonZeroU64>,
    /// The most output tokens.
    pub max_tokens: Option<NonZeroU32>,
}

impl<'a> Profile<'a> {
    pub(crate) fn of_service(dialect: &dyn Dialect, config: &'a HttpConfig) -> Self {
        let service = dialect.service();
        let url = config.base_url.as_deref();
        let usual_key = if url.is_none() { service.key_env } else { None };
        Self {
            kind: service.kind,
            model: Some(&config.model),
            url: url.or(service.url).unwrap_or_default(),
            plain_http: config.allow_plain_http,
            key_env: config.api_key_env.as_deref().or(usual_key),
            configured_billing: config.billing,
            usual_billing: dialect.usual_billing(&config.model),
            prices: config.prices,
            max_parallel: config.max_parallel,
            idle_seconds: config.idle_seconds,
            wall_seconds: config.wall_seconds,
            max_tokens: config.max_tokens,
            ..Self::default()
        }
    }

    /// How it is paid for; see [`crate::ProviderConfig::billing`].
    pub(crate) fn billing(&self) -> Billing {
        // What is scripted is called so where it is said to be free too: neither costs anything.
        if self.is_scripted() && !self.is_said_to_cost() {
            return Billing::Scripted;
        }
        let usual = match self.usual_billing {
            Some(usual) => usual,
            None if self.is_on_loopback() => Billing::Free,
            None => Billing::Metered,
        };
        self.configured_billing.unwrap_or(usual)
    }

    pub(crate) fn tariff(&self) -> Tariff {
        let trusts_script = !self.is_said_to_cost() && self.is_on_loopback();
        Tariff { billing: self.billing(), prices: self.prices, trusts_script }
    }

    /// The limits of a turn with the configured ones in their places.
    pub(crate) fn limits(&self, turn: Limits) -> Limits {
        let seconds = |limit: Option<NonZeroU64>, own| limit.map_or(own, |s| Duration::from_secs(s.get()));
        Limits {
            idle: seconds(self.idle_seconds, turn.idle),
            wall: seconds(self.wall_seconds, turn.wall),
            max_tokens: self.max_tokens.map_or(turn.max_tokens, NonZeroU32::get),
            ..turn
        }
    }

    fn is_said_to_cost(&self) -> bool {
        matches!(self.configured_billing, Some(Billing::Metered | Billing::Subscription))
    }

    fn is_scripted(&self) -> bool {
        match self.program {
            Some(program) => program.file_stem().is_some_and(|stem| stem == "cyberine-scripted-llm"),
            None => self.is_on_loopback() && self.model.is_some_and(is_scripted_model),
        }
    }

    pub(crate) fn is_on_loopback(&self) -> bool {
        self.program.is_none() && is_loopback_url(self.url)
    }
}

/// Whether a model id says that no model is behind it.
pub(crate) fn is_scripted_model(model: &str) -> bool {
    model.starts_with("scripted/")
}
