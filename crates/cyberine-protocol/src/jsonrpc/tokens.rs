//! Cutting valid JSON into the tokens of its members, without copies and without a parser.
//!
//! The strict layer has walked the text already, so commas and brackets are where they should be.
//! On other text the cuts are wrong, and nothing worse.

use std::borrow::Cow;

/// The members of the object `json`, in order; none where it is not an object.
pub(crate) fn members(json: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let mut rest = json.strip_prefix('{').map_or("", str::trim_start);
    std::iter::from_fn(move || {
        if !rest.starts_with('"') {
            return None;
        }
        let (key, after) = split_value(rest);
        let (value, after) = split_value(after.trim_start().strip_prefix(':')?.trim_start());
        rest = after.trim_start().trim_start_matches(',').trim_start();
        Some((text(key)?, value))
    })
}

/// The elements of the array `json`, in order; none where it is not an array.
pub(crate) fn elements(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json.strip_prefix('[').map_or("", str::trim_start);
    std::iter::from_fn(move || {
        let (value, after) = split_value(rest);
        rest = after.trim_start().trim_start_matches(',').trim_start();
        // A closing bracket is where no value starts.
        (!value.is_empty()).then_some(value)
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

/// The value a text starts with, and what follows it.
fn split_value(json: &str) -> (&str, &str) {
    let bytes = json.as_bytes();
    let end = match bytes.first() {
        Some(b'"') => string_end(bytes, 0),
        Some(b'{' | b'[') => container_end(bytes),
        _ => bytes
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
            .unwrap_or(bytes.len()),
    };
    json.split_at_checked(end).unwrap_or((json, ""))
}

/// Where the string ends whose quote is at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn container_end(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
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
