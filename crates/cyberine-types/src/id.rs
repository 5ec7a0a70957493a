use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Names one run, across projects and machines. A random (version 4) UUID: knowing one proves
/// nothing about the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(Uuid);

impl RunId {
    /// Draws a fresh id from the operating system's random source.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The first eight hexadecimal digits, for people and file names.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.0.simple().to_string();
        text.truncate(8);
        text
    }
}

/// The text given is not the hyphenated, lower- or upper-case form of a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a run id is a UUID such as `5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11`")]
pub struct ParseRunIdError;

impl FromStr for RunId {
    type Err = ParseRunIdError;

    /// Accepts only the 36-character hyphenated form, so that one run has one spelling
    /// (letter case aside) in paths, URIs and arguments.
    fn from_str(text: &str) -> Result<Self, ParseRunIdError> {
        if text.len() != 36 {
            return Err(ParseRunIdError);
        }
        Uuid::try_parse(text).map(Self).map_err(|_| ParseRunIdError)
    }
}

impl TryFrom<String> for RunId {
    type Error = ParseRunIdError;

    fn try_from(text: String) -> Result<Self, ParseRunIdError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(out)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RunId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hyphenated_form_is_a_run_id() {
        let id = RunId::random();
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        for bad in ["", ".", "..", "../x", "/etc", "a/b", "..%2f", &"a".repeat(4096)] {
            assert_eq!(bad.parse::<RunId>(), Err(ParseRunIdError), "{bad}");
        }
        assert_eq!(format!("{{{id}}}").parse::<RunId>(), Err(ParseRunIdError));
        assert_eq!(id.to_string().replace('-', "").parse::<RunId>(), Err(ParseRunIdError));
    }
}
