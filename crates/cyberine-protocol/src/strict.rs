//! The byte layer in front of the JSON parser: what it refuses, the parser never sees.
//!
//! The parser behind it keeps the last of two equal keys and skips unknown members to any depth,
//! so two readers of one line could see two different messages. This layer walks a line once,
//! without recursion, and lets through only lines that have one meaning.

mod plain;
mod scan;

use crate::jsonrpc::{RpcError, excerpt};
pub(crate) use plain::plain_end;

/// The longest line that is read, in bytes without its newline. A text of 1 MiB, the longest a
/// message may have, fits however a client escapes it: at six bytes a character (`\u0001`) it takes
/// 6 MiB.
pub const FRAME_LIMIT: usize = 8 * 1024 * 1024;

/// The deepest nesting of arrays and objects that is read. One level more is refused, as by the
/// parser behind.
pub const NESTING_LIMIT: usize = 127;

/// What a line may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, in bytes without its newline.
    pub frame: usize,
    /// The deepest nesting, at most [`NESTING_LIMIT`].
    pub nesting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: FRAME_LIMIT, nesting: NESTING_LIMIT }
    }
}

/// Why a line is refused. Offsets are bytes from the line's first character that is no space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    /// It is longer than the frame limit.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("the line is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Where.
        at: usize,
    },
    /// It starts with a byte order mark (RFC 8259, section 8.1, forbids one).
    #[error("the line starts with a byte order mark")]
    ByteOrderMark,
    /// It is not JSON.
    #[error("the line is not JSON at byte {at}: expected {expected}")]
    Syntax {
        /// Where.
        at: usize,
        /// What would have been right.
        expected: &'static str,
    },
    /// An escape is half of a surrogate pair, which no text can hold.
    #[error("the line has half of a surrogate pair at byte {at}; send whole characters")]
    LoneSurrogate {
        /// Where.
        at: usize,
    },
    /// A number is too large for a double.
    #[error("the number at byte {at} is out of range")]
    NumberOutOfRange {
        /// Where.
        at: usize,
    },
    /// Arrays and objects nest too deep.
    #[error("arrays and objects nest deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Two members of one object have the same key.
    #[error("the key `{key}` occurs twice in one object")]
    DuplicateKey {
        /// The key, shortened.
        key: String,
    },
}

impl StrictError {
    /// The error to answer with: `-32700` for what is not JSON, `-32600` for JSON that is refused.
    #[must_use]
    pub fn to_rpc(&self) -> RpcError {
        match self {
            Self::TooLong { .. } | Self::TooDeep { .. } | Self::DuplicateKey { .. } => {
                RpcError::invalid_request(self.to_string())
            }
            _ => RpcError::parse(self.to_string()),
        }
    }

    /// The error for a request whose id is known: what it asks is then well-formed, and cannot be
    /// used.
    pub(crate) fn to_rpc_of_request(&self) -> RpcError {
        match self {
            Self::LoneSurrogate { .. } | Self::NumberOutOfRange { .. } => {
                RpcError::invalid_params(self.to_string())
            }
            _ => self.to_rpc(),
        }
    }

    /// Whether the line is JSON as far as it was read, so that its id may be looked for.
    pub(crate) const fn has_shape(&self) -> bool {
        !matches!(self, Self::NotUtf8 { .. } | Self::ByteOrderMark | Self::Syntax { .. })
    }
}

/// Checks one line, given without its newline. `None` is a line of white space, which is no
/// message; a carriage return at the end counts as white space.
///
/// # Errors
/// The first reason to refuse the line.
pub fn check(line: &[u8], limits: Limits) -> Result<Option<&str>, StrictError> {
    if line.len() > limits.frame {
        return Err(StrictError::TooLong { limit: limits.frame });
    }
    let text = std::str::from_utf8(line).map_err(|error| StrictError::NotUtf8 { at: error.valid_up_to() })?;
    if text.starts_with('\u{feff}') {
        return Err(StrictError::ByteOrderMark);
    }
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return Ok(None);
    }
    scan::scan(text, limits.nesting.min(NESTING_LIMIT))?;
    Ok(Some(text))
}

fn duplicate(key: &str) -> StrictError {
    StrictError::DuplicateKey { key: excerpt(key).to_owned() }
}
