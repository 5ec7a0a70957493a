//! Following resources, in both eras, to the end and against bad clients.

use std::io::Write as _;

use cyberine_server::Ended;
use serde_json::{Value, json};

use crate::fixture::Things;
use crate::host::{Host, WIRES, server, server_of, stateless};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";
const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TOKEN: &str = "hunter2-c0ffee";

fn thing(id: u32) -> String {
    format!("fixture://things/{id}")
}

fn subscribe(host: &mut Host, uri: &str) -> Value {
    host.ask("resources/subscribe", json!({ "uri": uri }))
}

fn listen_params(uris: &[&str]) -> Value {
    let wanted =
        json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": uris });
    stateless(json!({ "notifications": wanted }), json!({}))
}

/// Listens, and gives the request's id and the URIs that are acknowledged.
fn listen(host: &mut Host, uris: &[&str]) -> (u64, Value) {
    let id = host.request("subscriptions/listen", listen_params(uris));
    let told = host.recv();
    assert_eq!(
        (&told["method"], &told["params"]["_meta"][TAG]),
        (&json!(ACKNOWLEDGED), &json!(id)),
        "{told}"
    );
    let mut served = told["params"]["notifications"].clone();
    let uris = served["resourceSubscriptions"].take();
    (id, uris)
}

fn cancel(host: &mut Host, id: u64) {
    let params = json!({ "requestId": id });
    host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
}

/// The next message, which must be news of `id`; gives its tag.
fn hears_of(host: &Host, id: u32) -> Value {
    let news = host.recv();
    assert_eq!((&news["method"], &news["params"]["uri"]), (&json!(UPDATED), &json!(thing(id))), "{news}");
    news["params"]["_meta"][TAG].clone()
}

/// Checks that nothing is told of `silent`: changes of `heard` that come after it are the next things
/// that are told. There are two, because there may be a pause before news of `silent`, which is then
/// over before the second one.
fn hears_nothing_of(host: &Host, things: &Things, silent: u32, heard: u32) {
    things.touch(silent);
    for _ in 0..2 {
        things.touch(heard);
        hears_of(host, heard);
    }
}

#[test]
fn a_subscription_tells_of_changes_until_it_is_ended() {
    for wire in WIRES {
        let things = Things::default();
        let mut host = Host::start(wire, server_of(&things, None));
        let greeting = host.initialize(json!({}));
        assert_eq!(greeting["result"]["capabilities"]["resources"], json!({ "subscribe": true }));
        // Twice is once.
        for uri in [thing(1), thing(1), thing(2)] {
            assert_eq!(subscribe(&mut host, &uri)["result"], json!({}));
        }
        for _ in 0..3 {
            things.touch(1);
            assert_eq!(hears_of(&host, 1), Value::Null);
        }
        things.touch(2);
        hears_of(&host, 2);
        for uri in [thing(1), thing(1), thing(9), "nonsense".to_owned()] {
            assert_eq!(host.ask("resources/unsubscribe", json!({ "uri": uri }))["result"], json!({}));
        }
        hears_nothing_of(&host, &things, 1, 2);
        assert_eq!(subscribe(&mut host, &thing(1))["result"], json!({}));
        things.touch(1);
        hears_of(&host, 1);
        let (ended, _, rest) = host.ended();
        assert_eq!((ended, rest), (Ended::InputClosed, Vec::new()));
    }
}

#[test]
fn what_cannot_be_read_cannot_be_subscribed_to() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let long = format!("fixture://things/{:0>5000}", 1);
    for uri in ["fixture://things/x", "fixture://none/1", "", &long] {
        let missing = subscribe(&mut host, uri);
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
    }
    let stateless = host.ask("resources/subscribe", stateless(json!({ "uri": thing(1) }), json!({})));
    assert_eq!(stateless["error"]["code"], -32601, "{stateless}");
    let legacy = host.ask("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(legacy["error"]["code"], -32601, "{legacy}");
    host.is_quiet();
}

#[test]
fn a_new_session_begins_without_subscriptions() {
    let things = Things::default();
    let mut host = Host::start(WIRES[0], server_of(&things, None));
    host.initialize(json!({}));
    subscribe(&mut host, &thing(1));
    subscribe(&mut host, &thing(2));
    host.initialize(json!({}));
    // At once, so that a subscription that is about to end is not taken for the new one.
    assert_eq!(subscribe(&mut host, &thing(2))["result"], json!({}));
    hears_nothing_of(&host, &things, 1, 2);
    host.is_quiet();
}

#[test]
fn an_end_that_overtakes_the_beginning_counts() {
    let things = Things::default();
    let mut host = Host::start(WIRES[0], server_of(&things, None));
    host.initialize(json!({}));
    subscribe(&mut host, &thing(2));
    // It cannot be followed before it has changed.
    let later = host.request("resources/subscribe", json!({ "uri": "fixture://later/1" }));
    let end = host.ask("resources/unsubscribe", json!({ "uri": "fixture://later/1" }));
    assert_eq!(end["result"], json!({}));
    things.touch(1);
    let begun = host.recv();
    assert_eq!((&begun["id"], &begun["result"]), (&json!(later), &json!({})));
    hears_nothing_of(&host, &things, 1, 2);
}

#[test]
fn a_listen_is_acknowledged_with_what_is_served_and_tells_of_that() {
    for wire in WIRES {
        let things = Things::default();
        let mut host = Host::start(wire, server_of(&things, None));
        let discovered = host.ask("server/discover", stateless(json!({}), json!({})));
        assert_eq!(discovered["result"]["capabilities"]["resources"], json!({ "subscribe": true }));
        let asked = [thing(1), "fixture://none/1".to_owned(), thing(1), thing(2)];
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let (first, served) = listen(&mut host, &asked);
        assert_eq!(served, json!([thing(1), thing(2)]));
        let (second, served) = listen(&mut host, &[&thing(2)]);
        assert_eq!(served, json!([thing(2)]));
        things.touch(1);
        assert_eq!(hears_of(&host, 1), json!(first));
        things.touch(2);
        let mut tags = [hears_of(&host, 2), hears_of(&host, 2)];
        tags.sort_by_key(Value::to_string);
        assert_eq!(tags, [json!(first), json!(second)]);
        cancel(&mut host, first);
        host.is_quiet();
        hears_nothing_of(&host, &things, 1, 2);
        host.is_quiet();
        // Both ways of saying that it is over: nothing for who cancelled, the result for who did not.
        let (ended, _, rest) = host.ended();
        assert_eq!((ended, rest.len()), (Ended::InputClosed, 1), "{rest:?}");
        assert_eq!((&rest[0]["id"], &rest[0]["result"]["resultType"]), (&json!(second), &json!("complete")));
        assert_eq!(rest[0]["result"]["_meta"][TAG], json!(second));
    }
}

#[test]
fn a_listen_of_which_nothing_is_served_stays_open_and_silent() {
    let mut host = Host::start(WIRES[0], server());
    for uris in [&["fixture://none/1", "fixture://clients/other@1"][..], &[]] {
        let id = host.request("subscriptions/listen", listen_params(uris));
        let told = host.recv();
        assert_eq!(told["params"], json!({ "notifications": {}, "_meta": { TAG: id } }), "{told}");
        host.is_quiet();
    }
    host.stop.cancel();
    let (ended, _, rest) = host.finished();
    assert_eq!(ended, Ended::Stopped);
    assert_eq!(rest.iter().filter(|end| end["result"]["resultType"] == "complete").count(), 2, "{rest:?}");
}

#[test]
fn a_listen_that_is_cancelled_before_it_is_acknowledged_says_nothing() {
    let things = Things::default();
    let mut host = Host::start(WIRES[0], server_of(&things, None));
    let (_, served) = listen(&mut host, &[&thing(2)]);
    assert_eq!(served, json!([thing(2)]));
    let id = host.request("subscriptions/listen", listen_params(&["fixture://later/1", &thing(3)]));
    cancel(&mut host, id);
    host.is_quiet();
    hears_nothing_of(&host, &things, 1, 2);
    hears_nothing_of(&host, &things, 3, 2);
    assert_eq!(host.ended().2.len(), 1);
}

#[test]
fn listens_and_what_they_follow_are_bounded_and_hold_no_place_of_a_call() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let uris: Vec<String> = (0..8).map(thing).collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let mut ids = Vec::new();
    for _ in 0..63 {
        ids.push(listen(&mut host, &uris).0);
    }
    let limited = |answer: &Value| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(message.starts_with("subscription limit reached"), "{answer}");
    };
    // 504 of 512 are followed.
    let nine: Vec<String> = (0..9).map(thing).collect();
    let nine: Vec<&str> = nine.iter().map(String::as_str).collect();
    limited(&host.ask("subscriptions/listen", listen_params(&nine)));
    assert_eq!(listen(&mut host, &uris).1.as_array().map(Vec::len), Some(8));
    limited(&subscribe(&mut host, &thing(1)));
    limited(&host.ask("subscriptions/listen", listen_params(&[])));
    // All places are there for calls.
    let calls: Vec<u64> = (0..257)
        .map(|_| host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 600_000 } })))
        .collect();
    let refusal = host.recv();
    assert_eq!(
        (&refusal["id"], &refusal["error"]["code"]),
        (&json!(calls[256]), &json!(-33003)),
        "{refusal}"
    );
    // What ends makes room.
    for id in ids.into_iter().chain(calls) {
        cancel(&mut host, id);
    }
    while subscribe(&mut host, &thing(1))["error"]["code"] == -32603 {}
    host.is_quiet();
}

#[test]
fn what_cannot_be_followed_takes_no_place() {
    let mut host = Host::start(WIRES[0], server());
    host.initialize(json!({}));
    let unknown: Vec<String> = (0..600).map(|id| format!("fixture://nothing/{id}")).collect();
    let mut uris: Vec<&str> = unknown.iter().map(String::as_str).collect();
    let (one, two) = (thing(1), thing(2));
    uris.extend([&*one, &*two, &*one]);
    assert_eq!(listen(&mut host, &uris).1, json!([one, two]));
    // All other places are free, and no more than those.
    let most: Vec<String> = (0..510).map(thing).collect();
    assert_eq!(listen(&mut host, &most.iter().map(String::as_str).collect::<Vec<_>>()).1, json!(most));
    let unknown = subscribe(&mut host, "fixture://nothing/1");
    assert_ne!(unknown["error"]["code"], -32603, "it is not the places that are missing: {unknown}");
    assert_eq!(subscribe(&mut host, &one)["error"]["code"], -32603);
}

#[test]
fn a_watch_that_panics_ends_alone() {
    let things = Things::default();
    let mut host = Host::start(WIRES[0], server_of(&things, None));
    host.initialize(json!({}));
    subscribe(&mut host, &thing(1));
    for _ in 0..2 {
        assert_eq!(subscribe(&mut host, "fixture://broken/1")["result"], json!({}));
        things.touch(1);
        hears_of(&host, 1);
    }
    let (id, served) = listen(&mut host, &["fixture://broken/1", &thing(2)]);
    assert_eq!(served, json!(["fixture://broken/1", thing(2)]));
    things.touch(2);
    assert_eq!(hears_of(&host, 2), json!(id));
    host.is_quiet();
}

/// Requests enough to fill every buffer on the way to a host that does not read.
const FLOOD: u64 = 50_000;

#[test]
fn changes_that_nobody_reads_count_as_one_and_the_last_is_told() {
    for wire in WIRES {
        let things = Things::default();
        let mut host = Host::start_unread(wire, server_of(&things, None));
        host.request("subscriptions/listen", listen_params(&[&thing(1)]));
        let mut writer = host.writer();
        let flooding = std::thread::spawn(move || {
            for id in 0..FLOOD {
                let pad = "x".repeat(60);
                let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}-{pad}\",\"method\":\"ping\"}}\n");
                writer.write_all(line.as_bytes()).unwrap();
            }
        });
        crate::faults::stands_still(&host);
        for _ in 0..10_000 {
            things.touch(1);
        }
        host.read();
        let (mut pongs, mut told) = (0, 0);
        // The last change is told, wherever that is among the pongs.
        while pongs < FLOOD || told == 0 {
            let message = host.recv();
            pongs += u64::from(message.get("result").is_some());
            told += u64::from(message["method"] == UPDATED);
        }
        flooding.join().unwrap();
        assert!(told < 100, "{told}");
        things.touch(1);
        hears_of(&host, 1);
    }
}

#[test]
fn what_changes_all_the_time_holds_up_nobody() {
    let things = Things::default();
    let mut host = Host::start(WIRES[1], server_of(&things, None));
    host.initialize(json!({}));
    for id in 0..32 {
        host.request("resources/subscribe", json!({ "uri": format!("fixture://busy/{id}") }));
    }
    let last = host.request("resources/subscribe", json!({ "uri": thing(1) }));
    while host.recv()["id"] != last {}
    let mut heard = 0;
    for round in 1..=5 {
        let ping = host.request("ping", json!({}));
        let slow = host.request("tools/call", json!({ "name": "slow", "arguments": { "ms": 5 } }));
        things.touch(1);
        let mut missing = 2;
        while missing > 0 || heard < round {
            let message = host.recv();
            missing -= u64::from(message["id"] == ping || message["id"] == slow);
            heard += u64::from(message["params"]["uri"] == json!(thing(1)));
        }
    }
}

#[test]
fn a_closed_gate_is_one_for_followers_too() {
    let things = Things::default();
    let mut host = Host::start(WIRES[0], server_of(&things, Some(TOKEN)));
    host.initialize(json!({}));
    let with = |id: u32, token: &str| format!("{}?authToken={token}", thing(id));
    let mut seen = Vec::new();
    for uri in [
        thing(1),
        with(1, "x"),
        with(1, ""),
        "fixture://none".to_owned(),
        format!("{}#authToken={TOKEN}", thing(1)),
    ] {
        let answer = subscribe(&mut host, &uri);
        assert_eq!(answer["error"]["code"], -33001, "{answer}");
        assert_eq!(answer["error"]["data"], json!({ "reason": "unauthorized" }));
        seen.push(answer);
    }
    seen.push(subscribe(&mut host, &format!("fixture://things/x?authToken={TOKEN}")));
    seen.push(subscribe(&mut host, &format!("fixture://things/{TOKEN}?authToken={TOKEN}")));
    for answer in &seen[5..] {
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }
    for uri in [with(1, TOKEN), with(2, TOKEN)] {
        assert_eq!(subscribe(&mut host, &uri)["result"], json!({}));
    }
    things.touch(1);
    hears_of(&host, 1);
    // A token is not needed to end, and does no harm.
    host.ask("resources/unsubscribe", json!({ "uri": thing(1) }));
    hears_nothing_of(&host, &things, 1, 2);
    host.ask("resources/unsubscribe", json!({ "uri": with(2, "whatever") }));

    let (id, served) = listen(
        &mut host,
        &[&thing(1), &with(2, "x"), &with(3, TOKEN), &format!("{}&y={TOKEN}", with(4, TOKEN))],
    );
    assert_eq!(served, json!([thing(3)]));
    hears_nothing_of(&host, &things, 2, 3);
    things.touch(3);
    assert_eq!(hears_of(&host, 3), json!(id));
    seen.extend(host.ended().2);
    for message in seen {
        assert!(!message.to_string().contains(TOKEN), "{message}");
    }
}

/// Names a client in the `_meta` of a stateless request.
fn named(mut params: Value, name: &str) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": name, "version": "1" });
    params
}

fn hello(host: &mut Host, name: &str) {
    let info = json!({ "name": name, "version": "1" });
    host.ask(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }),
    );
}

/// Everything that this client may do, and nothing of what another one may.
fn is_known_as(host: &mut Host, name: &str, as_request: &dyn Fn(Value) -> Value) {
    let who = host.ask("tools/call", as_request(json!({ "name": "whoami", "arguments": {} })));
    assert_eq!(who["result"]["structuredContent"]["client"], format!("{name}@1"), "{who}");
    for (client, may) in [(name, true), ("mallory", false)] {
        let uri = format!("fixture://clients/{client}@1");
        let read = host.ask("resources/read", as_request(json!({ "uri": uri })));
        assert_eq!(read.get("result").is_some(), may, "{read}");
    }
}

#[test]
fn every_request_is_of_the_client_that_it_names() {
    for wire in WIRES {
        let mut host = Host::start(wire, server());
        let own = |client: &str| format!("fixture://clients/{client}@1");
        for (opening, other) in [("ada", "bob"), ("eve", "ada")] {
            hello(&mut host, opening);
            is_known_as(&mut host, opening, &|params| params);
            is_known_as(&mut host, other, &|params| named(stateless(params, json!({})), other));
            // What is stateless leaves no trace.
            is_known_as(&mut host, opening, &|params| params);
            assert_eq!(subscribe(&mut host, &own(opening))["result"], json!({}));
            assert_eq!(subscribe(&mut host, &own(other))["error"]["code"], -32002);
            let params = named(listen_params(&[&own(opening), &own(other)]), other);
            let id = host.request("subscriptions/listen", params);
            let told = host.recv();
            assert_eq!(
                told["params"]["notifications"]["resourceSubscriptions"],
                json!([own(other)]),
                "{told}"
            );
            cancel(&mut host, id);
        }
        let mut nameless = stateless(json!({ "name": "whoami", "arguments": {} }), json!({}));
        nameless["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo");
        let who = host.ask("tools/call", nameless);
        assert_eq!(who["result"]["structuredContent"]["client"], "unknown-mcp-client");
    }
}

#[test]
fn a_request_keeps_the_session_it_came_from() {
    let things = Things::default();
    let mut host = Host::start(WIRES[0], server_of(&things, None));
    hello(&mut host, "ada");
    let id = host.request("resources/subscribe", json!({ "uri": "fixture://later/1" }));
    hello(&mut host, "bob");
    subscribe(&mut host, &thing(2));
    things.touch(1);
    // It was asked in a session that is over, so it is answered, and begins nothing.
    let begun = host.recv();
    assert_eq!((&begun["id"], &begun["result"]), (&json!(id), &json!({})));
    hears_nothing_of(&host, &things, 1, 2);
}
