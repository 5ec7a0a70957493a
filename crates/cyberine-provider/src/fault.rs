//! What a provider's complaint means, whatever wire it came by.

mod wait;

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::wait::retry_after;
use crate::error::TurnError;
use crate::quote::Quoter;

/// A complaint, in the words all wires share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The HTTP status, or the one the provider names in its place.
    pub(crate) status: Option<u16>,
    /// The provider's own words for the kind, such as `rate_limit_error insufficient_quota`.
    pub(crate) kind: String,
    /// What it says to people.
    pub(crate) message: String,
    /// How long it asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// Words that mean that the account cannot pay. They are looked for first: providers send them
/// with status 400, 403 and 429 alike, where waiting would never help.
const BILLING: &[&str] = &["insufficient_quota", "billing", "payment_required"];
/// The same to people. No more than this: limits on the rate also speak of billing and quotas.
const BILLING_PHRASES: &[&str] =
    &["credit balance is too low", "insufficient credit", "billing is not active", "credits are depleted"];
/// Words that mean that what was asked for is not allowed to be answered.
const REFUSED: &[&str] = &["content_filter", "content_policy", "bio_policy"];
const AUTH: &[&str] =
    &["authentication", "permission_error", "invalid_api_key", "api_key_invalid", "unauthorized"];
const RATE: &[&str] = &["rate_limit", "too_many_requests", "resource_exhausted"];
const OVERLOAD: &[&str] = &["overloaded", "api_error", "timeout_error", "server_error", "unavailable"];

impl Fault {
    /// The failure this complaint stands for.
    pub(crate) fn classify(&self, quoter: &Quoter) -> TurnError {
        let detail = self.detail(quoter);
        let kind = self.kind.to_lowercase();
        let said = |words: &[&str]| words.iter().any(|word| kind.contains(word));
        let message = self.message.to_lowercase();
        let retry_after = self.retry_after.or_else(|| wait::in_words(&message));
        if said(BILLING)
            || self.status == Some(402)
            || BILLING_PHRASES.iter().any(|words| message.contains(words))
        {
            return TurnError::Billing { detail };
        }
        match self.status {
            Some(401 | 403) => TurnError::Auth { detail },
            Some(429) => TurnError::RateLimited { detail, retry_after },
            Some(408 | 500..=599) => TurnError::Overloaded { detail, retry_after },
            _ if said(REFUSED) => TurnError::Refused { detail },
            _ if said(AUTH) => TurnError::Auth { detail },
            _ if said(RATE) => TurnError::RateLimited { detail, retry_after },
            _ if said(OVERLOAD) => TurnError::Overloaded { detail, retry_after },
            _ => TurnError::Rejected { detail },
        }
    }

    fn detail(&self, quoter: &Quoter) -> String {
        let words = match (self.message.trim(), self.kind.trim()) {
            ("", "") => "no reason given",
            ("", kind) => kind,
            (message, _) => message,
        };
        let words = quoter.head(words);
        match self.status {
            Some(status) => format!("status {status}: {words}"),
            None => words,
        }
    }
}

/// The error object of every HTTP wire. They differ in little, and compatible servers mix them up.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    message: Value,
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    code: Value,
    /// The kind, in Google's words.
    #[serde(default)]
    status: Value,
    /// What Google adds: the reason, and how long to wait.
    #[serde(default)]
    details: Value,
}

impl ErrorBody {
    /// The complaint, with the status the object names where it names one.
    fn fault(&self) -> Fault {
        let status = self.code.as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
        let details = self.details.as_array().map(Vec::as_slice).unwrap_or_default();
        let reasons = details.iter().map(|detail| &detail["reason"]);
        let kinds = [&self.kind, &self.code, &self.status].into_iter().chain(reasons);
        Fault {
            status,
            kind: kinds.filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            message: self.message.as_str().unwrap_or_default().to_owned(),
            retry_after: details.iter().find_map(|detail| wait::span(detail["retryDelay"].as_str()?)),
        }
    }
}

/// The complaint in a body, or the body as its own complaint.
pub(crate) fn body_fault(body: &str) -> Fault {
    stated_fault(body).unwrap_or_else(|| Fault { message: body.to_owned(), ..Fault::default() })
}

/// The complaint a body states: `{"error": {...}}` or `{"error": "..."}`.
fn stated_fault(body: &str) -> Option<Fault> {
    #[derive(Deserialize)]
    struct Body {
        error: Value,
    }
    serde_json::from_str(body).ok().map(|Body { error }| error_fault(error))
}

/// The complaint in the value of an `error` member.
pub(crate) fn error_fault(error: Value) -> Fault {
    match error {
        Value::String(message) => Fault { message, ..Fault::default() },
        other => ErrorBody::deserialize(&other).map_or_else(
            |_| Fault { message: other.to_string(), ..Fault::default() },
            |parsed| parsed.fault(),
        ),
    }
}

/// The failure of an HTTP answer that is not a success.
pub(crate) fn http_fault(
    status: u16,
    retry_after: Option<Duration>,
    body: &str,
    quoter: &Quoter,
) -> TurnError {
    if (300..400).contains(&status) {
        let detail =
            format!("status {status}: redirects are not followed; configure the address it leads to");
        return TurnError::Protocol { detail };
    }
    let stated = body_fault(body);
    let retry_after = retry_after.or(stated.retry_after);
    Fault { status: Some(status), retry_after, ..stated }.classify(quoter)
}

/// The failure behind a success that is no event stream: the error it states, or a server that does
/// not speak the wire.
pub(crate) fn foreign_fault(body: &str, quoter: &Quoter) -> TurnError {
    match stated_fault(body) {
        Some(fault) => fault.classify(quoter),
        None => {
            TurnError::Protocol { detail: format!("the answer is no event stream: {}", quoter.head(body)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, body: &str) -> &'static str {
        http_fault(status, None, body, &Quoter::default()).code()
    }

    #[test]
    fn a_status_and_a_body_name_the_failure() {
        for (status, body, expected) in [
            (401, "", "auth"),
            (403, r#"{"error":{"type":"permission_error"}}"#, "auth"),
            (402, r#"{"error":{"message":"Insufficient credits"}}"#, "billing"),
            (403, r#"{"error":{"message":"Your credit balance is too low"}}"#, "billing"),
            (429, r#"{"error":{"code":"insufficient_quota","message":"quota"}}"#, "billing"),
            (429, "slow down", "rate-limit"),
            (
                429,
                r#"{"error":{"message":"add a payment method at /account/billing","code":"rate_limit_exceeded"}}"#,
                "rate-limit",
            ),
            (529, "", "overloaded"),
            (500, "<html>", "overloaded"),
            (408, "", "overloaded"),
            (400, r#"{"error":{"type":"exceed_context_size_error"}}"#, "rejected"),
            (404, r#"{"error":"model not found"}"#, "rejected"),
            (400, r#"{"error":{"code":"content_filter","message":"filtered"}}"#, "refused"),
            (429, r#"{"error":{"message":"Your prepayment credits are depleted."}}"#, "billing"),
            (
                400,
                r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                "auth",
            ),
            (400, r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","details":7}}"#, "rejected"),
            (307, "", "protocol"),
        ] {
            assert_eq!(code(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_wait_is_taken_from_the_header_then_from_the_body_then_from_the_words() {
        let details = r#"[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]"#;
        let body =
            format!(r#"{{"error":{{"code":429,"message":"Please try again in 6s.","details":{details}}}}}"#);
        let wait = |header, body: &str| match http_fault(429, header, body, &Quoter::default()) {
            TurnError::RateLimited { retry_after, .. } => retry_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(wait(Some(Duration::from_secs(3)), &body), Some(Duration::from_secs(3)));
        assert_eq!(wait(None, &body), Some(Duration::from_millis(1500)));
        assert_eq!(wait(None, &body.replace("retryDelay", "x")), Some(Duration::from_secs(6)));
        assert_eq!(wait(None, "slow down"), None);
    }

    #[test]
    fn an_error_object_without_a_status_is_read_by_its_words() {
        for (body, expected) in [
            (r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, "overloaded"),
            (r#"{"error":{"message":"Provider returned error","code":502}}"#, "overloaded"),
            (r#"{"error":{"code":"rate_limit_exceeded"}}"#, "rate-limit"),
            (r#"{"error":{"type":"authentication_error"}}"#, "auth"),
            (r#"{"error":{"message":"boom","code":1}}"#, "rejected"),
            (r#"{"error":[1]}"#, "rejected"),
        ] {
            assert_eq!(body_fault(body).classify(&Quoter::default()).code(), expected, "{body}");
        }
    }
}
