//! The byte layer: what it lets through, the parser behind it reads the same way.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use cyberine_protocol::strict::{FRAME_LIMIT, Limits, StrictError, check};
use proptest::prelude::*;
use serde_json::{Map, Value};

fn verdict(line: &[u8]) -> Result<Option<&str>, StrictError> {
    check(line, Limits::default())
}

fn refused(line: &[u8]) -> String {
    verdict(line).unwrap_err().to_string()
}

#[test]
fn white_space_is_no_message_and_a_carriage_return_is_white_space() {
    for line in ["", " ", "\r", "\t \r"] {
        assert_eq!(verdict(line.as_bytes()), Ok(None), "{line:?}");
    }
    assert_eq!(verdict(b" {} \r"), Ok(Some("{}")));
}

#[test]
fn each_refusal_says_what_is_wrong() {
    for (line, expected) in [
        (&b"\xef\xbb\xbf{}"[..], "the line starts with a byte order mark"),
        (b"\"\xff\xfe\"", "the line is not UTF-8 at byte 1"),
        (b"hello", "the line is not JSON at byte 0: expected a value"),
        (b"{\"jsonrpc\":", "the line is not JSON at byte 11: expected a value"),
        (b"{} x", "the line is not JSON at byte 3: expected the end of the line"),
        (b"[1,]", "the line is not JSON at byte 3: expected a value"),
        (b"[1 2]", "the line is not JSON at byte 3: expected `,` or `]`"),
        (b"{\"a\":1,}", "the line is not JSON at byte 7: expected a key in quotes"),
        (b"{\"a\" 1}", "the line is not JSON at byte 5: expected `:`"),
        (b"{\"a\":1]", "the line is not JSON at byte 6: expected `,` or `}`"),
        (b"{a:1}", "the line is not JSON at byte 1: expected a key in quotes"),
        (b"\"a", "the line is not JSON at byte 2: expected the end of a string"),
        (b"\"\\", "the line is not JSON at byte 1: expected an escape"),
        (b"\"\\x\"", "the line is not JSON at byte 1: expected an escape"),
        (b"\"\\u12g4\"", "the line is not JSON at byte 5: expected four hexadecimal digits"),
        (b"\"\t\"", "the line is not JSON at byte 1: expected control characters as escapes"),
        (b"\"\\ud800\"", "the line has half of a surrogate pair at byte 1; send whole characters"),
        (b"\"\\ud800\\u0041\"", "the line has half of a surrogate pair at byte 1; send whole characters"),
        (b"{\"\\udc00\":1}", "the line has half of a surrogate pair at byte 2; send whole characters"),
        (b"01", "the line is not JSON at byte 1: expected the end of the line"),
        (b"-", "the line is not JSON at byte 1: expected a digit"),
        (b"1.", "the line is not JSON at byte 2: expected a digit"),
        (b"1e400", "the number at byte 0 is out of range"),
        (b"NaN", "the line is not JSON at byte 0: expected a value"),
        (b"nul", "the line is not JSON at byte 0: expected a value"),
        (b"{\"a\":1,\"b\":{\"c\":1,\"\\u0063\":2}}", "the key `c` occurs twice in one object"),
        (b"{\"id\":1,\"id\":1}", "the key `id` occurs twice in one object"),
    ] {
        assert_eq!(refused(line), expected, "{}", String::from_utf8_lossy(line));
    }
    assert_eq!(refused(format!("1{}", "0".repeat(400)).as_bytes()), "the number at byte 0 is out of range");
}

#[test]
fn duplicates_are_found_in_large_objects_too_and_siblings_are_not_duplicates() {
    let mut object = String::from("{");
    for index in 0..40 {
        write!(object, "\"k{index}\":{{\"same\":1}},").unwrap();
    }
    assert!(verdict(format!("{object}\"k40\":0}}").as_bytes()).is_ok());
    assert_eq!(
        refused(format!("{object}\"k\\u0037\":0}}").as_bytes()),
        "the key `k7` occurs twice in one object"
    );
    assert!(verdict(br#"[{"a":1},{"a":{"a":1}}]"#).is_ok());
}

#[test]
fn a_line_full_of_keys_does_not_take_time_by_the_square() {
    let mut object = String::from("{");
    for index in 0..100_000 {
        write!(object, "\"{index:x}\":0,").unwrap();
    }
    let start = Instant::now();
    assert!(verdict(format!("{object}\"last\":0}}").as_bytes()).is_ok());
    assert_eq!(refused(format!("{object}\"0\":0}}").as_bytes()), "the key `0` occurs twice in one object");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn nesting_is_refused_at_128_levels_wherever_it_is() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(verdict(nested(127).as_bytes()).is_ok());
    for depth in [128, 10_000, 100_000] {
        assert_eq!(refused(nested(depth).as_bytes()), "arrays and objects nest deeper than 127 levels");
        let hidden = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","unknown":{}}}"#, nested(depth));
        assert_eq!(refused(hidden.as_bytes()), "arrays and objects nest deeper than 127 levels");
    }
}

#[test]
fn a_line_over_the_frame_limit_is_refused_and_one_at_it_is_not() {
    let text = |length: usize| format!("\"{}\"", "a".repeat(length - 2));
    assert!(verdict(text(FRAME_LIMIT).as_bytes()).is_ok());
    assert_eq!(refused(text(FRAME_LIMIT + 1).as_bytes()), "the line is longer than 8388608 bytes");
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Text made of what JSON is made of, so that a good part of it nearly is JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "1",
        "-0",
        "1.5e3",
        "1e999",
        "true",
        "null",
        " ",
        "\"",
        "\\",
        "é",
        "\u{2028}",
        "01",
        "\u{7f}",
        "\u{1}",
    ]);
    prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat())
}

/// Whether some object of a JSON text has a key twice, told by the parser itself.
fn has_duplicates(text: &str) -> bool {
    struct Unique;
    impl<'de> serde::de::DeserializeSeed<'de> for Unique {
        type Value = bool;
        fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<bool, D::Error> {
            input.deserialize_any(self)
        }
    }
    impl<'de> serde::de::Visitor<'de> for Unique {
        type Value = bool;
        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("JSON")
        }
        fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_str<E>(self, _: &str) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_unit<E>(self) -> Result<bool, E> {
            Ok(false)
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
            let mut found = false;
            while let Some(inner) = seq.next_element_seed(Unique)? {
                found |= inner;
            }
            Ok(found)
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let (mut found, mut keys) = (false, std::collections::HashSet::new());
            while let Some(key) = map.next_key::<String>()? {
                found |= !keys.insert(key);
                found |= map.next_value_seed(Unique)?;
            }
            Ok(found)
        }
    }
    let mut input = serde_json::Deserializer::from_str(text);
    serde::de::DeserializeSeed::deserialize(Unique, &mut input).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic_and_what_passes_is_json(line in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(text)) = verdict(&line) {
            prop_assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn near_json_passes_exactly_where_the_parser_reads_it_and_no_key_repeats(line in nearly_json()) {
        let trimmed = line.trim_matches([' ', '\t', '\r', '\n']);
        let parsed = serde_json::from_str::<Value>(trimmed);
        match verdict(line.as_bytes()) {
            Ok(None) => prop_assert!(trimmed.is_empty()),
            Ok(Some(text)) => {
                prop_assert!(parsed.is_ok(), "{text}");
                prop_assert!(!has_duplicates(text), "{text}");
            }
            Err(StrictError::DuplicateKey { .. }) if parsed.is_ok() => prop_assert!(has_duplicates(trimmed), "{trimmed}"),
            Err(StrictError::DuplicateKey { .. }) => {}
            Err(error) => prop_assert!(parsed.is_err(), "{line:?}: {error}"),
        }
    }

    #[test]
    fn any_value_passes_and_comes_back_equal(value in json()) {
        let line = value.to_string();
        let text = verdict(line.as_bytes()).unwrap().unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(text).unwrap(), serde_json::from_str::<Value>(&line).unwrap());
        prop_assert_eq!(text, line.as_str());
    }
}
