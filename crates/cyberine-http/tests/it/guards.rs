use serde_json::json;

use cyberine_http::Settings;

use crate::client::{ACCEPT, Client, JSON, borrowed, initialize, stateless};
use crate::site::Site;

/// Sends a stateless call with a head of the test's own making; the status and the error's code.
async fn raw(site: &Site, hosts: &str) -> (u16, i64) {
    let (headers, body) = stateless(1, "tools/list", json!({}));
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut client = site.client().await;
    let head = format!("POST /mcp HTTP/1.1\r\n{hosts}{headers}Content-Length: {}\r\n\r\n", body.len());
    client.send([head.as_bytes(), &body].concat()).await;
    let response = client.response().await;
    let json = response.json();
    assert_eq!(response.status() != 200, json["id"].is_null(), "a refusal has no id: {json}");
    (response.status(), json["error"]["code"].as_i64().unwrap_or_default())
}

#[tokio::test]
async fn host_and_origin_are_checked_each_by_itself() {
    let site = Site::new().await;
    for (head, expected) in [
        ("Host: localhost\r\n".to_owned(), (200, 0)),
        (format!("Host: {}\r\n", site.address), (200, 0)),
        ("Host: localhost\r\nOrigin: http://localhost:3000\r\n".to_owned(), (200, 0)),
        ("Host: evil.example\r\n".to_owned(), (403, -32600)),
        ("Host: localhost\r\nOrigin: http://evil.example\r\n".to_owned(), (403, -32600)),
        ("Host: localhost\r\nOrigin: null\r\n".to_owned(), (403, -32600)),
        ("Host: evil.example\r\nOrigin: http://localhost\r\n".to_owned(), (403, -32600)),
        ("Host: localhost\r\nHost: localhost\r\n".to_owned(), (400, -32600)),
        ("Host: localhost\r\nHost: evil.example\r\n".to_owned(), (400, -32600)),
        (String::new(), (400, -32600)),
    ] {
        assert_eq!(raw(&site, &head).await, expected, "{head:?}");
    }
}

#[tokio::test]
async fn a_foreign_page_gets_nowhere_on_any_path_or_method() {
    let site = Site::new().await;
    for method in ["POST", "GET", "DELETE", "OPTIONS", "PUT"] {
        for path in ["/mcp", "/healthz", "/"] {
            let mut client = site.client().await;
            client
                .send(format!("{method} {path} HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"))
                .await;
            assert_eq!(client.response().await.status(), 403, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_are_refused() {
    let site = Site::new().await;
    let (_, body) = stateless(1, "tools/list", json!({}));
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "",
    ] {
        let mut client = site.client().await;
        client.request("POST", &[("Content-Type", kind), ACCEPT], &body).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.error()), (415, (-32600, None)), "{kind}");
    }
    let mut client = site.client().await;
    client.request("POST", &[ACCEPT], &body).await;
    assert_eq!(client.response().await.status(), 415);
}

async fn options(site: &Site, headers: &[(&str, &str)]) -> crate::client::Response {
    let mut client = site.client().await;
    client.request("OPTIONS", headers, b"").await;
    client.response().await
}

#[tokio::test]
async fn pages_of_other_origins_are_served_only_where_they_are_configured() {
    let ask = ("Access-Control-Request-Method", "POST");
    let app = ("Origin", "https://app.example.org");

    let site = Site::new().await;
    let refused = options(&site, &[("Origin", "http://localhost:3000"), ask]).await;
    assert_eq!((refused.status(), refused.head.get("access-control-allow-origin")), (405, None));

    let origins = vec!["https://app.example.org".to_owned()];
    let site = Site::with(Settings { origins, ..Settings::default() }).await;
    let wanted = ("Access-Control-Request-Headers", "mcp-param-region, x-evil, Mcp-Param-Zone");
    let allowed = options(&site, &[app, ask, wanted]).await;
    assert_eq!(allowed.status(), 204);
    assert_eq!(allowed.head.get("access-control-allow-origin"), Some(app.1));
    assert_eq!(allowed.head.get("access-control-allow-methods"), Some("GET, POST, DELETE"));
    let headers = allowed.head.get("access-control-allow-headers").unwrap();
    assert!(
        headers.contains("mcp-session-id") && headers.ends_with("mcp-param-region, mcp-param-zone"),
        "{headers}"
    );
    assert!(!headers.contains("x-evil") && allowed.head.get("access-control-allow-credentials").is_none());
    assert_eq!(options(&site, &[("Origin", "https://other.example.org"), ask]).await.status(), 403);

    let mut client = site.client().await;
    client.request("POST", &[app, JSON, ACCEPT], &initialize("2025-11-25")).await;
    let response = client.response().await;
    assert_eq!((response.status(), response.head.get("access-control-allow-origin")), (200, Some(app.1)));
    assert!(response.head.get("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    assert_eq!(response.head.get("vary"), Some("origin"));

    // A page of this machine is served, and cannot read it.
    let (headers, body) = stateless(1, "tools/list", json!({}));
    let headers = [borrowed(&headers), vec![("Origin", "http://localhost:3000")]].concat();
    client.request("POST", &headers, &body).await;
    let response = client.response().await;
    assert_eq!((response.status(), response.head.get("access-control-allow-origin")), (200, None));
}

#[tokio::test]
async fn who_has_no_identity_learns_nothing() {
    let site = Site::new().await;
    for method in ["POST", "GET", "DELETE"] {
        let mut client = site.client().await;
        client.request(method, &[("Authorization", "Bearer bad"), JSON, ACCEPT], b"{").await;
        let response = client.response().await;
        assert_eq!(response.status(), 401, "{method}");
        assert!(response.head.get("www-authenticate").unwrap().contains("invalid_token"));
        assert!(!response.text().contains("bad\""));
    }
}

#[tokio::test]
async fn other_paths_are_other_routes() {
    let site = Site::new().await;
    for path in ["/", "/mcp/", "/mcp/x", "/MCP", "//mcp", "/%6dcp"] {
        let mut client: Client = site.client().await;
        client.send(format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(client.response().await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn who_issues_tokens_can_be_read_by_its_head_alone() {
    let site = Site::new().await;
    let mut client = site.client().await;
    let mut lengths = Vec::new();
    // A body behind the answer to HEAD would be taken for the next answer.
    for method in ["HEAD", "GET"] {
        let path = "/.well-known/oauth-protected-resource/mcp";
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        let head = client.head().await;
        assert_eq!((head.status, head.get("content-type")), (200, Some("application/json")), "{method}");
        lengths.push(head.get("content-length").unwrap().to_owned());
    }
    assert_eq!(lengths[0], lengths[1]);
}
