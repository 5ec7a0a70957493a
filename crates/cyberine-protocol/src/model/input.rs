use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ClientCapabilities;

/// A question to the person behind the client, as a form.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitForm {
    /// What is asked.
    pub message: String,
    /// JSON Schema of the answer: a flat object of primitives with `type` and `properties`.
    pub requested_schema: Value,
}

/// A page the person behind the client is asked to open. With `initialize`: 2025-11-25 only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitUrl {
    /// Why.
    pub message: String,
    /// The page.
    pub url: String,
}

/// A question to the client, or to whoever is behind it.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequest {
    /// A form (`elicitation/create`). The answer: `{ action, content? }`.
    Form(ElicitForm),
    /// A page to open (`elicitation/create`). The answer: `{ action }`.
    Url(ElicitUrl),
    /// A message the client's model is to write (`sampling/createMessage`): the parameters, as the
    /// schema has them. The answer: `{ role, content, model, stopReason? }`.
    Sampling(Map<String, Value>),
    /// Which directories the client works in (`roots/list`). The answer: `{ roots: [{ uri, name? }] }`.
    Roots,
}

impl InputRequest {
    /// The method that asks it.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Url(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// What a client must have declared to be asked this.
    #[must_use]
    pub fn required(&self) -> ClientCapabilities {
        let none = ClientCapabilities::default();
        match self {
            Self::Form(_) => ClientCapabilities { elicitation_form: true, ..none },
            Self::Url(_) => ClientCapabilities { elicitation_url: true, ..none },
            Self::Sampling(params) => {
                let sampling_tools = params.contains_key("tools") || params.contains_key("toolChoice");
                ClientCapabilities { sampling: true, sampling_tools, ..none }
            }
            Self::Roots => ClientCapabilities { roots: true, ..none },
        }
    }
}

/// The outcome of a call, a prompt or a read that cannot go on without input. Stateless era only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputRequired {
    /// What to ask, by keys of the server's choice.
    pub requests: BTreeMap<String, InputRequest>,
    /// What the client brings back with the answers, byte for byte.
    pub request_state: Option<String>,
}
