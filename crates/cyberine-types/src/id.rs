use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Defines an id that is a random (version 4) UUID, and the error of a text that is none.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $id:ident, $error:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $id(Uuid);

        impl $id {
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
        #[error("a {} is a UUID such as `5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11`", $what)]
        pub struct $error;

        impl FromStr for $id {
            type Err = $error;

            /// Accepts only the 36-character hyphenated form, so that one id has one spelling
            /// (letter case aside) in paths, URIs and arguments.
            fn from_str(text: &str) -> Result<Self, $error> {
                if text.len() != 36 {
                    return Err($error);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| $error)
            }
        }

        impl TryFrom<String> for $id {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> Self {
                id.to_string()
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(out)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!(stringify!($id), "({})"), self)
            }
        }
    };
}

uuid_id! {
    /// Names one run, across projects and machines. Knowing one proves nothing about the caller.
    RunId, ParseRunIdError, "run id"
}
uuid_id! {
    /// Names one message on the bus. Two messages with one id are one message, delivered twice.
    MessageId, ParseMessageIdError, "message id"
}
uuid_id! {
    /// Names one process of ours for as long as it lives: what it announces and what it sends.
    InstanceId, ParseInstanceIdError, "process id of Cyberine's"
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
