//! The shape of every prompt a host can offer to its user.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_protocol::model::{ClientCapabilities, GetPromptResult, InputRequest, Prompt};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::changes::ListChanges;

/// A set of prompts, served by the rail.
///
/// Handlers are re-entrant, as those of [`ToolSet`](crate::ToolSet) are: one that needs input says
/// so, and is called again, from the start, with the answers.
pub trait PromptSet: Send + Sync {
    /// The prompts this caller may see, in a fixed order.
    fn list(&self, caller: &Caller) -> Arc<[Prompt]>;

    /// Whether the list is the same for every caller, so that it may be kept for all of them.
    fn is_public(&self) -> bool {
        false
    }

    /// Follows the list, where it may change while it is served.
    fn changes(&self) -> Option<ListChanges> {
        None
    }

    /// Makes a prompt of the list. The rail has checked that its required arguments are there.
    ///
    /// # Cancel safety
    /// The rail cancels [`PromptCall::cancel`] and then drops the future.
    fn get(&self, call: PromptCall) -> BoxFuture<'_, Result<PromptOutcome, PromptError>>;
}

/// One `prompts/get`.
#[derive(Debug)]
pub struct PromptCall {
    /// The prompt's name.
    pub name: String,
    /// The arguments: texts, by name.
    pub arguments: BTreeMap<String, String>,
    /// Who asks.
    pub caller: Caller,
    /// What the client can be asked for.
    pub capabilities: ClientCapabilities,
    /// Answers to what an earlier [`PromptOutcome::InputRequired`] asked, by its keys.
    pub input_responses: BTreeMap<String, Value>,
    /// The state that outcome carried, verified by the rail.
    pub state: Option<Value>,
    /// Cancelled when the client cancels the request or goes away.
    pub cancel: CancellationToken,
}

/// What a prompt comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptOutcome {
    /// It is made.
    Complete(GetPromptResult),
    /// It cannot be made without input.
    InputRequired {
        /// What to ask, by keys of the handler's choice.
        requests: BTreeMap<String, InputRequest>,
        /// What the handler wants back with the answers. The rail seals it.
        state: Value,
    },
}

/// A prompt that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no such prompt for this caller. `-32602`.
    #[error("unknown prompt `{0}`")]
    UnknownPrompt(String),
    /// Its arguments cannot be used; the text names the argument. `-32602`.
    #[error("{0}")]
    Arguments(String),
    /// The server is at fault. `-32603`.
    #[error("internal error: {0}")]
    Internal(String),
}
