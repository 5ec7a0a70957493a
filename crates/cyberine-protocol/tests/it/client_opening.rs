//! How a client finds out the era of a server, and what it gives up on.

use cyberine_protocol::model::Implementation;
use cyberine_protocol::{
    Ask, ClientFault, ClientIgnored, ClientProfile, ClientSession, Opening, Revision, ServerFacts,
};
use serde_json::{Value, json};

use crate::client::{Said, say, take};
use crate::support::{VERSION, parse};

pub(crate) const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"peer","version":"1.2"}}}}"#;
pub(crate) const NO_DISCOVER: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1.2"}}}"#;

pub(crate) fn client() -> ClientSession {
    let info =
        Implementation { name: "cyberine".into(), version: "0.1.0".into(), ..Implementation::default() };
    ClientSession::new(ClientProfile { info, ..ClientProfile::default() })
}

/// A client that has begun with `server/discover`.
fn probing() -> ClientSession {
    let mut client = client();
    let line = parse(&client.open(Opening::Discover));
    assert_eq!(line["method"], "server/discover");
    assert_eq!(line["params"]["_meta"][VERSION], "2026-07-28");
    client
}

fn facts(revision: Revision) -> Said {
    Said::Opened(ServerFacts { revision, label: Some("peer 1.2".into()), tools: true })
}

fn sends_initialize(said: &[Said]) -> &Value {
    let [Said::Sent(line)] = said else { panic!("{said:?}") };
    assert_eq!(line["method"], "initialize");
    assert_eq!(line["params"]["protocolVersion"], "2025-11-25");
    line
}

fn error(code: i64, data: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "no", "data": data } }).to_string()
}

#[test]
fn a_server_that_discovers_is_stateless() {
    let mut client = probing();
    assert_eq!(say(&mut client, DISCOVERED), [facts(Revision::V2026_07_28)]);
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
}

#[test]
fn whatever_else_a_server_answers_leads_to_initialize() {
    for answer in [
        NO_DISCOVER.to_owned(),
        error(-32602, Value::Null),
        error(-32600, Value::Null),
        error(0, Value::Null),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"initialize first"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","error":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1.0,"result":{"supportedVersions":["2025-06-18"]}}"#.to_owned(),
        error(-32022, json!({ "supported": ["2025-11-25", "2024-11-05"] })),
    ] {
        let mut client = probing();
        sends_initialize(&say(&mut client, &answer));
        let said = say(&mut client, INITIALIZED);
        let [Said::Sent(line), opened] = &said[..] else { panic!("{said:?}") };
        assert_eq!(line, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(opened, &facts(Revision::V2025_11_25), "{answer}");
    }
}

#[test]
fn every_revision_with_a_handshake_can_be_agreed_and_no_other() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2099-01-01"] {
        let mut client = client();
        assert_eq!(parse(&client.open(Opening::Initialize))["method"], "initialize");
        let answer = INITIALIZED.replace("\"id\":2", "\"id\":1").replace("2025-11-25", version);
        let (_, outcome) = take(&mut client, format!("{answer}\n").as_bytes());
        let revision = Revision::parse(version).filter(|revision| !revision.is_stateless());
        assert_eq!(client.revision(), revision);
        if revision.is_none() {
            let fault = ClientFault::NoCommonRevision { offered: vec![version.to_owned()] };
            assert_eq!(outcome, Err(fault));
        }
    }
}

#[test]
fn a_stateless_server_that_refuses_is_not_asked_the_other_way() {
    let faults = [
        (error(-32022, json!({ "supported": ["2027-01-01"] })), "the server speaks 2027-01-01, and this"),
        (error(-32022, Value::Null), "the server speaks no revision of this client"),
        (error(-32021, Value::Null), "the server refused `server/discover`: no (code -32021)"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2027-01-01"]}}"#.to_owned(),
            "the server speaks 2027-01-01, and this client 2024-11-05, 2025-03-26",
        ),
    ];
    for (answer, expected) in faults {
        let mut client = probing();
        let (said, outcome) = take(&mut client, format!("{answer}\n").as_bytes());
        assert_eq!(said, []);
        let fault = outcome.unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{fault}");
        assert_eq!(say(&mut client, INITIALIZED), [], "nothing is taken after a fault");
    }
}

#[test]
fn silence_leads_to_initialize_and_a_late_answer_still_counts() {
    let late = || {
        let mut client = probing();
        let line = parse(&client.discover_is_late().unwrap());
        sends_initialize(&[Said::Sent(line)]);
        assert_eq!(client.discover_is_late(), None);
        client
    };
    // A server that is slow to start and stateless.
    let mut client = late();
    assert_eq!(say(&mut client, DISCOVERED), [facts(Revision::V2026_07_28)]);
    let refused = INITIALIZED.replace("\"result\"", "\"error\"");
    assert_eq!(say(&mut client, &refused), [Said::Ignored(ClientIgnored::StrayResponse)]);
    // One that is slow to start and is not.
    for first in [NO_DISCOVER, &error(-32021, Value::Null)] {
        let mut client = late();
        assert_eq!(say(&mut client, first), []);
        assert_eq!(say(&mut client, INITIALIZED)[1..], [facts(Revision::V2025_11_25)]);
    }
    // One that never answers the first.
    let mut client = late();
    assert_eq!(say(&mut client, INITIALIZED)[1..], [facts(Revision::V2025_11_25)]);
    assert_eq!(say(&mut client, DISCOVERED), [Said::Ignored(ClientIgnored::StrayResponse)]);
    assert_eq!(client.revision(), Some(Revision::V2025_11_25));
}

#[test]
fn a_refused_or_unreadable_initialize_ends_the_session() {
    for (answer, expected) in [
        (
            r#""error":{"code":-32000,"message":" no key "}"#,
            "the server refused `initialize`: no key (code -32000)",
        ),
        (r#""error":"broken""#, "the server refused `initialize`: \"broken\" (code -32603)"),
        (r#""result":{}"#, "the server's result of `initialize` cannot be read: missing field"),
        (r#""result":[]"#, "the server's result of `initialize` cannot be read: it is no object"),
    ] {
        let mut client = client();
        client.open(Opening::Initialize);
        let (_, outcome) =
            take(&mut client, format!("{{\"jsonrpc\":\"2.0\",\"id\":1,{answer}}}\n").as_bytes());
        let fault = outcome.unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

#[test]
fn nothing_can_be_asked_before_the_session_is_open() {
    let mut client = probing();
    assert!(client.ask(&Ask::ListTools { cursor: None }).is_none());
    assert!(client.ask(&Ask::CallTool { name: "x".into(), arguments: serde_json::Map::new() }).is_none());
    // The server may already ask.
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let pong = json!({ "jsonrpc": "2.0", "id": "p", "result": {} });
    assert_eq!(say(&mut client, ping), [Said::Sent(pong)]);
}
