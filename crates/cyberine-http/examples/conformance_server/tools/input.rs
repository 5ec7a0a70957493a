//! Tools that ask: each is entered again with the answers, in either era.

use std::collections::BTreeMap;

use cyberine_server::{Call, CallError, InputRequest, Outcome};
use serde_json::{Value, json};

use super::{said, text_of};
use crate::questions::{form, sampling};

type Questions = BTreeMap<String, InputRequest>;

/// What a tool of this kind comes to; `None` for the others.
pub(super) fn answer(call: &Call) -> Option<Result<Outcome, CallError>> {
    let outcome = match call.name.as_str() {
        "test_sampling" => one(call, "answer", sampling(text_of(call, "prompt"), 100), |answer| {
            format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default())
        }),
        "test_elicitation" => one(call, "user", user(text_of(call, "message")), |answer| {
            format!("User response: {}", elicited(answer))
        }),
        "test_elicitation_sep1034_defaults" => one(call, "values", defaults(), completed),
        "test_elicitation_sep1330_enums" => one(call, "choices", enums(), completed),
        "test_missing_capability" => one(call, "question", sampling("Are you there?", 10), |_| {
            "The client's model was asked.".to_owned()
        }),
        "test_streaming_elicitation" if !call.capabilities.elicitation_form => {
            said("This client cannot be asked.")
        }
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => {
            one(call, "user_name", name("What is your name?"), |answer| format!("Hello, {}!", named(answer)))
        }
        "test_input_required_result_sampling" => {
            one(call, "capital_question", sampling("What is the capital of France?", 100), |answer| {
                answer["content"]["text"].as_str().unwrap_or_default().to_owned()
            })
        }
        "test_input_required_result_list_roots" => {
            one(call, "client_roots", InputRequest::Roots, |answer| format!("Roots: {}", answer["roots"]))
        }
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            confirmed(call)
        }
        "test_input_required_result_multiple_inputs" => several(call, three()),
        "test_input_required_result_capabilities" => several(call, askable(call)),
        "test_input_required_result_multi_round" => in_rounds(call),
        _ => return None,
    };
    Some(outcome)
}

/// Asks one question, until its answer has the right shape.
fn one(
    call: &Call,
    key: &str,
    question: InputRequest,
    text: impl FnOnce(&Value) -> String,
) -> Result<Outcome, CallError> {
    match call.input_responses.get(key).filter(|answer| question.fits(answer)) {
        Some(answer) => said(&text(answer)),
        None => ask(BTreeMap::from([(key.to_owned(), question)]), Value::Null),
    }
}

/// Asks what is not answered yet. Answers of earlier rounds come back with the state.
fn several(call: &Call, questions: Questions) -> Result<Outcome, CallError> {
    let mut known = call.state.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, question) in &questions {
        if let Some(answer) = call.input_responses.get(key).filter(|answer| question.fits(answer)) {
            known.insert(key.clone(), answer.clone());
        }
    }
    let missing: Questions = questions.into_iter().filter(|(key, _)| !known.contains_key(key)).collect();
    let known = Value::Object(known);
    if missing.is_empty() { said(&format!("Answers: {known}")) } else { ask(missing, known) }
}

fn confirmed(call: &Call) -> Result<Outcome, CallError> {
    let question = form("Please confirm", json!({ "ok": { "type": "boolean" } }), &["ok"]);
    let mine = json!({ "asked": "confirm" });
    let answer = call.input_responses.get("confirm").filter(|answer| question.fits(answer));
    match answer {
        Some(answer) if call.state.as_ref() == Some(&mine) => {
            said(&format!("state-ok: {}", elicited(answer)))
        }
        _ => ask(BTreeMap::from([("confirm".to_owned(), question)]), mine),
    }
}

fn in_rounds(call: &Call) -> Result<Outcome, CallError> {
    let first = name("Step 1: What is your name?");
    let second =
        form("Step 2: What is your favorite color?", json!({ "color": { "type": "string" } }), &["color"]);
    let answer = |key: &str, question: &InputRequest| {
        call.input_responses.get(key).filter(|answer| question.fits(answer))
    };
    let known = call.state.as_ref().and_then(|state| state["name"].as_str());
    match (known, answer("step1", &first), answer("step2", &second)) {
        (Some(name), _, Some(answer)) => said(&format!("{name} likes {}.", answer["content"]["color"])),
        (Some(name), ..) => {
            ask(BTreeMap::from([("step2".to_owned(), second)]), json!({ "step": 2, "name": name }))
        }
        (None, Some(answer), _) => {
            let state = json!({ "step": 2, "name": named(answer) });
            ask(BTreeMap::from([("step2".to_owned(), second)]), state)
        }
        (None, None, _) => ask(BTreeMap::from([("step1".to_owned(), first)]), json!({ "step": 1 })),
    }
}

fn ask(requests: Questions, state: Value) -> Result<Outcome, CallError> {
    Ok(Outcome::InputRequired { requests, state })
}

fn three() -> Questions {
    BTreeMap::from([
        ("user_name".to_owned(), name("What is your name?")),
        ("greeting".to_owned(), sampling("Generate a greeting", 50)),
        ("client_roots".to_owned(), InputRequest::Roots),
    ])
}

/// Of the three questions, those this client can be asked.
fn askable(call: &Call) -> Questions {
    three().into_iter().filter(|(_, question)| call.capabilities.covers(question.required())).collect()
}

pub(super) fn name(message: &str) -> InputRequest {
    form(message, json!({ "name": { "type": "string" } }), &["name"])
}

pub(super) fn named(answer: &Value) -> &str {
    answer["content"]["name"].as_str().unwrap_or("nobody")
}

fn completed(answer: &Value) -> String {
    format!("Elicitation completed: {}", elicited(answer))
}

fn elicited(answer: &Value) -> String {
    format!("action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"])
}

fn user(message: &str) -> InputRequest {
    let properties = json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    });
    form(message, properties, &["username", "email"])
}

fn defaults() -> InputRequest {
    let properties = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    form("Please check these values", properties, &[])
}

fn enums() -> InputRequest {
    let titled = |titles: [&str; 3]| {
        let choice = |(at, title)| json!({ "const": format!("value{}", at + 1), "title": title });
        titles.into_iter().enumerate().map(choice).collect::<Vec<_>>()
    };
    let properties = json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": {
            "type": "string",
            "oneOf": titled(["First Option", "Second Option", "Third Option"]),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
        },
        "titledMulti": {
            "type": "array",
            "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
        },
    });
    form("Please choose", properties, &[])
}
