//! Every fault of the wire, as a client meets it.

use cyberine_scripted_llm::Phase;
use serde_json::json;

use crate::client::{Exchange, Form, Response, anthropic, gemini, ollama, openai, responses};
use crate::{LIMIT, serve};

type Ask = fn(&str, &str, &str, Form) -> Exchange;

const ALL: [Ask; 5] = [openai, responses, anthropic, gemini, ollama];

/// One answer of a server with one rule; `None` where there was not even a status.
fn one(rule: &str, ask: Ask, form: Form) -> Option<Response> {
    let server = serve(&format!("[[rule]]\n{rule}"));
    ask(&server.base_url(), "m", "hi", form).response()
}

#[test]
fn statuses_come_in_the_words_of_each_wire() {
    let cases = [
        (400, "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
        (401, "invalid_request_error", "authentication_error", "UNAUTHENTICATED"),
        (402, "insufficient_quota", "billing_error", "INVALID_ARGUMENT"),
        (429, "requests", "rate_limit_error", "RESOURCE_EXHAUSTED"),
        (500, "server_error", "api_error", "INTERNAL"),
        (503, "server_error", "api_error", "UNAVAILABLE"),
        (529, "server_error", "overloaded_error", "UNAVAILABLE"),
    ];
    for (code, openai_kind, anthropic_kind, gemini_kind) in cases {
        let rule = format!("fault={{status={{code={code},retry_after='7'}}}}");
        let kinds = [
            (openai as Ask, "/error/type", openai_kind),
            (responses, "/error/type", openai_kind),
            (anthropic, "/error/type", anthropic_kind),
            (gemini, "/error/status", gemini_kind),
            (ollama, "/error", "scripted failure"),
        ];
        for (ask, place, kind) in kinds {
            let response = one(&rule, ask, Form::Stream).unwrap();
            assert_eq!((response.head.status, response.head.header("retry-after")), (code, Some("7")));
            assert_eq!(response.json().pointer(place), Some(&json!(kind)), "{code}");
        }
    }
}

#[test]
fn a_failure_can_name_its_kind_or_be_a_page() {
    let quota = one("fault={status={code=429,kind='insufficient_quota'}}", openai, Form::Stream).unwrap();
    assert_eq!(quota.json()["error"]["code"], "insufficient_quota");
    assert_eq!(quota.head.header("retry-after"), None);
    let page =
        one("fault={status={code=502,body='<html>Bad Gateway</html>'}}", openai, Form::Stream).unwrap();
    assert_eq!((page.head.status, page.text()), (502, "<html>Bad Gateway</html>".to_owned()));
    assert_eq!(page.head.header("content-type"), Some("text/html"));
}

#[test]
fn a_status_can_be_for_the_first_call_only() {
    let server =
        serve("[[rule]]\nwhen={call=1}\nfault={status={code=429,retry_after='0'}}\n[[rule]]\ntext='now'");
    let status = || openai(&server.base_url(), "m", "hi", Form::Stream).response().unwrap().head.status;
    assert_eq!([status(), status(), status()], [429, 200, 200]);
}

#[test]
fn an_error_stands_inside_a_stream() {
    let events =
        one("text='abcdef'\nchunk=2\nfault={stream-error={after=2}}", openai, Form::Stream).unwrap().events();
    assert_eq!(events.len(), 3);
    assert_eq!(events[2].1["error"]["code"], 502);
    let kinds = [
        (responses as Ask, "/code", "server_error"),
        (gemini, "/error/status", "UNAVAILABLE"),
        (ollama, "/error", "scripted error inside a stream"),
    ];
    for (ask, place, kind) in kinds {
        let events = one("text='abcdef'\nchunk=2\nfault={stream-error={after=2}}", ask, Form::Stream)
            .unwrap()
            .events();
        assert_eq!((events.len(), events[2].1.pointer(place)), (3, Some(&json!(kind))));
    }
    let events = one("fault={stream-error={}}", anthropic, Form::Stream).unwrap().events();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].0.as_str(), &events[0].1["error"]["type"]), ("error", &json!("overloaded_error")));
}

#[test]
fn a_connection_breaks_after_so_many_events_and_what_was_before_arrives() {
    for ask in ALL {
        for after in [1, 2] {
            let rule = format!("text='abcdef'\nchunk=2\nfault={{disconnect={{after={after}}}}}");
            let response = one(&rule, ask, Form::Stream).unwrap();
            assert!(!response.complete);
            assert_eq!(response.events().len(), after);
        }
        let response = one("text='abcdef'\nfault={disconnect={after=1}}", ask, Form::Whole).unwrap();
        assert!(!response.complete);
        assert!(serde_json::from_slice::<serde_json::Value>(&response.bytes()).is_err());
    }
}

#[test]
fn a_break_before_the_first_event_carries_nothing() {
    let server = serve("[[rule]]\nfault={disconnect={after=0}}");
    let response = openai(&server.base_url(), "m", "hi", Form::Stream).response();
    assert!(response.is_none_or(|response| !response.complete && response.chunks.is_empty()));
    let state = server.wait(LIMIT, |state| state.broken == 1).unwrap();
    assert_eq!(state.requests[0].phase, Phase::Broken);
}

#[test]
fn a_stream_ends_early_or_without_its_terminator() {
    let lasts = [
        (openai as Ask, "[DONE]"),
        (responses, "response.completed"),
        (anthropic, "message_stop"),
        (gemini, "finishReason"),
        (ollama, "\"done\":true"),
    ];
    for (ask, last) in lasts {
        let whole = one("text='x'", ask, Form::Stream).unwrap();
        let cut = one("text='x'\nfault='no-terminator'", ask, Form::Stream).unwrap();
        assert!(whole.text().contains(last) && !cut.text().contains(last));
        assert!(cut.complete);
        assert_eq!(cut.events(), whole.events()[..whole.events().len() - 1]);
        let early = one("text='x'\nfault={end-early={after=1}}", ask, Form::Stream).unwrap();
        assert!(early.complete);
        assert_eq!(early.events(), whole.events()[..1]);
    }
}

#[test]
fn a_character_begins_at_the_end_of_a_chunk_and_never_goes_on() {
    for ask in ALL {
        let response = one("text='Hello'\nfault='broken-utf8'", ask, Form::Stream).unwrap();
        let broken = response.chunks.iter().position(|chunk| chunk.ends_with(b"\xe2\x82")).unwrap();
        assert!(response.chunks[broken + 1].starts_with(b"Hello"));
        assert!(response.complete);
    }
}

#[test]
fn characters_are_split_across_chunks_and_whole_in_the_sum() {
    for ask in ALL {
        let whole = one("text='café 🦉'", ask, Form::Stream).unwrap();
        let split = one("text='café 🦉'\nwire_bytes=1", ask, Form::Stream).unwrap();
        assert!(split.chunks.iter().all(|chunk| chunk.len() == 1));
        assert_eq!(split.text(), whole.text());
    }
}

#[test]
fn garbage_and_comments_stand_among_the_events() {
    let garbage = one("text='x'\nfault='garbage'", openai, Form::Stream).unwrap();
    assert!(garbage.events()[1].1.as_str().unwrap().contains("not json"));
    let line = one("text='x'\nfault='garbage'", ollama, Form::Stream).unwrap().text();
    assert_eq!(line.lines().nth(1), Some("{\"message\": [not json"));
    let lines = one("text='x'\ncomments=true", ollama, Form::Stream).unwrap();
    assert_eq!(lines.events().len(), 2);
    let comments = one("text='x'\ncomments=true", openai, Form::Stream).unwrap();
    assert!(comments.text().starts_with(": scripted keep-alive\n\ndata: {"));
}

#[test]
fn usage_is_missing_or_cannot_be() {
    let text = |rule: &str, ask| one(rule, ask, Form::Stream).unwrap().text();
    assert!(!text("text='x'\nusage='missing'", openai).contains("usage"));
    assert!(!text("text='x'\nusage='missing'", anthropic).contains("_tokens"));
    assert!(text("text='x'\nusage='wrong'", openai).contains("\"prompt_tokens\":-5"));
    assert!(text("text='x'\nusage='wrong'", anthropic).contains("\"output_tokens\":\"many\""));
}

#[test]
fn answers_are_empty_cut_filtered_or_refused() {
    let reason = |rule: &str| {
        let whole = one(rule, openai, Form::Whole).unwrap().json();
        let stop = one(rule, anthropic, Form::Whole).unwrap().json()["stop_reason"].clone();
        (whole["choices"][0]["finish_reason"].clone(), stop)
    };
    assert_eq!(reason("text=''"), (json!("stop"), json!("end_turn")));
    assert_eq!(reason("text='x'\nstop='length'"), (json!("length"), json!("max_tokens")));
    assert_eq!(reason("text='x'\nstop='filter'"), (json!("content_filter"), json!("refusal")));
    assert_eq!(reason("refusal='no'"), (json!("stop"), json!("refusal")));
}

#[test]
fn an_answer_of_ten_megabytes_arrives_whole() {
    let rule = "text='0123456789abcdef'\npad_bytes=10485760\nchunk=65536";
    let response = one(rule, anthropic, Form::Stream).unwrap();
    let length: usize =
        response.events().iter().filter_map(|(_, data)| data["delta"]["text"].as_str()).map(str::len).sum();
    assert_eq!(length, 10 << 20);
    assert!(response.complete);
}

#[test]
fn a_drip_goes_on_until_the_client_leaves_and_the_server_sees_it_leave() {
    let server = serve("[[rule]]\nfault={drip={every_ms=1}}");
    let mut exchange = openai(&server.base_url(), "m", "hi", Form::Stream);
    assert_eq!(exchange.head().unwrap().status, 200);
    for _ in 0..50 {
        assert!(exchange.chunk().unwrap().is_some());
    }
    assert_eq!(server.state().answering, 1);
    drop(exchange);
    let state = server.wait(LIMIT, |state| state.disconnected == 1).unwrap();
    assert_eq!(state.answering, 0);
}

#[test]
fn silence_lasts_until_the_client_leaves() {
    let server = serve("[[rule]]\ntext='x'\nfault={hang={after=1}}");
    let mut exchange = anthropic(&server.base_url(), "m", "hi", Form::Stream);
    exchange.head().unwrap();
    assert!(exchange.chunk().unwrap().unwrap().starts_with(b"event: message_start"));
    assert_eq!(server.state().answering, 1);
    drop(exchange);
    server.wait(LIMIT, |state| state.disconnected == 1).unwrap();
}

#[test]
fn pieces_come_one_by_one_when_they_are_delayed() {
    let server = serve("[[rule]]\ntext='abcd'\nchunk=1\ndelay_ms=20");
    let begun = std::time::Instant::now();
    let response = openai(&server.base_url(), "m", "hi", Form::Stream).response().unwrap();
    assert!(begun.elapsed() >= std::time::Duration::from_millis(80));
    assert!(response.complete);
}
