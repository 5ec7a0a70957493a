use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use cyberine_http::Settings;

use crate::client::{ACCEPT, JSON, Session, borrowed, in_time, initialize, open};
use crate::site::Site;

const NEW: &str = "2025-11-25";
const OLD: &str = "2025-03-26";

/// The status of a message within a session, and the code of its error if it is one.
async fn say(site: &Site, session: &Session, message: Value) -> (u16, Option<i64>) {
    let mut client = site.client().await;
    client.say(session, &message).await;
    let response = client.response().await;
    let code = (!response.body.is_empty()).then(|| response.json()["error"]["code"].as_i64()).flatten();
    (response.status(), code)
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    assert!(session.id.len() == 32 && session.id.bytes().all(|byte| byte.is_ascii_graphic()));
    assert_eq!(
        say(&site, &session, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await,
        (202, None)
    );
    assert_eq!(say(&site, &session, list()).await, (200, None));
    assert_eq!(site.meters.load().sessions, 1);

    let mut client = site.client().await;
    client.request("DELETE", &borrowed(&session.headers()), b"").await;
    assert_eq!(client.response().await.status(), 204);
    assert_eq!(site.meters.load().sessions, 0);
    assert_eq!(say(&site, &session, list()).await, (404, Some(-32600)));
    for method in ["DELETE", "GET"] {
        client.request(method, &borrowed(&session.headers()), b"").await;
        assert_eq!(client.response().await.status(), 404, "{method}");
    }
}

#[tokio::test]
async fn ids_of_sessions_cannot_be_guessed() {
    let site = Site::new().await;
    let mut seen = HashSet::new();
    for _ in 0..50 {
        assert!(seen.insert(open(site.address, NEW, &[]).await.id));
    }
    for id in ["", "x", "0", &"0".repeat(32), &"A".repeat(32), &"a".repeat(33), "\u{e9}"] {
        let session = Session { id: id.to_owned(), version: NEW };
        assert_eq!(say(&site, &session, list()).await.0, 404, "{id}");
    }
}

#[tokio::test]
async fn what_a_message_of_a_session_must_say() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let version = ("MCP-Protocol-Version", NEW);
    let id = ("Mcp-Session-Id", session.id.as_str());
    for (headers, status) in [
        (&[version][..], 400),
        (&[], 400),
        (&[id, version], 200),
        (&[id], 200),
        (&[id, ("MCP-Protocol-Version", "2025-06-18")], 400),
        (&[id, ("MCP-Protocol-Version", "1999-01-01")], 400),
        (&[id, version, version], 400),
        (&[id, id, version], 404),
    ] {
        let mut client = site.client().await;
        client.request("POST", &[headers, &[JSON, ACCEPT]].concat(), list().to_string().as_bytes()).await;
        assert_eq!(client.response().await.status(), status, "{headers:?}");
    }
    let mut client = site.client().await;
    client.request("POST", &[id, JSON, ACCEPT], &initialize(NEW)).await;
    assert_eq!(client.response().await.status(), 400, "a session is opened once");
    assert_eq!(site.meters.load().sessions, 1);
    client
        .request("POST", &[JSON, ACCEPT], br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)
        .await;
    let response = client.response().await;
    assert!(response.head.get("mcp-session-id").is_none() && response.error().0 == -32602);
    assert_eq!(site.meters.load().sessions, 1);
}

#[tokio::test]
async fn a_session_is_of_the_principal_that_opened_it() {
    let site = Site::new().await;
    let (ada, bob) = (("Authorization", "Bearer ada"), ("Authorization", "Bearer bob"));
    let session = open(site.address, NEW, &[ada]).await;
    let headers = session.headers();
    let by = |who| [borrowed(&headers), vec![JSON, ACCEPT, who]].concat();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo" } });
    let mut client = site.client().await;
    for (method, body) in [("POST", call.to_string()), ("GET", String::new()), ("DELETE", String::new())] {
        client.request(method, &by(bob), body.as_bytes()).await;
        assert_eq!(client.response().await.status(), 404, "{method}");
    }
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    client.request("POST", &by(bob), cancel.to_string().as_bytes()).await;
    assert_eq!(client.response().await.status(), 404);
    // It is as it was.
    client.request("POST", &by(ada), call.to_string().as_bytes()).await;
    let response = client.response().await;
    assert_eq!(response.json()["result"]["structuredContent"]["by"], json!("ada"));
}

#[tokio::test]
async fn two_calls_of_one_number_in_one_session_and_in_two_are_kept_apart() {
    let site = Site::new().await;
    let first = open(site.address, NEW, &[]).await;
    let second = open(site.address, NEW, &[]).await;
    let mut clients = Vec::new();
    for (number, session) in [&first, &first, &second, &second].into_iter().enumerate() {
        let mut client = site.client().await;
        client.call_in(session, 1, "wait", json!({ "number": number })).await;
        in_time(site.stage.begun.pass()).await;
        clients.push(client);
    }
    // Nobody knows which of the two is meant.
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(say(&site, &first, cancel).await.0, 202);
    site.stage.go.open(4);
    for (number, client) in clients.iter_mut().enumerate() {
        let json = client.response().await.json();
        assert_eq!(
            (&json["id"], &json["result"]["structuredContent"]["waited"]["number"]),
            (&json!(1), &json!(number))
        );
    }
}

#[tokio::test]
async fn a_cancellation_comes_by_a_post_of_its_own() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let (mut one, mut two) = (site.client().await, site.client().await);
    one.call_in(&session, 1, "wait", json!({})).await;
    in_time(site.stage.begun.pass()).await;
    two.call_in(&session, 2, "wait", json!({})).await;
    in_time(site.stage.begun.pass()).await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(say(&site, &session, cancel).await.0, 202);
    in_time(site.stage.cancelled.pass()).await;
    let answer = one.response().await;
    let kind = answer.head.get("content-type").unwrap();
    assert_eq!((answer.status(), kind, answer.text().as_str()), (200, "text/event-stream", ":\n\n"));
    site.stage.go.open(1);
    assert_eq!(two.response().await.json()["id"], json!(2));
}

#[tokio::test]
async fn a_question_rides_on_the_stream_of_its_call_and_its_answer_comes_by_post() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let (mut one, mut two) = (site.client().await, site.client().await);
    let mut questions = Vec::new();
    for client in [&mut one, &mut two] {
        client.call_in(&session, 1, "ask", json!({})).await;
        assert_eq!(client.head().await.get("content-type"), Some("text/event-stream"));
        let question = client.message().await.unwrap();
        assert_eq!(question["method"], json!("elicitation/create"));
        questions.push(question["id"].clone());
    }
    assert_ne!(questions[0], questions[1]);
    // Not in the order they were asked in.
    for (client, id, name) in [(&mut two, &questions[1], "second"), (&mut one, &questions[0], "first")] {
        let result = json!({ "action": "accept", "content": { "name": name } });
        assert_eq!(
            say(&site, &session, json!({ "jsonrpc": "2.0", "id": id, "result": result })).await,
            (202, None)
        );
        let reply = client.message().await.unwrap();
        assert_eq!(reply["result"]["structuredContent"]["answer"]["content"]["name"], json!(name), "{reply}");
        assert_eq!(client.event().await, None);
    }
    let stray = json!({ "jsonrpc": "2.0", "id": questions[0], "result": {} });
    assert_eq!(say(&site, &session, stray).await.0, 202);
}

#[tokio::test]
async fn a_batch_is_one_message_of_its_revision() {
    let site = Site::new().await;
    let session = open(site.address, OLD, &[]).await;
    let ping = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "wait" } });
    let mut client = site.client().await;
    client.say(&session, &json!([ping(1), call, ping(2)])).await;
    in_time(site.stage.begun.pass()).await;
    site.stage.go.open(1);
    let response = client.response().await;
    let mut ids: Vec<_> =
        response.json().as_array().unwrap().iter().map(|part| part["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!((response.status(), ids), (200, vec![1, 2, 3]));
    let silent = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    assert_eq!(say(&site, &session, silent).await, (202, None));
    let newer = open(site.address, NEW, &[]).await;
    assert_eq!(say(&site, &newer, json!([ping(1)])).await, (400, Some(-32600)));
}

#[tokio::test]
async fn sessions_are_bounded_and_idle_ones_make_room() {
    let settings = Settings {
        max_sessions: 3,
        max_sessions_of_one: 2,
        session_idle: Duration::from_millis(50),
        ..Settings::default()
    };
    let site = Site::with(settings.clone()).await;
    let ada = ("Authorization", "Bearer ada");
    open(site.address, NEW, &[ada]).await;
    open(site.address, NEW, &[ada]).await;
    site.until(|meters| meters.load().sessions == 0).await;
    // One with a call in flight is not idle. On a slow day it was before the call came.
    let mut client = loop {
        let held = open(site.address, NEW, &[]).await;
        let mut client = site.client().await;
        client.call_in(&held, 1, "wait", json!({})).await;
        tokio::select! {
            () = site.stage.begun.pass() => break client,
            response = client.response() => assert_eq!(response.status(), 404),
        }
    };
    open(site.address, NEW, &[ada]).await;
    site.until(|meters| meters.load().sessions == 1).await;
    site.stage.go.open(1);
    assert_eq!(client.response().await.status(), 200);

    let site = Site::with(Settings { session_idle: Duration::from_secs(60), ..settings }).await;
    for _ in 0..2 {
        open(site.address, NEW, &[ada]).await;
    }
    let mut client = site.client().await;
    client.request("POST", &[ada, JSON, ACCEPT], &initialize(NEW)).await;
    let refused = client.response().await;
    assert_eq!((refused.status(), refused.error()), (503, (-33003, None)));
    assert!(refused.head.get("retry-after").is_some() && refused.head.get("mcp-session-id").is_none());
    open(site.address, NEW, &[("Authorization", "Bearer bob")]).await;
    client.request("POST", &[("Authorization", "Bearer eve"), JSON, ACCEPT], &initialize(NEW)).await;
    assert_eq!(client.response().await.status(), 503);
    assert_eq!(site.meters.load().sessions, 3);
}

#[tokio::test]
async fn a_session_that_follows_something_ends_all_the_same_unless_somebody_listens() {
    let idle = Duration::from_millis(50);
    let site = Site::with(Settings { session_idle: idle, ..Settings::default() }).await;
    let follow =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "x://a" } });
    // On a slow day one is idle before it is listened to.
    let mut listener = loop {
        let session = open(site.address, NEW, &[]).await;
        let mut client = site.client().await;
        client.get(&session, None).await;
        if client.head().await.status == 200 {
            break client;
        }
    };
    assert!(listener.event().await.is_some());
    for _ in 0..3 {
        let session = open(site.address, NEW, &[]).await;
        let _on_a_slow_day_it_is_gone = say(&site, &session, follow.clone()).await;
    }
    site.until(|meters| meters.load().sessions == 1).await;
    drop(listener);
    site.until(|meters| meters.load().sessions == 0).await;
}

#[tokio::test]
async fn one_principal_takes_neither_all_streams_nor_more_calls_by_more_sessions() {
    let site = Site::with(Settings { max_streams: 70, ..Settings::default() }).await;
    let (ada, bob) = (("Authorization", "Bearer ada"), ("Authorization", "Bearer bob"));
    let by = |session: &Session, who, more| {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        [session.headers(), vec![own(who), own(more)]].concat()
    };
    let mut streams = Vec::new();
    for at in 0..65 {
        let session = open(site.address, NEW, &[ada]).await;
        let mut client = site.client().await;
        client.request("GET", &borrowed(&by(&session, ada, ("Accept", "text/event-stream"))), b"").await;
        assert_eq!(client.head().await.status, if at < 64 { 200 } else { 503 });
        streams.push(client);
    }
    let session = open(site.address, NEW, &[bob]).await;
    let mut client = site.client().await;
    client.request("GET", &borrowed(&by(&session, bob, ("Accept", "text/event-stream"))), b"").await;
    assert_eq!(client.head().await.status, 200);
    drop(streams);

    let mut calls = Vec::new();
    let wait = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wait" } });
    let wait = wait.to_string();
    for _ in 0..2 {
        let session = open(site.address, NEW, &[ada]).await;
        let headers = [by(&session, ada, JSON), vec![(ACCEPT.0.to_owned(), ACCEPT.1.to_owned())]].concat();
        for _ in 0..128 {
            let mut client = site.client().await;
            client.request("POST", &borrowed(&headers), wait.as_bytes()).await;
            in_time(site.stage.begun.pass()).await;
            calls.push(client);
        }
    }
    for (who, served) in [(ada, false), (bob, true)] {
        let session = open(site.address, NEW, &[who]).await;
        let headers = [by(&session, who, JSON), vec![(ACCEPT.0.to_owned(), ACCEPT.1.to_owned())]].concat();
        let mut client = site.client().await;
        client.request("POST", &borrowed(&headers), wait.as_bytes()).await;
        if served {
            in_time(site.stage.begun.pass()).await;
        } else {
            let refused = client.response().await;
            assert_eq!((refused.status(), refused.error().0), (503, -33003));
            assert!(refused.head.get("retry-after").is_some());
        }
    }
}
