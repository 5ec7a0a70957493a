use std::fmt;

use subtle::ConstantTimeEq;

/// A value that must not reach a log, an error, an event or a file. It has no `Serialize`, its
/// `Debug` prints `[secret]`, and it is compared in constant time.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps `value`.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Hands out the value. Call it where the value leaves for its one destination, and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares with `candidate` in a time that depends on the lengths only.
    #[must_use]
    pub fn matches(&self, candidate: &str) -> bool {
        self.0.as_bytes().ct_eq(candidate.as_bytes()).into()
    }

    /// Whether the value is the empty string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_neither_printed_nor_matched_by_a_part_of_it() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert!(secret.matches("hunter2"));
        for near in ["", "hunter", "hunter2 ", "Hunter2", "hunter2\u{200b}"] {
            assert!(!secret.matches(near), "{near}");
        }
    }
}
