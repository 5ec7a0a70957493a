//! The configuration of a provider: what a person writes, and what is frozen into a run.

mod check;

use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cyberine_types::Billing;
use serde::{Deserialize, Serialize};

pub use self::check::ConfigError;
use self::check::{Check, is_loopback_url};
use crate::cost::{Prices, Tariff};
use crate::port::{Limits, ProviderInfo};

/// One provider, by the wire it speaks. Holds names of environment variables, never their values,
/// so that it may be written down.
///
/// ```
/// use cyberine_provider::ProviderConfig;
///
/// let config: ProviderConfig = serde_json::from_str(
///     r#"{"kind": "openai", "base_url": "http://127.0.0.1:11434/v1", "model": "qwen3:8b"}"#,
/// )?;
/// config.validate("ollama")?;
/// assert_eq!(config.required_env(), Vec::<&str>::new());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProviderConfig {
    /// Chat completions over server-sent events: OpenAI and every compatible server.
    Openai(OpenaiConfig),
    /// Messages over server-sent events: Anthropic and every compatible server.
    Anthropic(AnthropicConfig),
    /// Claude Code, headless, one process a turn.
    ClaudeCli(ClaudeCliConfig),
    /// Any program: the prompt on its standard input, the answer on its standard output.
    Command(CommandConfig),
}

/// Kind `openai`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenaiConfig {
    /// The address before `/chat/completions`, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model, as the server names it.
    pub model: String,
    /// The environment variable that holds the key; unset means that none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How it is paid for; unset means `free` on loopback, else `metered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// Prices, from which the cost is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
    /// The most output tokens, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// Whether the server takes `response_format` with a JSON Schema.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub structured_output: bool,
    /// Lets the key travel over plain `http` beyond this machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_plain_http: bool,
}

/// Kind `anthropic`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnthropicConfig {
    /// The address before `/v1/messages`; unset means `https://api.anthropic.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The model, as the server names it.
    pub model: String,
    /// The environment variable that holds the key; unset means `ANTHROPIC_API_KEY` where
    /// `base_url` is unset too, else that none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How it is paid for; unset means `free` on loopback, else `metered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// Prices, from which the cost is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
    /// The most output tokens, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// Lets the key travel over plain `http` beyond this machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_plain_http: bool,
}

/// Kind `claude-cli`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaudeCliConfig {
    /// The program; unset means `claude`, found on the `PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The model; unset means the program's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Further arguments, after ours. They can widen what the program may do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Tools the program may use, in plan mode; empty means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Environment variables to hand on beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The environment variable that holds a key to pay with; unset means that the program's own
    /// login pays and that no key reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How it is paid for; unset means `metered` with a key, else `subscription`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
}

/// Kind `command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// Environment variables to hand on beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The directory to work in, in place of the turn's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The model behind it, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it is paid for; unset means `free`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
}

const ANTHROPIC_URL: &str = "https://api.anthropic.com";
/// The variable that every Anthropic client reads its key from.
pub(crate) const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

impl ProviderConfig {
    /// The wire, as `kind` spells it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Openai(_) => "openai",
            Self::Anthropic(_) => "anthropic",
            Self::ClaudeCli(_) => "claude-cli",
            Self::Command(_) => "command",
        }
    }

    /// Checks everything that can be checked without the environment and without I/O.
    ///
    /// # Errors
    ///
    /// The first key that cannot work.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let check = Check::new(name)?;
        match self {
            Self::Openai(config) => {
                check.url(&config.base_url, config.api_key_env.is_some(), config.allow_plain_http)?;
                check.filled("model", &config.model)?;
            }
            Self::Anthropic(config) => {
                check.url(config.url(), config.key_env().is_some(), config.allow_plain_http)?;
                check.filled("model", &config.model)?;
            }
            Self::ClaudeCli(config) => {
                check.option("model", config.model.as_deref())?;
                check.path("program", config.program.as_deref())?;
                config.tools.iter().try_for_each(|tool| check.filled("tools", tool))?;
                config.args.iter().try_for_each(|arg| check.plain("args", arg))?;
                check.no_key_in(&config.env)?;
            }
            Self::Command(config) => {
                check.filled("command", config.command.first().map_or("", String::as_str))?;
                config.command.iter().try_for_each(|arg| check.plain("command", arg))?;
                check.option("model", config.model.as_deref())?;
                check.path("cwd", config.cwd.as_deref())?;
            }
        }
        self.variables().into_iter().try_for_each(|(key, variable)| check.variable(key, variable))
    }

    /// The environment variables whose values [`crate::build()`] asks for.
    #[must_use]
    pub fn required_env(&self) -> Vec<&str> {
        self.variables().into_iter().map(|(_, variable)| variable).collect()
    }

    /// Every variable that is named, with the key that names it.
    fn variables(&self) -> Vec<(&'static str, &str)> {
        let (key, env): (Option<&str>, &[String]) = match self {
            Self::Openai(config) => (config.api_key_env.as_deref(), &[]),
            Self::Anthropic(config) => (config.key_env(), &[]),
            Self::ClaudeCli(config) => (config.api_key_env.as_deref(), &config.env),
            Self::Command(config) => (None, &config.env),
        };
        let keys = key.into_iter().map(|variable| ("api_key_env", variable));
        keys.chain(env.iter().map(|variable| ("env", variable.as_str()))).collect()
    }

    /// What the provider is, for records and for people.
    #[must_use]
    pub fn info(&self, name: &str) -> ProviderInfo {
        let model = match self {
            Self::Openai(config) => Some(config.model.clone()),
            Self::Anthropic(config) => Some(config.model.clone()),
            Self::ClaudeCli(config) => config.model.clone(),
            Self::Command(config) => config.model.clone(),
        };
        ProviderInfo { name: name.to_owned(), kind: self.kind().to_owned(), model, billing: self.billing() }
    }

    /// How it is paid for: as configured, else `scripted` where no model is behind it, else the
    /// kind's default.
    ///
    /// A model named `scripted/…` counts as none only on loopback: elsewhere the name is the
    /// server's to choose, and what it costs is not told by it.
    #[must_use]
    pub fn billing(&self) -> Billing {
        // What is scripted is called so where it is said to be free too: neither costs anything.
        if self.is_scripted() && !self.is_said_to_cost() {
            return Billing::Scripted;
        }
        self.configured_billing().unwrap_or_else(|| match self {
            Self::Openai(_) | Self::Anthropic(_) if self.is_on_loopback() => Billing::Free,
            Self::Openai(_) | Self::Anthropic(_) => Billing::Metered,
            Self::ClaudeCli(c) if c.api_key_env.is_some() => Billing::Metered,
            Self::ClaudeCli(_) => Billing::Subscription,
            Self::Command(_) => Billing::Free,
        })
    }

    fn is_said_to_cost(&self) -> bool {
        matches!(self.configured_billing(), Some(Billing::Metered | Billing::Subscription))
    }

    fn configured_billing(&self) -> Option<Billing> {
        match self {
            Self::Openai(config) => config.billing,
            Self::Anthropic(config) => config.billing,
            Self::ClaudeCli(config) => config.billing,
            Self::Command(config) => config.billing,
        }
    }

    fn is_scripted(&self) -> bool {
        match self {
            Self::Openai(config) => self.is_on_loopback() && is_scripted_model(&config.model),
            Self::Anthropic(config) => self.is_on_loopback() && is_scripted_model(&config.model),
            Self::ClaudeCli(config) => config.program.as_deref().is_some_and(is_scripted_program),
            Self::Command(config) => {
                config.command.first().is_some_and(|program| is_scripted_program(program.as_ref()))
            }
        }
    }

    fn is_on_loopback(&self) -> bool {
        match self {
            Self::Openai(config) => is_loopback_url(&config.base_url),
            Self::Anthropic(config) => is_loopback_url(config.url()),
            Self::ClaudeCli(_) | Self::Command(_) => false,
        }
    }

    pub(crate) fn tariff(&self) -> Tariff {
        let prices = match self {
            Self::Openai(config) => config.prices,
            Self::Anthropic(config) => config.prices,
            Self::ClaudeCli(_) | Self::Command(_) => None,
        };
        let trusts_script = !self.is_said_to_cost() && self.is_on_loopback();
        Tariff { billing: self.billing(), prices, trusts_script }
    }

    /// The limits of a turn with the configured ones in their places.
    pub(crate) fn limits(&self, turn: Limits) -> Limits {
        let (idle, wall, tokens) = match self {
            Self::Openai(c) => (c.idle_seconds, c.wall_seconds, c.max_tokens),
            Self::Anthropic(c) => (c.idle_seconds, c.wall_seconds, c.max_tokens),
            Self::ClaudeCli(c) => (c.idle_seconds, c.wall_seconds, None),
            Self::Command(c) => (c.idle_seconds, c.wall_seconds, None),
        };
        let seconds = |limit: Option<NonZeroU64>, own| limit.map_or(own, |s| Duration::from_secs(s.get()));
        Limits {
            idle: seconds(idle, turn.idle),
            wall: seconds(wall, turn.wall),
            max_tokens: tokens.map_or(turn.max_tokens, NonZeroU32::get),
            ..turn
        }
    }
}

impl AnthropicConfig {
    pub(crate) fn url(&self) -> &str {
        self.base_url.as_deref().unwrap_or(ANTHROPIC_URL)
    }

    pub(crate) fn key_env(&self) -> Option<&str> {
        self.api_key_env.as_deref().or(if self.base_url.is_none() { Some(ANTHROPIC_KEY) } else { None })
    }
}

/// Whether a model id says that no model is behind it.
pub(crate) fn is_scripted_model(model: &str) -> bool {
    model.starts_with("scripted/")
}

fn is_scripted_program(program: &Path) -> bool {
    program.file_stem().is_some_and(|stem| stem == "cyberine-scripted-llm")
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
