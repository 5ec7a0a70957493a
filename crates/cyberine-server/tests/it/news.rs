//! Progress, cancellation and what goes on after a reply.

use serde_json::{Value, json};

use crate::host::{Host, WIRES, server, stateless};

fn with_token(mut params: Value) -> Value {
    params["_meta"]["progressToken"] = json!("p-1");
    params
}

#[test]
fn news_of_a_call_comes_before_its_reply() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        let params = with_token(json!({ "name": "slow", "arguments": { "ms": 10 } }));
        for params in [params.clone(), stateless(params, json!({}))] {
            let id = host.request("tools/call", params);
            for tick in 1..=10 {
                let news = host.recv();
                assert_eq!(news["method"], "notifications/progress", "{news}");
                assert_eq!(news["params"]["progressToken"], "p-1");
                assert_eq!(news["params"]["progress"].as_f64(), Some(f64::from(tick)));
            }
            assert_eq!(host.recv()["id"], id);
        }
        host.is_quiet();
    }
}

#[test]
fn without_a_token_there_is_no_news() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    assert_eq!(
        host.call("slow", json!({ "ms": 10 }))["result"]["structuredContent"],
        json!({ "slept": true })
    );
    assert_eq!(
        host.call("follow", json!({ "ticks": 3 }))["result"]["structuredContent"],
        json!({ "following": false })
    );
    host.is_quiet();
}

#[test]
fn news_goes_on_after_the_reply_with_a_session_and_never_without() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        let params = with_token(json!({ "name": "follow", "arguments": { "ticks": 3 } }));
        let id = host.request("tools/call", params.clone());
        assert_eq!(host.recv()["id"], id);
        for expected in ["tick", "tick", "tick", "settled"] {
            assert_eq!(host.recv()["params"]["message"], expected);
        }
        host.is_quiet();
        let reply = host.ask("tools/call", stateless(params, json!({})));
        assert_eq!(reply["result"]["structuredContent"], json!({ "following": false }));
        host.is_quiet();
    }
}

fn cancel(host: &mut Host, id: u64) {
    let params = json!({ "requestId": id, "reason": "enough" });
    host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
}

#[test]
fn a_cancelled_call_says_nothing_more() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        let params = with_token(json!({ "name": "slow", "arguments": { "ms": 600_000 } }));
        for params in [params.clone(), stateless(params, json!({}))] {
            let id = host.request("tools/call", params);
            cancel(&mut host, id);
            host.is_quiet();
        }
        cancel(&mut host, 999_999);
        assert_eq!(host.ended().2, Vec::<Value>::new());
    }
}

#[test]
fn news_after_a_reply_ends_when_the_client_cancels_the_call() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let params = with_token(json!({ "name": "follow", "arguments": { "ticks": 1_000_000, "ms": 1 } }));
    let id = host.request("tools/call", params);
    assert_eq!(host.recv()["id"], id);
    assert_eq!(host.recv()["params"]["message"], "tick");
    cancel(&mut host, id);
    let ping = host.request("ping", json!({}));
    while host.recv()["id"] != ping {}
    host.is_quiet();
}

#[test]
fn a_question_that_waits_is_withdrawn_with_its_call() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({ "elicitation": {} }));
    let id = host.request("tools/call", json!({ "name": "ask", "arguments": {} }));
    let question = host.recv();
    assert_eq!(question["method"], "elicitation/create");
    cancel(&mut host, id);
    let withdrawn = host.recv();
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    host.is_quiet();
}

#[test]
fn streams_of_news_do_not_hold_up_requests() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        host.initialize(json!({}));
        for token in 0..32 {
            let mut params = json!({ "name": "follow", "arguments": { "ticks": 1_000_000, "ms": 1 } });
            params["_meta"]["progressToken"] = json!(token);
            host.request("tools/call", params);
        }
        let mut last = [0.0; 32];
        for _ in 0..100 {
            let ping = host.request("ping", json!({}));
            loop {
                let message = host.recv();
                if message["id"] == ping {
                    break;
                }
                if let Some(token) = message["params"]["progressToken"].as_u64() {
                    let progress = message["params"]["progress"].as_f64().unwrap();
                    let before = std::mem::replace(&mut last[usize::try_from(token).unwrap()], progress);
                    assert!(progress > before, "{message}");
                }
            }
        }
    }
}
