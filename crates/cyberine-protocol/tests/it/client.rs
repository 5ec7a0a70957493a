//! The client's side, judged by the lines it sends and the bytes it takes.

use cyberine_protocol::model::{ResourceBody, ResourceContents};
use cyberine_protocol::strict::Limits;
use cyberine_protocol::{
    Ask, ClientEffect, ClientFault, ClientIgnored, ClientProfile, ClientSession, Opening, ReplyPart,
    Revision, ServerFacts,
};
use serde_json::{Map, Value, json};

use crate::client_opening::{DISCOVERED, NO_DISCOVER, client};
use crate::official::Official;
use crate::support::parse;

/// An effect as it can be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Sent(Value),
    Opened(ServerFacts),
    Tools(Vec<(String, Option<String>)>, Option<String>),
    Called { content: Vec<ReplyPart>, structured: Option<String>, is_error: bool },
    Failed(String),
    Progress(f64, Option<f64>, Option<String>),
    Log(String),
    NeedsInput(Vec<String>, Option<String>),
    Question(&'static str),
    Withdrawn,
    Result(Value),
    News(String),
    Ignored(ClientIgnored),
}

impl From<ClientEffect> for Said {
    fn from(effect: ClientEffect) -> Self {
        match effect {
            ClientEffect::Send(line) => Self::Sent(parse(&line)),
            ClientEffect::Opened(facts) => Self::Opened(facts),
            ClientEffect::Tools { page, .. } => {
                let tools = page.tools.into_iter();
                let tools = tools.map(|tool| (tool.name, tool.input_schema.map(|raw| raw.get().to_owned())));
                Self::Tools(tools.collect(), page.next_cursor)
            }
            ClientEffect::Called { reply, .. } => Self::Called {
                content: reply.content,
                structured: reply.structured.map(|raw| raw.get().to_owned()),
                is_error: reply.is_error,
            },
            ClientEffect::Failed { error, .. } => Self::Failed(error.to_string()),
            ClientEffect::Progress { progress, total, message, .. } => {
                Self::Progress(progress, total, message)
            }
            ClientEffect::Log(line) => Self::Log(line.text),
            ClientEffect::NeedsInput { needs, .. } => {
                Self::NeedsInput(needs.requests.into_keys().collect(), needs.request_state)
            }
            ClientEffect::Question { request, .. } => Self::Question(request.method()),
            ClientEffect::Withdrawn(_) => Self::Withdrawn,
            ClientEffect::Result { result, .. } => Self::Result(parse(result.get().as_bytes())),
            ClientEffect::Acknowledged { served, .. } => Self::News(format!("{served:?}")),
            ClientEffect::Changed { key, list } => Self::News(format!("{list:?} {}", key.is_some())),
            ClientEffect::Updated { key, uri } => Self::News(format!("{uri} {}", key.is_some())),
            ClientEffect::TaskChanged { task, .. } => Self::Result(parse(task.get().as_bytes())),
            ClientEffect::Ignored(ignored) => Self::Ignored(ignored),
        }
    }
}

/// What comes of bytes, until a fault.
pub(crate) fn take(client: &mut ClientSession, bytes: &[u8]) -> (Vec<Said>, Result<(), ClientFault>) {
    let mut effects = Vec::new();
    let outcome = client.receive(bytes, &mut effects);
    (effects.into_iter().map(Said::from).collect(), outcome)
}

/// What comes of one good line.
pub(crate) fn say(client: &mut ClientSession, line: &str) -> Vec<Said> {
    let (said, outcome) = take(client, format!("{line}\n").as_bytes());
    assert_eq!(outcome, Ok(()), "{line}");
    said
}

/// A client whose session of `revision` is open.
pub(crate) fn open(revision: Revision) -> ClientSession {
    opened(client(), revision)
}

/// A session with `client` that has agreed on `revision`.
pub(crate) fn opened(mut client: ClientSession, revision: Revision) -> ClientSession {
    client.open(Opening::Discover);
    if revision.is_stateless() {
        say(&mut client, DISCOVERED);
    } else {
        say(&mut client, NO_DISCOVER);
        let result = json!({ "protocolVersion": revision.as_str(), "capabilities": { "tools": {} }, "serverInfo": {} });
        say(&mut client, &json!({ "jsonrpc": "2.0", "id": 2, "result": result }).to_string());
    }
    assert_eq!(client.revision(), Some(revision));
    client
}

const BOTH: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

fn arguments() -> Map<String, Value> {
    [("text".to_owned(), json!("a\u{2028}b\n"))].into_iter().collect()
}

fn echo() -> Ask {
    Ask::CallTool { name: "echo".into(), arguments: arguments() }
}

/// Calls `echo`, and gives the id of the call.
fn call(client: &mut ClientSession) -> Value {
    let (_, line) = client.ask(&echo()).unwrap();
    parse(&line)["id"].clone()
}

pub(crate) fn answer(id: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

#[test]
fn every_line_of_the_client_is_valid_by_the_schema_of_its_revision() {
    for revision in Revision::ALL {
        let Some(mut official) = Official::of(revision) else { return };
        let mut session = client();
        let first = parse(&session.open(Opening::Discover));
        if revision.is_stateless() {
            official.assert("DiscoverRequest", &first);
            official.assert("JSONRPCRequest", &first);
        } else {
            let said = say(&mut session, NO_DISCOVER);
            let [Said::Sent(line)] = &said[..] else { panic!("{said:?}") };
            official.assert("InitializeRequest", line);
        }
        let mut session = open(revision);
        let (_, list) = session.ask(&Ask::ListTools { cursor: None }).unwrap();
        let (_, page) = session.ask(&Ask::ListTools { cursor: Some(String::new()) }).unwrap();
        let (key, call) = session.ask(&echo()).unwrap();
        let cancel = session.cancel(key, "not wanted").unwrap();
        for (definition, line) in [
            ("ListToolsRequest", list),
            ("ListToolsRequest", page),
            ("CallToolRequest", call),
            ("CancelledNotification", cancel),
        ] {
            let line = parse(&line);
            official.assert(definition, &line);
            let has_version = line["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
            let is_request = definition != "CancelledNotification";
            assert_eq!(has_version, revision.is_stateless() && is_request, "{line}");
        }
    }
}

#[test]
fn a_page_of_tools_keeps_its_schemas_as_they_were_written() {
    for revision in BOTH {
        let mut client = open(revision);
        let (_, line) = client.ask(&Ask::ListTools { cursor: Some("here".into()) }).unwrap();
        let line = parse(&line);
        assert_eq!(line["params"]["cursor"], "here");
        let schema = r#"{"type":"object","$ref":"https://example.com/x","b":1.0,"a":{}}"#;
        let page = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[{{"name":"a","inputSchema":{schema}}},{{"name":"b"}}],"nextCursor":""}}}}"#,
            line["id"]
        );
        let tools = vec![("a".to_owned(), Some(schema.to_owned())), ("b".to_owned(), None)];
        assert_eq!(say(&mut client, &page), [Said::Tools(tools, Some(String::new()))]);
    }
}

#[test]
fn every_part_of_a_reply_is_told() {
    let mut client = open(Revision::V2026_07_28);
    let id = call(&mut client);
    let result = json!({
        "content": [
            { "type": "text", "text": "a", "annotations": {} },
            { "type": "image", "data": "AAEC", "mimeType": "image/png" },
            { "type": "audio", "data": "AAEC", "mimeType": "audio/wav" },
            { "type": "resource_link", "uri": "x://y", "name": "n" },
            { "type": "resource", "resource": { "uri": "x://z", "text": "t" } },
            { "type": "hologram", "depth": 3 },
        ],
        "structuredContent": [1.0],
        "isError": true,
    });
    let contents = ResourceContents {
        uri: "x://z".into(),
        mime_type: None,
        body: ResourceBody::Text("t".into()),
        meta: Map::new(),
    };
    let content = vec![
        ReplyPart::Text("a".into()),
        ReplyPart::Image { data: "AAEC".into(), mime_type: "image/png".into() },
        ReplyPart::Audio { data: "AAEC".into(), mime_type: "audio/wav".into() },
        ReplyPart::Link { uri: "x://y".into(), name: "n".into() },
        ReplyPart::Embedded(contents),
        ReplyPart::Unknown { kind: "hologram".into() },
    ];
    let called = Said::Called { content, structured: Some("[1.0]".into()), is_error: true };
    assert_eq!(say(&mut client, &answer(&id, result)), [called]);
    let again = say(&mut client, &answer(&id, json!({ "content": [] })));
    assert_eq!(again, [Said::Ignored(ClientIgnored::StrayResponse)]);
}

#[test]
fn a_call_without_a_result_says_why() {
    let needs = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
        "b": { "method": "sampling/createMessage" }, "a": { "method": "elicitation/create" },
        "c": { "method": "sampling/createMessage" } } });
    for (result, expected) in [
        (needs, "the server wants `elicitation/create`, `sampling/createMessage` before it answers"),
        (
            json!({ "resultType": "input_required" }),
            "the server's result of `tools/call` cannot be read: it asks for input, and says not for which",
        ),
        (
            json!({ "resultType": "task", "taskId": "t" }),
            "the server's result of `tools/call` cannot be read: its type `task` is not known",
        ),
        (json!([]), "the server's result of `tools/call` cannot be read: it is no object"),
        (json!({ "content": "x" }), "the server's result of `tools/call` cannot be read: invalid type"),
        (
            json!({ "content": [{ "type": "text" }] }),
            "the server's result of `tools/call` cannot be read: a part",
        ),
    ] {
        let mut client = open(Revision::V2026_07_28);
        let id = call(&mut client);
        let said = say(&mut client, &answer(&id, result));
        let [Said::Failed(why)] = &said[..] else { panic!("{said:?}") };
        assert!(why.starts_with(expected), "{why}");
    }
    let mut client = open(Revision::V2025_06_18);
    let id = call(&mut client);
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "unknown tool" } });
    let why = "the server answered `tools/call` with an error: unknown tool (code -32602)";
    assert_eq!(say(&mut client, &error.to_string()), [Said::Failed(why.into())]);
    // An error without an id is that of the one request in flight.
    call(&mut client);
    let error = json!({ "jsonrpc": "2.0", "error": { "code": -32700, "message": "unreadable" } });
    assert!(matches!(&say(&mut client, &error.to_string())[..], [Said::Failed(_)]));
    assert_eq!(say(&mut client, &error.to_string()), [Said::Ignored(ClientIgnored::StrayResponse)]);
}

#[test]
fn progress_is_told_as_long_as_it_grows_and_its_call_is_open() {
    for revision in BOTH {
        let mut client = open(revision);
        let id = call(&mut client);
        let news = |token: &Value, progress: Value| {
            let params = json!({ "progressToken": token, "progress": progress, "total": 7, "message": "m" });
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string()
        };
        let stray = [Said::Ignored(ClientIgnored::StrayProgress)];
        let told = |progress: f64| [Said::Progress(progress, Some(7.0), Some("m".into()))];
        assert_eq!(say(&mut client, &news(&id, json!(0))), told(0.0));
        assert_eq!(say(&mut client, &news(&id, json!(1.5))), told(1.5));
        for stale in [json!(1.5), json!(1), json!("2"), Value::Null] {
            assert_eq!(say(&mut client, &news(&id, stale)), stray);
        }
        assert_eq!(say(&mut client, &news(&json!(99), json!(3))), stray);
        say(&mut client, &answer(&id, json!({ "content": [] })));
        assert_eq!(say(&mut client, &news(&id, json!(3))), stray, "after the reply");
    }
}

#[test]
fn a_cancelled_call_is_told_once_and_forgotten() {
    for revision in BOTH {
        let mut client = open(revision);
        let (key, line) = client.ask(&echo()).unwrap();
        let id = parse(&line)["id"].clone();
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": id, "reason": "no \"time\"" } });
        assert_eq!(parse(&client.cancel(key, "no \"time\"").unwrap()), cancelled);
        assert_eq!(client.cancel(key, "again"), None);
        let late = say(&mut client, &answer(&id, json!({ "content": [] })));
        assert_eq!(late, [Said::Ignored(ClientIgnored::StrayResponse)]);
    }
}

#[test]
fn a_server_that_asks_gets_an_answer_where_it_may_ask() {
    let sampling =
        r#"{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"messages":[]}}"#;
    let mut client = open(Revision::V2025_11_25);
    let said = say(&mut client, sampling);
    let declined = ClientIgnored::Declined("sampling/createMessage".into());
    let error = json!({ "jsonrpc": "2.0", "id": "s-1",
        "error": { "code": -32601, "message": "method `sampling/createMessage` is not served" } });
    assert_eq!(said, [Said::Sent(error), Said::Ignored(declined)]);
    let pong = json!({ "jsonrpc": "2.0", "id": 1.0, "result": {} });
    assert_eq!(say(&mut client, r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#), [Said::Sent(pong)]);

    let mut client = open(Revision::V2026_07_28);
    let (said, outcome) = take(&mut client, format!("{sampling}\n").as_bytes());
    assert_eq!(
        (said, outcome),
        (vec![], Err(ClientFault::Asked { method: "sampling/createMessage".into() }))
    );
}

#[test]
fn what_is_not_known_changes_nothing() {
    let mut client = open(Revision::V2025_11_25);
    let unknown = r#"{"jsonrpc":"2.0","method":"notifications/weather","params":[]}"#;
    let ignored = Said::Ignored(ClientIgnored::UnknownNotification("notifications/weather".into()));
    assert_eq!(say(&mut client, unknown), [ignored]);
    for silent in [
        "",
        " \r",
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
    ] {
        assert_eq!(say(&mut client, silent), [], "{silent}");
    }
    let log = |data: Value| {
        let params = json!({ "level": "info", "logger": "l", "data": data });
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }).to_string()
    };
    assert_eq!(say(&mut client, &log(json!("began"))), [Said::Log("began".into())]);
    assert_eq!(say(&mut client, &log(json!({ "n": 1 }))), [Said::Log(r#"{"n":1}"#.into())]);
}

#[test]
fn a_batch_is_taken_where_the_revision_has_them() {
    let batch = r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]"#;
    assert_eq!(say(&mut open(Revision::V2025_03_26), batch).len(), 2);
    let (_, outcome) = take(&mut open(Revision::V2025_06_18), format!("{batch}\n").as_bytes());
    assert!(matches!(outcome, Err(ClientFault::NoMessage { .. })), "{outcome:?}");
}

#[test]
fn what_is_no_message_ends_the_session_and_is_quoted() {
    for (line, expected) in [
        (
            "Server running on stdio\u{1b}[0m",
            "the server wrote what is no message (the line is not JSON at byte 0: expected a value): `Server running on stdio\\u{1b}[0m`; its",
        ),
        (
            r#"{"level":"info","msg":"hi"}"#,
            "the server wrote what is no message (`jsonrpc` must be \"2.0\"): `{\"level\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            "the server wrote what is no message (the key `id` occurs twice",
        ),
        ("7", "the server wrote what is no message (a message is a JSON object): `7`"),
    ] {
        for revision in BOTH {
            let mut client = open(revision);
            let id = call(&mut client);
            let good = answer(&id, json!({ "content": [] }));
            let (said, outcome) = take(&mut client, format!("{good}\n{line}\n{good}\n").as_bytes());
            assert_eq!(said.len(), 1, "what came before counts");
            let fault = outcome.unwrap_err().to_string();
            assert!(fault.starts_with(expected), "{fault}");
            assert!(client.ask(&Ask::ListTools { cursor: None }).is_none());
            assert_eq!(say(&mut client, &good), []);
        }
    }
}

#[test]
fn text_that_was_cut_within_a_character_is_text() {
    let mut client = open(Revision::V2026_07_28);
    let id = call(&mut client);
    let line = answer(&id, json!({ "content": [{ "type": "text", "text": "owl CUT" }] }));
    let content = vec![ReplyPart::Text("owl \u{fffd}".into())];
    let called = Said::Called { content, structured: None, is_error: false };
    assert_eq!(say(&mut client, &line.replace("CUT", "\\ud83e")), [called]);
}

#[test]
fn a_line_is_bounded_however_it_arrives() {
    let limits = Limits { frame: 64, ..Limits::default() };
    let client = || ClientSession::new(ClientProfile { limits, ..ClientProfile::default() });
    let fits = format!("{:<64}\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let long = format!(" {fits}");
    for step in [1, 7, 100] {
        let mut fed = client();
        for piece in fits.as_bytes().chunks(step) {
            assert_eq!(take(&mut fed, piece).1, Ok(()));
        }
        let mut fed = client();
        let outcome = long.as_bytes().chunks(step).find_map(|piece| take(&mut fed, piece).1.err());
        let Some(ClientFault::TooLong { limit: 64, line }) = outcome else { panic!("{outcome:?}") };
        assert!(line.starts_with("{\"jsonrpc\""), "{line}");
    }
}

/// A whole conversation with a server: it opens, asks, logs, goes on and answers.
fn conversation(revision: Revision) -> Vec<u8> {
    let mut lines = vec![if revision.is_stateless() { DISCOVERED } else { NO_DISCOVER }.to_owned()];
    let id = if revision.is_stateless() { 2 } else { 3 };
    if !revision.is_stateless() {
        lines.push(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#.into());
        lines.push(
            r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#.into(),
        );
    }
    let params = json!({ "progressToken": id, "progress": 1, "message": "né\u{2028}" });
    lines.push(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string());
    lines.push("\r".into());
    lines.push(answer(&json!(id), json!({ "content": [{ "type": "text", "text": "café\n🦉" }] })));
    lines.join("\n").into_bytes()
}

/// What comes of the conversation in pieces. The call leaves once the session is open.
fn hold(pieces: &[&[u8]]) -> Vec<Said> {
    let (mut client, mut said, mut called) = (client(), Vec::new(), false);
    client.open(Opening::Discover);
    let mut feed = |client: &mut ClientSession, bytes: &[u8]| {
        let (more, outcome) = take(client, bytes);
        assert_eq!(outcome, Ok(()));
        said.extend(more);
        if client.revision().is_some() && !std::mem::replace(&mut called, true) {
            call(client);
        }
    };
    for piece in pieces {
        // The server answers a call only after it came.
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            feed(&mut client, line);
        }
    }
    let mut effects = Vec::new();
    client.finish(&mut effects).unwrap();
    said.extend(effects.into_iter().map(Said::from));
    said
}

#[test]
fn a_conversation_is_the_same_however_its_bytes_arrive() {
    for revision in BOTH {
        let bytes = conversation(revision);
        let whole = hold(&[&bytes]);
        let content = vec![ReplyPart::Text("café\n🦉".into())];
        assert_eq!(whole.last(), Some(&Said::Called { content, structured: None, is_error: false }));
        assert!(whole.contains(&Said::Progress(1.0, None, Some("né\u{2028}".into()))), "{whole:?}");
        for cut in 0..=bytes.len() {
            assert_eq!(hold(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
        }
        assert_eq!(hold(&bytes.chunks(1).collect::<Vec<_>>()), whole);
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let limits = Limits { frame: 512, ..Limits::default() };
    let bytes = conversation(Revision::V2025_11_25);
    for at in 0..bytes.len() {
        for damage in [0x00, b'"', b'{', b'\n', 0xff] {
            let mut client = ClientSession::new(ClientProfile { limits, ..ClientProfile::default() });
            client.open(Opening::Discover);
            let mut damaged = bytes.clone();
            damaged[at] = damage;
            let mut effects = Vec::new();
            let _ = client.receive(&damaged, &mut effects);
            let _ = client.finish(&mut effects);
        }
    }
}
