//! Text as the value of a header (2026-07-28, `basic/transports/streamable-http`, "Value Encoding").

use std::borrow::Cow;

use data_encoding::BASE64;

const OPENS: &str = "=?base64?";
const CLOSES: &str = "?=";

fn sealed(value: &str) -> Option<&str> {
    value.strip_prefix(OPENS)?.strip_suffix(CLOSES)
}

/// The text as a header carries it: as it is, or in Base64 where it could be changed on the way or be
/// taken for Base64.
#[must_use]
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let edges = [text.as_bytes().first(), text.as_bytes().last()];
    if visible && sealed(text).is_none() && !edges.contains(&Some(&b' ')) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{OPENS}{}{CLOSES}", BASE64.encode(text.as_bytes())))
}

/// The text a header carries. `None` where the value has characters no header may have, or Base64 in
/// it is not Base64 of UTF-8 with its padding.
#[must_use]
pub fn decode_value(value: &str) -> Option<Cow<'_, str>> {
    if !value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return None;
    }
    let Some(base64) = sealed(value) else { return Some(Cow::Borrowed(value)) };
    let bytes = BASE64.decode(base64.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_met() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
            ("a\tb", "=?base64?YQli?="),
            ("=?BASE64?x?=", "=?BASE64?x?="),
        ] {
            assert_eq!(encode_value(text), value);
            assert_eq!(decode_value(value).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_no_base64_is_no_value() {
        for bad in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVsbG8==?=",
            "=?base64?SGVs*G8=?=",
            "=?base64?SGVs bG8=?=",
            "=?base64?SGVsbG9=?=",
            "=?base64?_-8=?=",
            "=?base64?=?=",
            "=?base64?/w==?=",
            "caf\u{e9}",
            "a\u{7f}",
            "a\nb",
        ] {
            assert_eq!(decode_value(bad), None, "{bad}");
        }
        // Without its end it is text, and empty Base64 is empty text.
        assert_eq!(decode_value("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
        assert_eq!(decode_value("=?base64??=").as_deref(), Some(""));
    }

    proptest! {
        #[test]
        fn every_text_comes_through(text in any::<String>()) {
            let value = encode_value(&text);
            prop_assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(value.trim(), &*value);
            let decoded = decode_value(&value).map(Cow::into_owned);
            prop_assert_eq!(decoded, Some(text.clone()));
        }
    }
}
