//! The ladder a POST climbs: what is taken, and with which status and code the rest is refused.

use cyberine_protocol::http::{HeaderParams, HttpHead, Post, Posted, Refusal, headers_of, judge, status_of};
use cyberine_protocol::strict::Limits;
use cyberine_protocol::{Effect, Revision, ServerSession};
use serde_json::{Value, json};

use crate::support::{VERSION, meta, parse, request, session, session_of};

mod params;

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const JSON: (&str, &str) = ("Content-Type", "application/json");
const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

/// What becomes of a POST: what it is, or its status, code and id.
fn judged(headers: &[(&str, &str)], body: &str) -> Result<Post, (u16, i64, Value)> {
    judged_bytes(headers, body.as_bytes())
}

fn judged_bytes(headers: &[(&str, &str)], body: &[u8]) -> Result<Post, (u16, i64, Value)> {
    let head = HttpHead::read(headers.iter().copied());
    match judge(&head, body, Limits::default()) {
        Ok(posted) => Ok(posted.post),
        Err(refusal) => Err(told(&refusal)),
    }
}

fn told(refusal: &Refusal) -> (u16, i64, Value) {
    let line = parse(&refusal.line);
    (refusal.status, line["error"]["code"].as_i64().unwrap(), line.get("id").cloned().unwrap_or_default())
}

/// Headers as a client of the stateless era sends them.
fn modern<'a>(method: &'a str, name: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![JSON, ACCEPT, ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    headers
}

fn without<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Vec<(&'a str, &'a str)> {
    headers.iter().copied().filter(|(other, _)| *other != name).collect()
}

fn with<'a>(headers: &[(&'a str, &'a str)], name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut headers = without(headers, name);
    headers.push((name, value));
    headers
}

fn call(name: &Value) -> String {
    request(MODERN, json!(1), "tools/call", json!({ "name": name })).to_string()
}

const MISMATCH: Result<Post, (u16, i64, Value)> = Err((400, -32020, Value::Null));

/// The same with the id of the request.
fn mismatch() -> Result<Post, (u16, i64, Value)> {
    Err((400, -32020, json!(1)))
}

#[test]
fn a_stateless_request_with_the_right_headers_is_served() {
    let served = |tool: Option<&str>| Ok(Post::Stateless { revision: MODERN, tool: tool.map(str::to_owned) });
    let headers = modern("tools/call", Some("a"));
    assert_eq!(judged(&headers, &call(&json!("a"))), served(Some("a")));
    let others = [
        ("MCP-PROTOCOL-VERSION", "2026-07-28"),
        ("mcp-method", " tools/call\t"),
        ("MCP-NAME", "\ta  "),
        ("content-type", "application/json; charset=utf-8"),
        ("accept", "*/*"),
        ("Mcp-Session-Id", "ignored"),
        ("Mcp-Session-Id", "twice"),
        ("Last-Event-ID", "ignored"),
        ("Mcp-Param-Unknown", "ignored"),
    ];
    assert_eq!(judged(&others, &call(&json!("a"))), served(Some("a")));
    for (method, params, name) in [
        ("tools/list", json!({}), None),
        ("server/discover", json!({}), None),
        ("subscriptions/listen", json!({ "notifications": {} }), None),
        ("completion/complete", json!({}), None),
        ("prompts/get", json!({ "name": "p" }), Some("p")),
        ("resources/read", json!({ "uri": "a://b?c=ü" }), Some("=?base64?YTovL2I/Yz3DvA==?=")),
        ("tasks/get", json!({ "taskId": "t" }), Some("t")),
        ("tasks/update", json!({ "taskId": "t" }), Some("t")),
        ("tasks/cancel", json!({ "taskId": "t" }), Some("t")),
        // Whether the method exists is asked later.
        ("ping", json!({}), None),
        ("initialize", json!({}), None),
    ] {
        let body = request(MODERN, json!("x"), method, params).to_string();
        assert_eq!(judged(&modern(method, name), &body), served(None), "{method}");
    }
}

#[test]
fn a_body_that_is_no_message_is_refused_before_its_headers_are_looked_at() {
    let bad = [("Mcp-Method", "x"), ("MCP-Protocol-Version", "x")];
    for (body, status, code, id) in [
        ("", 400, -32700, json!(null)),
        (" \n ", 400, -32700, json!(null)),
        ("{bad", 400, -32700, json!(null)),
        ("method=tools/list", 400, -32700, json!(null)),
        ("\u{feff}{}", 400, -32700, json!(null)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, -32600, json!(null)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, -32600, json!(1)),
        (r#"{"id":1,"method":"ping"}"#, 400, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, 400, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, 400, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\ud800"}}"#, 400, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, 400, -32600, json!(null)),
        ("7", 400, -32600, json!(null)),
        ("\"x\"", 400, -32600, json!(null)),
    ] {
        let headers = [&[JSON, ACCEPT][..], &bad].concat();
        assert_eq!(judged(&headers, body), Err((status, code, id)), "{body}");
    }
    assert_eq!(judged_bytes(&[JSON, ACCEPT], b"{\"a\":\"\xff\"}"), Err((400, -32700, json!(null))));
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "a".repeat(100));
    let head = HttpHead::read([JSON, ACCEPT]);
    let refusal = judge(&head, long.as_bytes(), Limits { frame: 100, ..Limits::default() }).unwrap_err();
    assert_eq!(told(&refusal), (413, -32600, json!(null)));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(judged(&[JSON, ACCEPT], &deep), Err((400, -32600, json!(null))));
}

#[test]
fn only_json_is_taken_from_clients_that_take_json_and_events() {
    let headers = modern("tools/call", Some("a"));
    let body = call(&json!("a"));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "", "application/json; charset=utf-16"] {
        let refused = judged(&with(&headers, "Content-Type", kind), &body);
        assert_eq!(refused, Err((415, -32600, json!(null))), "{kind}");
    }
    assert_eq!(judged(&without(&headers, "Content-Type"), &body), Err((415, -32600, json!(null))));
    for accept in ["application/json", "text/event-stream", "text/html", "", "*/*;q=0"] {
        let refused = judged(&with(&headers, "Accept", accept), &body);
        assert_eq!(refused, Err((406, -32600, json!(null))), "{accept}");
    }
    assert_eq!(judged(&without(&headers, "Accept"), &body), Err((406, -32600, json!(null))));
}

#[test]
fn each_step_is_taken_before_the_next() {
    let body = |change: &dyn Fn(&mut Value)| {
        let mut body = request(MODERN, json!(1), "tools/call", json!({ "name": "a" }));
        change(&mut body["params"]["_meta"]);
        body.to_string()
    };
    let good = modern("tools/call", Some("a"));
    let none = vec![JSON, ACCEPT];
    let wrong_version = with(&good, "MCP-Protocol-Version", "2025-11-25");
    let no_capabilities = |meta: &mut Value| {
        meta.as_object_mut().unwrap().retain(|key, _| !key.ends_with("clientCapabilities"));
    };
    let future = |meta: &mut Value| meta[VERSION] = json!("2099-01-01");
    let both = |meta: &mut Value| {
        no_capabilities(meta);
        future(meta);
    };
    let keep = |_: &mut Value| {};
    for (headers, change, code) in [
        // Header and body disagree, and the envelope is incomplete.
        (&wrong_version, &no_capabilities as &dyn Fn(&mut Value), -32020),
        (&wrong_version, &keep, -32020),
        (&good, &future, -32020),
        // The envelope, before the version, before headers that are missing.
        (&none, &both, -32602),
        (&good, &no_capabilities, -32602),
        (&none, &future, -32022),
        (&none, &keep, -32020),
    ] {
        assert_eq!(judged(headers, &body(change)), Err((400, code, json!(1))));
    }
    let future_header = with(&good, "MCP-Protocol-Version", "2099-01-01");
    assert_eq!(judged(&future_header, &body(&future)), Err((400, -32022, json!(1))));
    // A revision with `initialize` is never claimed by a request.
    let claimed = |meta: &mut Value| meta[VERSION] = json!("2025-11-25");
    assert_eq!(judged(&wrong_version, &body(&claimed)), Err((400, -32022, json!(1))));
    let number = |meta: &mut Value| meta[VERSION] = json!(20260728);
    assert_eq!(judged(&good, &body(&number)), Err((400, -32602, json!(1))));
}

#[test]
fn headers_say_what_the_body_says() {
    let good = modern("tools/call", Some("a"));
    let body = call(&json!("a"));
    for (name, values) in [
        (
            "MCP-Protocol-Version",
            &["2025-06-18", "2026-07-28 x", "2026-07-2", "draft", "", "2026-07-28, 2026-07-28"][..],
        ),
        ("Mcp-Method", &["tools/list", "Tools/Call", "tools/call ,", "", "=?base64?dG9vbHMvY2FsbA==?="]),
        (
            "Mcp-Name",
            &["A", "b", "", "aa", "a, a", "=?base64?YQ?=", "=?base64?Y*==?=", "=?base64?Yg==?=", "\u{fffd}"],
        ),
    ] {
        for value in values {
            assert_eq!(judged(&with(&good, name, value), &body), mismatch(), "{name}: {value}");
        }
        assert_eq!(judged(&without(&good, name), &body), mismatch(), "without {name}");
        let mut twice = good.clone();
        twice.extend(good.iter().filter(|(other, _)| *other == name));
        assert_eq!(judged(&twice, &body), mismatch(), "{name} twice");
    }
    assert!(judged(&with(&good, "Mcp-Name", "=?base64?YQ==?="), &body).is_ok());
    let sentinel = call(&json!("=?base64?YQ==?="));
    assert_eq!(judged(&with(&good, "Mcp-Name", "=?base64?YQ==?="), &sentinel), mismatch());
    assert!(judged(&with(&good, "Mcp-Name", "=?base64?PT9iYXNlNjQ/WVE9PT89?="), &sentinel).is_ok());
}

#[test]
fn a_name_that_is_missing_in_both_is_a_matter_of_the_parameters() {
    let bodies = [json!({}), json!({ "name": 7 }), json!({ "name": null })];
    for params in bodies {
        let body = request(MODERN, json!(1), "tools/call", params).to_string();
        let served = Ok(Post::Stateless { revision: MODERN, tool: None });
        assert_eq!(judged(&modern("tools/call", None), &body), served, "{body}");
        assert_eq!(judged(&modern("tools/call", Some("a")), &body), mismatch(), "{body}");
        let effects = session().receive(body.as_bytes());
        let [Effect::Send(line)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(parse(line)["error"]["code"], -32602);
        assert_eq!(status_of(line, MODERN), 200);
    }
}

#[test]
fn a_request_that_claims_nothing_is_of_a_session() {
    let plain = [JSON, ACCEPT];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let of = |version| Ok(Post::Legacy { version, answered: true });
    assert_eq!(judged(&plain, &body), of(None));
    for revision in Revision::ALL {
        let headers = with(&plain, "MCP-Protocol-Version", revision.as_str());
        let expected =
            if revision.is_stateless() { Err((400, -32602, json!(1))) } else { of(Some(revision)) };
        assert_eq!(judged(&headers, &body), expected, "{revision}");
    }
    let hello = crate::support::initialize("2025-11-25").to_string();
    assert_eq!(judged(&plain, &hello), Ok(Post::Initialize));
    let stateless = with(&plain, "MCP-Protocol-Version", "2026-07-28");
    assert_eq!(judged(&stateless, &hello), Err((400, -32602, json!("init"))));
    // A version that is not known: the one who knows sessions asks for another, the other is told which.
    let unknown = with(&plain, "MCP-Protocol-Version", "2099-01-01");
    assert_eq!(judged(&unknown, &body), Err((400, -32022, json!(1))));
    let unknown = with(&unknown, "Mcp-Session-Id", "s");
    assert_eq!(judged(&unknown, &body), Err((400, -32600, json!(1))));
    let mut twice = with(&plain, "MCP-Protocol-Version", "2025-11-25");
    twice.push(("mcp-protocol-version", "2025-11-25"));
    assert_eq!(judged(&twice, &body), Err((400, -32600, json!(1))));
    // Parameters that hold no envelope are refused by whoever knows the era.
    for params in ["[]", "7", r#"{"_meta":[]}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
        assert_eq!(judged(&plain, &body), of(None));
        assert_eq!(judged(&stateless, &body), Err((400, -32602, json!(1))));
    }
}

#[test]
fn a_batch_is_of_the_one_revision_that_has_them() {
    let plain = [JSON, ACCEPT];
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = json!({ "jsonrpc": "2.0", "id": "cyberine-1-1", "result": {} });
    for (body, answered) in [
        (json!([ping]), true),
        (json!([news, ping]), true),
        (json!([news, answer]), false),
        (json!([news, 7]), true),
        (json!([]), true),
    ] {
        let body = body.to_string();
        assert_eq!(judged(&plain, &body), Ok(Post::Legacy { version: None, answered }), "{body}");
        for revision in Revision::ALL {
            let headers = with(&plain, "MCP-Protocol-Version", revision.as_str());
            let expected = match revision {
                Revision::V2025_03_26 => Ok(Post::Legacy { version: Some(revision), answered }),
                _ => Err((400, -32600, json!(null))),
            };
            assert_eq!(judged(&headers, &body), expected, "{revision} {body}");
        }
    }
}

#[test]
fn notifications_and_responses_are_told_by_era() {
    let plain = [JSON, ACCEPT];
    let stateless = with(&plain, "MCP-Protocol-Version", "2026-07-28");
    let news = |params: Value| {
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string()
    };
    let of = |stateless, version| Ok(Post::Notification { stateless, version });
    let bare = news(json!({ "requestId": 1 }));
    assert_eq!(judged(&plain, &bare), of(false, None));
    let newest = with(&plain, "MCP-Protocol-Version", "2025-11-25");
    assert_eq!(judged(&newest, &bare), of(false, Some(LEGACY)));
    assert_eq!(judged(&stateless, &bare), of(true, None));
    let claimed = news(json!({ "_meta": meta() }));
    for headers in [&plain[..], &stateless, &with(&stateless, "Mcp-Method", "notifications/cancelled")] {
        assert_eq!(judged(headers, &claimed), of(true, None));
    }
    assert_eq!(judged(&newest, &claimed), MISMATCH);
    assert_eq!(judged(&with(&stateless, "Mcp-Method", "tools/list"), &bare), MISMATCH);
    let unknown = with(&plain, "MCP-Protocol-Version", "x");
    assert_eq!(judged(&unknown, &bare), Err((400, -32022, json!(null))));
    let mut future = meta();
    future[VERSION] = json!("2099-01-01");
    assert_eq!(judged(&plain, &news(json!({ "_meta": future }))), Err((400, -32022, json!(null))));

    let response = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#);
    let answers = |scope, version| Ok(Post::Response { scope, version });
    assert_eq!(judged(&plain, &response("cyberine-5-1")), answers(Some(5), None));
    assert_eq!(judged(&newest, &response("other")), answers(None, Some(LEGACY)));
    assert_eq!(judged(&plain, r#"{"jsonrpc":"2.0","error":{}}"#), answers(None, None));
    assert_eq!(judged(&stateless, &response("cyberine-5-1")), Err((400, -32600, json!(null))));
}

fn posted<'a>(body: &'a str, version: Option<&'a str>) -> Posted<'a> {
    let mut headers = vec![JSON, ACCEPT];
    headers.extend(version.map(|version| ("MCP-Protocol-Version", version)));
    judge(&HttpHead::read(headers), body.as_bytes(), Limits::default()).unwrap()
}

#[test]
fn what_is_wrong_with_a_session_is_told_with_the_id_of_the_request() {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let request = posted(&body, Some("2025-06-18"));
    assert_eq!(told(&request.without_session()), (400, -32602, json!(1)));
    assert_eq!(told(&request.of_unknown_session()), (404, -32600, json!(1)));
    assert_eq!(told(&request.of_wrong_version(LEGACY).unwrap()), (400, -32600, json!(1)));
    assert_eq!(request.of_wrong_version(Revision::V2025_06_18), None);
    assert_eq!(posted(&body, None).of_wrong_version(LEGACY), None);
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let news = posted(&news, Some("2025-06-18"));
    assert_eq!(told(&news.of_wrong_version(LEGACY).unwrap()), (400, -32600, json!(null)));
}

#[test]
fn a_batch_comes_apart_into_its_messages() {
    let answer = r#"{"jsonrpc":"2.0","id":"cyberine-1-1","result":[]}"#;
    let news = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let both = format!(" [ {answer} , {news} ] ");
    let parts: Vec<&[u8]> = posted(&both, None).parts().collect();
    assert_eq!(parts, [answer.as_bytes(), news.as_bytes()]);
    let alone: Vec<&[u8]> = posted(answer, None).parts().collect();
    assert_eq!(alone, [answer.as_bytes()]);
}

/// A client's own headers are right for its own messages, whatever its names are.
#[test]
fn mirrored_headers_climb_the_ladder() {
    for name in ["a", " a", "ü\n", "=?base64?x?=", "", "a\u{7f}b", "\u{1f600}"] {
        for (method, params) in [
            ("tools/call", json!({ "name": name, "arguments": { "region": name } })),
            ("prompts/get", json!({ "name": name })),
            ("resources/read", json!({ "uri": name })),
            ("tasks/get", json!({ "taskId": name })),
            ("tools/list", json!({})),
        ] {
            let line = request(MODERN, json!(1), method, params.clone()).to_string();
            let schema =
                json!({ "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
            let mirrored = HeaderParams::of_schema(&schema).unwrap();
            let own = headers_of(line.as_bytes());
            let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
            let extra = mirrored.mirror(&arguments);
            let mut headers = vec![JSON, ACCEPT];
            headers.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
            headers.extend(extra.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            let head = HttpHead::read(headers);
            let posted = judge(&head, line.as_bytes(), Limits::default());
            let posted = posted.unwrap_or_else(|refusal| panic!("{line}: {:?}", told(&refusal)));
            if method == "tools/call" {
                assert_eq!(posted.check_params(&head, &mirrored), Ok(()), "{line}");
            }
        }
    }
    let legacy = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a" } });
    for other in [legacy.to_string(), "{".to_owned(), "[]".to_owned()] {
        assert_eq!(headers_of(other.as_bytes()), [], "{other}");
    }
}

/// What the ladder lets through, the session takes as the same thing.
#[test]
fn ladder_and_session_agree_on_eras() {
    let served = |session: &mut ServerSession, body: &str| {
        matches!(&session.receive(body.as_bytes())[..], [Effect::Request(_)])
    };
    assert!(served(&mut session(), &call(&json!("a"))));
    let plain = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    assert!(!served(&mut session(), &plain));
    assert!(served(&mut session_of(LEGACY), &plain));
}

mod any {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_post_makes_it_panic(
            headers in prop::collection::vec(("(mcp-(name|method|param-[a-z]?)|accept|x)", "[ -~é]{0,30}"), 0..8),
            body in "[\\[{\",:\\\\\\]} aé1methodjsrpcn2.0]{0,60}",
        ) {
            let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let head = HttpHead::read(pairs.chain([JSON, ACCEPT]));
            match judge(&head, body.as_bytes(), Limits::default()) {
                Ok(posted) => drop(posted.without_session()),
                Err(refusal) => prop_assert!((400..500).contains(&refusal.status)),
            }
        }
    }
}
