//! The forms of an answer.

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

/// The session a message belongs to (2025-11-25, `basic/transports`).
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Tells a proxy to pass on at once what it gets.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// JSON-RPC: the request is not one.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the server is at fault.
pub(crate) const INTERNAL: i32 = -32603;
/// Too much goes on: the rail's code for it.
pub(crate) const BUSY: i32 = -33003;

/// What was asked was cut short by the end of the server: the rail's code for it.
pub(crate) const ENDED: i32 = -33004;

/// A refusal for want of room is no longer, with the longest id.
const LONGEST_REFUSAL: usize = 4096;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Seconds after which somebody who was refused for want of room should try again.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// One JSON-RPC message.
pub(crate) fn json(status: StatusCode, message: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(message));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A JSON-RPC error without an id, for a request that did not get as far as to have one. `reason` needs
/// no escapes.
pub(crate) fn refusal(status: StatusCode, code: i32, reason: &str) -> Response {
    debug_assert!(!reason.contains(['"', '\\']) && !reason.contains(char::is_control));
    let message = format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"{reason}"}}}}"#);
    json(status, message.into_bytes())
}

/// As [`refusal`], where waiting helps.
pub(crate) fn busy(reason: &str) -> Response {
    later(refusal(StatusCode::SERVICE_UNAVAILABLE, BUSY, reason))
}

/// Says when to try again.
fn later(mut response: Response) -> Response {
    response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    response
}

/// A reply as the whole answer, with `status` unless it refuses what was asked for want of room.
pub(crate) fn whole(status: StatusCode, line: Vec<u8>) -> Response {
    if is_busy(&line) { later(json(StatusCode::SERVICE_UNAVAILABLE, line)) } else { json(status, line) }
}

/// Whether a reply is the error [`BUSY`].
fn is_busy(line: &[u8]) -> bool {
    line.len() <= LONGEST_REFUSAL
        && serde_json::from_slice(line).is_ok_and(|reply: serde_json::Value| reply["error"]["code"] == BUSY)
}

/// Ends the connection with this answer: what is left of its request would be taken for the next one.
pub(crate) fn last(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The method cannot be used here.
pub(crate) fn wrong_method(allowed: &'static str) -> Response {
    let reason = format!("this method cannot be used here; allowed: {allowed}");
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, INVALID_REQUEST, &reason);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An event stream.
pub(crate) fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_for_want_of_room_says_when_to_try_again() {
        for (line, busy) in [
            (r#"{"jsonrpc":"2.0","id":"x","error":{"code":-33003,"message":"too many"}}"#, true),
            (r#"{"jsonrpc":"2.0","id":"x","error":{"code":-33004,"message":"-33003"}}"#, false),
            (r#"{"jsonrpc":"2.0","id":"x","result":{"error":{"code":-33003}}}"#, false),
            (r#"[{"jsonrpc":"2.0","id":"x","error":{"code":-33003}}]"#, false),
        ] {
            let response = whole(StatusCode::OK, line.as_bytes().to_vec());
            let is_later = response.headers().contains_key(RETRY_AFTER);
            assert_eq!(
                (response.status() == StatusCode::SERVICE_UNAVAILABLE, is_later),
                (busy, busy),
                "{line}"
            );
        }
    }
}
