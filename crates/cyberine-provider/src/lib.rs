//! One turn of one model: the [`Provider`] port and its adapters.
//!
//! This crate owns how a model or an agent is driven and what its stream means. It never judges
//! an answer, never touches the run store and never reads the environment: credentials are
//! handed to it as [`cyberine_types::Secret`]s.
#![warn(missing_docs)]

mod error;
mod port;

pub use error::TurnError;
pub use port::{
    Capabilities, Limits, Message, Provider, ProviderInfo, Role, StopReason, ToolCall, ToolSpec, Turn, TurnEvent,
};
