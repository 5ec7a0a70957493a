//! The gate, over every tool there is.

use cyberine_server::Server;
use serde_json::{Value, json};

use crate::fixture::Things;
use crate::host::{Host, WIRES, server, server_of, stateless};

const TOKEN: &str = "hunter2-c0ffee";

fn gated() -> Server {
    server_of(&Things::default(), Some(TOKEN))
}

/// Arguments that no tool of the fixture takes, beside the token.
fn wrong_tokens() -> [Value; 6] {
    let wrong = |token: Value| json!({ "authToken": token, "surplus": true });
    [
        json!({ "surplus": true }),
        wrong(json!("hunter2")),
        wrong(json!("")),
        wrong(json!(null)),
        wrong(json!([TOKEN])),
        wrong(json!(7)),
    ]
}

#[test]
fn no_tool_says_anything_to_who_does_not_know_the_token() {
    for wire in WIRES {
        let mut host = Host::start(wire, gated());
        host.initialize(json!({}));
        let listed = host.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        assert_eq!(tools.len(), 9);
        for tool in &tools {
            assert_eq!(tool["inputSchema"]["properties"]["authToken"]["type"], "string", "{tool}");
            let required = tool["inputSchema"]["required"].as_array().unwrap();
            assert!(!required.contains(&json!("authToken")), "{tool}");
            for arguments in wrong_tokens() {
                let params = json!({ "name": tool["name"], "arguments": arguments });
                for params in [params.clone(), stateless(params, json!({}))] {
                    let answer = host.ask("tools/call", params);
                    assert_eq!(
                        answer["result"]["structuredContent"],
                        json!({ "error": "unauthorized" }),
                        "{answer}"
                    );
                    assert_eq!(answer["result"]["isError"], true);
                }
            }
        }
    }
}

#[test]
fn a_token_reaches_neither_a_tool_nor_any_byte_that_comes_out() {
    for (server, arguments) in [(gated(), json!({})), (server(), json!({}))] {
        let mut host = Host::start(WIRES[0], server);
        let mut seen = vec![host.initialize(json!({ "elicitation": {} }))];
        let mut with_token = arguments;
        with_token["authToken"] = json!(TOKEN);
        with_token["text"] = json!("hello");
        let echoed = host.call("echo", with_token.clone());
        assert_eq!(echoed["result"]["structuredContent"], json!({ "text": "hello", "keys": ["text"] }));
        seen.push(echoed);
        // Wrong in every way that an error could quote.
        for arguments in [
            json!({ "authToken": TOKEN }),
            json!({ "authToken": TOKEN, "text": 7 }),
            json!({ "authToken": [TOKEN], "text": "x" }),
            json!({ "authToken": TOKEN, "text": "x", "surplus": TOKEN }),
        ] {
            seen.push(host.call("echo", arguments));
        }
        seen.push(host.call("fail", json!({ "authToken": TOKEN })));
        let ask = stateless(
            json!({ "name": "ask", "arguments": { "authToken": TOKEN } }),
            json!({ "elicitation": {} }),
        );
        let asked = host.ask("tools/call", ask);
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        seen.push(asked);
        for uri in ["fixture://things/1", "fixture://things/x", "nonsense"] {
            seen.push(host.ask("resources/read", json!({ "uri": format!("{uri}?authToken={TOKEN}") })));
            seen.push(host.ask("resources/read", json!({ "uri": format!("{uri}?authToken={TOKEN}x") })));
            seen.push(host.ask(
                "resources/read",
                json!({ "uri": format!("{uri}?authToken={TOKEN}#authToken={TOKEN}") }),
            ));
            seen.push(host.ask("resources/read", json!({ "uri": format!("{uri}#authToken={TOKEN}") })));
        }
        seen.extend(host.ended().2);
        for message in seen {
            assert!(!message.to_string().contains(TOKEN), "{message}");
        }
    }
}

#[test]
fn a_token_in_odd_places_is_not_repeated() {
    let mut host = Host::start(WIRES[0], gated());
    host.initialize(json!({}));
    let encoded = TOKEN.replace('-', "%2d");
    let mut seen = Vec::new();
    for uri in [
        format!("fixture://things/1?authToken={TOKEN}&junk={TOKEN}"),
        format!("fixture://things/1?{TOKEN}={TOKEN}&authToken={TOKEN}"),
        format!("fixture://things/{TOKEN}?authToken={TOKEN}"),
        format!("fixture://things/{encoded}?authToken={TOKEN}"),
        format!("fixture://things/{}{TOKEN}?authToken={TOKEN}", "x".repeat(180)),
    ] {
        let answer = host.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
        let told = answer["error"]["data"]["uri"].as_str().unwrap();
        assert!(!told.contains(['?', '#']), "{told}");
        seen.push(answer);
    }
    for (name, arguments) in [
        ("echo", json!({ TOKEN: 1, "text": "x", "authToken": TOKEN })),
        ("echo", json!({ format!("{}{TOKEN}", "x".repeat(190)): 1, "authToken": TOKEN })),
        ("echo", json!({ "text": [{ TOKEN: 1 }], "authToken": TOKEN })),
        ("echo", json!({ "text": TOKEN, "authToken": TOKEN })),
        ("echo", json!({ "text": format!("a\n{TOKEN}!"), "authToken": TOKEN })),
        ("echo", json!({ "text": encoded, "authToken": TOKEN })),
        ("echo", json!({ "text": TOKEN.replace('h', "\\u0068"), "authToken": TOKEN })),
        ("echo", json!({ "text": [{ "authToken": TOKEN }], "authToken": TOKEN })),
    ] {
        let answer = host.call(name, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let error = answer["result"]["structuredContent"]["error"].as_str().unwrap();
        assert!(error.contains("`authToken`"), "{error}");
        seen.push(answer);
    }
    for name in [TOKEN.to_owned(), format!("{}{TOKEN}", "x".repeat(190))] {
        let answer = host.call(&name, json!({ "authToken": TOKEN }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        seen.push(answer);
    }
    seen.push(host.ask(TOKEN, json!({})));
    assert_eq!(seen.last().unwrap()["error"]["code"], -32601);
    host.send_line(&format!("{{\"{TOKEN}\":1,\"{TOKEN}\":2}}"));
    seen.push(host.recv());
    assert_eq!(seen.last().unwrap()["error"]["code"], -32600);
    for message in seen {
        for part in [TOKEN, encoded.as_str(), &TOKEN[..9]] {
            assert!(!message.to_string().contains(part), "{message}");
        }
    }
}

#[test]
fn an_answer_to_a_question_may_not_hold_the_token_either() {
    let mut host = Host::start(WIRES[0], gated());
    host.initialize(json!({ "elicitation": {} }));
    let ask = |answers: Value, state: Value| {
        let mut params = json!({ "name": "ask", "arguments": { "authToken": TOKEN } });
        if state.is_string() {
            params["inputResponses"] = answers;
            params["requestState"] = state;
        }
        stateless(params, json!({ "elicitation": {} }))
    };
    let state = host.ask("tools/call", ask(json!({}), Value::Null))["result"]["requestState"].clone();
    let answers = |name: &str| json!({ "name": { "action": "accept", "content": { "name": name } } });
    let refused = host.ask("tools/call", ask(answers(TOKEN), state.clone()));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(!refused.to_string().contains(TOKEN), "{refused}");
    let next = host.ask("tools/call", ask(answers("Ada"), state));
    assert_eq!(next["result"]["resultType"], "input_required", "{next}");
}

#[test]
fn a_client_that_calls_itself_by_the_token_has_no_name() {
    let (cut, rest) = TOKEN.split_at(7);
    for info in [
        json!({ "name": TOKEN, "version": "1" }),
        json!({ "name": "host", "version": format!("v{TOKEN}") }),
        json!({ "name": format!("{cut}\u{200b}{rest}"), "version": "1" }),
    ] {
        let mut host = Host::start(WIRES[0], gated());
        host.ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }),
        );
        let arguments = json!({ "authToken": TOKEN });
        let mut params = stateless(json!({ "name": "whoami", "arguments": arguments }), json!({}));
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = info.clone();
        for answer in [host.call("whoami", arguments), host.ask("tools/call", params)] {
            let client = &answer["result"]["structuredContent"]["client"];
            assert_eq!(client, "[secret]@[secret]", "{info}: {answer}");
        }
        let uri = format!("fixture://clients/[secret]@[secret]?authToken={TOKEN}");
        for method in ["resources/read", "resources/subscribe"] {
            let answer = host.ask(method, json!({ "uri": uri }));
            assert!(answer["error"].is_null(), "{method}: {answer}");
        }
    }
}

#[test]
fn no_cursor_is_one_that_the_closed_list_gave() {
    let mut host = Host::start(WIRES[0], gated());
    host.initialize(json!({}));
    for cursor in ["", "2", TOKEN] {
        let answer = host.ask("resources/list", json!({ "cursor": cursor }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(!answer.to_string().contains(TOKEN), "{answer}");
    }
}

#[test]
fn resources_behind_the_gate_need_the_token_in_their_uri() {
    let mut host = Host::start(WIRES[1], gated());
    host.initialize(json!({}));
    for uri in [
        "fixture://things/1",
        "fixture://things/1?authToken=x",
        "fixture://things/1?authToken=",
        "fixture://none",
    ] {
        let answer = host.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -33001, "{answer}");
        assert_eq!(answer["error"]["data"], json!({ "reason": "unauthorized" }));
    }
    let read = host.ask("resources/read", json!({ "uri": format!("fixture://things/1?authToken={TOKEN}") }));
    assert_eq!(read["result"]["contents"][0]["uri"], "fixture://things/1");
    assert_eq!(host.ask("resources/list", json!({}))["result"]["resources"], json!([]));
    let templates = host.ask("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 1);
}
