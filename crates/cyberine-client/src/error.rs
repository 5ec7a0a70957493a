use std::fmt::{self, Write as _};
use std::time::Duration;

use cyberine_process::{OutputError, SpawnError};
use cyberine_protocol::{ClientFault, RequestError, Revision};

use crate::http::{WebError, of_answer};

/// Why a server could not be asked, or gave no answer. What a server wrote is quoted with its
/// controls escaped; it may hold a secret that the server was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It could not be started.
    #[error("the server could not be started")]
    Start {
        /// What is missing.
        source: SpawnError,
    },
    /// It was not found out in time.
    #[error("the server did not finish its handshake within {} s{stderr}", .limit.as_secs_f64())]
    Late {
        /// The deadline.
        limit: Duration,
        /// What it said on its standard error.
        stderr: StderrTail,
    },
    /// It ended, or closed its output, before it answered.
    #[error("the server ended before it answered, with {status}{stderr}")]
    Ended {
        /// Whether it ended with status 0, or did not end by itself.
        success: bool,
        /// The exit status or the signal.
        status: String,
        /// What it said on its standard error.
        stderr: StderrTail,
    },
    /// It broke the protocol, or both sides speak none in common.
    #[error("{fault}{stderr}")]
    Fault {
        /// How.
        fault: ClientFault,
        /// What it said on its standard error.
        stderr: StderrTail,
    },
    /// It wrote more than it may in all, and has been killed.
    #[error("the server wrote more than {limit} bytes in all")]
    TooMuch {
        /// The limit.
        limit: usize,
    },
    /// What it writes cannot be read.
    #[error("what the server writes cannot be read")]
    Output {
        /// What the system said.
        source: OutputError,
    },
    /// It gave no result.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Its list of tools is too long to be kept.
    #[error("the server's list of tools does not end: {what}")]
    EndlessTools {
        /// What was seen of it.
        what: String,
    },
    /// The address is not one of a server.
    #[error("`{url}` is no address of an MCP server: give an `http:` or `https:` URL without a user")]
    Address {
        /// The address, without what may be secret.
        url: String,
    },
    /// The token cannot be sent.
    #[error("the bearer token has characters that no header takes")]
    Token,
    /// There is no HTTP client.
    #[error("the server cannot be asked")]
    Web {
        /// Why not.
        source: WebError,
    },
    /// Nobody answers there.
    #[error("the server cannot be reached: {detail}")]
    Unreachable {
        /// What the system said.
        detail: String,
    },
    /// The connection broke before the answer.
    #[error("the connection ended before the answer")]
    Cut,
    /// The server refused the request with a status.
    #[error("the server answered with the HTTP status {status}{}", hint(*.status))]
    Status {
        /// The status.
        status: u16,
        /// Its `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The server answered with something else than a message.
    #[error("the server answered with `{kind}`; an MCP server answers with JSON or an event stream")]
    Foreign {
        /// The media type.
        kind: String,
    },
    /// An answer over HTTP cannot be read.
    #[error("{}", of_answer(.fault))]
    Answer {
        /// What is wrong with it.
        fault: ClientFault,
    },
    /// The agreed revision has no such method.
    #[error("`{method}` does not exist in {}", .revision.as_str())]
    NoSuchMethod {
        /// The method.
        method: &'static str,
        /// The revision.
        revision: Revision,
    },
    /// The server asks again and again.
    #[error("the server wanted to know something more than {limit} times")]
    Rounds {
        /// How often it may.
        limit: u32,
    },
    /// Nothing can be asked: the session is not open, or is over.
    #[error("the session with the server is not open")]
    NotOpen,
}

const fn hint(status: u16) -> &'static str {
    match status {
        401 => ": it wants a bearer token, or another one",
        403 => ": the token does not allow this, or the address is not one the server answers to",
        404 => ": nothing is there, or the session is over",
        _ => "",
    }
}

impl ClientError {
    pub(crate) fn unreachable(error: &reqwest::Error) -> Self {
        let mut detail = String::new();
        let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
        while let Some(inner) = source {
            let _ = write!(detail, "{}{inner}", if detail.is_empty() { "" } else { ": " });
            source = inner.source();
        }
        Self::Unreachable { detail: if detail.is_empty() { "no answer".to_owned() } else { detail } }
    }

    /// Whether a server of the `initialize` era may answer the first question so: a refusal that is no
    /// outage and no closed door (2026-07-28, `basic/versioning`).
    pub(crate) const fn may_be_of_another_era(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 400..=499) && !matches!(status, 401 | 403 | 429),
            Self::Foreign { .. } | Self::Answer { .. } => true,
            _ => false,
        }
    }
}

/// The last that a server said on its standard error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StderrTail(pub String);

/// How much of a tail is shown, in bytes.
const SHOWN: usize = 1024;

impl fmt::Display for StderrTail {
    /// Reads after the account of a failure: `; its standard error ends: …`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.trim();
        if text.is_empty() {
            return out.write_str("; it said nothing on its standard error");
        }
        out.write_str("; its standard error ends: `")?;
        let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
        for c in text[start..].chars() {
            if c.is_control() { write!(out, "{}", c.escape_default())? } else { out.write_char(c)? }
        }
        out.write_char('`')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_its_end_on_one_line() {
        assert_eq!(StderrTail(" \n".into()).to_string(), "; it said nothing on its standard error");
        let told = |text: &str| StderrTail(text.to_owned()).to_string();
        assert_eq!(told("a\n\u{1b}[31mb\n"), "; its standard error ends: `a\\n\\u{1b}[31mb`");
        assert_eq!(
            told(&format!("{}é", "é".repeat(600))),
            format!("; its standard error ends: `{}`", "é".repeat(512))
        );
    }
}
