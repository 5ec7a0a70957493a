//! What an agent's words about a failure mean. Agents hand on what the service behind them said, often
//! without its status.

use std::time::Duration;

use crate::error::TurnError;
use crate::fault::{Fault, body_fault};
use crate::quote::Quoter;

/// How a wait begins that is told in words.
const WAITS: &[&str] = &["retry after ", "retry in ", "try again in "];

/// What no account gets past by waiting.
const AUTH: &[&str] = &[
    "api key not valid",
    "api key is missing",
    "incorrect api key",
    "invalid api key",
    "invalid auth method",
    "invalid x-api-key",
    "not authenticated",
    "not logged in",
    "unauthenticated",
    "unauthorized",
];
const RATE: &[&str] =
    &["rate limit", "too many requests", "resource has been exhausted", "exceeded your current quota"];
const OVERLOAD: &[&str] = &["overloaded", "unavailable", "internal server error"];
/// The service behind the agent is not there.
const UNREACHABLE: &[&str] = &["cannot connect to api"];
const REFUSED: &[&str] = &["blocked due to", "was blocked"];
const EMPTY: &[&str] = &["empty response"];
const CUT: &[&str] =
    &["without a finish reason", "stream ended", "stream disconnected", "premature close", "terminated"];

/// The failure that `message` and, where it is known, `status` stand for.
pub(super) fn failure(status: Option<u16>, message: &str, quoter: &Quoter) -> TurnError {
    // The message is often the body of the service's answer, in brackets.
    let begin = message.find("{\"error\"");
    let body = begin.map(|begin| message[begin..].trim_end_matches([']', '\n', ' ']));
    let stated = body.map(body_fault);
    let stated = stated.unwrap_or_else(|| Fault { message: message.to_owned(), ..Fault::default() });
    of(Fault { status: status.or(stated.status), ..stated }, quoter)
}

/// The failure that a complaint stands for, by its words where nothing else tells.
pub(super) fn of(fault: Fault, quoter: &Quoter) -> TurnError {
    let words = format!("{} {}", fault.kind, fault.message).to_lowercase();
    let retry_after = fault.retry_after.or_else(|| wait(&words));
    match (Fault { retry_after, ..fault }).classify(quoter) {
        TurnError::Rejected { detail } => by_words(&words, detail, retry_after),
        // A stream that was cut is told with a status of its own.
        TurnError::Overloaded { detail, .. } if said(&words, CUT) => TurnError::Cut { detail },
        told => told,
    }
}

/// The failure that the tail of a standard error, already quoted, tells of last; `None` where it tells
/// of none.
pub(super) fn in_stderr(stderr: &str, quoter: &Quoter) -> Option<TurnError> {
    let lines: Vec<&str> = stderr.split("\\n").collect();
    (0..lines.len()).rev().find_map(|last| {
        // What is asked for stands below what went wrong.
        let message = lines[last.saturating_sub(1)..=last].join("; ");
        match of(Fault { message, ..Fault::default() }, quoter) {
            TurnError::Rejected { .. } | TurnError::Cut { .. } | TurnError::Empty => None,
            told => Some(told),
        }
    })
}

fn by_words(words: &str, detail: String, retry_after: Option<Duration>) -> TurnError {
    match () {
        () if said(words, AUTH) => TurnError::Auth { detail },
        () if said(words, RATE) => TurnError::RateLimited { detail, retry_after },
        () if said(words, UNREACHABLE) => {
            TurnError::Unreachable { target: "the service behind the agent".to_owned(), detail }
        }
        () if said(words, EMPTY) => TurnError::Empty,
        () if said(words, REFUSED) => TurnError::Refused { detail },
        () if said(words, CUT) => TurnError::Cut { detail },
        () if said(words, OVERLOAD) => TurnError::Overloaded { detail, retry_after },
        // Gemini CLI tells a wait only where the rate is limited.
        () if retry_after.is_some() => TurnError::RateLimited { detail, retry_after },
        () => TurnError::Rejected { detail },
    }
}

fn said(words: &str, any: &[&str]) -> bool {
    any.iter().any(|one| words.contains(one))
}

/// The last wait that is told, in whole or broken seconds.
fn wait(words: &str) -> Option<Duration> {
    let (at, begin) = WAITS.iter().filter_map(|w| words.rfind(w).map(|at| (at, w.len()))).max()?;
    let told = &words[at + begin..];
    let end = told.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(told.len());
    let (number, unit) = told.split_at(end);
    let seconds = number.trim_end_matches('.').parse::<f64>().ok()?;
    let seconds = if unit.starts_with("ms") { seconds / 1000.0 } else { seconds };
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(DAY).min(DAY))
}

/// The longest wait that is believed.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_failure_where_no_status_does() {
        for (status, message, code) in [
            (
                None,
                r#"[API Error: {"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
                "auth",
            ),
            (Some(401), r#"{"error":{"code":401,"message":"scripted failure"}}"#, "auth"),
            (Some(402), "scripted failure", "billing"),
            (Some(429), "Rate limit exceeded. Try again later.", "rate-limit"),
            (Some(500), "terminated", "cut"),
            (Some(500), "boom", "overloaded"),
            (None, "Internal error: Incorrect API key provided: k", "auth"),
            (None, "[API Error: terminated]", "cut"),
            (None, "Model stream ended without a finish reason.", "cut"),
            (None, "The model returned an empty response with no text or thoughts.", "empty"),
            (None, "The model response was blocked due to safety settings.", "refused"),
            (None, "[API Error: scripted failure\nSuggested retry after 1s.]\nPlease wait", "rate-limit"),
            (None, "The model is overloaded", "overloaded"),
            (None, "Cannot connect to API: Unable to connect.", "unreachable"),
            (None, "something else", "rejected"),
            (None, "", "rejected"),
        ] {
            assert_eq!(failure(status, message, &Quoter::default()).code(), code, "{status:?} {message}");
        }
    }

    #[test]
    fn a_wait_is_read_from_words() {
        for (words, seconds) in [
            ("attempt 2 failed: x\\nsuggested retry after 3s.. retrying after 10369ms...", Some(3.0)),
            ("please retry in 34.5s.", Some(34.5)),
            ("retry after soon", None),
            ("retry after 99999999999999999999999s", Some(86_400.0)),
            ("", None),
        ] {
            assert_eq!(wait(words).map(|wait| wait.as_secs_f64()), seconds, "{words}");
        }
    }

    #[test]
    fn a_standard_error_tells_of_a_failure_or_of_none() {
        let code = |stderr: &str| in_stderr(stderr, &Quoter::default()).map(|error| error.code());
        assert_eq!(
            code("Attempt 1 failed: Resource has been exhausted (e.g. check quota)."),
            Some("rate-limit")
        );
        assert_eq!(code("Ripgrep is not available. Falling back to GrepTool."), None);
        assert_eq!(code(""), None);
        let stderr = r"Ripgrep is not available.\nAttempt 1 failed: slow down\nSuggested retry after 3s.. Retrying after 5890ms...";
        let told = in_stderr(stderr, &Quoter::default()).unwrap();
        let wait = Some(Duration::from_secs(3));
        let detail =
            "Attempt 1 failed: slow down; Suggested retry after 3s.. Retrying after 5890ms...".to_owned();
        assert_eq!(told, TurnError::RateLimited { detail, retry_after: wait });
    }
}
