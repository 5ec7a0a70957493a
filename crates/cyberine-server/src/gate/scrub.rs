//! Taking the token out of what leaves the gate.

use std::fmt::Write as _;

use cyberine_types::Secret;
use serde_json::Value;

use super::percent_decoded;

/// A shorter token occurs in texts that have nothing to do with it: taken out of them it would
/// spoil them, and the gaps would show what it is.
const SHORTEST: usize = 8;

/// What stands in the place of the token.
const MASK: &str = "[secret]";

/// Finds one token, in every form in which a text could carry it.
pub(super) struct Scrub {
    /// The token as it is, inside JSON, and inside a URI; empty where there is none to look for.
    forms: Vec<Secret>,
}

impl Scrub {
    pub(super) fn new(token: Option<&Secret>) -> Self {
        let Some(token) = token.map(Secret::expose).filter(|token| token.len() >= SHORTEST) else {
            return Self { forms: Vec::new() };
        };
        let quoted = Value::String(token.to_owned()).to_string();
        let mut forms = vec![token.to_owned(), quoted[1..quoted.len() - 1].to_owned(), encoded(token)];
        forms.dedup();
        Self { forms: forms.into_iter().map(Secret::new).collect() }
    }

    /// Whether there is nothing to look for.
    pub(super) const fn is_idle(&self) -> bool {
        self.forms.is_empty()
    }

    pub(super) fn finds(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form.expose()))
    }

    /// Whether a URI carries the token, however it is encoded.
    pub(super) fn finds_in_uri(&self, uri: &str) -> bool {
        self.finds(uri) || self.finds(&percent_decoded(uri))
    }

    /// Whether the name of a member carries the token, at any depth.
    pub(super) fn finds_in_names(&self, value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                members.iter().any(|(name, value)| self.finds(name) || self.finds_in_names(value))
            }
            Value::Array(items) => items.iter().any(|item| self.finds_in_names(item)),
            _ => false,
        }
    }

    /// A URI to be shown: without query and fragment, and masked where the token is in its path.
    pub(super) fn shown_uri(&self, uri: &str) -> String {
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        if self.finds_in_uri(path) { MASK.to_owned() } else { path.to_owned() }
    }

    pub(super) fn text(&self, text: String) -> String {
        if !self.finds(&text) {
            return text;
        }
        self.forms.iter().fold(text, |text, form| text.replace(form.expose(), MASK))
    }

    /// As [`text`](Self::text), for a text that may be JSON and stays so.
    pub(super) fn document(&self, text: String) -> String {
        if !self.finds(&text) {
            return text;
        }
        match serde_json::from_str(&text) {
            Ok(value) => self.value(value).to_string(),
            Err(_) => self.text(text),
        }
    }

    pub(super) fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, member)| (self.text(name), self.value(member))).collect()
            }
            other => other,
        }
    }
}

/// The token as a URI carries it: everything but unreserved characters as triplets (RFC 3986, 2.3).
fn encoded(token: &str) -> String {
    token.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOKEN: &str = "S3cr\"t/+ é&x=1#z";

    fn scrub() -> Scrub {
        Scrub::new(Some(&Secret::new(TOKEN)))
    }

    #[test]
    fn a_token_is_taken_out_of_texts_in_every_form() {
        let written = json!(TOKEN).to_string();
        for (text, expected) in [
            (TOKEN.to_owned(), MASK.to_owned()),
            (format!("no `{TOKEN}` here"), format!("no `{MASK}` here")),
            (format!("{{\"a\": {written}}}"), format!("{{\"a\": \"{MASK}\"}}")),
            ("a/S3cr%22t%2F%2B%20%C3%A9%26x%3D1%23z".to_owned(), format!("a/{MASK}")),
            ("S3cr".to_owned(), "S3cr".to_owned()),
        ] {
            assert_eq!(scrub().text(text.clone()), expected, "{text}");
        }
    }

    #[test]
    fn a_token_is_taken_out_of_json_which_stays_json() {
        let value = json!({ "a": [TOKEN, 1, null], TOKEN: { "b": format!("x{TOKEN}") } });
        let expected = json!({ "a": [MASK, 1, null], MASK: { "b": format!("x{MASK}") } });
        assert_eq!(scrub().value(value.clone()), expected);
        let document = scrub().document(value.to_string());
        assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), expected);
        let digits = Scrub::new(Some(&Secret::new("12345678")));
        assert_eq!(digits.document("{\"seq\":12345678}".to_owned()), "{\"seq\":12345678}");
        assert_eq!(digits.document("12345678 and on".to_owned()), format!("{MASK} and on"));
    }

    #[test]
    fn a_token_is_found_in_uris_and_names_and_a_short_one_nowhere() {
        let scrub = scrub();
        for uri in ["x://S3cr%22t%2f+%20%c3%a9&x=1%23z", "x://a?b=S3cr\"t/+ é&x=1#z"] {
            assert!(scrub.finds_in_uri(uri), "{uri}");
        }
        assert_eq!(scrub.shown_uri("x://a?b=1#c"), "x://a");
        assert_eq!(scrub.shown_uri("x://a#b?c"), "x://a");
        assert_eq!(scrub.shown_uri("x://S3cr%22t%2f+%20%c3%a9&x=1%23z"), MASK);
        assert!(scrub.finds_in_names(&json!({ "a": [{ format!("a{TOKEN}b"): 1 }] })));
        assert!(!scrub.finds_in_names(&json!({ "a": [TOKEN] })));
        for token in [None, Some(Secret::new("short"))] {
            let idle = Scrub::new(token.as_ref());
            assert!(idle.is_idle() && !idle.finds("short"));
        }
    }
}
