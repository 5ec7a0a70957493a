use cyberine_types::{is_blank, is_invisible};

/// The longest name, in characters.
const LONGEST: usize = 128;

/// A text that can name neither a user nor a tenant nor an audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing that can be read.
    #[error("it is empty")]
    Blank,
    /// Too much of it.
    #[error("it is longer than {LONGEST} characters")]
    TooLong,
    /// A character that is not seen, or that would divide it.
    #[error("it has a control, a character that is not seen, or white space at an end")]
    Character,
    /// A tenant ends at the first slash wherever the two are written as one.
    #[error("the name of a tenant has no `/`")]
    Slash,
}

/// `text`, where it can name somebody in a record and a log: one visible line.
///
/// # Errors
/// Why it cannot.
pub fn checked_name(text: &str) -> Result<&str, NameError> {
    if is_blank(text) {
        return Err(NameError::Blank);
    }
    if text.chars().nth(LONGEST).is_some() {
        return Err(NameError::TooLong);
    }
    if text.trim() != text || text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err(NameError::Character);
    }
    Ok(text)
}

/// As [`checked_name`], for a tenant: records write `tenant/name`, so a tenant has no slash.
///
/// # Errors
/// Why it cannot name one.
pub fn checked_tenant(text: &str) -> Result<&str, NameError> {
    if text.contains('/') { Err(NameError::Slash) } else { checked_name(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_visible_line_and_a_tenant_cannot_pass_for_another() {
        assert_eq!(checked_name("auth0|1/2"), Ok("auth0|1/2"));
        assert_eq!(checked_tenant("a/b"), Err(NameError::Slash));
        for bad in ["", " ", "\u{200b}", "a\nb", "a\u{202e}b", " a", "a ", &"x".repeat(129)] {
            assert!(checked_name(bad).is_err() && checked_tenant(bad).is_err(), "{bad:?}");
        }
    }
}
