use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;

use cyberine_http::Settings;

use crate::client::{Client, in_time, open};
use crate::site::Site;

const CALLS: usize = 64;

async fn calls(site: &Site) -> Vec<Client> {
    let mut clients = Vec::new();
    for number in 0..CALLS {
        let mut client = site.client().await;
        client.call(number, "wait", json!({ "number": number })).await;
        in_time(site.stage.begun.pass()).await;
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn calls_in_flight_are_answered_within_the_grace() {
    let mut site = Site::new().await;
    let mut clients = calls(&site).await;
    let mut idle = site.client().await;
    site.stop();
    assert!(idle.is_closed().await);
    assert!(TcpStream::connect(site.address).await.is_err(), "no new connections");
    site.stage.go.open(CALLS);
    for (number, client) in clients.iter_mut().enumerate() {
        let json = client.response().await.json();
        assert_eq!(json["result"]["structuredContent"]["waited"]["number"], json!(number));
        assert!(client.is_closed().await);
    }
    site.ended().await;
}

#[tokio::test]
async fn calls_that_take_longer_are_ended_with_an_error() {
    let mut site = Site::with(Settings { grace: Duration::from_millis(50), ..Settings::default() }).await;
    let mut clients = calls(&site).await;
    let session = open(site.address, "2025-11-25", &[]).await;
    let mut legacy = site.client().await;
    legacy.call_in(&session, "x", "news", json!({ "count": 1 })).await;
    legacy.head().await;
    assert!(legacy.message().await.is_some());
    let start = Instant::now();
    site.stop();
    for (number, client) in clients.iter_mut().enumerate() {
        let response = client.response().await;
        assert_eq!(response.error(), (-33004, Some(json!(number))));
    }
    let last = legacy.message().await.unwrap();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!("x"), &json!(-33004)));
    assert_eq!(legacy.event().await, None);
    site.ended().await;
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn streams_end_cleanly_and_listens_with_their_result() {
    let mut site = Site::with(Settings { grace: Duration::from_millis(50), ..Settings::default() }).await;
    let mut listen = site.client().await;
    listen
        .ask("l", "subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": ["x://a"] } }))
        .await;
    listen.head().await;
    assert!(listen.message().await.is_some());
    let session = open(site.address, "2025-11-25", &[]).await;
    let mut news = site.client().await;
    news.get(&session, None).await;
    news.head().await;
    assert!(news.event().await.is_some());
    site.stop();
    let end = listen.message().await.unwrap();
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("l"), &json!("complete")));
    assert_eq!(listen.event().await, None);
    assert_eq!(news.event().await, None);
    site.ended().await;
}

#[tokio::test]
async fn nobody_who_reads_nothing_or_says_nothing_holds_up_the_end() {
    let settings = Settings { grace: Duration::from_millis(50), ..Settings::default() };
    let mut site = Site::with(settings).await;
    let mut deaf = site.client().await;
    let arguments = json!({ "count": 4_000, "size": 10_000 });
    deaf.ask(
        1,
        "tools/call",
        json!({ "name": "news", "arguments": arguments, "_meta": { "progressToken": "p" } }),
    )
    .await;
    deaf.head().await;
    let mut mute = site.client().await;
    mute.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{").await;
    site.until(|meters| meters.load().in_flight == 1).await;
    let start = Instant::now();
    site.stop();
    site.ended().await;
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn whose_message_is_not_there_at_the_end_hears_of_it_at_once() {
    let mut site = Site::new().await;
    let mut half = site.client().await;
    half.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 10\r\n\r\n{").await;
    site.until(|meters| meters.load().in_flight == 1).await;
    let start = Instant::now();
    site.stop();
    let response = half.response().await;
    assert_eq!((response.status(), response.error()), (503, (-33003, None)));
    assert_eq!(response.head.get("connection"), Some("close"));
    assert!(response.head.get("retry-after").is_some() && half.is_closed().await);
    site.ended().await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}
