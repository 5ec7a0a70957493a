//! One turn of one model: the [`Provider`] port and its adapters.
//!
//! This crate owns how a model or an agent is driven and what its stream means. It never judges
//! an answer, never touches the run store and never reads the environment: credentials are
//! handed to it as [`cyberine_types::Secret`]s, and leave it for the one address or program they
//! are configured for.
//!
//! Every wire is a parser without I/O (bytes in, events out) below one of two thin shells, for
//! HTTP and for processes, which hold the limits on silence, time and size.
//!
//! ```
//! use cyberine_process::ChildEnvironment;
//! use cyberine_provider::{BuildError, ProviderConfig, build};
//!
//! let config: ProviderConfig = serde_json::from_str(
//!     r#"{"kind": "openai", "base_url": "https://openrouter.ai/api/v1", "model": "m", "api_key_env": "ROUTER_KEY"}"#,
//! )?;
//! let missing = build("router", &config, &|_| None, &ChildEnvironment::allowed([])).err();
//! let expected = BuildError::MissingVariable { name: "router".into(), variable: "ROUTER_KEY".into() };
//! assert_eq!(missing, Some(expected));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod acp;
mod aider;
mod anthropic;
mod build;
mod child;
mod child_provider;
mod claude_cli;
mod codex_cli;
mod command;
mod config;
#[cfg(feature = "contract")]
pub mod contract;
mod cost;
mod covered;
mod error;
mod fault;
mod gate;
mod gemini;
mod http;
mod http_provider;
mod json;
mod lenient;
mod lines;
mod loop_detector;
mod mcp_tool;
mod ollama;
mod openai;
mod port;
mod probe;
mod prompt;
mod quote;
mod redact;
mod responses;
mod retry;
mod rpc;
mod said;
#[cfg(test)]
mod samples;
mod schema;
mod sse;
mod stream;
mod talk;
mod text;
mod wire;

pub use build::{BuildError, build, build_among, secrets_of};
pub use child::remove_scratch;
pub use config::{
    AcpConfig, AcpForm, AiderConfig, ClaudeCliConfig, CodexCliConfig, CodexForm, CommandConfig, ConfigError,
    HttpConfig, McpConfig, Profile, ProviderConfig,
};
pub use cost::{BUILT_IN_PRICES, LongPrices, PriceEntry, PriceTable, Prices};
pub use covered::{COVERED, Coverage, Covered, Version, version};
pub use error::TurnError;
pub use gate::{AccountGate, Entry, GateError, GateState, LONGEST_CLOSED, MemoryGate, Place};
pub use http::JsonClient;
pub use port::{
    Capabilities, Limits, Message, Provider, ProviderInfo, Role, StopReason, ToolCall, ToolSpec, Turn,
    TurnEvent,
};
pub use probe::{Login, Probe};
pub use retry::retrying;
