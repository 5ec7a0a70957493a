//! What is written of the kinds that start a program.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use cyberine_types::Billing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cost::Prices;

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
    /// Tools the program may use as far as they change nothing; empty means none.
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
    /// How many of its turns may run at once, over all runs of a home; unset means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<NonZeroUsize>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
}

/// Kind `codex-cli`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodexCliConfig {
    /// The program; unset means `codex`, found on the `PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The model; unset means the program's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it is driven; unset means `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<CodexForm>,
    /// Further arguments, after ours. They can widen what the program may do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
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
    /// Prices, from which the cost is computed where none is reported.
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
}

/// How Codex is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodexForm {
    /// One shot: `codex exec --json`.
    #[default]
    Exec,
    /// A dialogue with `codex app-server`, which Codex calls experimental.
    AppServer,
}

/// Kind `acp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpConfig {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// How it is driven; unset means by the protocol, but one shot where the program is `gemini` or
    /// `opencode` and no argument makes it speak the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<AcpForm>,
    /// Environment variables to hand on beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The directory to work in, in place of the turn's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The model; unset means the agent's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it is paid for; unset means `metered` where a variable handed on holds a key, else `subscription`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// Prices, from which the cost is computed where none is reported.
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
}

/// How an agent of kind `acp` is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcpForm {
    /// By the Agent Client Protocol.
    #[default]
    Acp,
    /// One shot of Gemini CLI: `--output-format=stream-json`.
    Gemini,
    /// One shot of opencode: `run --format=json`.
    Opencode,
}

/// Kind `aider`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AiderConfig {
    /// The program; unset means `aider`, found on the `PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The model; unset means the program's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Further arguments, after ours. They can widen what the program may do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables to hand on beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How it is paid for; unset means `metered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// Prices, from which the cost is computed where none is reported.
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
    /// How many of its turns may run at once, over all runs of a home; unset means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<NonZeroUsize>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
}

/// Kind `mcp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// The server: a program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// The tool that answers.
    pub tool: String,
    /// The argument that gets the prompt; unset means `prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// Further arguments of the tool, the same in every call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
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
    /// How many of its turns may run at once, over all runs of a home; unset means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<NonZeroUsize>,
    /// The longest silence, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<NonZeroU64>,
    /// The longest turn, in place of the turn's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<NonZeroU64>,
}
