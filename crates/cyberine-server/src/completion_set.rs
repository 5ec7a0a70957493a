//! The shape of what completes an argument while a user types it.

use std::collections::BTreeMap;

use cyberine_protocol::model::{Completion, CompletionRef};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;

/// Completes arguments of prompts and of resource templates.
pub trait CompletionSet: Send + Sync {
    /// Values that complete what has been typed, best first. Of more than 100 the rail sends the
    /// first 100 and says that there are more.
    fn complete(&self, call: CompletionCall) -> BoxFuture<'_, Result<Completion, CompletionError>>;
}

/// One `completion/complete`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionCall {
    /// Of what an argument is completed.
    pub reference: CompletionRef,
    /// The argument's name.
    pub argument: String,
    /// What has been typed.
    pub value: String,
    /// Arguments that are settled already, by name.
    pub context: BTreeMap<String, String>,
    /// Who asks.
    pub caller: Caller,
}

/// Nothing that could be completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// There is no such prompt, template or argument for this caller; the text names it. `-32602`.
    #[error("{0}")]
    Unknown(String),
    /// The server is at fault. `-32603`.
    #[error("internal error: {0}")]
    Internal(String),
}
