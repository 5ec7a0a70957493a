use axum::http::Request;

use super::*;

fn guard() -> Guard {
    let hosts = vec!["mcp.example.org".to_owned(), "10.1.2.3".to_owned()];
    let origins = vec!["https://app.example.org".to_owned(), "http://app.example.org:8080".to_owned()];
    Guard::new(&Settings { hosts, origins, ..Settings::default() }).unwrap()
}

fn admitted(uri: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::builder().uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let parts = request.body(()).unwrap().into_parts().0;
    let local: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
    guard().admit(&parts, local).map_or_else(|foreign| foreign.status.as_u16(), |()| 200)
}

/// Hosts by what becomes of them, with spaces between.
const HOSTS: [(u16, &str); 5] = [
    (
        200,
        "localhost localhost:8080 LOCALHOST LocalHost:1 localhost: 127.0.0.1 127.0.0.1:65535 [::1] [::1]:8080 [0:0:0:0:0:0:0:1]",
    ),
    // Configured, and the address the connection came in at.
    (200, "mcp.example.org MCP.Example.Org:443 10.1.2.3 192.0.2.7 192.0.2.7:9"),
    // Names that look like loopback, or that resolve to it.
    (
        403,
        "localhost.evil.com evil.localhost localhost. localhost.:80 127.0.0.1. 127.0.0.1.nip.io 127.0.0.1.evil.com localtest.me xn--localhost- mcp.example.org. a.mcp.example.org mcp.example.orgs",
    ),
    // Other ways to write an address.
    (
        403,
        "0x7f.1 0x7f000001 2130706433 127.1 127.0.1 0177.0.0.1 127.000.000.001 127.0.0.2 0.0.0.0 0 [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::1%25lo] ::1 [127.0.0.1] 192.0.2.8",
    ),
    // No host at all.
    (
        403,
        ":80 localhost:x localhost:80:80 localhost:65536 localhost:+80 localhost:-1 user@localhost user:pass@localhost localhost@evil.com localhost/ localhost# localhost\\ localhost,evil.com [::1 [::1]x [] %6cocalhost http://localhost",
    ),
];

#[test]
fn every_form_of_host_is_decided() {
    for (status, hosts) in HOSTS {
        for host in hosts.split(' ') {
            assert_eq!(admitted("/mcp", &[("host", host)]), status, "{host}");
        }
    }
    for host in ["", "local host", &"a".repeat(254)] {
        assert_eq!(admitted("/mcp", &[("host", host)]), 403, "{host}");
    }
}

#[test]
fn a_request_names_one_host() {
    assert_eq!(admitted("/mcp", &[]), 400);
    for other in ["localhost", "evil.com"] {
        assert_eq!(admitted("/mcp", &[("host", "localhost"), ("host", other)]), 400, "{other}");
    }
    assert_eq!(admitted("http://localhost/mcp", &[("host", "localhost")]), 200);
    assert_eq!(admitted("http://evil.com/mcp", &[("host", "localhost")]), 403);
    assert_eq!(admitted("http://localhost/mcp", &[("host", "evil.com")]), 403);
    assert_eq!(admitted("http://u@localhost/mcp", &[("host", "localhost")]), 403);
}

#[test]
fn every_form_of_origin_is_decided() {
    let table = [
        (
            200,
            &[
                "http://localhost",
                "https://localhost:3000",
                "HTTP://LOCALHOST:1",
                "http://127.0.0.1:8080",
                "http://[::1]:8080",
                "https://mcp.example.org",
                "http://192.0.2.7",
            ][..],
        ),
        (200, &["https://app.example.org", "https://APP.example.org", "http://app.example.org:8080"]),
        (
            403,
            &[
                "null",
                "",
                "http://evil.com",
                "https://evil.com:443",
                "http://localhost.evil.com",
                "http://127.0.0.1.nip.io",
                "http://localhost.",
                "http://2130706433",
                "http://0x7f.1",
                "http://[::ffff:127.0.0.1]",
            ],
        ),
        // Configured origins count as a whole.
        (
            403,
            &[
                "http://app.example.org",
                "https://app.example.org:8443",
                "https://app.example.org/",
                "https://x.app.example.org",
            ],
        ),
        // No origin at all.
        (
            403,
            &[
                "localhost",
                "file://localhost",
                "file://",
                "ws://localhost",
                "chrome-extension://localhost",
                "http:/localhost",
                "http://",
                "http://localhost/",
                "http://user@localhost",
                "http://localhost http://localhost",
                "http://localhost,http://evil.com",
            ],
        ),
    ];
    for (status, origins) in table {
        for origin in origins {
            assert_eq!(admitted("/mcp", &[("host", "localhost"), ("origin", origin)]), status, "{origin}");
        }
    }
    assert_eq!(
        admitted(
            "/mcp",
            &[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")]
        ),
        400
    );
    assert_eq!(admitted("/mcp", &[("host", "evil.com"), ("origin", "http://localhost")]), 403);
}

#[test]
fn answers_are_shared_with_configured_origins_only() {
    let guard = guard();
    let shared = |origin: &str| {
        let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_str(origin).unwrap())]);
        guard.shared_with(&headers).is_some()
    };
    assert!(shared("https://app.example.org") && guard.shares());
    assert!(!shared("http://localhost") && !shared("null") && !shared("https://mcp.example.org"));
    assert!(!Guard::new(&Settings::default()).unwrap().shares());
}

#[test]
fn a_name_that_cannot_be_one_is_refused_at_the_start() {
    for bad in ["", "*", "*.example.org", "http://h", "h:80", "h/mcp", "[::1", "a b"] {
        let settings = Settings { hosts: vec![bad.to_owned()], ..Settings::default() };
        assert_eq!(Guard::new(&settings).unwrap_err(), NameFault::Host(bad.to_owned()));
    }
    for bad in
        ["", "*", "null", "app.example.org", "https://app.example.org/", "https://*.example.org", "ftp://h"]
    {
        let settings = Settings { origins: vec![bad.to_owned()], ..Settings::default() };
        assert_eq!(Guard::new(&settings).unwrap_err(), NameFault::Origin(bad.to_owned()));
    }
    for bad in ["", "mcp", "http://localhost/mcp", "/mcp?x", "/a b"] {
        let settings = Settings { path: bad.to_owned(), ..Settings::default() };
        assert_eq!(Guard::new(&settings).unwrap_err(), NameFault::Path(bad.to_owned()));
    }
    assert!(Guard::new(&Settings { hosts: vec!["[2001:db8::1]".to_owned()], ..Settings::default() }).is_ok());
}
