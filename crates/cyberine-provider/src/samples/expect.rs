//! What a sample's own head says must be read from it: `expect=ok text="A" in=1200 out=44`.
//!
//! Words that name nothing a turn has, such as remarks in brackets, are left alone.

use std::time::Duration;

use cyberine_types::{Usage, Usd};
use serde_json::Value;

use super::Read;
use crate::error::TurnError;

/// The outcomes, as the samples spell them, beside our codes. Where two stand, wires differ.
const KINDS: &[(&str, &[&str])] = &[
    ("auth", &["auth"]),
    ("billing", &["billing"]),
    ("quota", &["billing"]),
    ("rate_limit", &["rate-limit"]),
    ("overloaded", &["overloaded"]),
    ("server", &["overloaded"]),
    ("refusal", &["refused"]),
    ("max_output", &["truncated"]),
    ("max_turns", &["truncated"]),
    ("budget", &["truncated"]),
    ("context_length", &["truncated", "rejected"]),
    ("model_not_found", &["rejected"]),
    ("session_not_found", &["rejected", "crashed"]),
    ("usage_error", &["crashed", "rejected"]),
    ("empty", &["empty"]),
    ("stream_cut", &["cut"]),
    ("protocol", &["protocol"]),
    ("no_result", &["cut", "crashed"]),
    ("timeout", &["crashed", "timeout-idle", "timeout-wall"]),
    ("unknown", &["crashed", "rejected", "protocol"]),
];

/// The failures that another try may be spared from.
const RETRYABLE: &[&str] = &["rate-limit", "overloaded", "cut"];

/// Checks `read` against `expect`, the rest of a sample's head after `expect=`.
pub(super) fn check(name: &str, expect: &str, read: &Read) {
    let mut words = words(expect).into_iter();
    let outcome = words.next().unwrap_or_default();
    let code = read.code();
    let fields: Vec<(String, String)> = words
        .filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        })
        .collect();
    match outcome.as_str() {
        "ok" => assert!(matches!(code, "ok" | "tool-use" | "cancelled"), "{name}: {:?}", read.outcome),
        "failed" => assert!(read.outcome.is_err(), "{name}: {:?}", read.outcome),
        "cancelled" => assert!(matches!(code, "cancelled" | "crashed"), "{name}: {:?}", read.outcome),
        "events" => {}
        other => panic!("{name}: `{other}` is no outcome"),
    }
    for (key, value) in &fields {
        field(name, key, value, &fields, read);
    }
}

fn field(name: &str, key: &str, value: &str, fields: &[(String, String)], read: &Read) {
    let code = read.code();
    let usage = read.usage.unwrap_or_default();
    let count = || value.parse::<u64>().unwrap_or_else(|_| panic!("{name}: `{key}={value}` is no count"));
    match key {
        "kind" => {
            let codes = KINDS.iter().find(|(kind, _)| *kind == value);
            let (_, codes) = codes.unwrap_or_else(|| panic!("{name}: `{value}` is no kind of failure"));
            assert!(codes.contains(&code), "{name}: {value} became {:?}", read.outcome);
        }
        "retryable" => assert_eq!(RETRYABLE.contains(&code).to_string(), value, "{name}: {code}"),
        "retry_after_s" => {
            let wait = match &read.outcome {
                Err(
                    TurnError::RateLimited { retry_after, .. } | TurnError::Overloaded { retry_after, .. },
                ) => *retry_after,
                other => panic!("{name}: {other:?} asks for no wait"),
            };
            assert_eq!(wait, Some(Duration::from_secs(count())), "{name}");
        }
        "text" | "partial" => assert_eq!(read.text, value, "{name}"),
        "structured" => {
            let expected: Value = serde_json::from_str(value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&read.text).unwrap(), expected, "{name}");
        }
        "tools" => assert_eq!(read.calls.len().to_string(), value, "{name}: {:?}", read.calls),
        "usage" if value == "unknown" => assert_eq!(read.usage, None, "{name}"),
        "in" if value == "unknown" => assert_eq!(usage.input, 0, "{name}"),
        "in" => assert_eq!(input(&usage, fields), count(), "{name}: input of {usage:?}"),
        "out" => assert_eq!(usage.output, count(), "{name}: output of {usage:?}"),
        "cached" | "cache_read" => assert_eq!(usage.cached_read, count(), "{name}: {usage:?}"),
        "cache_write" => assert_eq!(usage.cache_write, count(), "{name}: {usage:?}"),
        "reasoning" => assert_eq!(usage.reasoning, count(), "{name}: {usage:?}"),
        // A model on this machine costs nothing, which is no figure of its wire.
        "cost" if value == "0" => assert!(matches!(usage.usd, None | Some(Usd::ZERO)), "{name}: {usage:?}"),
        "cost" => {
            assert_eq!(usage.usd, Some(serde_json::from_str::<Usd>(value).unwrap()), "{name}: {usage:?}")
        }
        _ => {}
    }
}

/// The input as the sample counts it: the whole, or only what no cache took part in where the
/// sample says the parts of the cache beside it.
fn input(usage: &Usage, fields: &[(String, String)]) -> u64 {
    let apart = fields.iter().any(|(key, _)| key == "cache_read");
    if apart { usage.input - usage.cached_read - usage.cache_write } else { usage.input }
}

/// Words apart by white space, without the brackets and stops around them; a quoted value is one
/// word as it stands.
fn words(expect: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = expect.trim_start();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let quote = rest[..end].find("=\"").map(|equals| equals + 2);
        let word = match quote {
            Some(begin) => {
                let (value, after) = rest[begin..].split_once('"').unwrap();
                let word = format!("{}{value}", &rest[..begin - 1]);
                rest = after.trim_start_matches([';', ',', ')', ':']);
                word
            }
            None => {
                let bare = rest[..end].trim_start_matches('(').trim_end_matches([')', ';', ',', ':']);
                rest = &rest[end..];
                bare.to_owned()
            }
        };
        words.push(word);
        rest = rest.trim_start();
    }
    words
}

#[test]
fn a_head_is_read_word_by_word() {
    let head =
        r#"ok text="Hello — (x)."; in=1200 (includes cached=1000) structured={"winner":"B"} kind=empty:"#;
    let read = words(head);
    assert_eq!(
        read,
        [
            "ok",
            "text=Hello — (x).",
            "in=1200",
            "includes",
            "cached=1000",
            r#"structured={"winner":"B"}"#,
            "kind=empty"
        ]
    );
}
