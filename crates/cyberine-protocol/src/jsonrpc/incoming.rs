use std::borrow::Cow;

use super::tokens::{members, text};
use super::{ID_LIMIT, RequestId};

/// One message as JSON-RPC sorts them. Parameters stay unread.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Request {
        id: RequestId,
        method: Cow<'a, str>,
        params: Option<&'a str>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a str>,
    },
    /// `id` is absent only in an error that answers what could not be read.
    Response {
        id: Option<RequestId>,
        answer: Result<&'a str, &'a str>,
    },
}

/// A JSON text that is no message. The id is there only where it can be echoed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) id: Option<RequestId>,
    pub(crate) reason: &'static str,
}

/// The members that make a message, as they were written: `null` is a value here, not an
/// absence, so that `"id": null` is told apart from a notification.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    fn read(json: &'a str) -> Self {
        let mut envelope = Self::default();
        for (key, value) in members(json) {
            let member = match &*key {
                "jsonrpc" => &mut envelope.jsonrpc,
                "id" => &mut envelope.id,
                "method" => &mut envelope.method,
                "params" => &mut envelope.params,
                "result" => &mut envelope.result,
                "error" => &mut envelope.error,
                _ => continue,
            };
            *member = Some(value);
        }
        envelope
    }
}

/// Sorts one JSON object (JSON-RPC 2.0, sections 4 and 5). `json` has passed the strict layer.
pub(crate) fn classify(json: &str) -> Result<Incoming<'_>, Malformed> {
    let bare = |reason| Malformed { id: None, reason };
    if !json.starts_with('{') {
        return Err(bare("a message is a JSON object"));
    }
    let envelope = Envelope::read(json);
    let id = match envelope.id {
        None => None,
        Some("null") if envelope.error.is_some() && envelope.method.is_none() => None,
        Some(token) if token.len() > ID_LIMIT => return Err(bare("`id` must be 1024 bytes long at most")),
        Some(token) => Some(
            RequestId::from_token(token)
                .ok_or_else(|| bare("`id` must be a string or an integral number"))?,
        ),
    };
    if envelope.jsonrpc != Some("\"2.0\"") {
        return Err(Malformed { id, reason: "`jsonrpc` must be \"2.0\"" });
    }
    sort(&envelope, id)
}

fn sort<'a>(envelope: &Envelope<'a>, id: Option<RequestId>) -> Result<Incoming<'a>, Malformed> {
    let refuse = |id, reason| Err(Malformed { id, reason });
    match (envelope.method, envelope.result, envelope.error) {
        (Some(method), None, None) => {
            let Some(method) = text(method) else { return refuse(id, "`method` must be a string") };
            let params = envelope.params;
            Ok(match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            })
        }
        (None, Some(_), Some(_)) => refuse(None, "a response has a result or an error, not both"),
        (None, Some(_), None) if id.is_none() => refuse(None, "a result needs the id of its request"),
        (None, Some(result), None) => Ok(Incoming::Response { id, answer: Ok(result) }),
        (None, None, Some(error)) => Ok(Incoming::Response { id, answer: Err(error) }),
        (None, None, None) => refuse(id, "a message has a `method`, a `result` or an `error`"),
        (Some(_), _, _) => refuse(id, "a message is a request or a response, not both"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(json: &str) -> String {
        match classify(json) {
            Ok(Incoming::Request { id, method, params }) => {
                format!("request {id} {method} {}", params.unwrap_or("-"))
            }
            Ok(Incoming::Notification { method, .. }) => format!("notification {method}"),
            Ok(Incoming::Response { id, answer }) => format!(
                "response {} {}",
                id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
                match answer {
                    Ok(raw) => format!("ok {raw}"),
                    Err(raw) => format!("error {raw}"),
                }
            ),
            Err(malformed) => format!(
                "malformed {} {}",
                malformed.id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
                malformed.reason
            ),
        }
    }

    #[test]
    fn every_shape_has_its_name() {
        for (json, expected) in [
            (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, "request 1.0 ping -"),
            (r#"{"method":"a/b","params":[1],"id":"x","jsonrpc":"2.0","more":{}}"#, r#"request "x" a/b [1]"#),
            (r#"{"jsonrpc":"2.0","method":"p\u0069ng"}"#, "notification ping"),
            (r#"{"jsonrpc":"2.0","id":"s","result":null}"#, r#"response "s" ok null"#),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "response - error {}"),
            (r#"{"jsonrpc":"2.0","error":{}}"#, "response - error {}"),
        ] {
            assert_eq!(shape(json), expected, "{json}");
        }
    }

    #[test]
    fn what_has_no_shape_is_malformed_and_keeps_an_id_only_if_it_is_one() {
        for (json, expected) in [
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "malformed - `id` must"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "malformed - `id` must"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "malformed - `id` must"),
            (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, "malformed 3 `jsonrpc`"),
            (r#"{"id":3,"method":"ping"}"#, "malformed 3 `jsonrpc`"),
            (r#"{"jsonrpc":"2.0","ID":3,"Method":"ping","paramſ":{}}"#, "malformed - a message has"),
            (r#"{"jsonrpc":"2.0","id":3,"method":7}"#, "malformed 3 `method`"),
            (r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{}}"#, "malformed - a response has"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "malformed - a result needs"),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping","result":{}}"#, "malformed 3 a message is a request"),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "malformed - `id` must"),
            ("7", "malformed - a message is"),
            ("\"hello\"", "malformed - a message is"),
        ] {
            assert!(shape(json).starts_with(expected), "{json}: {}", shape(json));
        }
    }
}
