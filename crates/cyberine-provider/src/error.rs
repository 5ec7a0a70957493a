//! How a turn fails.

use std::error::Error;
use std::time::Duration;

/// A turn that did not go well. The message never holds a secret: adapters redact keys before
/// they build one, and cut quoted text to 2 KiB.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The caller cancelled, and everything the turn started is dead.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The program could not be started, or the connection not made.
    #[error("`{target}` could not be reached: {detail}")]
    Unreachable {
        /// The program or the address.
        target: String,
        /// What the system said.
        detail: String,
    },
    /// The provider does not accept the credential.
    #[error("the provider refused the credential: {detail}")]
    Auth {
        /// What the provider said.
        detail: String,
    },
    /// No request was made, since there is no credential for one.
    #[error("{detail}")]
    NoCredential {
        /// Which provider misses what, such as a variable that is not set.
        detail: String,
    },
    /// The account cannot pay. Waiting does not help.
    #[error("the provider's account cannot pay: {detail}")]
    Billing {
        /// What the provider said.
        detail: String,
    },
    /// Too many requests.
    #[error("the provider limits the rate of requests: {detail}{}", wait(*.retry_after))]
    RateLimited {
        /// What the provider said.
        detail: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The provider is overloaded or broken on its side.
    #[error("the provider is not available: {detail}{}", wait(*.retry_after))]
    Overloaded {
        /// What the provider said.
        detail: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The provider finds fault with the request.
    #[error("the provider refused the request: {detail}")]
    Rejected {
        /// What the provider said.
        detail: String,
    },
    /// The model declined to answer.
    #[error("the model declined to answer: {detail}")]
    Refused {
        /// What the provider said.
        detail: String,
    },
    /// The answer stopped at a limit on tokens or context.
    #[error("the answer was cut off by the provider: {detail}")]
    Truncated {
        /// Which limit.
        detail: String,
    },
    /// Success was reported and nothing was said.
    #[error("the provider reported success and gave no answer")]
    Empty,
    /// Nothing came for longer than the idle limit.
    #[error("nothing came from the provider for {} s", .limit.as_secs())]
    IdleTimeout {
        /// The limit.
        limit: Duration,
    },
    /// The turn took longer than the wall limit.
    #[error("the turn took longer than {} s", .limit.as_secs())]
    WallTimeout {
        /// The limit.
        limit: Duration,
    },
    /// The answer, or all that came with it, is longer than its limit.
    #[error("the answer, with what came beside it, is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The program ended badly.
    #[error("the program ended with {status}: {stderr}")]
    Crashed {
        /// The exit status or the signal.
        status: String,
        /// The tail of its standard error.
        stderr: String,
    },
    /// The stream ended before the provider's own end.
    #[error("the stream ended before the provider's own end event: {detail}")]
    Cut {
        /// What was seen last.
        detail: String,
    },
    /// The provider does not speak its wire.
    #[error("the provider broke its protocol: {detail}")]
    Protocol {
        /// What was wrong.
        detail: String,
    },
}

impl TurnError {
    /// The stable code of this failure, for records and for code to branch on.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Unreachable { .. } => "unreachable",
            Self::Auth { .. } | Self::NoCredential { .. } => "auth",
            Self::Billing { .. } => "billing",
            Self::RateLimited { .. } => "rate-limit",
            Self::Overloaded { .. } => "overloaded",
            Self::Rejected { .. } => "rejected",
            Self::Refused { .. } => "refused",
            Self::Truncated { .. } => "truncated",
            Self::Empty => "empty",
            Self::IdleTimeout { .. } => "timeout-idle",
            Self::WallTimeout { .. } => "timeout-wall",
            Self::TooLong { .. } => "too-long",
            Self::Crashed { .. } => "crashed",
            Self::Cut { .. } => "cut",
            Self::Protocol { .. } => "protocol",
        }
    }
}

/// How long a provider asks to wait, in whole seconds that are enough.
fn wait(retry_after: Option<Duration>) -> String {
    retry_after
        .map_or_else(String::new, |wait| format!("; it asks to wait {} s", wait.as_millis().div_ceil(1000)))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_a_provider_asks_for_is_told() {
        let detail = || "status 429".to_owned();
        let limited = |retry_after| TurnError::RateLimited { detail: detail(), retry_after }.to_string();
        let overloaded = |retry_after| TurnError::Overloaded { detail: detail(), retry_after }.to_string();
        let begin = "the provider limits the rate of requests: status 429";
        assert_eq!(limited(None), begin);
        assert_eq!(limited(Some(Duration::from_secs(7))), format!("{begin}; it asks to wait 7 s"));
        assert_eq!(limited(Some(Duration::from_millis(1200))), format!("{begin}; it asks to wait 2 s"));
        let begin = "the provider is not available: status 429";
        assert_eq!(overloaded(None), begin);
        assert_eq!(overloaded(Some(Duration::from_secs(7))), format!("{begin}; it asks to wait 7 s"));
    }
}
