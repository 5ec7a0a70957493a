//! What is sent, and what an answer becomes.

use cyberine_provider::{Message, Role, StopReason, ToolCall, ToolSpec, TurnEvent};
use cyberine_types::{Billing, CostBasis, Usage, Usd};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::server::{Server, Step};
use crate::support::{KEY, block_on, provider, take, take_with, turn};

pub(crate) fn openai(server: &Server) -> Value {
    json!({ "kind": "openai", "base_url": format!("{}/v1/", server.url()), "model": "m", "api_key_env": "TEST_KEY" })
}

pub(crate) fn anthropic(server: &Server) -> Value {
    json!({ "kind": "anthropic", "base_url": server.url(), "model": "m", "api_key_env": "TEST_KEY" })
}

/// Every HTTP kind, and where its one request goes for the model `m`.
pub(crate) const KINDS: [(&str, &str); 5] = [
    ("openai", "/chat/completions"),
    ("openai-responses", "/responses"),
    ("anthropic", "/v1/messages"),
    ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse"),
    ("ollama", "/api/chat"),
];

/// A provider of `kind` at `url`, with a key.
pub(crate) fn of_kind(kind: &str, url: &str) -> Value {
    json!({ "kind": kind, "base_url": url, "model": "m", "api_key_env": "TEST_KEY" })
}

pub(crate) fn chat(texts: &[&str]) -> String {
    let mut stream = String::new();
    for text in texts {
        stream +=
            &format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }));
    }
    stream
}

pub(crate) const CHAT_END: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn a_chat_completion_is_asked_for_and_read() {
    block_on(async {
        let stream = chat(&["Hello ", "wörld"]) + CHAT_END;
        let server = Server::streaming(vec![Step::OneByOne(stream.into_bytes()), Step::Hang]).await;
        let mut config = openai(&server);
        config["prices"] = json!({ "input_usd_per_mtok": 1.0, "output_usd_per_mtok": 2.0 });
        config["billing"] = json!("metered");
        let mut asked = turn("-why?");
        asked.messages.insert(0, Message::new(Role::System, "be brief"));
        asked.output_schema = Some(json!({ "type": "object" }));
        asked.tools = vec![ToolSpec {
            name: "t".into(),
            description: "d".into(),
            input_schema: json!({ "type": "object" }),
        }];
        let taken = take(&provider(config), asked).await;

        let cost = Usage { usd: Some(Usd::from_micros(20)), basis: CostBasis::Computed, ..Usage::default() };
        assert_eq!(taken.outcome, Ok(StopReason::EndTurn));
        assert_eq!(taken.text, "Hello wörld");
        assert_eq!(taken.usage, Some(Usage { input: 10, output: 5, ..cost }));

        let requests = server.requests();
        assert_eq!(requests.len(), 1);
        let head = &requests[0].head;
        assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nauthorization: bearer {KEY}\r\n")), "{head}");
        assert!(!head.contains("accept-encoding"), "{head}");
        assert_eq!(
            requests[0].body,
            json!({
                "model": "m",
                "messages": [
                    { "role": "system", "content": "be brief" },
                    { "role": "user", "content": "-why?" },
                ],
                "stream": true,
                "stream_options": { "include_usage": true },
                "max_tokens": 8192,
                "tools": [{ "type": "function", "function": {
                    "name": "t", "description": "d", "parameters": { "type": "object" },
                } }],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": { "name": "answer", "schema": { "type": "object" } },
                },
            })
        );
    });
}

#[test]
fn a_key_that_is_echoed_in_an_answer_goes_no_further() {
    block_on(async {
        let (begin, rest) = KEY.split_at(9);
        let stream = chat(&["My key is ", begin, rest, ", keep it. ", KEY]) + CHAT_END;
        for step in [Step::Send(stream.clone().into_bytes()), Step::OneByOne(stream.clone().into_bytes())] {
            let server = Server::streaming(vec![step, Step::Hang]).await;
            let taken = take(&provider(openai(&server)), turn("x")).await;
            assert_eq!(taken.outcome, Ok(StopReason::EndTurn));
            assert_eq!(taken.text, "My key is [redacted], keep it. [redacted]");
        }
    });
}

#[test]
fn a_reply_in_json_brings_no_key_back_however_it_is_spelled() {
    block_on(async {
        let numbers: String = KEY.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        let percent: String = KEY.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for spelled in [&numbers, &numbers.replace('\\', "\\\\"), &KEY.replace('-', "\\u002d"), &percent] {
            let reply = format!("{{\"winner\":\"A\",\"reason\":\"it holds {spelled}\"}}");
            let (begin, rest) = reply.split_at(reply.len() - spelled.len() / 2);
            let (message, body) = (chat(&[begin, rest]) + CHAT_END, json!({ "choices": 7, "why": reply }));
            let server = Server::streaming(vec![Step::OneByOne(message.into_bytes()), Step::Hang]).await;
            let taken = take(&provider(openai(&server)), turn("x")).await;
            let decoded: Value = serde_json::from_str(&taken.text).unwrap();
            assert_eq!(decoded["reason"], "it holds [redacted]", "{spelled}");

            let server = Server::streaming(vec![Step::Send(format!("data: {body}\n\n").into_bytes())]).await;
            let error = take(&provider(openai(&server)), turn("x")).await.error();
            assert!(error.contains("it holds [redacted]"), "{error}");
        }
    });
}

#[test]
fn a_message_is_asked_for_and_read() {
    block_on(async {
        let stream = concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"scripted/demo\",",
            "\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",",
            "\"id\":\"t1\",\"name\":\"look\",\"input\":{}}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",",
            "\"partial_json\":\"{\\\"a\\\"\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",",
            "\"partial_json\":\":1}\"}}\n\n",
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        );
        let server = Server::streaming(vec![Step::OneByOne(stream.into()), Step::Hang]).await;
        let mut config = anthropic(&server);
        config["max_tokens"] = json!(64);
        let mut asked = turn("why?");
        asked.messages.insert(0, Message::new(Role::System, "be brief"));
        let taken = take(&provider(config), asked).await;

        assert_eq!(taken.outcome, Ok(StopReason::ToolUse));
        assert_eq!(taken.calls, [ToolCall::new("t1", "look", json!({ "a": 1 }))]);
        // The server says itself that no model was called.
        let cost = Usage { usd: Some(Usd::ZERO), basis: CostBasis::Scripted, ..Usage::default() };
        assert_eq!(taken.usage, Some(Usage { input: 3, output: 9, ..cost }));

        let request = &server.requests()[0];
        assert!(request.head.starts_with("post /v1/messages http/1.1\r\n"), "{}", request.head);
        assert!(request.head.contains(&format!("\r\nx-api-key: {KEY}\r\n")), "{}", request.head);
        assert!(request.head.contains("\r\nanthropic-version: 2023-06-01\r\n"), "{}", request.head);
        assert_eq!(
            request.body,
            json!({
                "model": "m",
                "max_tokens": 64,
                "messages": [{ "role": "user", "content": "why?" }],
                "stream": true,
                "system": "be brief",
            })
        );
    });
}

#[test]
fn a_server_that_calls_itself_scripted_is_charged_where_it_is_said_to_cost() {
    block_on(async {
        let stream =
            "data: {\"model\":\"scripted/demo\",\"choices\":[]}\n\n".to_owned() + &chat(&["a"]) + CHAT_END;
        for (billing, expected) in [
            (Value::Null, (Some(Usd::ZERO), CostBasis::Scripted)),
            (json!("metered"), (None, CostBasis::Unknown)),
            (json!("free"), (Some(Usd::ZERO), CostBasis::Scripted)),
        ] {
            let server = Server::streaming(vec![Step::Send(stream.clone().into_bytes())]).await;
            let mut config = openai(&server);
            config["billing"] = billing;
            let usage = take(&provider(config), turn("x")).await.usage.unwrap();
            assert_eq!((usage.usd, usage.basis), expected);
        }
    });
}

#[test]
fn parallel_tool_calls_are_put_together() {
    block_on(async {
        let call = |index: u32, more: Value| {
            let mut delta = json!({ "index": index });
            delta.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            format!("data: {}\n\n", json!({ "choices": [{ "delta": { "tool_calls": [delta] } }] }))
        };
        let stream = [
            call(0, json!({ "id": "a", "function": { "name": "one", "arguments": "" } })),
            call(1, json!({ "id": "b", "function": { "name": "two", "arguments": "{\"x\":" } })),
            call(1, json!({ "function": { "arguments": "[1]}" } })),
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
                .to_owned(),
        ];
        let server = Server::streaming(vec![Step::Send(stream.concat().into_bytes())]).await;
        let taken = take(&provider(openai(&server)), turn("x")).await;
        assert_eq!(taken.outcome, Ok(StopReason::ToolUse));
        let one = ToolCall::new("a", "one", json!({}));
        let two = ToolCall::new("b", "two", json!({ "x": [1] }));
        assert_eq!(taken.calls, [one, two]);
    });
}

#[test]
fn text_is_handed_over_as_it_comes() {
    block_on(async {
        let server =
            Server::streaming(vec![Step::Send(chat(&["first\u{1b}[1m"]).into_bytes()), Step::Hang]).await;
        let cancel = CancellationToken::new();
        let taken = take_with(&provider(openai(&server)), turn("x"), cancel.clone(), |event| {
            if *event != TurnEvent::Working {
                assert_eq!(*event, TurnEvent::Text("first".to_owned()));
                cancel.cancel();
            }
        })
        .await;
        assert_eq!((taken.code(), taken.text.as_str()), ("cancelled", "first"));
        // A server that is still writing learns of it by the closed connection.
        server.left().await;
    });
}

#[test]
fn loopback_is_free_and_says_so() {
    block_on(async {
        let server = Server::streaming(vec![Step::Send((chat(&["a"]) + CHAT_END).into_bytes())]).await;
        let provider = provider(openai(&server));
        assert_eq!(provider.info().billing, Billing::Free);
        let usage = take(&provider, turn("x")).await.usage.unwrap();
        assert_eq!((usage.usd, usage.basis), (Some(Usd::ZERO), CostBasis::Included));
    });
}

#[test]
fn a_proxy_in_the_environment_is_not_used() {
    const ROLE: &str = "behind a proxy";
    if cyberine_testkit::role().as_deref() != Some(ROLE) {
        let mut again = cyberine_testkit::rerun("http::a_proxy_in_the_environment_is_not_used", ROLE);
        // The discard port: whoever goes there does not arrive.
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            again.env(name, "http://127.0.0.1:9");
        }
        cyberine_testkit::assert_played(
            &again.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap(),
        );
        return;
    }
    block_on(async {
        let server = Server::streaming(vec![Step::Send((chat(&["a"]) + CHAT_END).into_bytes())]).await;
        assert_eq!(take(&provider(openai(&server)), turn("x")).await.code(), "ok");
    });
    cyberine_testkit::played();
}
