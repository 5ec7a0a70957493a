//! Questions of the server to a client that opened a session, and what counts as their answer.

use serde_json::Value;

use crate::jsonrpc::{Incoming, RpcError, classify, excerpt};
use crate::model::{ClientCapabilities, InputRequest};
use crate::revision::Revision;
use crate::strict::{self, Limits};

/// Why the client cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The request is stateless: answer it with [`Answer::InputRequired`](super::Answer).
    #[error("a stateless request is answered with what it needs, not asked")]
    Stateless,
    /// The client did not declare that it can be asked this, or its revision has no such question.
    #[error("the client cannot be asked this")]
    Unsupported,
    /// The request is answered or cancelled.
    #[error("the request is over")]
    Over,
}

/// What kind of answer a question has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Elicit,
    Sampling,
    Roots,
}

impl Kind {
    pub(super) const fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::Form(_) | InputRequest::Url(_) => Self::Elicit,
            InputRequest::Sampling(_) => Self::Sampling,
            InputRequest::Roots => Self::Roots,
        }
    }

    const fn result(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation result",
            Self::Sampling => "message of a model",
            Self::Roots => "list of roots",
        }
    }

    fn fits(self, answer: &Value) -> bool {
        match self {
            Self::Elicit => {
                matches!(answer["action"].as_str(), Some("accept" | "decline" | "cancel"))
                    && answer.get("content").is_none_or(Value::is_object)
            }
            Self::Sampling => {
                matches!(answer["role"].as_str(), Some("user" | "assistant"))
                    && answer["model"].is_string()
                    && (is_block(&answer["content"])
                        || answer["content"].as_array().is_some_and(|parts| parts.iter().all(is_block)))
            }
            Self::Roots => answer["roots"]
                .as_array()
                .is_some_and(|roots| roots.iter().all(|root| root["uri"].is_string())),
        }
    }

    /// What a response says, if it is an answer of this kind.
    pub(super) fn answer(self, answer: Result<&str, &str>) -> Result<Value, RpcError> {
        let raw = answer.map_err(|error| {
            let error = excerpt(error);
            RpcError::internal(format!("the client answered the question with an error: {error}"))
        })?;
        let value: Value =
            serde_json::from_str(raw).map_err(|error| RpcError::invalid_params(error.to_string()))?;
        if self.fits(&value) {
            return Ok(value);
        }
        Err(RpcError::invalid_params(format!("the client's answer is no {}", self.result())))
    }
}

fn is_block(content: &Value) -> bool {
    content["type"].is_string()
}

impl InputRequest {
    /// Whether `answer` has the shape of an answer to this question. What a client brings back in
    /// `inputResponses` is not checked before.
    #[must_use]
    pub fn fits(&self, answer: &Value) -> bool {
        answer.is_object() && Kind::of(self).fits(answer)
    }
}

/// Whether a client of that revision, with these capabilities, can be asked this.
pub(super) fn can_be_asked(
    request: &InputRequest,
    revision: Revision,
    capabilities: ClientCapabilities,
) -> bool {
    let required = request.required();
    let since = match request {
        InputRequest::Form(_) => Revision::V2025_06_18,
        InputRequest::Url(_) => Revision::V2025_11_25,
        InputRequest::Sampling(_) if required.sampling_tools => Revision::V2025_11_25,
        InputRequest::Sampling(_) | InputRequest::Roots => Revision::V2024_11_05,
    };
    revision >= since && capabilities.covers(required)
}

/// The scope of the session that asked what this line answers: the third argument of
/// [`ServerSession::resumed`](super::ServerSession::resumed). `None` where the line is no response to
/// a question of such a session.
#[must_use]
pub fn ask_scope_of(line: &[u8]) -> Option<u64> {
    let json = strict::check(line, Limits::default()).ok()??;
    match classify(json) {
        Ok(Incoming::Response { id: Some(id), .. }) => id.scope(),
        _ => None,
    }
}
