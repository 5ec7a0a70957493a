//! Answers for pages of other origins (Fetch, 3.2, "CORS protocol"): of the configured ones, exactly.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use cyberine_protocol::http::PARAM_PREFIX;

use crate::reply;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, traceparent, tracestate, x-request-id";
const EXPOSED: HeaderValue =
    HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate, x-request-id");

/// The longest list of wanted headers that is looked at.
const LONGEST: usize = 4096;

/// Lets the page that asked read the answer.
pub(super) fn share(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The answer to a browser that asks whether it may send a request. Whether the origin is one of those,
/// [`share`] says.
pub(super) fn preflight(asked: &HeaderMap) -> Response {
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed(asked));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// The headers a client may send: those of the protocol, and of the ones it asks for those that mirror
/// an argument.
fn allowed(asked: &HeaderMap) -> HeaderValue {
    let wanted = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|wanted| wanted.to_str().ok());
    let mut allowed = HEADERS.to_owned();
    for name in wanted.filter(|wanted| wanted.len() <= LONGEST).unwrap_or_default().split(',') {
        let name = name.trim().to_ascii_lowercase();
        if name.starts_with(PARAM_PREFIX) {
            allowed.push_str(", ");
            allowed.push_str(&name);
        }
    }
    HeaderValue::try_from(allowed).unwrap_or(HeaderValue::from_static(HEADERS))
}
