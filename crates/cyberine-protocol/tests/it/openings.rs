//! Twelve ways to open a pipe, with the right answers (wire rules: eras are told per message).

use std::fmt::Write as _;

use cyberine_protocol::Effect;
use serde_json::{Value, json};

use crate::support::{CAPABILITIES, VERSION, finish, session};

fn meta(version: &str) -> Value {
    json!({ "_meta": { VERSION: version, CAPABILITIES: {} } })
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn bare(id: u64, method: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string()
}

fn initialize(version: &str) -> String {
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    request(0, "initialize", params)
}

fn initialized() -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()
}

/// Feeds the lines to a fresh session that answers every request at once.
fn transcript(lines: &[String]) -> String {
    let mut session = session();
    let mut out = String::new();
    for line in lines {
        writeln!(out, "> {line}").unwrap();
        for effect in session.receive(line.as_bytes()) {
            let sent = match effect {
                Effect::Send(line) => line,
                Effect::Request(inbound) => finish(&mut session, &inbound).unwrap(),
                other => {
                    writeln!(out, "  ({other:?})").unwrap();
                    continue;
                }
            };
            let mut sent = String::from_utf8(sent).unwrap();
            if let Some(at) = sent.find("\"tools\":[") {
                // The listing has its own snapshot.
                let end = sent.rfind(']').unwrap();
                sent.replace_range(at + 9..end, "…");
            }
            writeln!(out, "< {sent}").unwrap();
        }
    }
    out
}

const MODERN: &str = "2026-07-28";

#[test]
fn a_stateless_request_then_other_versions() {
    insta::assert_snapshot!(transcript(&[
        request(1, "tools/list", meta(MODERN)),
        request(2, "tools/list", meta("2099-01-01")),
        request(3, "tools/list", meta("2025-11-25")),
        request(4, "tools/list", json!({})),
    ]));
}

#[test]
fn b_a_future_version_first() {
    insta::assert_snapshot!(transcript(&[request(1, "server/discover", meta("2099-01-01"))]));
}

#[test]
fn c_a_list_without_claims_then_initialize() {
    insta::assert_snapshot!(transcript(&[
        request(1, "tools/list", json!({})),
        initialize("2025-11-25"),
        initialized(),
        bare(2, "tools/list"),
    ]));
}

#[test]
fn d_ping_then_discover() {
    insta::assert_snapshot!(transcript(&[bare(1, "ping"), request(2, "server/discover", meta(MODERN))]));
}

#[test]
fn e_a_notification_first() {
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
    insta::assert_snapshot!(transcript(&[cancelled.to_string(), initialize("2025-11-25")]));
}

#[test]
fn f_initialize_then_stateless() {
    insta::assert_snapshot!(transcript(&[
        initialize("2025-11-25"),
        initialized(),
        request(1, "tools/list", meta(MODERN)),
        request(2, "server/discover", meta(MODERN)),
        bare(3, "tools/list"),
    ]));
}

#[test]
fn g_discover_then_initialize() {
    insta::assert_snapshot!(transcript(&[
        request(1, "server/discover", meta(MODERN)),
        initialize("2025-11-25"),
        initialized(),
        bare(2, "tools/list"),
    ]));
}

#[test]
fn h_stateless_then_initialize() {
    insta::assert_snapshot!(transcript(&[request(1, "tools/list", meta(MODERN)), initialize("2025-11-25")]));
}

#[test]
fn i_garbage_batch_and_null_id() {
    let batch = format!("[{}]", bare(1, "ping"));
    let null = json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }).to_string();
    insta::assert_snapshot!(transcript(&["{bad".to_owned(), batch, null, initialize("2025-11-25")]));
}

#[test]
fn j_capabilities_missing() {
    let params = json!({ "_meta": { VERSION: MODERN } });
    insta::assert_snapshot!(transcript(&[request(1, "tools/list", params)]));
}

#[test]
fn k_unknown_and_removed_methods() {
    insta::assert_snapshot!(transcript(&[
        request(1, "foo/bar", meta(MODERN)),
        request(2, "ping", meta(MODERN))
    ]));
}

#[test]
fn l_initialize_with_versions_it_cannot_have() {
    insta::assert_snapshot!(transcript(&[
        initialize(MODERN),
        initialize("1999-01-01"),
        initialize("2024-11-05")
    ]));
}
