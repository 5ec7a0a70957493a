use std::time::Duration;

/// Why a request has no identity. Nothing in here repeats a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The credentials are not well-formed: 400, `invalid_request`.
    Malformed(&'static str),
    /// There is no token, where one is needed: 401.
    Missing,
    /// The token is none that the resolver has heard of, and another one may have: 401,
    /// `invalid_token`.
    Unknown,
    /// The token is none that counts here: 401, `invalid_token`. The text may be shown to the caller.
    Invalid(&'static str),
    /// The caller may not do this, whatever it brings: 403.
    Denied(&'static str),
    /// The token does not reach far enough: 403, `insufficient_scope`, with every scope that is
    /// needed.
    Scope(Vec<String>),
    /// Too many requests without a valid token have come from there: 429.
    TooMany {
        /// When to try again.
        after: Duration,
    },
    /// Whether the token is valid cannot be said now: 503.
    Unavailable {
        /// Why.
        what: &'static str,
        /// When that may be otherwise.
        after: Duration,
    },
}

impl Rejection {
    /// What a metric calls it: one of a few fixed words.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_credentials",
            Self::Missing => "no_token",
            Self::Unknown | Self::Invalid(_) => "invalid_token",
            Self::Denied(_) => "denied",
            Self::Scope(_) => "insufficient_scope",
            Self::TooMany { .. } => "too_many_rejected",
            Self::Unavailable { .. } => "identity_unavailable",
        }
    }

    /// What happened, for the caller and the log.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        match self {
            Self::Malformed(what)
            | Self::Invalid(what)
            | Self::Denied(what)
            | Self::Unavailable { what, .. } => what,
            Self::Missing => "this server needs a bearer token in the Authorization header",
            Self::Unknown => "the token is not known",
            Self::Scope(_) => "the token does not carry every scope that is needed",
            Self::TooMany { .. } => "too many requests without a valid token; wait and send a valid one",
        }
    }
}
