//! Other people's words in our errors: keys out, escapes out, short.

use cyberine_process::TAIL_BYTES;
use cyberine_types::Secret;

use crate::redact::Redactor;
use crate::text::EscapeStripper;

/// The most that is quoted, in bytes of UTF-8.
pub(crate) const QUOTE_BYTES: usize = 2048;

/// How many bytes spell one of a secret at most, all backslashes included.
const SPELLED: usize = 16;

/// Quotes what a provider said without the secrets it was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quoter {
    secrets: Vec<Secret>,
}

impl Quoter {
    /// A quoter that never lets one of `secrets` pass.
    pub(crate) fn new(secrets: Vec<Secret>) -> Self {
        Self { secrets: secrets.into_iter().filter(|secret| !secret.is_empty()).collect() }
    }

    /// What takes the same secrets out of answers.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new(&self.secrets)
    }

    /// The start of `text`: redacted, on one line, at most 2 KiB.
    pub(crate) fn head(&self, text: &str) -> String {
        let clean = self.clean(text);
        let end = clean.floor_char_boundary(QUOTE_BYTES);
        clean[..end].to_owned()
    }

    /// The end of `text`: redacted, on one line, at most 2 KiB.
    pub(crate) fn tail(&self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        EscapeStripper::default().push(text, &mut plain);
        let clean = self.clean(if text.len() >= TAIL_BYTES { self.ended(&plain) } else { &plain });
        let start = clean.ceil_char_boundary(clean.len().saturating_sub(QUOTE_BYTES));
        clean[start..].to_owned()
    }

    /// A text whose end was cut off, without what may be the beginning of a secret there.
    pub(crate) fn begun(&self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        EscapeStripper::default().push(text, &mut plain);
        Redactor::of(self.secrets.clone()).push(&plain)
    }

    /// A text whose beginning was cut off, without what may be the end of a secret there: up to the
    /// first white space.
    fn ended<'a>(&self, text: &'a str) -> &'a str {
        let longest = self.secrets.iter().map(|secret| secret.expose().len()).max().unwrap_or_default();
        let end = text.find(char::is_whitespace).unwrap_or_else(|| longest.saturating_mul(SPELLED));
        text.get(text.ceil_char_boundary(end)..).unwrap_or_default()
    }

    fn clean(&self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        EscapeStripper::default().push(text, &mut plain);
        // Redacted after the escapes are out, so that an escape inside a key does not save it.
        let plain = Redactor::of(self.secrets.clone()).whole(&plain);
        let mut line = String::with_capacity(plain.len());
        for character in plain.trim().chars() {
            match character {
                '\n' => line.push_str("\\n"),
                '\t' => line.push_str("\\t"),
                // Line and direction controls would let a quotation rearrange what surrounds it.
                '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    line.extend(character.escape_unicode());
                }
                other => line.push(other),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_key_at_a_cut_never_passes() {
        let quoter = Quoter::new(vec![Secret::new("sk-hunter2")]);
        let escapes = "\u{1b}[0m".repeat(TAIL_BYTES / 4);
        for text in [format!("hunter2{escapes} said"), format!("hunter2 said{escapes}")] {
            assert_eq!(quoter.tail(&text), "said");
        }
        assert_eq!(quoter.begun(&format!("said {escapes}sk-\u{1b}[0mhunt")), "said ");
    }

    #[test]
    fn a_key_never_passes_wherever_it_stands() {
        let quoter = Quoter::new(vec![Secret::new("sk-hunter2"), Secret::new("")]);
        let long = format!("{}sk-hunter2", "x".repeat(QUOTE_BYTES - 4));
        for text in ["sk-hunter2", "a sk-\u{1b}[0mhunter2\n", "sk-hunter2sk-hunter2", &long] {
            for quoted in [quoter.head(text), quoter.tail(text)] {
                assert!(!quoted.contains("hunter2"), "{quoted}");
                assert!(!quoted.contains("sk-h"), "{quoted}");
            }
        }
    }

    #[test]
    fn a_key_never_passes_in_the_spelling_of_a_body() {
        let key = "k\"/\\é-hunter2";
        let quoter = Quoter::new(vec![Secret::new(key), Secret::new("short")]);
        for body in [
            serde_json::json!({"error": {"message": format!("bad key {key}")}}).to_string(),
            serde_json::json!({"detail": serde_json::json!([key]).to_string()}).to_string(),
            r#"{"error":"bad key k\"\/\\\u00e9\u002dhunter2"}"#.to_owned(),
            "/v1?key=k%22%2F%5C%c3%a9-hunter2 and s%68ort".to_owned(),
        ] {
            let quoted = quoter.head(&body);
            assert!(quoted.contains("[redacted]") && !quoted.contains("hunter2"), "{quoted}");
            assert!(!quoted.contains("ort"), "{quoted}");
        }
    }

    #[test]
    fn a_quotation_is_one_short_line() {
        let quoter = Quoter::default();
        assert_eq!(quoter.head(" a\r\n\tb\u{1b}[1m\u{202e} "), "a\\n\\tb\\u{202e}");
        let long = "é".repeat(5000);
        assert_eq!(quoter.head(&long).len(), QUOTE_BYTES);
        assert_eq!(quoter.tail(&format!("{long}z")).chars().last(), Some('z'));
        assert!(quoter.tail(&format!("{long}z")).len() <= QUOTE_BYTES);
    }
}
