use std::collections::HashSet;

use serde_json::json;

use cyberine_http::Settings;
use std::time::Duration;

use crate::client::{ACCEPT, JSON, borrowed, in_time, stateless};
use crate::site::Site;

#[tokio::test]
async fn a_call_is_answered_with_json_over_one_connection_again_and_again() {
    let site = Site::new().await;
    let mut client = site.client().await;
    for id in [json!(1), json!("1"), json!(1)] {
        client.call(id.clone(), "echo", json!({ "x": 7 })).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.head.get("content-type")), (200, Some("application/json")));
        let json = response.json();
        assert_eq!((&json["id"], &json["result"]["structuredContent"]["echo"]["x"]), (&id, &json!(7)));
        assert!(response.head.get("mcp-session-id").is_none() && response.head.get("x-request-id").is_some());
    }
}

#[tokio::test]
async fn there_is_nothing_but_post() {
    let site = Site::new().await;
    for (method, served) in [
        // Without a session.
        ("GET", "POST"),
        ("DELETE", "POST"),
        ("PUT", "GET, POST, DELETE"),
        ("PATCH", "GET, POST, DELETE"),
        ("OPTIONS", "GET, POST, DELETE"),
        ("FOO", "GET, POST, DELETE"),
    ] {
        let mut client = site.client().await;
        client.request(method, &[ACCEPT], b"").await;
        let response = client.response().await;
        assert_eq!((response.status(), response.head.get("allow")), (405, Some(served)), "{method}");
    }
    let mut client = site.client().await;
    client.request("HEAD", &[ACCEPT], b"").await;
    assert_eq!(client.head().await.status, 405);
}

#[tokio::test]
async fn what_is_wrong_is_told_with_the_status_of_its_error() {
    let site = Site::new().await;
    let (headers, body) =
        stateless(5, "tools/call", json!({ "name": "echo", "arguments": { "region": "eu" } }));
    let with = |name: &str, value: Option<&str>| {
        let mut headers: Vec<_> =
            headers.iter().filter(|(other, _)| !other.eq_ignore_ascii_case(name)).cloned().collect();
        headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        headers
    };
    let id = Some(json!(5));
    let table = [
        (headers.clone(), 400, -32020, "a mirrored argument without its header"),
        (with("Mcp-Param-Region", Some("us")), 400, -32020, "another value"),
        (with("Mcp-Param-Region", Some("=?base64?ZXU?=")), 400, -32020, "bad padding"),
        (with("Mcp-Method", Some("tools/list")), 400, -32020, "another method"),
        (with("Mcp-Method", None), 400, -32020, "no method"),
        (with("Mcp-Name", Some("wait")), 400, -32020, "another name"),
        (with("MCP-Protocol-Version", None), 400, -32020, "no version"),
        (with("MCP-Protocol-Version", Some("2025-11-25")), 400, -32020, "another version"),
    ];
    for (headers, status, code, what) in table {
        let mut client = site.client().await;
        client.request("POST", &borrowed(&headers), &body).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.error()), (status, (code, id.clone())), "{what}");
    }
    for value in ["eu", "=?base64?ZXU=?="] {
        let mut client = site.client().await;
        client.request("POST", &borrowed(&with("Mcp-Param-Region", Some(value))), &body).await;
        assert_eq!(client.response().await.status(), 200, "{value}");
    }

    for (method, params, status, code) in [
        ("foo/bar", json!({}), 404, -32601),
        ("initialize", json!({}), 404, -32601),
        ("ping", json!({}), 404, -32601),
        ("tools/call", json!({ "name": "nope" }), 200, -32602),
    ] {
        let mut client = site.client().await;
        client.ask(5, method, params).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.error()), (status, (code, id.clone())), "{method}");
    }

    for (body, code) in [
        (&b"{bad"[..], -32700),
        (b"", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
    ] {
        let mut client = site.client().await;
        let headers = [JSON, ACCEPT, ("MCP-Protocol-Version", "2026-07-28")];
        client.request("POST", &headers, body).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.error().0), (400, code), "{}", String::from_utf8_lossy(body));
    }
}

#[tokio::test]
async fn a_notification_is_taken_in_and_not_answered() {
    let site = Site::new().await;
    let mut client = site.client().await;
    let headers =
        [JSON, ACCEPT, ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "notifications/cancelled")];
    client
        .request(
            "POST",
            &headers,
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        )
        .await;
    let response = client.response().await;
    assert_eq!((response.status(), response.body.len()), (202, 0));
}

#[tokio::test]
async fn news_comes_first_on_a_stream_and_the_reply_last() {
    let site = Site::new().await;
    let mut client = site.client().await;
    let params = json!({ "name": "news", "arguments": { "count": 2 }, "_meta": { "progressToken": "p" } });
    client.ask("a", "tools/call", params).await;
    let head = client.head().await;
    assert_eq!((head.status, head.get("content-type")), (200, Some("text/event-stream")));
    assert_eq!(head.get("x-accel-buffering"), Some("no"));
    for at in 0..2 {
        let news = client.message().await.unwrap();
        assert_eq!(
            (&news["method"], &news["params"]["progress"]),
            (&json!("notifications/progress"), &json!(at)),
            "{news}"
        );
    }
    site.stage.go.open(1);
    assert_eq!(client.message().await.unwrap()["params"]["progress"], json!(1_000_000));
    assert_eq!(client.message().await.unwrap()["id"], json!("a"));
    assert_eq!(client.event().await, None);
    // The connection is good for more.
    client.call(2, "echo", json!({})).await;
    assert_eq!(client.response().await.status(), 200);
}

#[tokio::test]
async fn a_silent_call_becomes_a_stream_that_says_it_is_alive() {
    let (quiet, keep_alive) = (Duration::from_millis(20), Duration::from_millis(20));
    let site = Site::with(Settings { quiet, keep_alive, ..Settings::default() }).await;
    let mut client = site.client().await;
    client.call(1, "wait", json!({})).await;
    assert_eq!(client.head().await.get("content-type"), Some("text/event-stream"));
    for _ in 0..3 {
        let event = client.event().await.unwrap();
        assert!(event.is_comment && event.data.is_none() && event.id.is_none(), "{event:?}");
    }
    site.stage.go.open(1);
    assert_eq!(client.message().await.unwrap()["id"], json!(1));
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call_and_no_other() {
    let site = Site::new().await;
    let mut stays = site.client().await;
    stays.call(1, "wait", json!({ "stays": true })).await;
    in_time(site.stage.begun.pass()).await;
    let mut goes = site.client().await;
    goes.call(1, "wait", json!({})).await;
    in_time(site.stage.begun.pass()).await;
    drop(goes);
    in_time(site.stage.cancelled.pass()).await;
    // So does one whose answer has become a stream.
    let mut goes = site.client().await;
    let params = json!({ "name": "wait", "arguments": {}, "_meta": { "progressToken": "p" } });
    goes.ask(1, "tools/call", params).await;
    in_time(site.stage.begun.pass()).await;
    drop(goes);
    in_time(site.stage.cancelled.pass()).await;

    site.stage.go.open(1);
    let response = stays.response().await;
    assert_eq!(response.json()["result"]["structuredContent"]["waited"]["stays"], json!(true));
}

#[tokio::test]
async fn everybody_may_call_every_request_number_one() {
    let site = Site::new().await;
    let mut clients = Vec::new();
    for name in ["ada", "bob", "ada", "bob"] {
        let mut client = site.client().await;
        let number = clients.len();
        let (mut headers, body) =
            stateless(1, "tools/call", json!({ "name": "wait", "arguments": { "number": number } }));
        headers.push(("Authorization".to_owned(), format!("Bearer {name}")));
        client.request("POST", &borrowed(&headers), &body).await;
        in_time(site.stage.begun.pass()).await;
        clients.push(client);
    }
    site.stage.go.open(clients.len());
    for (number, client) in clients.iter_mut().enumerate() {
        let json = client.response().await.json();
        assert_eq!(
            (&json["id"], &json["result"]["structuredContent"]["waited"]["number"]),
            (&json!(1), &json!(number))
        );
    }
}

#[tokio::test]
async fn a_listen_tells_of_changes_until_its_client_goes() {
    let site = Site::new().await;
    let mut client = site.client().await;
    client
        .ask("l", "subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": ["x://a"] } }))
        .await;
    assert_eq!(client.head().await.get("content-type"), Some("text/event-stream"));
    let ack = client.message().await.unwrap();
    assert_eq!(ack["method"], json!("notifications/subscriptions/acknowledged"));
    site.stage.changed.notify_one();
    let news = client.message().await.unwrap();
    assert_eq!(
        (&news["method"], &news["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("x://a"))
    );
    assert_eq!(site.meters.load().streams, 1);
    drop(client);
    site.until(|meters| meters.load().streams == 0).await;
}

#[tokio::test]
async fn sessions_and_places_in_streams_mean_nothing_here() {
    let site = Site::new().await;
    let (mut headers, body) = stateless(1, "tools/list", json!({}));
    headers.push(("Mcp-Session-Id".to_owned(), "nope".to_owned()));
    headers.push(("Last-Event-ID".to_owned(), "1-1".to_owned()));
    let mut client = site.client().await;
    client.request("POST", &borrowed(&headers), &body).await;
    assert_eq!(client.response().await.status(), 200);
}

#[tokio::test]
async fn requests_have_numbers_of_their_own() {
    let site = Site::new().await;
    let mut client = site.client().await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        client.call(1, "echo", json!({})).await;
        assert!(seen.insert(client.response().await.head.get("x-request-id").unwrap().to_owned()));
    }
}

#[tokio::test]
async fn a_uri_that_cannot_be_used_is_a_fault_of_the_params() {
    let site = Site::new().await;
    let mut client = site.client().await;
    client.ask(1, "resources/read", json!({ "uri": "x://a?b=c" })).await;
    let response = client.response().await;
    let json = response.json();
    assert_eq!((response.status(), &json["error"]["code"]), (200, &json!(-32602)), "{json}");
    assert_eq!(json["error"]["data"]["reason"], json!("has_query"));
}
