use std::time::Duration;

use serde_json::json;

use cyberine_http::Settings;

use crate::client::{Session, in_time, open};
use crate::site::Site;

const NEW: &str = "2025-11-25";

fn subscribe(uri: &str) -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": uri } })
}

async fn subscribed(site: &Site, version: &'static str) -> Session {
    let session = open(site.address, version, &[]).await;
    let mut client = site.client().await;
    client.say(&session, &subscribe("x://a")).await;
    assert_eq!(client.response().await.json()["result"], json!({}));
    session
}

#[tokio::test]
async fn a_stream_that_broke_is_taken_up_where_it_ended() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    client.call_in(&session, 7, "news", json!({ "count": 3 })).await;
    assert_eq!(client.head().await.status, 200);
    let priming = client.event().await.unwrap();
    assert_eq!((priming.data.as_deref(), priming.retry.as_deref()), (Some(""), Some("1000")));
    let first = client.event().await.unwrap();
    assert_eq!(first.json()["params"]["progress"], json!(0));
    in_time(site.stage.begun.pass()).await;
    drop(client);
    site.until(|meters| meters.load().streams == 0).await;

    // The call goes on, and what the client has not seen comes again.
    let mut client = site.client().await;
    client.get(&session, first.id.as_deref()).await;
    assert_eq!(client.head().await.get("content-type"), Some("text/event-stream"));
    assert_eq!(client.event().await.unwrap().id, first.id);
    for at in [1, 2] {
        assert_eq!(client.message().await.unwrap()["params"]["progress"], json!(at));
    }
    site.stage.go.open(1);
    assert_eq!(client.message().await.unwrap()["params"]["progress"], json!(1_000_000));
    let reply = client.event().await.unwrap();
    assert_eq!(reply.json()["id"], json!(7));
    assert_eq!(client.event().await, None);

    // Also once it is over: from the beginning, and from the end.
    for (place, messages) in [(priming.id, 5), (reply.id, 0)] {
        client.get(&session, place.as_deref()).await;
        assert_eq!(client.head().await.status, 200);
        let mut count = 0;
        while client.message().await.is_some() {
            count += 1;
        }
        assert_eq!(count, messages);
    }
    for bad in ["9-1", "x", "", "1", "1-", "-1", "1-1-1", "+1-1", "1-+1"] {
        client.get(&session, Some(bad)).await;
        assert_eq!(client.response().await.status(), 400, "{bad}");
    }
}

#[tokio::test]
async fn a_large_message_that_was_lost_on_its_way_comes_again() {
    const LENGTH: usize = 3 * 1024 * 1024;
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    client.call_in(&session, 7, "news", json!({ "count": 2, "size": LENGTH })).await;
    assert_eq!(client.head().await.status, 200);
    let priming = client.event().await.unwrap();
    // All of it is taken from the call while the client reads nothing.
    let first = client.event().await.unwrap();
    in_time(site.stage.begun.pass()).await;
    site.stage.go.open(1);
    drop(client);
    site.until(|meters| meters.load().streams == 0).await;

    let mut client = site.client().await;
    client.get(&session, first.id.as_deref()).await;
    assert_eq!(client.head().await.status, 200);
    for (at, length) in [(1, LENGTH), (1_000_000, 0)] {
        let params = client.message().await.unwrap()["params"].clone();
        let text = params["message"].as_str().map_or(0, str::len);
        assert_eq!((params["progress"].as_f64(), text), (Some(f64::from(at)), length));
    }
    assert_eq!(client.message().await.unwrap()["id"], json!(7));
    assert_eq!(client.event().await, None);

    // What is not kept any more is missed, and that is said.
    client.get(&session, priming.id.as_deref()).await;
    assert_eq!(client.response().await.status(), 400);
}

#[tokio::test]
async fn all_calls_whose_connections_were_cut_can_be_taken_up() {
    const CALLS: usize = 20;
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let mut places = Vec::new();
    for id in 0..CALLS {
        let mut client = site.client().await;
        client.call_in(&session, id, "news", json!({ "count": 1 })).await;
        client.head().await;
        places.push(client.event().await.unwrap().id);
        in_time(site.stage.begun.pass()).await;
    }
    site.until(|meters| meters.load().streams == 0).await;
    site.stage.go.open(CALLS);
    site.until(|_| site.stage.go.left() == 0).await;
    for (id, place) in places.iter().enumerate() {
        let mut client = site.client().await;
        client.get(&session, place.as_deref()).await;
        assert_eq!(client.head().await.status, 200, "call {id}");
        let mut messages = Vec::new();
        while let Some(message) = client.message().await {
            messages.push(message);
        }
        assert_eq!(messages.last().unwrap()["id"], json!(id));
    }
}

#[tokio::test]
async fn a_place_in_a_stream_is_of_its_session() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    client.call_in(&session, 7, "news", json!({ "count": 1 })).await;
    client.head().await;
    let place = client.event().await.unwrap().id;
    let other = open(site.address, NEW, &[]).await;
    let mut thief = site.client().await;
    thief.get(&other, place.as_deref()).await;
    assert_eq!(thief.response().await.status(), 400);
}

#[tokio::test]
async fn a_call_goes_on_when_its_client_is_gone_before_anything_was_said() {
    let site = Site::new().await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    client.call_in(&session, 1, "wait", json!({})).await;
    in_time(site.stage.begun.pass()).await;
    drop(client);
    site.until(|meters| meters.load().in_flight == 0).await;
    let mut other = site.client().await;
    other.call_in(&session, 1, "wait", json!({})).await;
    in_time(site.stage.begun.pass()).await;
    // Both are there to be let go.
    site.stage.go.open(2);
    assert_eq!(other.response().await.status(), 200);
    // The other one took its leave too: one that was cancelled would not.
    site.until(|_| site.stage.go.left() == 0).await;
}

#[tokio::test]
async fn the_server_may_close_a_stream_and_the_client_polls() {
    let settings = Settings {
        quiet: Duration::from_millis(1),
        stream_lifetime: Some(Duration::from_millis(50)),
        retry: Duration::from_millis(20),
        ..Settings::default()
    };
    let site = Site::with(settings).await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    client.call_in(&session, 1, "wait", json!({})).await;
    assert_eq!(client.head().await.status, 200);
    let priming = client.event().await.unwrap();
    assert_eq!(priming.retry.as_deref(), Some("20"));
    assert_eq!(client.event().await, None, "closed, and its call goes on");
    site.stage.go.open(1);
    client.get(&session, priming.id.as_deref()).await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(client.message().await.unwrap()["id"], json!(1));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn older_revisions_get_no_event_without_a_message() {
    let site = Site::new().await;
    let session = open(site.address, "2025-06-18", &[]).await;
    let mut client = site.client().await;
    client.call_in(&session, 7, "news", json!({ "count": 1 })).await;
    client.head().await;
    let first = client.event().await.unwrap();
    assert!(first.is_comment && first.id.is_none());
    let news = client.event().await.unwrap();
    assert!(news.id.is_some() && news.data.is_some());
}

#[tokio::test]
async fn what_belongs_to_no_call_comes_on_the_stream_of_the_session() {
    let site = Site::new().await;
    let session = subscribed(&site, NEW).await;
    let mut client = site.client().await;
    client.get(&session, None).await;
    assert_eq!(client.head().await.status, 200);
    let priming = client.event().await.unwrap();
    site.stage.changed.notify_one();
    let event = client.event().await.unwrap();
    assert_eq!(event.json()["params"], json!({ "uri": "x://a" }));
    site.stage.tools.changed();
    assert_eq!(client.message().await.unwrap()["method"], json!("notifications/tools/list_changed"));

    // A second one takes the place of the first, and the first place in it is as good as any.
    let mut second = site.client().await;
    second.get(&session, priming.id.as_deref()).await;
    assert_eq!(second.head().await.status, 200);
    assert_eq!(client.event().await, None);
    assert_eq!(second.message().await.unwrap()["params"], json!({ "uri": "x://a" }));
    assert_eq!(second.message().await.unwrap()["method"], json!("notifications/tools/list_changed"));
    drop(second);
    site.until(|meters| meters.load().streams == 0).await;

    // What comes while nobody listens is there for the next one.
    site.stage.changed.notify_one();
    let mut third = site.client().await;
    third.get(&session, None).await;
    assert_eq!(third.head().await.status, 200);
    assert_eq!(third.message().await.unwrap()["method"], json!("notifications/resources/updated"));
    third.request("DELETE", &[], b"").await;
    let mut client = site.client().await;
    client.request("DELETE", &crate::client::borrowed(&session.headers()), b"").await;
    assert_eq!(client.response().await.status(), 204);
    assert_eq!(third.event().await, None, "a session's end ends its stream");
}

#[tokio::test]
async fn an_unsubscribe_comes_by_a_post_of_its_own() {
    let site = Site::new().await;
    let session = subscribed(&site, NEW).await;
    let mut client = site.client().await;
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/unsubscribe", "params": { "uri": "x://a" } });
    client.say(&session, &message).await;
    assert_eq!(client.response().await.json()["result"], json!({}));
    client.get(&session, None).await;
    client.head().await;
    site.stage.changed.notify_one();
    site.stage.tools.changed();
    assert_eq!(client.message().await.unwrap()["method"], json!("notifications/tools/list_changed"));
}

#[tokio::test]
async fn there_are_so_many_streams_and_no_more() {
    let site = Site::with(Settings { max_streams: 1, ..Settings::default() }).await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    client.get(&session, None).await;
    assert_eq!(client.head().await.status, 200);
    let mut second = site.client().await;
    second.get(&session, None).await;
    let refused = second.response().await;
    assert_eq!((refused.status(), refused.head.get("retry-after").is_some()), (503, true));
    second.call(1, "echo", json!({})).await;
    assert_eq!(second.response().await.status(), 200);
    second.ask(1, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })).await;
    assert_eq!(second.response().await.status(), 503);
}

#[tokio::test]
async fn what_was_begun_without_a_place_for_a_stream_is_answered_with_its_reply_alone() {
    let quiet = Duration::from_millis(1);
    let site = Site::with(Settings { max_streams: 0, quiet, ..Settings::default() }).await;
    let session = open(site.address, NEW, &[]).await;
    let mut client = site.client().await;
    for in_session in [false, true] {
        for tool in ["news", "wait"] {
            let arguments = json!({ "count": 3, "size": 1_000_000 });
            if in_session {
                client.call_in(&session, 1, tool, arguments).await;
            } else {
                let meta = json!({ "progressToken": "p" });
                client
                    .ask(1, "tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
                    .await;
            }
            in_time(site.stage.begun.pass()).await;
            site.stage.go.open(1);
            let response = client.response().await;
            assert_eq!((response.status(), &response.json()["id"]), (200, &json!(1)));
            assert!(response.json()["result"]["structuredContent"].is_object(), "{}", response.text());
        }
    }
    // Nobody can be asked.
    client.call_in(&session, 2, "ask", json!({})).await;
    let response = client.response().await;
    assert_eq!((response.status(), &response.json()["id"]), (200, &json!(2)));
    assert_eq!(response.json()["result"]["isError"], json!(true), "{}", response.text());
}
