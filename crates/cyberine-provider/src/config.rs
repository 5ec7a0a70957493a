//! The configuration of a provider: what a person writes, and what is frozen into a run.

mod check;
mod child;
mod http;
mod profile;

use cyberine_types::Billing;
use serde::{Deserialize, Serialize};

pub use self::check::ConfigError;
pub(crate) use self::check::{Check, is_loopback_url};
pub use self::child::{
    AcpConfig, AcpForm, AiderConfig, ClaudeCliConfig, CodexCliConfig, CodexForm, CommandConfig, McpConfig,
};
pub use self::http::HttpConfig;
pub use self::profile::Profile;
pub(crate) use self::profile::is_scripted_model;
use crate::child_provider::Program;
use crate::cost::Prices;
use crate::http_provider::Dialect;
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
    Openai(HttpConfig),
    /// Responses over server-sent events: OpenAI.
    OpenaiResponses(HttpConfig),
    /// Messages over server-sent events: Anthropic and every compatible server.
    Anthropic(HttpConfig),
    /// `streamGenerateContent` over server-sent events: Google's Gemini API.
    Gemini(HttpConfig),
    /// Ollama's own chat, a line of JSON at a time.
    Ollama(HttpConfig),
    /// Claude Code, headless, one process a turn.
    ClaudeCli(ClaudeCliConfig),
    /// Codex, headless, one process a turn.
    CodexCli(CodexCliConfig),
    /// Any agent that speaks the Agent Client Protocol on its standard streams: Gemini CLI,
    /// opencode and others.
    Acp(AcpConfig),
    /// Aider, one message a process.
    Aider(AiderConfig),
    /// Any program: the prompt on its standard input, the answer on its standard output.
    Command(CommandConfig),
    /// A tool of another MCP server, over its standard streams.
    Mcp(McpConfig),
}

/// The two families of kinds, and what each knows of its own.
pub(crate) enum Family<'a> {
    /// A service behind an address.
    Http(&'static dyn Dialect, &'a HttpConfig),
    /// A program that is started.
    Child(&'a dyn Program),
}

impl ProviderConfig {
    pub(crate) fn family(&self) -> Family<'_> {
        match self {
            Self::Openai(config) => Family::Http(&crate::openai::Chat, config),
            Self::OpenaiResponses(config) => Family::Http(&crate::responses::Responses, config),
            Self::Anthropic(config) => Family::Http(&crate::anthropic::Messages, config),
            Self::Gemini(config) => Family::Http(&crate::gemini::Gemini, config),
            Self::Ollama(config) => Family::Http(&crate::ollama::Ollama, config),
            Self::ClaudeCli(config) => Family::Child(config),
            Self::CodexCli(config) => Family::Child(config),
            Self::Acp(config) => Family::Child(config),
            Self::Aider(config) => Family::Child(config),
            Self::Command(config) => Family::Child(config),
            Self::Mcp(config) => Family::Child(config),
        }
    }

    /// What the configuration comes to, whatever its kind.
    #[must_use]
    pub fn profile(&self) -> Profile<'_> {
        match self.family() {
            Family::Http(dialect, config) => Profile::of_service(dialect, config),
            Family::Child(program) => program.profile(),
        }
    }

    /// The wire, as `kind` spells it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.profile().kind
    }

    /// Checks everything that can be checked without the environment and without I/O.
    ///
    /// # Errors
    ///
    /// The first key that cannot work.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let check = Check::new(name)?;
        let profile = self.profile();
        match self.family() {
            Family::Http(_, config) => {
                check.url(profile.url, profile.key_env.is_some(), config.allow_plain_http)?;
                check.filled("model", &config.model)?;
            }
            Family::Child(program) => {
                check.option("model", profile.model)?;
                check.path("cwd", profile.cwd)?;
                program.check(&check)?;
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
        let profile = self.profile();
        let key = profile.key_env.into_iter().map(|variable| ("api_key_env", variable));
        key.chain(profile.env.iter().map(|variable| ("env", variable.as_str()))).collect()
    }

    /// The same provider with another model; `None` where the configuration does not choose the
    /// model, as of a program that it only starts.
    #[must_use]
    pub fn with_model(&self, model: &str) -> Option<Self> {
        let mut other = self.clone();
        match &mut other {
            Self::Openai(config)
            | Self::OpenaiResponses(config)
            | Self::Anthropic(config)
            | Self::Gemini(config)
            | Self::Ollama(config) => model.clone_into(&mut config.model),
            Self::ClaudeCli(config) => config.model = Some(model.to_owned()),
            Self::CodexCli(config) => config.model = Some(model.to_owned()),
            Self::Aider(config) => config.model = Some(model.to_owned()),
            Self::Acp(_) | Self::Command(_) | Self::Mcp(_) => return None,
        }
        Some(other)
    }

    /// The account it uses, in words that are the same for every configuration that uses it: the
    /// address or the program, and the name of what it pays with.
    #[must_use]
    pub fn account(&self) -> String {
        let profile = self.profile();
        let whom = match profile.program {
            Some(program) => program.display().to_string(),
            None => profile.url.trim_end_matches('/').to_owned(),
        };
        let passed = profile.env.iter().map(String::as_str).filter(|name| crate::build::names_secret(name));
        let keys: Vec<&str> = profile.key_env.into_iter().chain(passed).collect();
        format!("{whom}\n{}", keys.join(","))
    }

    /// What the provider is, for records and for people.
    #[must_use]
    pub fn info(&self, name: &str) -> ProviderInfo {
        let profile = self.profile();
        let model = profile.model.map(str::to_owned);
        ProviderInfo { name: name.to_owned(), kind: profile.kind.to_owned(), model, billing: self.billing() }
    }

    /// How it is paid for: as configured, else `scripted` where no model is behind it, else the
    /// kind's default.
    ///
    /// A model named `scripted/…` counts as none only on loopback: elsewhere the name is the
    /// server's to choose, and what it costs is not told by it.
    #[must_use]
    pub fn billing(&self) -> Billing {
        self.profile().billing()
    }

    /// Gives the provider `prices` in place of its own, where its kind is priced by the token.
    pub fn set_prices(&mut self, prices: Option<Prices>) {
        *match self {
            Self::Openai(config)
            | Self::OpenaiResponses(config)
            | Self::Anthropic(config)
            | Self::Gemini(config)
            | Self::Ollama(config) => &mut config.prices,
            Self::CodexCli(config) => &mut config.prices,
            Self::Acp(config) => &mut config.prices,
            Self::Aider(config) => &mut config.prices,
            // The first reports its costs; what a program or a tool reads and writes is not known.
            Self::ClaudeCli(_) | Self::Command(_) | Self::Mcp(_) => return,
        } = prices;
    }

    /// The limits of a turn with the configured ones in their places.
    #[must_use]
    pub fn limits(&self, turn: Limits) -> Limits {
        self.profile().limits(turn)
    }
}
