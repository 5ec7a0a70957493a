//! Cutting valid JSON into the tokens of its members, without copies and without a parser.
//!
//! The strict layer has walked the text already, so commas and brackets are where they should be.
//! On other text the cuts are wrong, and nothing worse.

use std::borrow::Cow;
use std::ops::Range;

use crate::strict::plain_end;

/// The members of the object `json`, in order; none where it is not an object.
pub(crate) fn members(json: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    spans(json).map_while(|(key, value)| Some((text(json.get(key)?)?, json.get(value)?)))
}

/// Where the keys and the values of the object `json` stand, in order. Where the object is cut off,
/// its last value ends with it.
pub(super) fn spans(json: &str) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let bytes = json.as_bytes();
    let mut at = if bytes.first() == Some(&b'{') { skip_space(bytes, 1) } else { bytes.len() };
    std::iter::from_fn(move || {
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        let key = at..string_end(bytes, at);
        let colon = skip_space(bytes, key.end);
        let value = value_at(bytes, skip_space(bytes, colon + 1));
        at = next(bytes, value.end);
        Some((key, value))
    })
}

/// The elements of the array `json`, in order; none where it is not an array.
pub(crate) fn elements(json: &str) -> impl Iterator<Item = &str> {
    let bytes = json.as_bytes();
    let mut at = if bytes.first() == Some(&b'[') { skip_space(bytes, 1) } else { bytes.len() };
    std::iter::from_fn(move || {
        let value = value_at(bytes, at);
        // A closing bracket is where no value starts.
        if value.is_empty() {
            return None;
        }
        at = next(bytes, value.end);
        json.get(value)
    })
}

/// A string token's text, borrowed where it has no escapes. `None` for other tokens.
pub(crate) fn text(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(token).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// Where white space ends that may start at `at`.
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Where the next member or element starts after one that ends at `end`.
fn next(bytes: &[u8], end: usize) -> usize {
    let at = skip_space(bytes, end);
    if bytes.get(at) == Some(&b',') { skip_space(bytes, at + 1) } else { at }
}

/// The value that starts at `start`; empty where none does.
fn value_at(bytes: &[u8], start: usize) -> Range<usize> {
    let end = match bytes.get(start) {
        Some(b'"') => string_end(bytes, start),
        Some(b'{' | b'[') => container_end(bytes, start),
        _ => {
            let rest = bytes.get(start..).unwrap_or_default();
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            start + rest.iter().position(ends).unwrap_or(rest.len())
        }
    };
    start..end
}

/// Where the string ends whose quote is at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
}

fn container_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(bytes, at - 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn members_are_cut_as_they_were_written() {
        let json =
            "{ \"a\" : 1.0 ,\"\\u0062\":{\"x\":[\"]}\",\"\\\"}\"]} , \"c\":\"é\\\\\",\"d\":[],\"e\":null }";
        let cut: Vec<(String, &str)> = members(json).map(|(key, value)| (key.into_owned(), value)).collect();
        let expected = [
            ("a", "1.0"),
            ("b", "{\"x\":[\"]}\",\"\\\"}\"]}"),
            ("c", "\"é\\\\\""),
            ("d", "[]"),
            ("e", "null"),
        ];
        assert_eq!(cut, expected.map(|(key, value)| (key.to_owned(), value)));
        assert_eq!(elements("[ 1 , [2,\"]\"] ,{} ]").collect::<Vec<_>>(), ["1", "[2,\"]\"]", "{}"]);
        for other in ["", "7", "[]", "{}", "{ }", "\"{\""] {
            assert_eq!((members(other).count(), elements(other).count()), (0, 0), "{other}");
        }
    }

    proptest! {
        #[test]
        fn cuts_of_valid_json_are_its_members(keys in prop::collection::btree_map(any::<String>(), any::<String>(), 0..6)) {
            let json = serde_json::to_string_pretty(&keys).unwrap();
            let cut: Vec<(String, String)> = members(&json)
                .map(|(key, value)| (key.into_owned(), text(value).unwrap().into_owned()))
                .collect();
            prop_assert_eq!(cut, keys.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn cuts_of_anything_do_not_panic(json in "[\\[{\",:\\\\\\]} aé1]{0,30}") {
            members(&json).count();
            elements(&json).count();
            if let Ok(Value::Array(items)) = serde_json::from_str::<Value>(&json) {
                prop_assert_eq!(elements(&json).count(), items.len());
            }
        }
    }
}
