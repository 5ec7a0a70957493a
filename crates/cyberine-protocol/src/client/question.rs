//! What a server wants to know.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::quote::quote;
use crate::model::{ClientCapabilities, ElicitForm, ElicitUrl, InputRequest, InputRequired};

/// The most questions of one result, and the most of a session that wait for their answers.
pub(super) const LIMIT: usize = 64;

/// A question, in a request of its own or within a result.
#[derive(Deserialize)]
pub(super) struct Asking {
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Map<String, Value>,
}

/// Why a question cannot be put to the driver.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unanswerable {
    /// The client never said it could.
    NotOffered,
    /// It cannot be read.
    Malformed(String),
}

/// What is asked, where the client declared that it can be.
pub(super) fn read(asking: Asking, declared: ClientCapabilities) -> Result<InputRequest, Unanswerable> {
    let Asking { method, params } = asking;
    let request = match method.as_str() {
        "elicitation/create" if declared.elicitation_form || declared.elicitation_url => elicitation(params)?,
        "sampling/createMessage" => InputRequest::Sampling(params),
        "roots/list" => InputRequest::Roots,
        _ => return Err(Unanswerable::NotOffered),
    };
    if declared.covers(request.required()) { Ok(request) } else { Err(Unanswerable::NotOffered) }
}

fn elicitation(params: Map<String, Value>) -> Result<InputRequest, Unanswerable> {
    let malformed =
        |what: &str| Unanswerable::Malformed(format!("`{what}` is missing, or is not of its type"));
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let message = text("message").ok_or_else(|| malformed("message"))?;
    match params.get("mode").map_or(Some("form"), Value::as_str) {
        Some("form") => {
            let schema = params.get("requestedSchema").filter(|schema| schema.is_object());
            let requested_schema = schema.cloned().ok_or_else(|| malformed("requestedSchema"))?;
            Ok(InputRequest::Form(ElicitForm { message, requested_schema }))
        }
        Some("url") => {
            let url = text("url").ok_or_else(|| malformed("url"))?;
            Ok(InputRequest::Url(ElicitUrl { message, url }))
        }
        _ => Err(malformed("mode")),
    }
}

/// The questions of a result of the type `input_required`. The outer error is what is wrong with it,
/// the inner one the methods that the client never said it could answer.
pub(super) fn needs(
    questions: BTreeMap<String, Asking>,
    state: Option<String>,
    declared: ClientCapabilities,
) -> Result<Result<InputRequired, Vec<String>>, String> {
    if questions.len() > LIMIT {
        return Err(format!("it asks more than {LIMIT} questions at once"));
    }
    if questions.is_empty() && state.is_none() {
        return Err("it asks for input, and says not for which".to_owned());
    }
    let (mut requests, mut refused) = (BTreeMap::new(), Vec::new());
    for (key, asking) in questions {
        let method = quote(asking.method.as_bytes());
        match read(asking, declared) {
            Ok(request) => drop(requests.insert(key, request)),
            Err(Unanswerable::NotOffered) => refused.push(method),
            Err(Unanswerable::Malformed(what)) => return Err(format!("its question `{method}`: {what}")),
        }
    }
    refused.sort_unstable();
    refused.dedup();
    Ok(if refused.is_empty() { Ok(InputRequired { requests, request_state: state }) } else { Err(refused) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asking(value: Value) -> Asking {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_question_is_read_where_the_client_can_answer_it() {
        let all = ClientCapabilities {
            elicitation_form: true,
            elicitation_url: true,
            sampling: true,
            sampling_tools: false,
            roots: true,
            tasks: false,
        };
        let schema = json!({ "type": "object", "properties": {} });
        let form = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
        let url = json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": "https://h/" } });
        let roots = json!({ "method": "roots/list" });
        let tools = json!({ "method": "sampling/createMessage", "params": { "tools": [] } });
        assert!(matches!(read(asking(form.clone()), all), Ok(InputRequest::Form(_))));
        assert!(matches!(read(asking(url.clone()), all), Ok(InputRequest::Url(_))));
        assert_eq!(read(asking(roots), all), Ok(InputRequest::Roots));
        assert_eq!(read(asking(tools), all), Err(Unanswerable::NotOffered));
        for question in [form, url, json!({ "method": "ping" })] {
            assert_eq!(read(asking(question), ClientCapabilities::default()), Err(Unanswerable::NotOffered));
        }
        for params in [json!({}), json!({ "message": "m" }), json!({ "message": "m", "mode": 3 })] {
            let question = json!({ "method": "elicitation/create", "params": params });
            assert!(matches!(read(asking(question), all), Err(Unanswerable::Malformed(_))));
        }
    }

    #[test]
    fn a_result_that_asks_nothing_or_too_much_is_none() {
        let none = ClientCapabilities::default();
        assert!(needs(BTreeMap::new(), None, none).is_err());
        assert!(
            needs(BTreeMap::new(), Some(String::new()), none).unwrap().is_ok(),
            "a state alone is asked again"
        );
        let questions =
            |count: usize| (0..count).map(|n| (n.to_string(), asking(json!({ "method": "x" })))).collect();
        assert!(needs(questions(LIMIT + 1), None, none).is_err());
        assert_eq!(needs(questions(LIMIT), None, none), Ok(Err(vec!["x".to_owned()])));
    }
}
