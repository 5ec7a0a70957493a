//! Questions to clients of the `initialize` era: who is asked what, and what counts as an answer.

use cyberine_protocol::model::{ElicitForm, ElicitUrl, InputRequest};
use cyberine_protocol::{AskError, Effect, Revision, ServerSession};
use serde_json::{Value, json};

use crate::support::{answered, initialize, opened, parse, request, session};

fn questions() -> [(&'static str, InputRequest); 5] {
    let form =
        ElicitForm { message: "Go?".into(), requested_schema: json!({ "type": "object", "properties": {} }) };
    let page = ElicitUrl { message: "Go".into(), url: "https://example.com/".into() };
    let sampling = |params: Value| InputRequest::Sampling(params.as_object().cloned().unwrap_or_default());
    [
        ("form", InputRequest::Form(form)),
        ("page", InputRequest::Url(page)),
        ("sampling", sampling(json!({ "messages": [], "maxTokens": 1 }))),
        ("tools", sampling(json!({ "messages": [], "maxTokens": 1, "toolChoice": {} }))),
        ("roots", InputRequest::Roots),
    ]
}

fn declared(revision: Revision, capabilities: &Value) -> ServerSession {
    let mut session = session();
    let mut hello = initialize(revision.as_str());
    hello["params"]["capabilities"] = capabilities.clone();
    assert!(answered(&mut session, hello.to_string().as_bytes()).get("result").is_some());
    session
}

/// Which of the questions this client can be asked.
fn askable(revision: Revision, capabilities: &Value) -> Vec<&'static str> {
    let mut session = declared(revision, capabilities);
    let key = opened(&mut session, &request(revision, json!(1), "tools/call", json!({ "name": "a" }))).key;
    let mut can = Vec::new();
    for (name, question) in questions() {
        match session.ask(key, &question) {
            Ok(_) => can.push(name),
            Err(error) => assert_eq!(error, AskError::Unsupported),
        }
    }
    can
}

#[test]
fn a_client_is_asked_what_it_declared_and_its_revision_has() {
    let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
    for (revision, can) in [
        (Revision::V2024_11_05, &["sampling", "roots"][..]),
        (Revision::V2025_03_26, &["sampling", "roots"]),
        (Revision::V2025_06_18, &["form", "sampling", "roots"]),
        (Revision::V2025_11_25, &["form", "page", "sampling", "tools", "roots"]),
    ] {
        assert_eq!(askable(revision, &all), can, "{revision}");
        assert_eq!(askable(revision, &json!({})), [""; 0]);
    }
    let newest = Revision::V2025_11_25;
    assert_eq!(askable(newest, &json!({ "elicitation": {} })), ["form"]);
    assert_eq!(askable(newest, &json!({ "elicitation": { "url": {} } })), ["page"]);
    assert_eq!(askable(newest, &json!({ "sampling": {} })), ["sampling"]);
    assert_eq!(askable(newest, &json!({ "roots": { "listChanged": true } })), ["roots"]);
}

#[test]
fn a_page_has_an_id_of_its_own() {
    let mut session = declared(Revision::V2025_11_25, &json!({ "elicitation": { "url": {} } }));
    let call = request(Revision::V2025_11_25, json!(1), "tools/call", json!({ "name": "a" }));
    let key = opened(&mut session, &call).key;
    let mut ask = || parse(&session.ask(key, &questions()[1].1).unwrap().1);
    let (first, second) = (ask(), ask());
    assert!(first["params"]["elicitationId"].is_string(), "{first}");
    assert_ne!(first["params"]["elicitationId"], second["params"]["elicitationId"]);
}

#[test]
fn an_answer_has_the_shape_of_its_question() {
    let text = json!({ "type": "text", "text": "x" });
    let said = json!({ "role": "assistant", "content": text, "model": "m", "stopReason": "endTurn" });
    let many = json!({ "role": "assistant", "content": [text, text], "model": "m" });
    let accepted = json!({ "action": "accept", "content": { "ok": true } });
    let declined = json!({ "action": "decline" });
    let roots = json!({ "roots": [{ "uri": "file:///a", "name": "a" }] });
    let none = json!({ "roots": [] });
    let wrong = [
        json!(null),
        json!([]),
        json!("accept"),
        json!({}),
        json!({ "action": "agree" }),
        json!({ "action": "accept", "content": [] }),
        json!({ "role": "system", "content": text, "model": "m" }),
        json!({ "role": "assistant", "content": "x", "model": "m" }),
        json!({ "role": "assistant", "content": [1], "model": "m" }),
        json!({ "role": "assistant", "content": text }),
        json!({ "roots": {} }),
        json!({ "roots": [{ "name": "a" }] }),
        json!({ "roots": ["file:///a"] }),
    ];
    let good: Vec<Value> = vec![accepted, declined, said, many, roots, none];
    let kinds = [
        ("form", &good[..2]),
        ("page", &good[..2]),
        ("sampling", &good[2..4]),
        ("tools", &good[2..4]),
        ("roots", &good[4..]),
    ];
    let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
    let mut session = declared(Revision::V2025_11_25, &all);
    let call = request(Revision::V2025_11_25, json!(1), "tools/call", json!({ "name": "a" }));
    let key = opened(&mut session, &call).key;
    for ((name, question), (kind, fits)) in questions().iter().zip(kinds) {
        assert_eq!(*name, kind);
        for answer in good.iter().chain(&wrong) {
            let (ask, line) = session.ask(key, question).unwrap();
            let response = json!({ "jsonrpc": "2.0", "id": parse(&line)["id"], "result": answer });
            let effects = session.receive(response.to_string().as_bytes());
            let [Effect::Answered { key: of, ask: answered, answer: told }] = &effects[..] else {
                panic!("{effects:?}")
            };
            assert_eq!((*of, *answered), (key, ask));
            assert_eq!(told.is_ok(), fits.contains(answer), "{name} {answer}");
            assert_eq!(question.fits(answer), fits.contains(answer), "{name} {answer}");
        }
    }
}
