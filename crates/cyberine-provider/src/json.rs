//! JSON as programs write it.

use cyberine_types::mended;
use serde::de::DeserializeOwned;

use crate::lenient::quoted;

/// Reads JSON, with a sign in place of every half of a character: programs that cut a text within one
/// write such halves. A number that is none is read as a string.
///
/// # Errors
/// As of the text that was given.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| {
        let json = mended(json);
        let json = quoted(&json).unwrap_or(json);
        serde_json::from_str(&json).map_err(|_| error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_does_not_spoil_a_text() {
        assert_eq!(read::<String>(r#""a\ud83d""#).unwrap(), "a\u{fffd}");
        assert_eq!(read::<String>(r#""\ud83e\udd89""#).unwrap(), "🦉");
        assert!(read::<String>(r#""\ud83d"#).is_err());
    }
}
