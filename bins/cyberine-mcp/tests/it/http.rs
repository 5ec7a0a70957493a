//! The same server, over HTTP: who may call, and whose name what they do carries.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::host::{Place, shell};
use crate::served::{Asked, Served, get, handed_out, legacy, modern};

const FIXED: &str = "[identity]\nmode = \"fixed\"\nuser = \"ada\"\n";

fn refused(place: &Place, arguments: &[&str], code: i32, says: &str) {
    let output = place.output(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.contains(says), "{arguments:?}: {stderr}");
}

#[test]
fn nothing_is_served_before_somebody_says_who_is_calling() {
    let http = ["--http", "127.0.0.1:0"];
    refused(&Place::new(), &http, 78, "`cyberine token new NAME`");
    refused(&Place::with("[identity]\nuser = \"ada\"\n"), &http, 78, "`mode = \"fixed\"`");
    refused(&Place::with(FIXED), &["--http", "0.0.0.0:0"], 78, "allow_remote");
    let open = format!("{FIXED}[http]\nallow_remote = true\n");
    refused(&Place::with(&open), &["--http", "0.0.0.0:0"], 78, "hand out tokens instead");
    let jwt =
        "[identity.jwt]\nissuer = \"i\"\naudience = \"a\"\njwks_url = \"http://login.example.org/keys\"\n";
    refused(&Place::with(jwt), &http, 78, "must be https");
    refused(&Place::with(FIXED), &["--http", "localhost:80"], 2, "is no address");
    refused(&Place::with(FIXED), &["--http", "127.0.0.1:0", "--stdio"], 2, "not both");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&Place::with(FIXED), &["--http", &address], 69, "choose another address");
    let place = Place::with(FIXED);
    let output =
        place.command().args(http).env("CYBERINE_MCP_AUTH_TOKEN", "hunter22-hunter22").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(78), "{stderr}");
    assert!(stderr.contains("unset it") && !stderr.contains("hunter22"), "{stderr}");
}

#[test]
fn a_project_cannot_say_who_is_calling() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    std::fs::write(place.project().join("cyberine.toml"), FIXED).unwrap();
    let mut host = place.host();
    let refusal = host.refused("orchestrate", &json!({ "prompt": "x" }));
    assert!(refusal.contains("home's config.toml only"), "{refusal}");
}

#[test]
fn whoever_connects_from_this_machine_is_the_one_fixed_user() {
    let place = Place::with(FIXED);
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let served = Served::at(&place, address);
        let send = modern("send_message", &json!({ "to_kind": "chat", "to_id": "c", "text": "x" }));
        let sent = served.ask(&send).result();
        assert_eq!(sent["structuredContent"]["ok"], true, "{sent}");
        let mail = served.ask(&modern("poll_inbox", &json!({ "kind": "chat", "id": "c" }))).result();
        let messages = mail["structuredContent"]["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["sender"]["principal"], "local/ada", "{mail}");
        let proxied = modern("list_team", &json!({})).header("X-Forwarded-For", "10.0.0.1");
        assert_eq!(served.ask(&proxied).status, 403);
    }
}

#[test]
fn token_arguments_have_no_place_over_http() {
    let place = Place::with(FIXED);
    let served = Served::at(&place, "127.0.0.1:0");
    let with_token = modern("query_runs", &json!({ "authToken": "hunter22-hunter22" }));
    let answer = served.ask(&with_token);
    assert_eq!(answer.result()["isError"], true, "{answer:?}");
    let error = answer.result()["structuredContent"]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("authToken") && !answer.text.contains("hunter22"), "{error}");
    let listed = served.ask(&Asked::modern("tools/list", None, json!({})));
    assert!(!listed.text.contains("authToken"), "{listed:?}");
    let uri = "cyberine://runs/5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11?authToken=hunter22-hunter22";
    let read = served.ask(&Asked::modern("resources/read", Some(uri), json!({ "uri": uri })));
    let error = &read.json["error"];
    assert_eq!(
        (&error["code"], &error["data"]["reason"]),
        (&json!(-32602), &json!("token_in_uri")),
        "{read:?}"
    );
    assert!(!read.text.contains("hunter22"), "{read:?}");
    let in_query = modern("query_runs", &json!({})).at("/mcp?access_token=hunter22-hunter22");
    assert_eq!(served.ask(&in_query).status, 400);
    assert!(!served.end().contains("hunter22"));
}

#[test]
fn every_caller_has_a_token_and_a_name_of_its_own() {
    let (ada, ben, old) = (
        handed_out("ada", "acme", ""),
        handed_out("ben", "acme", ""),
        handed_out("old", "acme", "expires = \"2020-01-01T00:00:00Z\"\n"),
    );
    let place = Place::with(&[&ada, &ben, &old].map(|one| one.entry.as_str()).join("\n"));
    let served = Served::logging(&place, "127.0.0.1:0", "trace");
    let ask = |token: &str, asked: Asked| served.ask(&asked.bearer(token));
    for who in [&ada, &ben] {
        let send = modern("send_message", &json!({ "to_kind": "chat", "to_id": "c", "text": who.name }));
        assert_eq!(ask(&who.token, send).status, 200);
    }
    let mail = ask(&ada.token, modern("poll_inbox", &json!({ "kind": "chat", "id": "c" }))).result();
    let messages = mail["structuredContent"]["messages"].as_array().unwrap();
    for (message, name) in messages.iter().zip(["ada", "ben"]) {
        assert_eq!(
            (&message["text"], &message["sender"]["principal"]),
            (&json!(name), &json!(format!("acme/{name}")))
        );
    }
    assert_eq!(messages.len(), 2);

    let nobody = served.ask(&modern("list_team", &json!({})));
    assert_eq!(nobody.status, 401);
    assert_eq!(nobody.header("www-authenticate"), "Bearer realm=\"cyberine\"");
    let described = served.ask(&get("/.well-known/oauth-protected-resource/mcp"));
    assert_eq!(described.status, 404, "nobody issues tokens");

    for bad in [&old.token, "cyb_0", "a.b.c"] {
        let refused = ask(bad, modern("list_team", &json!({})));
        assert_eq!(refused.status, 401, "{refused:?}");
        assert!(refused.header("www-authenticate").contains("error=\"invalid_token\""), "{refused:?}");
    }
    let twice = modern("list_team", &json!({})).bearer(&ada.token).bearer(&ada.token);
    assert_eq!(served.ask(&twice).status, 400);

    let log = served.end();
    for token in [&ada.token, &ben.token, &old.token] {
        assert!(!log.contains(token.as_str()), "{log}");
        assert!(!place.holds(token), "a file of the home has the token");
    }
}

#[test]
fn a_session_is_no_credential() {
    let (ada, ben) = (handed_out("ada", "acme", ""), handed_out("ben", "acme", ""));
    let place = Place::with(&[&ada, &ben].map(|one| one.entry.as_str()).join("\n"));
    let served = Served::at(&place, "127.0.0.1:0");
    let opened = served.ask(&legacy("initialize", &json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" }
    })).bearer(&ada.token));
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = opened.header("mcp-session-id").to_owned();
    let list = || {
        legacy("tools/list", &json!({}))
            .header("Mcp-Session-Id", &session)
            .header("MCP-Protocol-Version", "2025-06-18")
    };
    assert_eq!(served.ask(&list().bearer(&ada.token)).status, 200);
    assert_eq!(served.ask(&list().bearer(&ben.token)).status, 404, "it is another's");
    assert_eq!(served.ask(&list()).status, 401, "its id opens nothing");
    assert_eq!(served.ask(&list().bearer(&ada.token)).status, 200, "and it is still there");
}

/// Signed once for `ada` of `https://login`, for `https://mcp`, until 2100; the key that signed it was
/// thrown away.
const JWT: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luIiwiYXVkIjoiaHR0cHM6Ly9tY3AiLCJzdWIiOiJhZGEiLCJleHAiOjQxMDI0NDQ4MDB9.A4xL7Spq_leFBJ6e89RYJIQVOyAwoZWIiwN769PCbhhSq_kJp2f-17j30xvIGj5tOWDe1WU57W6enbkUpepoCD0yEfNqipe-TR361f_2qxtu9G1dSSzHal5qwlUL4Hx5GP2yVHtKY7ABWq8v61wQwcdB9_7Ol0DR9kKdStVjxd5vK71eYBmVIsfd1unfEmZa6RRb2jPnBoHVc_MELWbfP-zzcNZiZekj9MJ-m0EsvWb9dUDea1GxoEmUcIb0QNo6LW9ttqAL7tpIa6EVVVLATb_7mHTsLGPuRWeOmPPg4W4kLLkUZxfcGW_QYzmvc3EFEzlwImQAm1aOWxHAsdZm5g";
const MODULUS: &str = "mAGNIcPpmcps1c7DFJ8vWNmbmwJsWV3w9TKoIcIOY_IlUij9pdk98HDB2xwiqo0Umg-Q2MYcLsVsPJAIo-Iz--jQfCfLGCkud-DjgJf_EXkEjTqkPTmmEBymJ5VrawMtyNMqtEIi74buhuLJJZrVysi5ZXP5Ey7Gcknllpbnw2bbfeToSyUL1i4y31JtBePBwpenGmUVynJhKcNMRSevf4txVA35TEkl_Wm-Ic9WSRjGYBVW0zGq9Mx7MprjmjtAiriN2P33T_2tex1hLfP1PgrFNn9gX9KbbXor1iPuFpTMAyKWEZBE0xXoR9y6FxCUustz9C9o7Z-a1snAA5xHyQ";

#[test]
fn a_token_of_an_issuer_counts_where_it_is_meant_to() {
    let key = json!({ "keys": [{ "kty": "RSA", "kid": "rsa", "n": MODULUS, "e": "AQAB" }] });
    let config = |audience: &str| {
        format!(
            "[identity.jwt]\nissuer = \"https://login\"\naudience = \"{audience}\"\njwks_file = \"keys.json\"\ntenant = \"acme\"\n"
        )
    };
    let place = Place::with(&config("https://mcp"));
    std::fs::write(place.home().join("keys.json"), key.to_string()).unwrap();
    let served = Served::at(&place, "127.0.0.1:0");
    let send = || modern("send_message", &json!({ "to_kind": "chat", "to_id": "c", "text": "x" }));
    assert_eq!(served.ask(&send().bearer(JWT)).status, 200);
    let mail = served.ask(&modern("poll_inbox", &json!({ "kind": "chat", "id": "c" })).bearer(JWT)).result();
    assert_eq!(mail["structuredContent"]["messages"][0]["sender"]["principal"], "acme/ada");
    let nobody = served.ask(&send());
    let metadata = nobody.header("www-authenticate").split("resource_metadata=\"").nth(1).unwrap();
    let path = metadata.trim_end_matches('"').strip_prefix(&format!("http://{}", served.address)).unwrap();
    let described = served.ask(&get(path));
    assert_eq!((described.status, &described.json["resource"]), (200, &json!(served.url())));
    assert_eq!(described.json["authorization_servers"], json!(["https://login"]));
    let unsigned = format!("{}.", JWT.rsplit_once('.').unwrap().0);
    assert_eq!(served.ask(&send().bearer(&unsigned)).status, 401);
    assert!(!served.end().contains(JWT));

    place.configure(&config("https://other"));
    let served = Served::at(&place, "127.0.0.1:0");
    let refused = served.ask(&send().bearer(JWT));
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").contains("for another audience"), "{refused:?}");
}

#[test]
fn a_storm_of_bad_tokens_fills_no_log_and_keeps_nobody_out() {
    let ada = handed_out("ada", "acme", "");
    let place = Place::with(&ada.entry);
    let served = Served::at(&place, "127.0.0.1:0");
    let mut statuses = [0; 2];
    for _ in 0..300 {
        match served.ask(&modern("list_team", &json!({})).bearer("cyb_bad")).status {
            401 => statuses[0] += 1,
            429 => statuses[1] += 1,
            other => panic!("{other}"),
        }
    }
    assert!(statuses[0] >= 20 && statuses[1] > 0, "{statuses:?}");
    assert_eq!(served.ask(&modern("list_team", &json!({})).bearer(&ada.token)).status, 200);
    let log = served.end();
    assert!(log.lines().filter(|line| line.contains("were refused")).count() <= 3, "{log}");
}

#[test]
fn whoever_runs_it_sees_how_it_is_and_ends_it_in_order() {
    let ada = handed_out("ada", "acme", "");
    let place = Place::with(&ada.entry);
    let served = Served::at(&place, "127.0.0.1:0");
    assert_eq!(served.ask(&get("/healthz")).json, json!({ "status": "ok" }));
    assert_eq!(served.ask(&modern("list_team", &json!({})).bearer(&ada.token)).status, 200);
    assert_eq!(served.ask(&modern("list_team", &json!({}))).status, 401);
    let metrics = served.ask(&get("/metrics")).text;
    for line in [
        r#"cyberine_http_requests_total{method="tools/call",status="200"} 1"#,
        r#"cyberine_http_rejected_total{reason="no_token"} 1"#,
        r#"cyberine_http_request_duration_seconds_count{method="tools/call"} 1"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    assert_eq!(served.ask(&get("/metrics").header("X-Forwarded-For", "10.0.0.1")).status, 401);
    let forwarded = get("/metrics").header("X-Forwarded-For", "10.0.0.1").bearer(&ada.token);
    assert_eq!(served.ask(&forwarded).status, 200);

    // A call that waits for news for 40 s is ended, and so is the server.
    let address = served.address;
    let waiting =
        modern("poll_inbox", &json!({ "kind": "chat", "id": "c", "waitMs": 40_000 })).bearer(&ada.token);
    let call = std::thread::spawn(move || waiting.send(address));
    served.until_in_flight();
    let begun = Instant::now();
    served.terminate();
    let (code, _) = served.ended();
    assert_eq!(code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let answer = call.join().unwrap();
    assert!(answer.status == 200 || answer.status == 503, "{answer:?}");
}

#[test]
fn a_host_on_stdio_is_whom_the_configuration_names() {
    let place = Place::with("[identity]\ntenant = \"acme\"\nuser = \"ada\"\n");
    let mut host = place.host();
    host.ok("send_message", &json!({ "to_kind": "chat", "to_id": "c", "text": "x" }));
    let mail = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c" }));
    assert_eq!(mail["messages"][0]["sender"]["principal"], "acme/ada");
    place.configure("[identity]\ntenant = \"a/b\"\n");
    let mut host = place.host();
    let refusal = host.refused("list_team", &json!({}));
    assert!(refusal.contains("no `/`") && refusal.contains("start the server again"), "{refusal}");
}
