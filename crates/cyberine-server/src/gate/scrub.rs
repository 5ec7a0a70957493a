//! Taking the token out of what leaves the gate.

use std::borrow::Cow;
use std::fmt::Write as _;

use cyberine_types::{ClientInfo, Secret};
use memchr::memmem::Finder;
use serde_json::Value;

use super::{SHORTEST_MASKED, percent_decoded};

mod escapes;

/// What stands in the place of the token.
const MASK: &str = "[secret]";

/// How often a text is taken for JSON inside JSON when a token is looked for.
const LAYERS: usize = 3;

/// Finds one token, in every form in which a text could carry it.
pub(super) struct Scrub {
    /// The token as it is, inside JSON, and inside a URI; empty where there is none to look for.
    forms: Vec<Form>,
}

struct Form {
    text: Secret,
    finder: Finder<'static>,
}

impl Form {
    fn new(text: String) -> Self {
        let finder = Finder::new(text.as_bytes()).into_owned();
        Self { text: Secret::new(text), finder }
    }
}

impl Scrub {
    pub(super) fn new(token: Option<&Secret>) -> Self {
        let Some(token) = token.map(Secret::expose).filter(|token| token.len() >= SHORTEST_MASKED) else {
            return Self { forms: Vec::new() };
        };
        let quoted = Value::String(token.to_owned()).to_string();
        let mut forms = vec![token.to_owned(), quoted[1..quoted.len() - 1].to_owned(), encoded(token)];
        forms.dedup();
        Self { forms: forms.into_iter().map(Form::new).collect() }
    }

    /// Whether there is nothing to look for.
    pub(super) const fn is_idle(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether a text has the token in it as it leaves.
    fn finds(&self, text: &str) -> bool {
        self.forms.iter().any(|form| form.finder.find(text.as_bytes()).is_some())
    }

    /// Whether a text has the token in it, also for who decodes the text once more: as a URI, or as
    /// JSON.
    pub(super) fn finds_in_text(&self, text: &str) -> bool {
        if self.is_idle() {
            return false;
        }
        if self.finds(text) || (text.contains('%') && self.finds(&percent_decoded(text))) {
            return true;
        }
        let mut layer = Cow::Borrowed(text);
        for _ in 0..LAYERS {
            let Some(inner) = escapes::decoded(&layer) else { return false };
            if self.finds(&inner) {
                return true;
            }
            layer = Cow::Owned(inner);
        }
        false
    }

    /// Whether a value has the token in it, in a text or in a name, at any depth.
    pub(super) fn finds_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.finds_in_text(text),
            Value::Array(items) => items.iter().any(|item| self.finds_in(item)),
            Value::Object(members) => {
                members.iter().any(|(name, value)| self.finds_in_text(name) || self.finds_in(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Masks what a client says of itself where the token is in it, or in what is made of it.
    pub(super) fn client(&self, client: ClientInfo) -> ClientInfo {
        if self.is_idle() {
            return client;
        }
        let texts = [&client.name, &client.version, &client.label()];
        if texts.into_iter().any(|text| self.finds_in_text(text)) {
            return ClientInfo { name: MASK.to_owned(), version: MASK.to_owned() };
        }
        client
    }

    /// A URI to be shown: without query and fragment, and masked where the token is in its path.
    pub(super) fn shown_uri(&self, uri: &str) -> String {
        let path = uri.split(['?', '#']).next().unwrap_or_default();
        if self.finds_in_text(path) { MASK.to_owned() } else { path.to_owned() }
    }

    pub(super) fn text(&self, text: String) -> String {
        if !self.finds(&text) {
            return text;
        }
        self.forms.iter().fold(text, |text, form| text.replace(form.text.expose(), MASK))
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
    fn a_token_is_found_however_it_is_written_and_a_short_one_nowhere() {
        let scrub = scrub();
        let twice = json!(json!(TOKEN).to_string()).to_string();
        let hexed = TOKEN.chars().fold(String::new(), |text, c| text + &format!("\\u{:04x}", u32::from(c)));
        let hexed_twice = hexed.replace('\\', "\\\\");
        for text in [
            TOKEN,
            "x://S3cr%22t%2f+%20%c3%a9&x=1%23z",
            "x://a?b=S3cr\"t/+ é&x=1#z",
            "{\"a\":\"S3cr\\\"t\\/+ \\u00e9&x=1#z\"}",
            &twice,
            &hexed,
            &format!("and {hexed_twice} inside"),
        ] {
            assert!(scrub.finds_in_text(text), "{text}");
            assert!(scrub.finds_in(&json!({ "a": [1, { "b": [text] }] })), "{text}");
            assert!(scrub.finds_in(&json!({ "a": [{ text: 1 }] })), "{text}");
        }
        for text in ["", "S3cr", "%", "\\", "\\u", "100 % of \\d+ \\u12"] {
            assert!(!scrub.finds_in_text(text), "{text}");
        }
        assert_eq!(scrub.shown_uri("x://a?b=1#c"), "x://a");
        assert_eq!(scrub.shown_uri("x://a#b?c"), "x://a");
        assert_eq!(scrub.shown_uri("x://S3cr%22t%2f+%20%c3%a9&x=1%23z"), MASK);
        for token in [None, Some(Secret::new("short"))] {
            let idle = Scrub::new(token.as_ref());
            assert!(idle.is_idle() && !idle.finds_in_text("short") && !idle.finds_in(&json!(["short"])));
        }
    }

    #[test]
    fn a_client_whose_label_would_be_the_token_is_masked() {
        let info = |name: &str, version: &str| ClientInfo { name: name.into(), version: version.into() };
        let scrub = Scrub::new(Some(&Secret::new("abcd@efgh")));
        for (name, version) in
            [("abcd@efgh", "1"), ("host", "xabcd@efgh"), ("abcd", "efgh"), ("ab\u{200b}cd@e\u{7}fgh", "1")]
        {
            assert_eq!(scrub.client(info(name, version)), info(MASK, MASK), "{name} {version}");
        }
        assert_eq!(scrub.client(info("abcd", "1")), info("abcd", "1"));
    }
}
