use crate::encode::error_line;
use crate::jsonrpc::{RequestId, RpcError, members};
use crate::revision::Revision;

/// How far into a reply its error is looked for: no id is longer than this.
const LOOKED_AT: usize = 2048;

/// A POST that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body: a JSON-RPC error response, which has the request's id where that is known.
    pub line: Vec<u8>,
}

impl Refusal {
    /// A refusal of what cannot be answered by its id.
    #[must_use]
    pub fn new(status: u16, error: &RpcError) -> Self {
        Self::of(status, None, error)
    }

    pub(super) fn of(status: u16, id: Option<&RequestId>, error: &RpcError) -> Self {
        Self { status, line: error_line(id, error, Revision::V2026_07_28) }
    }
}

/// The HTTP status of a reply, given as the line it goes out as.
///
/// In the stateless era an error of the protocol has its own (2026-07-28,
/// `basic/transports/streamable-http`); an error in what is asked is an answer, and so is every result.
/// With `initialize`, only what is no message has one.
#[must_use]
pub fn status_of(reply: &[u8], revision: Revision) -> u16 {
    match error_code(reply) {
        Some(-32700 | -32600) => 400,
        Some(-32601) if revision.is_stateless() => 404,
        Some(-32022..=-32020) if revision.is_stateless() => 400,
        _ => 200,
    }
}

/// The code of the error a reply begins with.
fn error_code(reply: &[u8]) -> Option<i64> {
    let start = reply.get(..LOOKED_AT).unwrap_or(reply);
    let start = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).ok()?,
    };
    let (_, error) = members(start).find(|(key, _)| key == "error" || key == "result")?;
    let (_, code) = members(error).find(|(key, _)| key == "code")?;
    code.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_status_of_its_error_and_era() {
        let id = RequestId::from_token("\"\u{e9}\u{2028}\"");
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        for (error, legacy, stateless) in [
            (RpcError::parse("x"), 400, 400),
            (RpcError::invalid_request("x"), 400, 400),
            (RpcError::method_not_found("x"), 200, 404),
            (RpcError::invalid_params("x"), 200, 200),
            (RpcError::internal("x".repeat(5000)), 200, 200),
            (RpcError::header_mismatch("x"), 400, 400),
            (RpcError::missing_capability(crate::model::ClientCapabilities::default()), 400, 400),
            (RpcError::unsupported_version("x"), 200, 400),
            (RpcError::resource_not_found("x"), 200, 200),
            (RpcError::own(-33001, "x"), 200, 200),
        ] {
            for id in [None, id.as_ref()] {
                assert_eq!(status_of(&error_line(id, &error, old), old), legacy, "{error:?}");
                assert_eq!(status_of(&error_line(id, &error, new), new), stateless, "{error:?}");
            }
        }
    }

    #[test]
    fn a_result_is_an_answer_whatever_it_holds() {
        for reply in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":-32601}}}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"t":"{}é","error":{{"code":-32601}}}}}}"#,
                "é".repeat(1500)
            ),
            r#"[{"jsonrpc":"2.0","error":{"code":-32601,"message":"x"}}]"#.to_owned(),
            String::new(),
        ] {
            assert_eq!(status_of(reply.as_bytes(), Revision::V2026_07_28), 200, "{reply}");
        }
    }
}
