//! The id of a request that is refused before it is read, so that whoever sent it does not wait for
//! ever.
//!
//! Clients write `id` as the first members or as the last one, around parameters of any length.

use super::tokens::{spans, text};
use super::{ID_LIMIT, RequestId};
use crate::strict::{self, Limits};

/// The bytes at each end of a line in which its id is looked for where the rest was not kept.
pub(crate) const ENDS: usize = 2 * ID_LIMIT;

/// The id of the request that `json` is, or is the beginning of. `None` where that is not sure: it
/// has two ids, or none that can be echoed, or no method.
pub(crate) fn request_id(json: &str) -> Option<RequestId> {
    let (id, is_request) = opening(json)?;
    is_request.then(|| good(id?)).flatten()
}

/// The same of a line of which only the beginning and the end were kept, [`ENDS`] bytes of each.
pub(crate) fn request_id_of_ends(start: &[u8], end: &[u8]) -> Option<RequestId> {
    let (start, end) = (String::from_utf8_lossy(start), String::from_utf8_lossy(end));
    let (id, is_request) = opening(start.trim_start())?;
    is_request.then(|| good(id.or_else(|| closing(&end))?)).flatten()
}

/// The token of the id among the members of an object that are whole, and whether a method is one of
/// them. `None` where there are two ids.
fn opening(json: &str) -> Option<(Option<&str>, bool)> {
    let (mut id, mut is_request) = (None, false);
    for (key, value) in spans(json).take_while(|(_, value)| value.end < json.len()) {
        match text(json.get(key)?).as_deref() {
            Some("id") if id.is_some() => return None,
            Some("id") => id = json.get(value),
            Some("method") => is_request = true,
            _ => {}
        }
    }
    Some((id, is_request))
}

/// The token of the id where it is the last member of the object that `json` is the end of. What
/// stands right before the last brace of an object is its own member, and is read from the back.
fn closing(json: &str) -> Option<&str> {
    let members = json.trim_end().strip_suffix('}')?.trim_end();
    let start = match members.strip_suffix('"') {
        Some(quoted) => quoted.rfind('"')?,
        None => members.rfind([':', ' ', '\t'])? + 1,
    };
    let (before, token) = members.split_at(start);
    let before = before.trim_end().strip_suffix(':')?.trim_end().strip_suffix("\"id\"")?;
    before.trim_end().ends_with(',').then_some(token)
}

/// The id of a token that would pass the strict layer by itself, and came through as it was sent.
fn good(token: &str) -> Option<RequestId> {
    let passes = strict::check(token.as_bytes(), Limits::default()).is_ok_and(|passed| passed == Some(token));
    RequestId::from_token(token).filter(|_| passes && !token.contains('\u{fffd}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(json: &str) -> Option<String> {
        request_id(json).map(|id| id.to_string())
    }

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_stands() {
        for (json, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"\ud83d"}}"#, "7"),
            (r#"{"method":"a","params":{"id":1,"x":["]}\"","\ud83d"]},"jsonrpc":"2.0","id":"s"}"#, "\"s\""),
            (r#"{ "\u0069d" : 1.0 , "\ud800":1, "m\u0065thod":"a" }"#, "1.0"),
            (r#"{"id":3,"method":"a","x":[[[["#, "3"),
        ] {
            assert_eq!(whole(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn what_may_not_be_the_id_of_a_request_is_none() {
        for json in [
            r#"{"id":1,"method":"a","id":1}"#,
            r#"{"id":1,"method":"a","i\u0064":2}"#,
            r#"{"id":1,"result":"\ud83d"}"#,
            r#"{"method":"a","params":{"id":1}}"#,
            r#"{"id":"\ud83d","method":"a"}"#,
            r#"{"id":1e400,"method":"a"}"#,
            r#"{"id":5x,"method":"a"}"#,
            r#"{"id":null,"method":"a"}"#,
            r#"{"method":"a","id":12"#,
            r#"{"method":"a","id":"12"#,
            r#"[{"id":1,"method":"a"}]"#,
            "",
        ] {
            assert_eq!(whole(json), None, "{json}");
        }
    }

    #[test]
    fn the_ends_of_a_line_are_enough_for_an_id_at_either() {
        let of = |start: &str, end: &str| {
            request_id_of_ends(start.as_bytes(), end.as_bytes()).map(|id| id.to_string())
        };
        let cut = r#"{"method":"a","params":{"t":"xx"#;
        for (start, end, expected) in [
            (r#" {"jsonrpc":"2.0","id":7,"method":"a","params":{"t":"x"#, "xx\"}}", Some("7")),
            (cut, r#"xx"},"jsonrpc":"2.0","id":7}"#, Some("7")),
            (cut, " x\"} , \"id\" : \"a-1\" } \r", Some("\"a-1\"")),
            (cut, r#"xx"},"id":-1.5e1}"#, Some("-1.5e1")),
            // Not the object's own, not an id, not a request, not whole.
            (cut, r#"xx","id":7}}"#, None),
            (cut, r#"xx\",\"id":7}"#, None),
            (cut, r#"xx","id":null}"#, None),
            (cut, r#"xx","id":"a\"b"}"#, None),
            (cut, r#"xx"},"id":7"#, None),
            (cut, r#"xx","uid":7}"#, None),
            (r#"{"result":{"t":"x"#, r#"xx"},"jsonrpc":"2.0","id":7}"#, None),
            (r#"{"jsonrpc":"2.0","method":"a","id":7"#, "xx\"}}", None),
            ("", "", None),
        ] {
            assert_eq!(of(start, end).as_deref(), expected, "{start} … {end}");
        }
        let invalid = [cut.as_bytes(), b"\xc3"].concat();
        assert!(request_id_of_ends(&invalid, b"\xa9\"},\"id\":7}").is_some(), "cut within a character");
        assert!(request_id_of_ends(&invalid, b"\"},\"id\":\"\xff\"}").is_none(), "not what was sent");
    }
}
