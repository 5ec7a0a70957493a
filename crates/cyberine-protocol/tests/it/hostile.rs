//! Input nobody should send. It is answered or ignored, and the next line is served.

use cyberine_protocol::strict::Limits;
use cyberine_protocol::{Effect, Ignored, Revision, ServerProfile, ServerSession};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::official::Official;
use crate::support::{
    CAPABILITIES, CLIENT, VERSION, answered, initialize, meta, opened, parse, profile, session, session_of,
};

/// The line is refused with `code` and `id`, and the pipe goes on.
fn refused(session: &mut ServerSession, line: &[u8], code: i64, id: Option<Value>) -> String {
    let answer = answered(session, line);
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    assert_eq!(
        (&answer["error"]["code"], answer.get("id").cloned()),
        (&json!(code), id),
        "{shown}: {answer}"
    );
    let ping = answered(session, br#"{"jsonrpc":"2.0","id":"next","method":"ping"}"#);
    assert_eq!(ping, json!({ "jsonrpc": "2.0", "id": "next", "result": {} }));
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_not_json_is_a_parse_error_without_an_id() {
    for line in [
        &b"hello"[..],
        b"{\"jsonrpc\":",
        b"\"\xff\xfe\"",
        b"\"\\ud800\"",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"1e400",
    ] {
        refused(&mut session_of(Revision::V2025_11_25), line, -32700, None);
    }
}

#[test]
fn what_is_json_and_no_message_is_an_invalid_request() {
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":{}", "[".repeat(100_000));
    for (line, id) in [
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}"#, Some(json!(1))),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, None),
        (r#"{"jsonrpc":"2.0","Method":"ping","ID":1,"paramſ":{}}"#, None),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(json!(1))),
        (r#"{"id":"a","method":"ping"}"#, Some(json!("a"))),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Some(json!(1))),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(json!(1))),
        ("{}", None),
        ("7", None),
        ("\"ping\"", None),
        ("null", None),
        (&deep, Some(json!(1))),
    ] {
        refused(&mut session(), line.as_bytes(), -32600, id.clone());
        refused(&mut session_of(Revision::V2025_11_25), line.as_bytes(), -32600, id);
    }
}

#[test]
fn batches_are_refused_whole_wherever_they_are_not_a_message() {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let one = json!([ping]).to_string();
    refused(&mut session(), one.as_bytes(), -32600, None);
    for revision in Revision::ALL {
        let mut session = session_of(revision);
        if !revision.has_batches() {
            refused(&mut session, one.as_bytes(), -32600, None);
        }
        refused(&mut session, b"[]", -32600, None);
    }
    let flood = Value::from(
        (0..257).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect::<Vec<_>>(),
    );
    refused(&mut session_of(Revision::V2025_03_26), flood.to_string().as_bytes(), -32600, None);
}

#[test]
fn each_part_of_a_batch_is_answered_by_itself_also_where_another_is_no_message() {
    let ping = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let (pinged, refused, unnamed) = (
        |id: u64| (Some(json!(id)), None),
        |id: u64| (Some(json!(id)), Some(json!(-32600))),
        (None, Some(json!(-32600))),
    );
    for (batch, expected) in [
        (json!([1, 2, 3]), vec![unnamed.clone(); 3]),
        (json!([[]]), vec![unnamed.clone()]),
        (json!([[ping(json!(1))], ping(json!(2))]), vec![unnamed.clone(), pinged(2)]),
        (json!([ping(json!(1)), ping(json!(null))]), vec![pinged(1), unnamed.clone()]),
        (json!([ping(json!(1)), ping(json!(1.0))]), vec![pinged(1), unnamed.clone()]),
        (json!([ping(json!(1)), { "jsonrpc": "2.0", "id": 2 }]), vec![pinged(1), refused(2)]),
        (json!([{ "jsonrpc": "2.0", "id": 1 }, { "id": 1 }]), vec![refused(1), unnamed.clone()]),
        (json!([{ "jsonrpc": "2.0", "id": 1 }, ping(json!(1))]), vec![refused(1), unnamed.clone()]),
        (json!([{ "jsonrpc": "2.0", "result": {} }, ping(json!(1))]), vec![unnamed.clone(), pinged(1)]),
        (
            json!([ping(json!(1)), { "jsonrpc": "2.0", "id": 2, "method": "initialize" }]),
            vec![pinged(1), refused(2)],
        ),
    ] {
        let mut session = session_of(Revision::V2025_03_26);
        let answers = answered(&mut session, batch.to_string().as_bytes());
        let told: Vec<_> = answers
            .as_array()
            .unwrap_or_else(|| panic!("{batch}: {answers}"))
            .iter()
            .map(|part| (part.get("id").cloned(), part.pointer("/error/code").cloned()))
            .collect();
        assert_eq!(told, expected, "{batch}");
        if let Some(mut official) = Official::of(Revision::V2025_03_26) {
            let identified = answers.as_array().into_iter().flatten().filter(|part| part.get("id").is_some());
            official.assert("JSONRPCBatchResponse", &identified.cloned().collect());
        }
        let next = answered(&mut session, ping(json!("next")).to_string().as_bytes());
        assert_eq!(next["result"], json!({}));
    }
}

#[test]
fn a_part_of_a_batch_does_not_take_the_id_of_a_request_in_flight() {
    let mut session = session_of(Revision::V2025_03_26);
    let read = |id: u64| {
        let params = json!({ "uri": "cyberine://runs/5b1e" });
        json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params })
    };
    opened(&mut session, &read(1));
    for part in [read(1), json!({ "jsonrpc": "2.0", "id": 1 })] {
        let answers = answered(&mut session, json!([part]).to_string().as_bytes());
        assert_eq!((answers[0].get("id"), &answers[0]["error"]["code"]), (None, &json!(-32600)), "{part}");
    }
}

#[test]
fn an_id_or_a_token_of_more_than_1024_bytes_is_refused() {
    let (longest, over) = ("i".repeat(1022), "i".repeat(1023));
    let call = |id: &str, token: &str| {
        let params = json!({ "name": "list_team", "_meta": { "progressToken": token } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let mut session = session_of(Revision::V2025_11_25);
    let inbound = opened(&mut session, &call(&longest, &longest));
    let news = parse(&session.progress(inbound.key, 1.0, None, "").unwrap());
    assert_eq!(news["params"]["progressToken"], json!(longest));
    let message = refused(&mut session, call(&over, "t").to_string().as_bytes(), -32600, None);
    assert!(message.contains("1024"), "{message}");
    let message = refused(&mut session, call("a", &over).to_string().as_bytes(), -32602, Some(json!("a")));
    assert!(message.contains("1024"), "{message}");
    let digits = format!("{{\"jsonrpc\":\"2.0\",\"id\":1.{},\"method\":\"ping\"}}", "0".repeat(1023));
    refused(&mut session, digits.as_bytes(), -32600, None);
    let response = json!({ "jsonrpc": "2.0", "id": over, "result": {} }).to_string();
    refused(&mut session, response.as_bytes(), -32600, None);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": over } });
    let effects = session.receive(cancel.to_string().as_bytes());
    assert!(matches!(&effects[..], [Effect::Ignored(Ignored::StrayCancel)]), "{effects:?}");
}

#[test]
fn a_client_with_an_endless_name_is_not_kept_with_every_request() {
    let long = "é".repeat(100_000);
    let mut hello = initialize("2025-11-25");
    hello["params"]["clientInfo"] = json!({ "name": long, "version": long });
    let mut session = session();
    answered(&mut session, hello.to_string().as_bytes());
    let params = json!({ "name": "list_team" });
    let opening =
        opened(&mut session, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    let mut stateless = meta();
    stateless[CLIENT] = json!({ "name": long, "version": "1" });
    let params = json!({ "name": "list_team", "_meta": stateless });
    let stateless =
        opened(&mut session, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
    for inbound in [opening, stateless] {
        let client = inbound.client.unwrap();
        assert_eq!((client.name.len(), client.name.capacity()), (1024, 1024));
        assert!(client.version.len() <= 1024 && long.starts_with(&client.name));
    }
}

#[test]
fn a_stateless_request_in_a_batch_is_refused_by_itself() {
    let mut session = session_of(Revision::V2025_03_26);
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": meta() } },
    ]);
    let answer = answered(&mut session, batch.to_string().as_bytes());
    assert_eq!(answer[0], json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    assert_eq!((&answer[1]["id"], &answer[1]["error"]["code"]), (&json!(2), &json!(-32600)));
}

#[test]
fn parameters_that_cannot_be_used_are_named() {
    let stateless = |params: Value| {
        let mut all = json!({ "_meta": meta() });
        for (key, value) in params.as_object().unwrap() {
            if key == "_meta" {
                all["_meta"].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
            } else {
                all[key] = value.clone();
            }
        }
        all
    };
    let log = "io.modelcontextprotocol/logLevel";
    for (method, params, named) in [
        ("tools/list", json!([]), "`params`"),
        ("tools/list", json!("x"), "`params`"),
        ("tools/list", json!(null), "`params`"),
        ("tools/list", json!({ "_meta": [] }), "`_meta`"),
        ("tools/list", json!({ "cursor": 7 }), "`cursor`"),
        ("tools/list", json!({ "cursor": null }), "`cursor`"),
        ("tools/call", json!({}), "`name`"),
        ("tools/call", json!({ "name": 7 }), "`name`"),
        ("tools/call", json!({ "name": "a", "arguments": [] }), "`arguments`"),
        ("tools/call", json!({ "name": "a", "arguments": null }), "`arguments`"),
        ("resources/read", json!({}), "`uri`"),
        ("tools/list", json!({ "_meta": { "progressToken": 1.5 } }), "`progressToken`"),
        ("tools/list", json!({ "_meta": { "progressToken": null } }), "`progressToken`"),
        ("tools/list", json!({ "_meta": { "progressToken": {} } }), "`progressToken`"),
        ("initialize", json!({}), "`protocolVersion`"),
        (
            "initialize",
            json!({ "protocolVersion": 1 , "capabilities": {}, "clientInfo": {} }),
            "`protocolVersion`",
        ),
        ("initialize", json!({ "protocolVersion": "2025-11-25", "clientInfo": {} }), "`capabilities`"),
        (
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": [], "clientInfo": {} }),
            "`capabilities`",
        ),
        (
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a" } }),
            "`clientInfo`",
        ),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let message =
            refused(&mut session_of(Revision::V2025_11_25), line.as_bytes(), -32602, Some(json!(1)));
        assert!(message.contains(named), "{line}: {message}");
    }
    for (params, named) in [
        (json!({ "_meta": { VERSION: 7 } }), VERSION),
        (json!({ "_meta": { VERSION: null } }), VERSION),
        (json!({ "_meta": { CAPABILITIES: null } }), CAPABILITIES),
        (json!({ "_meta": { CAPABILITIES: [] } }), CAPABILITIES),
        (json!({ "_meta": { CLIENT: "host" } }), CLIENT),
        (json!({ "_meta": { CLIENT: ["host", "1"] } }), CLIENT),
        (json!({ "_meta": { log: "loud" } }), log),
        (json!({ "_meta": { "progressToken": true } }), "progressToken"),
        (json!({ "name": "a", "inputResponses": [] }), "inputResponses"),
        (json!({ "name": "a", "requestState": 5 }), "requestState"),
    ] {
        let mut params = stateless(params);
        params["name"] = json!("a");
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let message = refused(&mut session(), line.as_bytes(), -32602, Some(json!(1)));
        assert!(message.contains(named), "{line}: {message}");
    }
}

#[test]
fn each_missing_key_of_the_envelope_is_named() {
    let line = |meta: Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string()
    };
    let message =
        refused(&mut session(), line(json!({ VERSION: "2026-07-28" })).as_bytes(), -32602, Some(json!(1)));
    assert!(message.contains(CAPABILITIES), "{message}");
    for meta in [json!({}), json!({ CAPABILITIES: {} })] {
        let message = refused(&mut session(), line(meta).as_bytes(), -32602, Some(json!(1)));
        assert!(message.contains(CAPABILITIES) && message.contains(VERSION), "{message}");
    }
}

#[test]
fn what_wants_no_answer_gets_none() {
    let mut session = session_of(Revision::V2025_11_25);
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, None),
        (r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":[]}"#, None),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#,
            Some(Ignored::UnknownNotification("tools/call".into())),
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, Some(Ignored::StrayCancel)),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
            Some(Ignored::StrayCancel),
        ),
        (r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, Some(Ignored::StrayResponse)),
        (r#"{"jsonrpc":"2.0","id":"cyberine-1","result":{}}"#, Some(Ignored::StrayResponse)),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            Some(Ignored::StrayResponse),
        ),
        ("", None),
        (" \t\r", None),
    ] {
        let effects = session.receive(line.as_bytes());
        match (expected, &effects[..]) {
            (None, []) => {}
            (Some(expected), [Effect::Ignored(ignored)]) => assert_eq!(*ignored, expected, "{line}"),
            (_, other) => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn a_line_over_the_limit_is_reported_with_the_limit() {
    let limits = Limits { frame: 64, ..Limits::default() };
    let mut session = ServerSession::new(ServerProfile { limits, ..profile() });
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(64));
    let seen = answered(&mut session, line.as_bytes());
    assert_eq!(seen, parse(&session.oversized(line.as_bytes(), line.as_bytes())));
    assert_eq!(seen["error"], json!({ "code": -32600, "message": "the line is longer than 64 bytes" }));
    assert_eq!(seen["id"], 1);
    assert_eq!(parse(&session.oversized(b"", b"")).get("id"), None);
}

#[test]
fn a_request_that_is_refused_before_it_is_read_keeps_its_id_at_either_end() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (bad, code, named) in [
        (r#""a\ud83d""#, -32602, "half of a surrogate pair at byte"),
        (r#""\udc00b""#, -32602, "half of a surrogate pair at byte"),
        ("1e999", -32602, "out of range"),
        (r#"{"a":1,"a":2}"#, -32600, "the key `a` occurs twice"),
        (&deep, -32600, "nest deeper than 127 levels"),
    ] {
        let params =
            format!(r#"{{"name":"t","arguments":{{"text":{bad}}},"_meta":{}}}"#, Value::from(meta()));
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{params}}}"#),
            format!(r#" {{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":"a-1"}} "#),
        ] {
            for mut session in [session(), session_of(Revision::V2025_11_25)] {
                let message = refused(&mut session, line.as_bytes(), code, Some(json!("a-1")));
                assert!(message.contains(named), "{line}: {message}");
            }
        }
        // Nobody waits for the answer to these.
        for line in [
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":"cyberine-1","result":{params}}}"#),
        ] {
            let answer = answered(&mut session(), line.as_bytes());
            assert_eq!(answer.get("id"), None, "{answer}");
        }
    }
}

#[test]
fn a_refused_line_does_not_answer_the_request_in_flight_with_its_id() {
    let mut session = session_of(Revision::V2025_11_25);
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t"}}"#;
    assert!(matches!(&session.receive(call.as_bytes())[..], [Effect::Request(_)]));
    let again = r#"{"jsonrpc":"2.0","id":9.0,"method":"tools/call","params":{"name":"\ud83d"}}"#;
    refused(&mut session, again.as_bytes(), -32602, None);
    assert_eq!(parse(&session.oversized(again.as_bytes(), b"")).get("id"), None);
}

#[test]
fn errors_do_not_echo_megabytes() {
    let long = "m".repeat(1 << 20);
    let line =
        json!({ "jsonrpc": "2.0", "id": 1, "method": long, "params": { "_meta": meta() } }).to_string();
    let effects = session().receive(line.as_bytes());
    assert!(matches!(&effects[..], [Effect::Send(answer)] if answer.len() < 1024));
}

/// Messages built from parts that are right, nearly right, and wrong.
fn message() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec![json!(1), json!("1"), json!(2), json!(null), json!(1.5), json!([])]);
    let method = prop::sample::select(vec![
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "tasks/get",
        "tasks/update",
        "subscriptions/listen",
        "server/discover",
        "notifications/cancelled",
        "notifications/initialized",
        "nope",
    ]);
    let params = prop::sample::select(vec![
        json!({}),
        json!([]),
        json!(null),
        json!({ "name": "a", "uri": "x:y", "requestId": 1 }),
        json!({ "name": "a", "uri": "x:y", "_meta": meta() }),
        json!({ "name": "a", "_meta": { VERSION: "2099-01-01", CAPABILITIES: {} } }),
        json!({ "name": "a", "_meta": { "progressToken": "t" } }),
        json!({ "name": "a", "inputResponses": { "k": {} }, "requestState": "s", "taskId": "t", "_meta": meta() }),
        json!({ "taskId": "t", "notifications": { "taskIds": ["t"] }, "_meta": meta() }),
        json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" } }),
        json!({ "level": "debug", "name": "a", "arguments": { "a": "b" } }),
        initialize("2025-03-26")["params"].clone(),
        initialize("2025-11-25")["params"].clone(),
    ]);
    (prop::option::of(id), prop::option::of(method), prop::option::of(params), any::<u8>()).prop_map(
        |(id, method, params, odd)| {
            let mut message = json!({ "jsonrpc": if odd == 0 { "1.0" } else { "2.0" } });
            let parts = [("id", id), ("method", method.map(Value::from)), ("params", params)];
            for (key, value) in parts {
                if let Some(value) = value {
                    message[key] = value;
                }
            }
            if odd == 1 { json!([message]) } else { message }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_leave_a_session_that_answers_with_lines(
        lines in prop::collection::vec(
            prop_oneof![
                message().prop_map(|message| message.to_string().into_bytes()),
                prop::collection::vec(any::<u8>(), 0..80),
            ],
            0..20,
        )
    ) {
        let mut session = session();
        let mut open = 0_usize;
        for line in lines {
            for effect in session.receive(&line) {
                match effect {
                    Effect::Send(line) => {
                        parse(&line);
                    }
                    Effect::Request(_) => open += 1,
                    Effect::Cancel(_) => open -= 1,
                    Effect::Answered { .. } => prop_assert!(false, "nothing was asked"),
                    Effect::Ignored(_) => {}
                }
            }
            prop_assert_eq!(session.in_flight(), open);
        }
        let answer = session.receive(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
        prop_assert!(matches!(&answer[..], [Effect::Send(_)]));
    }
}
