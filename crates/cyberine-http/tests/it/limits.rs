use std::time::Duration;

use serde_json::json;

use cyberine_http::Settings;
use cyberine_protocol::strict::FRAME_LIMIT;

use crate::client::{ACCEPT, JSON, borrowed, in_time, open, stateless};
use crate::site::Site;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_however_it_comes() {
    let site = Site::new().await;
    let body = vec![b' '; 64_000_000];
    let mut client = site.client().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(head).await;
    // All of it is written before anything is read.
    client.send(&body).await;
    let response = client.response().await;
    assert_eq!((response.status(), response.error()), (413, (-32600, None)));
    assert!(client.is_closed().await);

    let mut client = site.client().await;
    client.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    for _ in 0..=FRAME_LIMIT / MIB {
        client.send(format!("{MIB:x}\r\n")).await;
        client.send(&body[..MIB]).await;
        client.send("\r\n").await;
    }
    client.send("0\r\n\r\n").await;
    let response = client.response().await;
    assert_eq!(response.status(), 413, "{}", response.text());

    // One of just the right size is served.
    let (headers, mut body) = stateless(1, "tools/list", json!({}));
    body.resize(FRAME_LIMIT, b' ');
    let mut client = site.client().await;
    client.request("POST", &borrowed(&headers), &body).await;
    assert_eq!(client.response().await.status(), 200);
}

#[tokio::test]
async fn an_encoded_body_is_refused_for_what_it_is() {
    let site = Site::new().await;
    let (headers, body) = stateless(1, "tools/list", json!({}));
    let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", body.len(), String::from_utf8(body.clone()).unwrap());
    for (coding, status) in
        [("chunked", 200), ("Chunked", 200), ("gzip, chunked", 501), ("x\r\nTransfer-Encoding: chunked", 501)]
    {
        let mut client = site.client().await;
        let head =
            format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}Transfer-Encoding: {coding}\r\n\r\n");
        client.send(format!("{head}{chunk}")).await;
        assert_eq!(client.response().await.status(), status, "{coding}");
    }
    for (encoding, status) in [("identity", 200), ("gzip", 415), ("identity, gzip", 415)] {
        let mut client = site.client().await;
        let headers = [borrowed(&headers), vec![("Content-Encoding", encoding)]].concat();
        client.request("POST", &headers, &body).await;
        assert_eq!(client.response().await.status(), status, "{encoding}");
    }
    let mut client = site.client().await;
    client.request("PUT", &[], b"").await;
    let response = client.response().await;
    assert_eq!((response.status(), response.head.get("allow")), (405, Some("GET, POST, DELETE")));
}

#[tokio::test]
async fn heads_are_bounded() {
    let site = Site::with(Settings { max_headers: 20, max_head: 8 * 1024, ..Settings::default() }).await;
    let mut client = site.client().await;
    let many: String = (0..21).map(|at| format!("X-{at}: 1\r\n")).collect();
    client.send(format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{many}\r\n")).await;
    assert_eq!(client.response().await.status(), 431);
    let mut client = site.client().await;
    client.send(format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(16 * 1024))).await;
    assert_eq!(client.response().await.status(), 431);
    // What is a little too long comes at once, and is refused all the same.
    for (length, status) in [(7 * 1024, 200), (9 * 1024, 431), (15 * 1024, 431)] {
        let mut client = site.client().await;
        let (mut headers, body) = stateless(1, "tools/list", json!({}));
        headers.push(("X".to_owned(), "x".repeat(length)));
        client.request("POST", &borrowed(&headers), &body).await;
        assert_eq!(client.response().await.status(), status, "{length}");
    }
    for garbage in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET\r\n\r\n",
        b"POST /mcp HTTP/3.0\r\n\r\n",
        b"{\"jsonrpc\":\"2.0\"}\r\n\r\n",
    ] {
        let mut client = site.client().await;
        client.send(garbage).await;
        assert_eq!(client.response().await.status(), 400);
    }
}

#[tokio::test]
async fn who_is_slow_on_purpose_is_cut_off_and_holds_up_nobody() {
    let limit = Duration::from_millis(100);
    let site = Site::with(Settings { head_timeout: limit, body_timeout: limit, ..Settings::default() }).await;
    let mut head = site.client().await;
    head.send("POST /mcp HTTP/1.1\r\nHost: loc").await;
    let mut body = site.client().await;
    body.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 100\r\n\r\n{").await;
    let mut idle = site.client().await;
    let mut good = site.client().await;
    good.call(1, "echo", json!({})).await;
    assert_eq!(good.response().await.status(), 200);
    let response = body.response().await;
    assert_eq!((response.status(), response.error().0), (408, -32600));
    assert!(body.is_closed().await && idle.is_closed().await);
    while !head.is_closed().await {
        head.head().await;
    }
    site.until(|meters| meters.load().connections == 0).await;
}

#[tokio::test]
async fn who_connects_and_says_nothing_soon_gives_its_place_to_others() {
    let first_head_timeout = Duration::from_millis(100);
    let site = Site::with(Settings { max_connections: 2, first_head_timeout, ..Settings::default() }).await;
    let mut silent = Vec::new();
    for sent in ["", "POST /mcp HTTP/1.1\r\nHost: loc"] {
        let mut client = site.client().await;
        client.send(sent).await;
        silent.push(client);
    }
    let mut good = site.client().await;
    good.call(1, "echo", json!({})).await;
    assert_eq!(good.response().await.status(), 200);
    for client in &mut silent {
        assert!(client.is_closed().await);
    }
    // One that has asked already has longer.
    let mut other = site.client().await;
    assert!(other.is_closed().await);
    good.call(2, "echo", json!({})).await;
    assert_eq!(good.response().await.status(), 200);
}

#[tokio::test]
async fn connections_wait_where_there_are_too_many() {
    let site = Site::with(Settings { max_connections: 2, ..Settings::default() }).await;
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut client = site.client().await;
        client.call(1, "wait", json!({})).await;
        in_time(site.stage.begun.pass()).await;
        busy.push(client);
    }
    let mut waits = site.client().await;
    waits.call(1, "echo", json!({})).await;
    assert_eq!(site.meters.load().connections, 2);
    site.stage.go.open(1);
    assert_eq!(busy.remove(0).response().await.status(), 200);
    assert_eq!(waits.response().await.status(), 200);
}

#[tokio::test]
async fn a_client_that_stops_reading_is_cut_off_while_others_go_on() {
    let site =
        Site::with(Settings { write_timeout: Duration::from_millis(300), ..Settings::default() }).await;
    let mut deaf = site.client().await;
    let arguments = json!({ "count": 4_000, "size": 10_000 });
    deaf.ask(
        "deaf",
        "tools/call",
        json!({ "name": "news", "arguments": arguments, "_meta": { "progressToken": "p" } }),
    )
    .await;
    assert_eq!(deaf.head().await.status, 200);
    let session = open(site.address, "2025-11-25", &[]).await;
    let mut deaf_too = site.client().await;
    deaf_too.call_in(&session, 1, "news", arguments).await;
    assert_eq!(deaf_too.head().await.status, 200);

    let mut good = site.client().await;
    while site.meters.load().streams > 0 {
        good.call(1, "echo", json!({})).await;
        assert_eq!(good.response().await.status(), 200);
    }
    // What was on its way can still be read, and then comes the end, before the reply.
    while let Some(event) = deaf.event().await {
        assert!(event.data.is_none_or(|data| !data.contains("result")));
    }
}

#[tokio::test]
async fn a_large_answer_is_sent_whole() {
    let site = Site::new().await;
    let mut client = site.client().await;
    client.call(1, "large", json!({ "size": 3 * MIB })).await;
    let response = client.response().await;
    assert_eq!(response.json()["result"]["structuredContent"]["text"].as_str().unwrap().len(), 3 * MIB);
}

#[tokio::test]
async fn ten_thousand_idle_sessions_are_nothing() {
    let site = Site::new().await;
    let mut client = site.client().await;
    for _ in 0..10_000 {
        client.request("POST", &[JSON, ACCEPT], &crate::client::initialize("2025-11-25")).await;
        assert_eq!(client.response().await.status(), 200);
    }
    assert_eq!(site.meters.load().sessions, 10_000);
    client.request("POST", &[JSON, ACCEPT], &crate::client::initialize("2025-11-25")).await;
    assert_eq!(client.response().await.status(), 503);
    client.call(1, "echo", json!({})).await;
    assert_eq!(client.response().await.status(), 200);
}
