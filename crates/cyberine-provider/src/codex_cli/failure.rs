//! What codex says of a failure: a sentence, in which the status of the service may stand.

use serde_json::Value;

use crate::error::TurnError;
use crate::fault::Fault;
use crate::quote::Quoter;

/// How the sentences begin or what they hold, and what they mean.
const BILLING: &[&str] = &["quota exceeded", "check your plan and billing", "usage limit"];
const TRUNCATED: &[&str] = &["max_output_tokens", "ran out of room in the model's context window"];
const REFUSED: &[&str] = &["reason: content_filter", "flagged"];
const CUT: &[&str] =
    &["stream disconnected before completion", "stream closed before", "idle timeout waiting"];
const UNREACHABLE: &[&str] =
    &["error sending request", "connection failed", "failed to connect", "dns error"];
const TOO_LONG: &[&str] = &["input_too_large", "input exceeds the maximum length"];

/// How a key of the service begins.
const KEY: &str = "sk-";

/// The failure that `message` tells of.
pub(super) fn failure(message: &str, quoter: &Quoter) -> TurnError {
    in_words(message, None, quoter)
}

/// The failure that `info`, the program's own word for it, and `message` tell of. The word is a string,
/// or an object that names the status of the service.
pub(super) fn named(info: &Value, message: &str, quoter: &Quoter) -> TurnError {
    let detail = quoter.head(&masked(message));
    match info.as_str() {
        Some("usageLimitExceeded") => TurnError::Billing { detail },
        Some("rateLimitExceeded") => in_words(message, Some(429), quoter),
        Some(
            "serverOverloaded" | "internalServerError" | "flexUnavailable" | "policyCapacityUnavailable",
        ) => TurnError::Overloaded { detail, retry_after: None },
        Some("contextWindowExceeded" | "sessionBudgetExceeded") => TurnError::Truncated { detail },
        Some("unauthorized") => TurnError::Auth { detail },
        Some("cyberPolicy" | "bioPolicy" | "misalignmentPolicyViolation") => TurnError::Refused { detail },
        _ => {
            let members = info.as_object().into_iter().flat_map(|members| members.values());
            let status = members.filter_map(|member| member["httpStatusCode"].as_u64()).find_map(known);
            in_words(message, status, quoter)
        }
    }
}

/// A status that tells of a failure.
fn known(status: u64) -> Option<u16> {
    u16::try_from(status).ok().filter(|status| (400..600).contains(status))
}

/// The failure of a sentence, and of the status beside it where none stands in it.
fn in_words(message: &str, beside: Option<u16>, quoter: &Quoter) -> TurnError {
    let message = masked(message);
    let words = message.to_lowercase();
    let holds = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let detail = || quoter.head(&message);
    let status = status(&words).or(beside);
    if holds(BILLING) {
        return TurnError::Billing { detail: detail() };
    }
    if holds(TRUNCATED) {
        return TurnError::Truncated { detail: detail() };
    }
    if holds(REFUSED) {
        return TurnError::Refused { detail: detail() };
    }
    if status.is_none() && holds(UNREACHABLE) {
        return TurnError::Unreachable { target: "the API that codex uses".to_owned(), detail: detail() };
    }
    if status.is_none() && holds(CUT) {
        return TurnError::Cut { detail: detail() };
    }
    Fault { status, message, ..Fault::default() }.classify(quoter)
}

/// Whether the program refused the prompt itself, by what it wrote to its standard error.
pub(super) fn refuses_input(stderr: &str) -> bool {
    let stderr = stderr.to_lowercase();
    TOO_LONG.iter().any(|phrase| stderr.contains(phrase))
}

/// `unexpected status 401 Unauthorized`, `last status: 429 Too Many Requests`.
fn status(words: &str) -> Option<u16> {
    words.match_indices("status").find_map(|(at, found)| {
        let rest = words[at + found.len()..].trim_start_matches([':', ' ']);
        let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
        digits.parse().ok().and_then(known)
    })
}

/// `text` without what looks like a key: the service repeats the one it refuses, and where the
/// program's own login holds it nobody but the program knows it.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(KEY) {
        let begins = rest[..at].chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric());
        out.push_str(&rest[..at]);
        let key = &rest[at..];
        let end = key.find(|c: char| !(c.is_ascii_alphanumeric() || "-_*".contains(c))).unwrap_or(key.len());
        out.push_str(if begins && end > KEY.len() { "[redacted]" } else { &key[..end] });
        rest = &key[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(message: &str) -> &'static str {
        failure(message, &Quoter::default()).code()
    }

    #[test]
    fn a_sentence_names_the_failure() {
        for (message, expected) in [
            ("unexpected status 401 Unauthorized: Incorrect API key provided", "auth"),
            ("unexpected status 402 Payment Required: pay", "billing"),
            ("exceeded retry limit, last status: 429 Too Many Requests, request id: r", "rate-limit"),
            ("unexpected status 503 Service Unavailable: later", "overloaded"),
            ("unexpected status 400 Bad Request: no such model", "rejected"),
            ("Quota exceeded. Check your plan and billing details.", "billing"),
            ("You've hit your usage limit. Try again at 3 PM.", "billing"),
            ("Incomplete response returned, reason: max_output_tokens", "truncated"),
            ("Incomplete response returned, reason: content_filter", "refused"),
            ("stream disconnected before completion: stream closed before response.completed", "cut"),
            ("stream disconnected before completion: error sending request for url (x)", "unreachable"),
            ("status of things: bad", "rejected"),
            ("", "rejected"),
        ] {
            assert_eq!(code(message), expected, "{message}");
        }
    }

    #[test]
    fn the_program_s_own_word_names_the_failure_and_else_its_status_and_its_sentence() {
        let told = |info: Value, message: &str| named(&info, message, &Quoter::default()).code();
        for (info, message, expected) in [
            (json!("usageLimitExceeded"), "", "billing"),
            (json!("rateLimitExceeded"), "slow down", "rate-limit"),
            (json!("serverOverloaded"), "", "overloaded"),
            (json!("contextWindowExceeded"), "", "truncated"),
            (json!("unauthorized"), "", "auth"),
            (json!("cyberPolicy"), "", "refused"),
            (json!("other"), "Incomplete response returned, reason: max_output_tokens", "truncated"),
            (json!({ "httpConnectionFailed": { "httpStatusCode": 401 } }), "no", "auth"),
            (
                json!({ "responseStreamDisconnected": { "httpStatusCode": null } }),
                "error sending request",
                "unreachable",
            ),
            (json!({ "responseStreamDisconnected": { "httpStatusCode": 200 } }), "no", "rejected"),
            (json!({ "whatever": 7 }), "unexpected status 503", "overloaded"),
            (Value::Null, "", "rejected"),
        ] {
            assert_eq!(told(info.clone(), message), expected, "{info} {message}");
        }
    }

    #[test]
    fn a_key_that_is_repeated_is_masked_whether_it_is_known_or_not() {
        let said = "Incorrect API key provided: sk-proj-a_b*c-0123. See risk-free or ask-me, sk- and sk-";
        let shown = "Incorrect API key provided: [redacted]. See risk-free or ask-me, sk- and sk-";
        assert_eq!(masked(said), shown);
        let error = failure(said, &Quoter::default()).to_string();
        assert!(!error.contains("0123"), "{error}");
    }
}
