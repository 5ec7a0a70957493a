//! Sessions with servers elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_client::{
    Ask, CallEvent, Client, ClientCapabilities, ClientError, ClientOptions, HttpServer, InputRequest,
    ReplyPart,
};
use cyberine_types::Secret;
use serde_json::{Map, Value, json};

use crate::elsewhere::{Elsewhere, Heard, Reply, event};
use crate::peer::block_on;

fn options() -> ClientOptions {
    let capabilities = ClientCapabilities { elicitation_form: true, ..ClientCapabilities::default() };
    ClientOptions { capabilities, ..ClientOptions::new("test", "0") }
}

fn discovered(heard: &Heard) -> Reply {
    heard.answer(&json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
    }))
}

fn initialized(heard: &Heard) -> Reply {
    let result =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "old" } });
    heard.answer(&result).with_header("mcp-session-id: s-1")
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

async fn done(client: &mut Client, arguments: Value) -> Result<Vec<ReplyPart>, ClientError> {
    let mut call = client.call("echo", &map(arguments))?;
    loop {
        if let CallEvent::Done(reply) = call.next().await? {
            return Ok(reply.content);
        }
    }
}

#[test]
fn a_stateless_server_is_told_in_headers_what_it_is_asked() {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" }, "n": { "type": "integer", "x-mcp-header": "N" },
    } });
    let server = Elsewhere::new(move |heard| {
        match heard.method() {
        "server/discover" => discovered(heard),
        "tools/list" => heard.answer(&json!({ "tools": [
            { "name": "echo", "inputSchema": schema },
            { "name": "bad", "inputSchema": { "properties": { "a": { "type": "number", "x-mcp-header": "A" } } } },
        ] })),
        _ => Reply::stream(&[
            event(None, &json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": heard.body["id"], "progress": 1 } })),
            ": alive\n\n".to_owned(),
            event(None, &json!({ "jsonrpc": "2.0", "id": heard.body["id"], "result": said("hello") })),
        ].concat()),
    }
    });
    block_on(async {
        let bearer = Some(Secret::new("t0ken"));
        let mut client = Client::connect(HttpServer { bearer, ..server.server() }, options()).unwrap();
        assert_eq!(client.open().await.unwrap().revision.as_str(), "2026-07-28");
        let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["echo"], "a tool with a mark on a number is left out");
        let content = done(&mut client, json!({ "region": "é", "n": 7 })).await.unwrap();
        assert_eq!(content, [ReplyPart::Text("hello".into())]);
        client.close().await;
    });
    let heard = server.heard();
    let methods: Vec<_> = heard.iter().map(|heard| heard.header("mcp-method").unwrap()).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call"]);
    for heard in &heard {
        assert_eq!(heard.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(heard.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(heard.header("authorization"), Some("Bearer t0ken"));
    }
    let called = &heard[2];
    assert_eq!(called.header("mcp-name"), Some("echo"));
    assert_eq!(called.header("mcp-param-region"), Some("=?base64?w6k=?="));
    assert_eq!(called.header("mcp-param-n"), Some("7"));
    assert_eq!(
        called.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({ "elicitation": { "form": {} } })
    );
}

#[test]
fn a_server_of_the_older_era_has_a_session_with_a_beginning_and_an_end() {
    let server = Elsewhere::new(|heard| match (heard.verb.as_str(), heard.method()) {
        ("POST", "server/discover") => Reply::text(400, "Bad Request: no session"),
        ("POST", "initialize") => initialized(heard),
        ("POST", "notifications/initialized") => Reply::empty(202),
        ("POST", _) => heard.answer(&said("hello")),
        ("GET", _) => Reply::empty(405),
        _ => Reply::empty(204),
    });
    block_on(async {
        let mut client = server.client(options());
        assert_eq!(client.open().await.unwrap().revision.as_str(), "2025-11-25");
        assert_eq!(done(&mut client, json!({})).await.unwrap(), [ReplyPart::Text("hello".into())]);
        client.close().await;
    });
    let heard = server.heard();
    let of = |method: &str| heard.iter().find(|heard| heard.method() == method).unwrap();
    assert_eq!(of("initialize").header("mcp-session-id"), None);
    assert_eq!(of("initialize").body["params"]["capabilities"], json!({ "elicitation": { "form": {} } }));
    for later in [of("notifications/initialized"), of("tools/call"), heard.last().unwrap()] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"), "{later:?}");
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    assert_eq!(heard.last().unwrap().verb, "DELETE");
}

#[test]
fn a_stream_that_breaks_is_taken_up_where_it_broke() {
    let server = Elsewhere::new(|heard| match (heard.verb.as_str(), heard.method()) {
        ("POST", "initialize") => initialized(heard),
        ("POST", "tools/call") => Reply::stream("id: 7\nretry: 1\ndata:\n\n"),
        ("POST", _) => Reply::empty(202),
        ("GET", _) if heard.header("last-event-id") == Some("7") => {
            Reply::stream(&event(Some("8"), &json!({ "jsonrpc": "2.0", "id": 2, "result": said("late") })))
        }
        ("GET", _) => Reply::empty(405),
        _ => Reply::empty(204),
    });
    block_on(async {
        let mut client = Client::connect_legacy(server.server(), options()).unwrap();
        client.open().await.unwrap();
        assert_eq!(done(&mut client, json!({})).await.unwrap(), [ReplyPart::Text("late".into())]);
    });
}

#[test]
fn a_stream_without_end_or_answer_is_an_error_of_its_request_alone() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let server = Elsewhere::new(move |heard| match heard.method() {
        "server/discover" => discovered(heard),
        _ => match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Reply::stream(": nothing\n\n"),
            1 => Reply::stream("data: {half\n\n"),
            2 => Reply::text(200, "<html>"),
            3 => Reply::text(502, "bad gateway"),
            4 => Reply::json(
                200,
                &json!({ "jsonrpc": "2.0", "id": heard.body["id"], "result": said(&"x".repeat(5000)) }),
            ),
            _ => heard.answer(&said("hello")),
        },
    });
    block_on(async {
        let mut client = server.client(ClientOptions { frame_limit: 4096, ..options() });
        client.open().await.unwrap();
        let mut errors = Vec::new();
        for _ in 0..5 {
            errors.push(done(&mut client, json!({})).await.unwrap_err().to_string());
        }
        assert_eq!(errors[0], "the connection ended before the answer");
        assert!(errors[1].starts_with("the server answered with what is no message"), "{}", errors[1]);
        assert!(errors[2].contains("`text/plain`"), "{}", errors[2]);
        assert!(errors[3].contains("status 502"), "{}", errors[3]);
        assert!(errors[4].contains("more than 4096 bytes"), "{}", errors[4]);
        assert_eq!(done(&mut client, json!({})).await.unwrap(), [ReplyPart::Text("hello".into())]);
    });
}

#[test]
fn a_closed_door_and_an_outage_say_nothing_of_the_era() {
    for (status, hint) in
        [(401, "bearer token"), (403, "does not allow"), (500, "status 500"), (503, "status 503")]
    {
        let server = Elsewhere::new(move |_| Reply::text(status, "no"));
        let error = block_on(async { server.client(options()).open().await.unwrap_err() });
        assert!(error.to_string().contains(hint), "{error}");
        assert_eq!(server.posted().len(), 1, "{status}: asked once");
    }
    let gone = "http://127.0.0.1:9/mcp".parse().unwrap();
    let error = block_on(async {
        let server = HttpServer { url: gone, bearer: None };
        Client::connect(server, options()).unwrap().open().await.unwrap_err()
    });
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}

#[test]
fn a_refusal_of_the_newer_era_is_no_sign_of_the_older_one() {
    let server = Elsewhere::new(|heard| heard.refusal(400, -32020));
    let error = block_on(async { server.client(options()).open().await.unwrap_err() });
    assert!(error.to_string().contains("-32020"), "{error}");
    assert_eq!(server.posted().len(), 1);
}

#[test]
fn what_the_server_wants_to_know_is_brought_with_its_state() {
    let server = Elsewhere::new(|heard| match (heard.method(), &heard.body["params"]["inputResponses"]) {
        ("server/discover", _) => discovered(heard),
        (_, Value::Null) => {
            let form =
                json!({ "message": "who?", "requestedSchema": { "type": "object", "properties": {} } });
            let who = json!({ "method": "elicitation/create", "params": form });
            heard.answer(&json!({
                "resultType": "input_required", "inputRequests": { "who": who }, "requestState": "s\u{e9}",
            }))
        }
        (_, answers) => heard.answer(&said(&answers["who"]["action"].to_string())),
    });
    block_on(async {
        let mut client = server.client(options());
        client.open().await.unwrap();
        let mut call = client.call("echo", &Map::new()).unwrap();
        let CallEvent::NeedsInput(needs) = call.next().await.unwrap() else { panic!("it asks first") };
        assert!(matches!(needs["who"], InputRequest::Form(_)));
        assert!(matches!(call.next().await, Err(ClientError::NotOpen)), "the server waits, not the client");
        call.go_on(BTreeMap::from([("who".to_owned(), json!({ "action": "decline" }))])).unwrap();
        let CallEvent::Done(reply) = call.next().await.unwrap() else { panic!("it answers then") };
        assert_eq!(reply.content, [ReplyPart::Text("\"decline\"".into())]);
        drop(call);
        // One that cannot be answered is not put to anybody.
        let mut other = server.client(ClientOptions::new("test", "0"));
        other.open().await.unwrap();
        let error = done(&mut other, json!({})).await.unwrap_err();
        assert!(error.to_string().contains("`elicitation/create`"), "{error}");
    });
    let posted = server.posted();
    let (first, second) = (&posted[1].body, &posted[2].body);
    assert_eq!(second["params"]["requestState"], "s\u{e9}");
    assert_ne!(first["id"], second["id"]);
    assert_eq!(posted[3].body["params"].get("requestState"), None);
}

#[test]
fn a_question_is_answered_on_a_request_of_its_own() {
    let (told, heard_answer) = std::sync::mpsc::sync_channel::<Value>(1);
    let server = Elsewhere::new(move |heard| match (heard.verb.as_str(), heard.method()) {
        ("POST", "initialize") => initialized(heard),
        ("POST", "tools/call") => {
            let form =
                json!({ "message": "who?", "requestedSchema": { "type": "object", "properties": {} } });
            let asked =
                json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form });
            Reply::stream(&format!("{}id: 9\nretry: 1\ndata:\n\n", event(None, &asked)))
        }
        ("POST", "-") => {
            told.send(heard.body.clone()).unwrap();
            Reply::empty(202)
        }
        ("GET", _) if heard.header("last-event-id").is_some() => {
            Reply::stream(&event(None, &json!({ "jsonrpc": "2.0", "id": 2, "result": said("thanks") })))
        }
        ("GET", _) => Reply::empty(405),
        _ => Reply::empty(202),
    });
    block_on(async {
        let mut client = Client::connect_legacy(server.server(), options()).unwrap();
        client.open().await.unwrap();
        let mut call = client.call("echo", &Map::new()).unwrap();
        let CallEvent::Question { question, .. } = call.next().await.unwrap() else {
            panic!("it asks first")
        };
        assert!(call.answer(question, Ok(&json!({ "action": "accept" }))));
        assert!(!call.answer(question, Err("again")), "once");
        let CallEvent::Done(reply) = call.next().await.unwrap() else { panic!("it answers then") };
        assert_eq!(reply.content, [ReplyPart::Text("thanks".into())]);
    });
    let answer = heard_answer.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "accept" } }));
}

#[test]
fn a_header_that_an_older_list_did_not_ask_for_is_sent_in_a_second_call() {
    let lists = std::sync::atomic::AtomicUsize::new(0);
    let server = Elsewhere::new(move |heard| match heard.method() {
        "server/discover" => discovered(heard),
        "tools/list" => {
            let mark = if lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
                "x-none"
            } else {
                "x-mcp-header"
            };
            heard.answer(&json!({ "tools": [{ "name": "echo", "inputSchema": {
                "type": "object", "properties": { "region": { "type": "string", mark: "Region" } } } }] }))
        }
        _ if heard.header("mcp-param-region").is_none() => heard.refusal(400, -32020),
        _ => heard.answer(&said("hello")),
    });
    block_on(async {
        let mut client = server.client(options());
        client.open().await.unwrap();
        client.tools().await.unwrap();
        assert_eq!(
            done(&mut client, json!({ "region": "eu" })).await.unwrap(),
            [ReplyPart::Text("hello".into())]
        );
    });
    let methods: Vec<_> = server.posted().iter().map(|heard| heard.method().to_owned()).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call"]);
}

#[test]
fn a_listen_tells_what_it_was_asked_for_and_ends() {
    let server = Elsewhere::new(|heard| match heard.method() {
        "server/discover" => discovered(heard),
        _ => {
            let id = &heard.body["id"];
            let told = |method: &str, mut params: Value| {
                params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
                event(None, &json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            };
            Reply::stream(
                &[
                    told(
                        "notifications/subscriptions/acknowledged",
                        json!({ "notifications": { "toolsListChanged": true } }),
                    ),
                    told("notifications/tools/list_changed", json!({})),
                    told("notifications/resources/updated", json!({ "uri": "x://y" })),
                    told("notifications/tasks", json!({ "taskId": "t", "status": "working" })),
                    event(
                        None,
                        &json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete" } }),
                    ),
                ]
                .concat(),
            )
        }
    });
    block_on(async {
        let mut client = server.client(options());
        client.open().await.unwrap();
        let filter = cyberine_client::SubscriptionFilter { tools_list_changed: true, ..Default::default() };
        let mut listen = client.ask(Ask::Listen { filter: filter.clone() }).unwrap();
        let mut events = Vec::new();
        loop {
            match listen.next().await.unwrap() {
                CallEvent::Listening(served) => assert_eq!(served, filter),
                CallEvent::Changed(list) => events.push(format!("{list:?}")),
                CallEvent::Updated(uri) => events.push(uri),
                CallEvent::TaskChanged(task) => events.push(task.get().contains("working").to_string()),
                CallEvent::Result(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(events, ["Tools", "x://y", "true"]);
        drop(listen);
        assert!(matches!(client.ask(Ask::Ping), Err(ClientError::NoSuchMethod { .. })));
    });
}

#[test]
fn an_address_and_a_token_that_cannot_be_sent_are_refused_at_once() {
    let connect = |url: &str, bearer: Option<&str>| {
        let server = HttpServer { url: url.parse().unwrap(), bearer: bearer.map(Secret::new) };
        Client::connect(server, options()).err().map(|error| error.to_string())
    };
    for url in ["file:///etc/passwd", "javascript:1", "http://user:secret@h/mcp?k=secret"] {
        let error = connect(url, None).unwrap();
        assert!(error.contains("no address") && !error.contains("secret"), "{error}");
    }
    let error = connect("http://h/", Some("a\nb")).unwrap();
    assert!(error.contains("token") && !error.contains("a\nb"), "{error}");
}
