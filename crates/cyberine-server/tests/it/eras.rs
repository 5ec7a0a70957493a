//! Both eras on one connection, and questions in the way of each.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{Host, WIRES, server, stateless};

#[test]
fn both_eras_are_served_side_by_side() {
    for wire in WIRES {
        let mut host = Host::start(wire, server().with_instructions("be kind"));
        let opened = host.initialize(json!({}));
        assert_eq!(opened["result"]["serverInfo"]["name"], "fixture");
        assert_eq!(opened["result"]["instructions"], "be kind");
        let legacy = host.call("list_team", json!({ "joinRuns": true }));
        let expected = json!({ "content": [{ "type": "text", "text": "{\"members\":[]}" }], "structuredContent": { "members": [] } });
        assert_eq!(legacy["result"]["structuredContent"], expected["structuredContent"]);
        assert_eq!(legacy["result"]["content"], expected["content"]);
        assert_eq!(legacy["result"].get("resultType"), None);

        let params = stateless(json!({ "name": "whoami", "arguments": {} }), json!({}));
        let modern = host.ask("tools/call", params);
        assert_eq!(modern["result"]["resultType"], "complete");
        assert_eq!(
            modern["result"]["structuredContent"],
            json!({ "principal": "tester", "client": "host@4.0.0" })
        );
        let legacy = host.call("whoami", json!({}));
        assert_eq!(
            legacy["result"]["structuredContent"],
            json!({ "principal": "tester", "client": "host@3.1.0" })
        );
        assert_eq!(host.ended().2, Vec::<Value>::new());
    }
}

#[test]
fn resources_are_listed_in_pages_and_read() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let first = host.ask("resources/list", json!({}));
    assert_eq!(first["result"]["resources"][1]["uri"], "fixture://things/1");
    let cursor = first["result"]["nextCursor"].clone();
    let second = host.ask("resources/list", json!({ "cursor": cursor }));
    assert_eq!(second["result"]["resources"][0]["uri"], "fixture://things/2");
    assert_eq!(second["result"].get("nextCursor"), None);
    for (method, params) in [
        ("resources/list", json!({ "cursor": "x" })),
        ("resources/templates/list", json!({ "cursor": "x" })),
        ("tools/list", json!({ "cursor": "x" })),
    ] {
        assert_eq!(host.ask(method, params)["error"]["code"], -32602, "{method}");
    }
    let templates = host.ask("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "fixture://things/{id}");
    let read = host.ask("resources/read", json!({ "uri": "fixture://things/4" }));
    assert_eq!(read["result"]["contents"][0]["text"], "{\"changes\":0,\"id\":4}");
    let missing = host.ask("resources/read", json!({ "uri": "fixture://things/x" }));
    assert_eq!(missing["error"]["code"], -32002);
    let missing = host.ask("resources/read", stateless(json!({ "uri": "fixture://things/x" }), json!({})));
    assert_eq!(missing["error"]["code"], -32602);
}

#[test]
fn arguments_that_do_not_fit_are_told_with_the_name_of_the_field() {
    let mut host = Host::start(WIRES[1], server());
    host.initialize(json!({}));
    for (name, arguments, field) in [
        ("echo", json!({ "text": 7 }), "text"),
        ("echo", json!({}), "text"),
        ("slow", json!({ "ms": -1 }), "ms"),
        ("list_team", json!({ "surplus": 1 }), "surplus"),
    ] {
        let answer = host.call(name, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let error = answer["result"]["structuredContent"]["error"].as_str().unwrap();
        assert!(error.contains(field), "{error}");
    }
    for params in [
        json!({ "name": "nope", "arguments": {} }),
        json!({ "name": "echo", "arguments": [] }),
        json!({ "arguments": {} }),
        json!([]),
    ] {
        assert_eq!(host.ask("tools/call", params.clone())["error"]["code"], -32602, "{params}");
    }
    host.is_quiet();
}

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

fn forms() -> Value {
    serde_json::from_str(FORMS).unwrap()
}

/// Answers the server's next question and gives its key.
fn answer_question(host: &mut Host, value: &str) -> String {
    let question = host.recv();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let properties = question["params"]["requestedSchema"]["properties"].as_object().unwrap();
    let key = properties.keys().next().unwrap().clone();
    assert_eq!(question["params"]["message"], format!("your {key}, please"));
    let result = json!({ "action": "accept", "content": { key.clone(): value } });
    host.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    key
}

#[test]
fn a_client_with_a_session_is_asked_while_its_call_waits() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(forms());
        let id = host.request("tools/call", json!({ "name": "ask", "arguments": {} }));
        assert_eq!(answer_question(&mut host, "Ada"), "name");
        assert_eq!(answer_question(&mut host, "red"), "colour");
        let answer = host.recv();
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["structuredContent"], json!({ "name": "Ada", "colour": "red" }));
        host.is_quiet();
    }
}

#[test]
fn a_client_that_shows_no_form_gets_a_result_that_names_the_question() {
    let mut silent = Host::start(WIRES[0], server().with_answer_limit(Duration::from_millis(30)));
    silent.initialize(forms());
    let id = silent.request("tools/call", json!({ "name": "ask", "arguments": {} }));
    let question = silent.recv();
    assert_eq!(question["method"], "elicitation/create");
    let mut answer = silent.recv();
    if answer["method"] == "notifications/cancelled" {
        answer = silent.recv();
    }
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"]["structuredContent"]["error"].as_str().unwrap().contains("your name, please"));
    // Too late is no harm.
    silent.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "cancel" } }));
    silent.is_quiet();

    let mut unable = Host::start(WIRES[0], server());
    unable.initialize(json!({}));
    let answer = unable.call("ask", json!({}));
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"]["structuredContent"]["error"].as_str().unwrap().contains("your name, please"));
}

#[test]
fn questions_without_end_are_given_up() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(forms());
    let id = host.request("tools/call", json!({ "name": "ask", "arguments": { "stubborn": true } }));
    for _ in 0..10 {
        answer_question(&mut host, "Ada");
    }
    let answer = host.recv();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(true)));
}

/// A call of `ask` in the stateless era.
fn ask_call(retry: Value) -> Value {
    let mut params = stateless(json!({ "name": "ask", "arguments": {} }), forms());
    for (key, value) in retry.as_object().unwrap() {
        params[key] = value.clone();
    }
    params
}

fn accepted(key: &str, value: &str) -> Value {
    json!({ key: { "action": "accept", "content": { key: value } } })
}

#[test]
fn a_stateless_client_carries_the_state_and_calls_again() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        let first = host.ask("tools/call", ask_call(json!({})));
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        assert_eq!(first["result"]["inputRequests"]["name"]["method"], "elicitation/create");
        let state = first["result"]["requestState"].clone();
        let retry = json!({ "inputResponses": accepted("name", "Ada"), "requestState": state });
        let second = host.ask("tools/call", ask_call(retry));
        assert_eq!(second["result"]["resultType"], "input_required", "{second}");
        let state = second["result"]["requestState"].clone();
        let retry = json!({ "inputResponses": accepted("colour", "red"), "requestState": state });
        let last = host.ask("tools/call", ask_call(retry));
        assert_eq!(last["result"]["structuredContent"], json!({ "name": "Ada", "colour": "red" }));
    }
}

#[test]
fn a_state_that_was_tampered_with_is_refused() {
    let mut host = Host::start(WIRES[0], server());
    let first = host.ask("tools/call", ask_call(json!({})));
    let state = first["result"]["requestState"].as_str().unwrap();
    for tampered in [format!("{state} "), state.replacen("v1", "v2", 1), "x".to_owned(), String::new()] {
        let answer = host.ask("tools/call", ask_call(json!({ "requestState": tampered })));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let mut other = ask_call(json!({ "requestState": state }));
    other["arguments"] = json!({ "stubborn": false });
    assert_eq!(host.ask("tools/call", other)["error"]["code"], -32602);
}

#[test]
fn a_stateless_client_that_cannot_be_asked_is_told_what_it_lacks() {
    let mut host = Host::start(WIRES[0], server());
    let params = stateless(json!({ "name": "ask", "arguments": {} }), json!({}));
    let answer = host.ask("tools/call", params);
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], forms());
}
