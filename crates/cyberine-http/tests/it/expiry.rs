//! What becomes of streams when the token that opened them expires.

use serde_json::{Value, json};

use crate::client::{Client, borrowed, in_time, open, stateless};
use crate::site::{BRIEF, Site};

fn brief() -> (String, String) {
    ("Authorization".to_owned(), format!("Bearer {BRIEF}"))
}

async fn ask_briefly(client: &mut Client, method: &str, params: Value) {
    let (mut headers, body) = stateless("x", method, params);
    headers.push(brief());
    client.request("POST", &borrowed(&headers), &body).await;
    assert_eq!(client.head().await.status, 200);
}

/// Listens until that token expires; what comes last.
async fn listen_briefly(site: &Site) -> Value {
    let mut client = site.client().await;
    let filter = json!({ "notifications": { "resourceSubscriptions": ["x://a"] } });
    ask_briefly(&mut client, "subscriptions/listen", filter).await;
    let begun = client.message().await.unwrap();
    assert_eq!(begun["method"], json!("notifications/subscriptions/acknowledged"));
    let end = client.message().await.unwrap();
    assert_eq!(client.event().await, None);
    end
}

#[tokio::test]
async fn a_listen_ends_with_its_result_when_its_token_expires() {
    let site = Site::new().await;
    let end = listen_briefly(&site).await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("x"), &json!("complete")));
    site.until(|meters| meters.load().streams == 0).await;
}

#[tokio::test]
async fn the_stream_of_a_session_is_closed_when_its_readers_token_expires_and_can_be_taken_up() {
    let site = Site::new().await;
    let (name, value) = brief();
    let session = open(site.address, "2025-11-25", &[(&name, &value)]).await;
    let get = async |last: Option<String>| {
        let mut client = site.client().await;
        let mut headers = session.headers();
        headers.extend([brief(), ("Accept".to_owned(), "text/event-stream".to_owned())]);
        headers.extend(last.map(|last| ("Last-Event-ID".to_owned(), last)));
        client.request("GET", &borrowed(&headers), b"").await;
        assert_eq!(client.head().await.status, 200);
        client
    };
    let mut client = get(None).await;
    let first = client.event().await.unwrap();
    assert_eq!(client.event().await, None);
    let mut client = get(first.id.clone()).await;
    assert_eq!(client.event().await.unwrap().id, first.id);
}

#[tokio::test]
async fn a_call_may_finish_though_its_token_expires() {
    let site = Site::new().await;
    let mut client = site.client().await;
    let call = json!({ "name": "news", "arguments": { "count": 1 }, "_meta": { "progressToken": "p" } });
    ask_briefly(&mut client, "tools/call", call).await;
    in_time(site.stage.begun.pass()).await;
    // A token that came later expires first.
    listen_briefly(&site).await;
    site.stage.go.open(1);
    let mut last = None;
    while let Some(message) = client.message().await {
        last = Some(message);
    }
    assert_eq!(last.unwrap()["result"]["structuredContent"], json!({ "told": true }));
}
