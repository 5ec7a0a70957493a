//! The context of a trace (W3C Trace Context, level 1) and the span of a request.

use axum::http::{HeaderMap, HeaderName};
use tracing::Span;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The longest state that is taken over, in bytes; the standard asks for 512 at least.
const LONGEST_STATE: usize = 512;

/// What part of which trace a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// 32 lower-case hexadecimal digits.
    pub trace_id: String,
    /// Who asked: 16 lower-case hexadecimal digits.
    pub parent_id: String,
    /// Whether whoever asked records the trace.
    pub is_sampled: bool,
    /// What tracing systems on the way wrote, as it came.
    pub state: Option<String>,
}

impl TraceContext {
    /// The context that `traceparent` and `tracestate` name; `None` where the first is malformed. A
    /// malformed state is left out.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let bytes = traceparent.as_bytes();
        let version = hex(traceparent.get(0..2)?)?;
        // A later version may have more behind what this one has, after a dash.
        let is_whole = if version == "00" {
            bytes.len() == 55
        } else {
            bytes.len() == 55 || bytes.get(55) == Some(&b'-')
        };
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if version == "ff" || !is_whole || !dashes {
            return None;
        }
        let trace_id = hex(traceparent.get(3..35)?).filter(|id| id.bytes().any(|digit| digit != b'0'))?;
        let parent_id = hex(traceparent.get(36..52)?).filter(|id| id.bytes().any(|digit| digit != b'0'))?;
        let flags = u8::from_str_radix(hex(traceparent.get(53..55)?)?, 16).ok()?;
        let is_state = |state: &&str| {
            !state.is_empty()
                && state.len() <= LONGEST_STATE
                && state.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
        };
        Some(Self {
            trace_id: trace_id.to_owned(),
            parent_id: parent_id.to_owned(),
            is_sampled: flags & 1 == 1,
            state: tracestate.filter(is_state).map(str::to_owned),
        })
    }

    /// The context in a request's headers. Where there are two parents there is none.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let parent = parents.next()?.to_str().ok()?;
        if parents.next().is_some() {
            return None;
        }
        let states: Vec<&str> =
            headers.get_all(TRACESTATE).iter().filter_map(|value| value.to_str().ok()).collect();
        Self::parse(parent, Some(states.join(",")).as_deref())
    }
}

/// `text`, where it is of lower-case hexadecimal digits.
fn hex(text: &str) -> Option<&str> {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(text)
}

/// The span of one request: its number in this process, and its place in a trace. What the message
/// itself says (`_meta`) goes before what the headers say: a proxy may have written those.
#[must_use]
pub fn request_span(number: u64, headers: &HeaderMap, meta: Option<TraceContext>) -> Span {
    let span = tracing::info_span!(
        "request",
        id = number,
        trace = tracing::field::Empty,
        parent = tracing::field::Empty,
        state = tracing::field::Empty
    );
    if !span.is_disabled()
        && let Some(context) = meta.or_else(|| TraceContext::of_headers(headers))
    {
        span.record("trace", context.trace_id);
        span.record("parent", context.parent_id);
        if let Some(state) = context.state {
            span.record("state", state);
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_as_the_standard_has_it() {
        let context = TraceContext::parse(GOOD, Some("vendor=1,other=2")).unwrap();
        assert_eq!(context.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((context.parent_id.as_str(), context.is_sampled), ("00f067aa0ba902b7", true));
        assert_eq!(context.state.as_deref(), Some("vendor=1,other=2"));
        let later = format!("cc{}-what-comes", &GOOD[2..]);
        assert!(TraceContext::parse(&later, None).is_some());
        let long = "x".repeat(LONGEST_STATE + 1);
        for state in ["", "a\nb", "é", &long] {
            assert_eq!(TraceContext::parse(GOOD, Some(state)).unwrap().state, None, "{state}");
        }
    }

    #[test]
    fn a_malformed_context_is_none() {
        for bad in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}0"),
            &format!("{GOOD}-x"),
            &GOOD.replace("00-4bf", "ff-4bf"),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01",
            &format!("cc{}x", &GOOD[2..]),
        ] {
            assert_eq!(TraceContext::parse(bad, None), None, "{bad}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, GOOD.parse().unwrap());
        assert!(TraceContext::of_headers(&headers).is_some());
        headers.append(TRACEPARENT, GOOD.parse().unwrap());
        assert_eq!(TraceContext::of_headers(&headers), None);
    }
}
