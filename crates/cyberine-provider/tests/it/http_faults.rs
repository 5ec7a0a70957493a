//! Servers that fail in every way a server can.

use std::time::Duration;

use cyberine_provider::{Limits, TurnError};
use serde_json::json;

use crate::http::{CHAT_END, KINDS, chat, of_kind, openai};
use crate::server::{Server, Step, response};
use crate::support::{KEY, Taken, block_on, limited, provider, take, turn};

const SHORT: Duration = Duration::from_millis(300);

fn short_idle(limits: &mut Limits) {
    limits.idle = SHORT;
}

fn short_wall(limits: &mut Limits) {
    limits.wall = SHORT;
}

fn small_answer(limits: &mut Limits) {
    limits.answer_bytes = 64 << 10;
}

async fn streamed(steps: Vec<Step>) -> Taken {
    let server = Server::streaming(steps).await;
    take(&provider(openai(&server)), limited("x", small_answer)).await
}

async fn said(status: u16, headers: &str, body: &str) -> Taken {
    let server = Server::saying(status, headers, body).await;
    take(&provider(openai(&server)), turn("x")).await
}

#[test]
fn broken_utf_8_is_replaced_and_the_answer_kept() {
    block_on(async {
        let mut stream = chat(&["a#b"]).into_bytes();
        let place = stream.iter().position(|byte| *byte == b'#').unwrap();
        stream[place] = 0xff;
        stream.extend_from_slice(CHAT_END.as_bytes());
        let taken = streamed(vec![Step::OneByOne(stream)]).await;
        assert_eq!((taken.code(), taken.text.as_str()), ("ok", "a\u{fffd}b"));
    });
}

#[test]
fn an_answer_without_end_is_cut_off_at_the_bound() {
    block_on(async {
        let piece = chat(&[&"x".repeat(1000)]).into_bytes();
        let taken = streamed(vec![Step::Flood(piece)]).await;
        assert_eq!(taken.outcome, Err(TurnError::TooLong { limit: 64 << 10 }));
        assert!(taken.text.len() <= 64 << 10);
    });
}

#[test]
fn ten_megabytes_are_refused_in_one_event_and_in_one_line_without_end() {
    block_on(async {
        let huge = chat(&[&"x".repeat(10 << 20)]).into_bytes();
        assert_eq!(streamed(vec![Step::Send(huge)]).await.code(), "too-long");
        assert_eq!(streamed(vec![Step::Flood(vec![b'x'; 4096])]).await.code(), "too-long");
        assert_eq!(streamed(vec![Step::Flood(b"data: x\n".to_vec())]).await.code(), "too-long");
    });
}

#[test]
fn a_chat_of_ollama_is_as_bounded_and_as_forgiving() {
    block_on(async {
        let streamed = |steps: Vec<Step>| async move {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n".to_vec();
            let server = Server::start([vec![Step::Send(head)], steps].concat()).await;
            take(&provider(of_kind("ollama", &server.url())), limited("x", small_answer)).await
        };
        let line = |text: &str| json!({ "message": { "content": text } }).to_string() + "\n";
        let long = TurnError::TooLong { limit: 64 << 10 };
        for flood in [line(&"x".repeat(1000)).into_bytes(), vec![b'x'; 4096]] {
            assert_eq!(streamed(vec![Step::Flood(flood)]).await.outcome, Err(long.clone()));
        }
        let mut broken = line("a#b").into_bytes();
        let place = broken.iter().position(|byte| *byte == b'#').unwrap();
        broken[place] = 0xff;
        broken.extend_from_slice(b"{\"done\":true}");
        let taken = streamed(vec![Step::OneByOne(broken)]).await;
        assert_eq!((taken.code(), taken.text.as_str()), ("ok", "a\u{fffd}b"));
    });
}

#[test]
fn a_drip_ends_at_the_wall_limit_and_silence_at_the_idle_limit() {
    block_on(async {
        let server = Server::streaming(vec![Step::Drip(b": still here\n\n".to_vec())]).await;
        let taken = take(&provider(openai(&server)), limited("x", short_wall)).await;
        assert_eq!(taken.outcome, Err(TurnError::WallTimeout { limit: SHORT }));

        let silence = Err(TurnError::IdleTimeout { limit: SHORT });
        let before_the_head = Server::start(vec![Step::Hang]).await;
        let after_some_text =
            Server::streaming(vec![Step::Send(chat(&["a"]).into_bytes()), Step::Hang]).await;
        let within_an_error = Server::start(vec![
            Step::Send(b"HTTP/1.1 500 X\r\nContent-Length: 99\r\n\r\nhalf".to_vec()),
            Step::Hang,
        ])
        .await;
        for (server, text) in [(&before_the_head, ""), (&after_some_text, "a")] {
            let taken = take(&provider(openai(server)), limited("x", short_idle)).await;
            assert_eq!((taken.outcome, taken.text.as_str()), (silence.clone(), text));
        }
        let taken = take(&provider(openai(&within_an_error)), limited("x", short_idle)).await;
        assert_eq!(taken.error(), "the provider is not available: status 500: half");
    });
}

#[test]
fn a_failure_that_is_known_does_not_wait_for_the_words_about_it() {
    block_on(async {
        let head = b"HTTP/1.1 401 X\r\nContent-Length: 999999\r\n\r\n".to_vec();
        let server = Server::start(vec![Step::Send(head), Step::Drip(b"drop ".to_vec())]).await;
        let begun = std::time::Instant::now();
        let taken = take(&provider(openai(&server)), turn("x")).await;
        assert_eq!(taken.code(), "auth", "{:?}", taken.outcome);
        assert!(taken.error().contains("drop drop"), "what has come is told: {}", taken.error());
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    });
}

#[test]
fn configured_limits_take_the_place_of_the_turns() {
    block_on(async {
        let server = Server::streaming(vec![Step::Drip(b": still here\n\n".to_vec())]).await;
        let mut config = openai(&server);
        config["wall_seconds"] = json!(1);
        let taken = take(&provider(config), turn("x")).await;
        assert_eq!(taken.outcome, Err(TurnError::WallTimeout { limit: Duration::from_secs(1) }));
    });
}

#[test]
fn a_broken_connection_is_a_cut_answer() {
    block_on(async {
        let taken = streamed(vec![Step::Send(chat(&["half"]).into_bytes())]).await;
        assert_eq!((taken.code(), taken.text.as_str()), ("cut", "half"));
        let finished = chat(&["a"]) + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let taken = streamed(vec![Step::Send(finished.into_bytes())]).await;
        let expected =
            "the stream ended before the provider's own end event: finish_reason `stop`, no `[DONE]`";
        assert_eq!(taken.error(), expected);

        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\ndata: {".to_vec();
        let server = Server::start(vec![Step::Send(chunked)]).await;
        assert_eq!(take(&provider(openai(&server)), turn("x")).await.code(), "cut");
        let server = Server::start(vec![]).await;
        assert_eq!(take(&provider(openai(&server)), turn("x")).await.code(), "cut");
    });
}

#[test]
fn a_silly_retry_after_is_bounded() {
    block_on(async {
        let day = Some(Duration::from_secs(24 * 3600));
        for (value, expected) in [("1000000000", day), ("2", Some(Duration::from_secs(2))), ("soon", None)] {
            let taken = said(429, &format!("Retry-After: {value}\r\n"), "slow down").await;
            let detail = "status 429: slow down".to_owned();
            assert_eq!(taken.outcome, Err(TurnError::RateLimited { detail, retry_after: expected }));
        }
        let taken = said(529, "Retry-After: 7\r\n", "").await;
        let Err(TurnError::Overloaded { retry_after, .. }) = taken.outcome else { panic!("{taken:?}") };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    });
}

#[test]
fn a_key_that_is_echoed_is_not_passed_on() {
    block_on(async {
        let message = json!({ "error": { "message": format!("bad key {KEY}"), "type": KEY } }).to_string();
        let long = format!("{}{KEY}{}", "x".repeat(2040), "y".repeat(100_000));
        let event = format!("data: {message}\n\n");
        let answers = [
            response(401, "", &message),
            response(400, "", &long),
            response(200, "Content-Type: application/json\r\n", &message),
            response(200, "Content-Type: text/html\r\n", KEY),
            response(200, "Content-Type: text/event-stream\r\n", &event),
            response(200, "Content-Type: text/event-stream\r\n", &format!("data: {KEY}\n\n")),
            response(200, "Content-Type: text/event-stream\r\n", &format!("{KEY}\n")),
            response(200, "Content-Type: application/x-ndjson\r\n", &format!("{message}\n")),
            response(200, "Content-Type: application/x-ndjson\r\n", &format!("{{\"error\":\"{KEY}\"}}\n")),
        ];
        for answer in answers {
            let server = Server::start(vec![Step::Send(answer)]).await;
            for (kind, _) in KINDS {
                let error = take(&provider(of_kind(kind, &server.url())), turn("x")).await.error();
                assert!(!error.contains("canary") && !error.contains("sk-"), "{kind}: {error}");
                assert!(error.len() < 2200, "{} bytes", error.len());
            }
        }
    });
}

#[test]
fn a_success_that_is_no_event_stream_is_a_broken_protocol() {
    block_on(async {
        for (headers, body) in [
            ("Content-Type: application/json\r\n", r#"{"choices":[{"message":{"content":"whole"}}]}"#),
            ("Content-Type: text/html; charset=utf-8\r\n", "<html>log in</html>"),
            ("Content-Type: text/plain\r\n", "hello\nthere\n"),
            ("Content-Type: text/event-stream\r\n", "data: not json\n\n"),
        ] {
            let taken = said(200, headers, body).await;
            assert_eq!(taken.code(), "protocol", "{body}: {taken:?}");
        }
        let overloaded = r#"{"error":{"type":"overloaded_error","message":"later"}}"#;
        for kind in ["application/json", "text/event-stream"] {
            assert_eq!(
                said(200, &format!("Content-Type: {kind}\r\n"), overloaded).await.code(),
                "overloaded"
            );
        }
    });
}

#[test]
fn an_answer_without_words_is_empty() {
    block_on(async {
        for text in ["", " \n\t", "\u{1b}[31m\u{1b}[0m"] {
            let stream = chat(&[text]) + CHAT_END;
            assert_eq!(streamed(vec![Step::Send(stream.into_bytes())]).await.code(), "empty", "{text:?}");
        }
    });
}

#[test]
fn a_redirect_is_not_followed_with_the_key() {
    block_on(async {
        let elsewhere = Server::saying(200, "", "").await;
        let taken = said(307, &format!("Location: {}/v1/chat/completions\r\n", elsewhere.url()), "").await;
        assert_eq!(taken.code(), "protocol");
        assert_eq!(elsewhere.requests().len(), 0);
    });
}

#[test]
fn nobody_at_the_address_is_unreachable() {
    block_on(async {
        let gone = Server::start(vec![]).await.url();
        for url in [gone.clone(), gone.replace("http://", "https://")] {
            for (kind, path) in KINDS {
                let taken = take(&provider(of_kind(kind, &url)), turn("x")).await;
                let Err(TurnError::Unreachable { target, .. }) = &taken.outcome else { panic!("{taken:?}") };
                assert_eq!(*target, format!("{url}{path}"), "no key is in an address");
            }
        }
    });
}

#[test]
fn a_server_without_tls_gets_no_key_over_https() {
    block_on(async {
        let server = Server::saying(200, "", "").await;
        let mut config = openai(&server);
        config["base_url"] = json!(server.url().replace("http://", "https://"));
        assert_eq!(take(&provider(config), turn("x")).await.code(), "unreachable");
        assert_eq!(server.requests().len(), 0);
    });
}
