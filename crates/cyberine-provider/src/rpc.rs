//! What dialogues in JSON-RPC have in common, whatever is said in them: one message a line.

use serde_json::{Value, json};

use crate::error::TurnError;
use crate::wire::{Said, WireEvent};

/// The code for a method that is not offered.
const NO_METHOD: i64 = -32601;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Message<'a> {
    /// It wants an answer.
    Request { id: &'a Value, method: &'a str, params: &'a Value },
    /// It wants none.
    Notice { method: &'a str, params: &'a Value },
    /// The answer to the request of this number; an `Err` holds the error object.
    Answer { id: u64, outcome: Result<&'a Value, &'a Value> },
    /// Nothing that is known, or an answer to what nobody asked.
    Other,
}

impl<'a> Message<'a> {
    /// Reads `message`. An answer with neither a result nor an error holds a result that is null.
    pub(crate) fn of(message: &'a Value) -> Self {
        let (id, params) = (&message["id"], &message["params"]);
        match (message["method"].as_str(), id.as_u64()) {
            (Some(method), _) if id.is_null() => Self::Notice { method, params },
            (Some(method), _) => Self::Request { id, method, params },
            (None, Some(id)) => {
                let outcome = match (message.get("result"), message.get("error")) {
                    (None, Some(error)) => Err(error),
                    _ => Ok(&message["result"]),
                };
                Self::Answer { id, outcome }
            }
            (None, None) => Self::Other,
        }
    }
}

/// Says `message`.
pub(crate) fn say(message: &Value, out: &mut Vec<WireEvent>) {
    out.push(WireEvent::Say(Said::Text(format!("{message}\n"))));
}

/// The answer to a request.
pub(crate) fn reply(id: &Value, result: &Value) -> Value {
    json!({ "id": id, "result": result })
}

/// The answer to a request for what is not offered: unanswered, a program would wait for ever.
pub(crate) fn no_method(id: &Value, method: &str) -> Value {
    let message = format!("this client does not offer `{method}`");
    json!({ "id": id, "error": { "code": NO_METHOD, "message": message } })
}

/// A dialogue that is not the one that was meant.
pub(crate) fn protocol(detail: &str) -> TurnError {
    TurnError::Protocol { detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_by_its_members() {
        let (null, one, x) = (json!(null), json!(1), json!("x"));
        let params = json!({ "a": 1 });
        for (message, expected) in [
            (json!({ "id": "x", "method": "m" }), Message::Request { id: &x, method: "m", params: &null }),
            (
                json!({ "method": "m", "params": { "a": 1 } }),
                Message::Notice { method: "m", params: &params },
            ),
            (json!({ "id": 2, "result": 1 }), Message::Answer { id: 2, outcome: Ok(&one) }),
            (json!({ "id": 2, "error": "x" }), Message::Answer { id: 2, outcome: Err(&x) }),
            (json!({ "id": 2 }), Message::Answer { id: 2, outcome: Ok(&null) }),
            (json!({ "id": "x", "result": 1 }), Message::Other),
            (json!([1]), Message::Other),
        ] {
            assert_eq!(Message::of(&message), expected, "{message}");
        }
    }
}
