//! The HTTP kinds.

use cyberine_provider::contract::{Scenario, check};
use cyberine_scripted_llm::{Script, ScriptedServer};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Prepared;
use crate::http::{CHAT_END, chat};
use crate::server::{Server, Step, response};
use crate::support::{block_on, provider};

const SSE: &str = "text/event-stream";

/// What a server of one wire says.
struct Wire {
    kind: &'static str,
    content_type: &'static str,
    begin: String,
    text: fn(&str) -> String,
    end: String,
    /// A call of `look_up` with `{"word": "owl"}`, up to the end of the answer.
    call: String,
}

impl Wire {
    fn stream(&self, texts: &[&str]) -> Vec<u8> {
        let texts: String = texts.iter().map(|text| (self.text)(text)).collect();
        (self.begin.clone() + &texts).into_bytes()
    }

    /// What is done to each connection in turn; the last is done to all that follow.
    fn answers(&self, scenario: Scenario) -> Vec<Vec<Step>> {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n\r\n", self.content_type);
        let head = Step::Send(head.into_bytes());
        let send = |bytes: Vec<u8>| vec![head.clone(), Step::Send(bytes)];
        let whole = |texts: &[&str]| [self.stream(texts), self.end.clone().into_bytes()].concat();
        let fail = |status, headers: &str| vec![Step::Send(response(status, headers, "{\"error\":{}}"))];
        let only = |steps| vec![steps];
        match scenario {
            Scenario::Answers => {
                let end = Step::Send(self.end.clone().into_bytes());
                only(vec![head.clone(), Step::OneByOne(self.stream(&["Hello", " — ", "café"])), end])
            }
            Scenario::Talks => {
                let begin = Step::Send(self.begin.clone().into_bytes());
                only(vec![head.clone(), begin, Step::Drip((self.text)("on and ").into_bytes())])
            }
            Scenario::Calls => {
                let calls = [self.begin.clone(), self.call.clone()].concat().into_bytes();
                vec![send(calls), send(whole(&["A bird."]))]
            }
            Scenario::Structured => only(send(whole(&[r#"{"winner":"#, r#""A","reason":"r"}"#]))),
            Scenario::Silent => only(vec![Step::Hang]),
            Scenario::Empty => only(send(whole(&[]))),
            Scenario::Cut => only(send(self.stream(&["half"]))),
            Scenario::Unauthorized => only(fail(401, "")),
            Scenario::Unpaid => only(fail(402, "")),
            Scenario::Limited => only(fail(429, "Retry-After: 3\r\n")),
            Scenario::Overloaded => only(fail(503, "")),
            Scenario::Absent => only(vec![]),
        }
    }

    async fn prepare(&self) -> (Prepared, Vec<Server>) {
        let (mut providers, mut servers) = (Vec::new(), Vec::new());
        for scenario in Scenario::ALL {
            let server = Server::answering(self.answers(scenario)).await;
            let config = json!({ "kind": self.kind, "base_url": server.url(), "model": "m" });
            providers.push((scenario, provider(config)));
            if scenario != Scenario::Absent {
                servers.push(server);
            }
        }
        (Prepared { providers, counts_tokens: true }, servers)
    }
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn line(data: &Value) -> String {
    format!("{data}\n")
}

/// What the tool is called with.
fn owl() -> Value {
    json!({ "word": "owl" })
}

fn wires() -> [Wire; 5] {
    [chat_completions(), responses(), messages(), generations(), ollama()]
}

fn chat_completions() -> Wire {
    Wire {
            kind: "openai",
            content_type: SSE,
            begin: String::new(),
            text: |text| chat(&[text]),
            end: CHAT_END.to_owned(),
            call: [
                event(&json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "delta": {
                    "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "look_up", "arguments": owl().to_string() } }],
                } }] })),
                "data: [DONE]\n\n".to_owned(),
            ]
            .concat(),
    }
}

fn responses() -> Wire {
    Wire {
            kind: "openai-responses",
            content_type: SSE,
            begin: event(&json!({ "type": "response.created", "response": { "status": "in_progress" } })),
            text: |text| event(&json!({ "type": "response.output_text.delta", "delta": text })),
            end: event(&json!({ "type": "response.completed", "response": {
                "usage": { "input_tokens": 3, "output_tokens": 4 },
            } })),
            call: [
                event(&json!({ "type": "response.output_item.done", "item": {
                    "type": "function_call", "call_id": "c", "name": "look_up", "arguments": owl().to_string(),
                } })),
                event(&json!({ "type": "response.completed", "response": {} })),
            ]
            .concat(),
    }
}

fn messages() -> Wire {
    Wire {
        kind: "anthropic",
        content_type: SSE,
        begin: event(&json!({ "type": "message_start", "message": {
                "usage": { "input_tokens": 3, "output_tokens": 1 },
            } })),
        text: |text| {
            let delta = json!({ "type": "text_delta", "text": text });
            event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
        },
        end: [
            event(&json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                    "usage": { "output_tokens": 4 } })),
            event(&json!({ "type": "message_stop" })),
        ]
        .concat(),
        call: [
            event(&json!({ "type": "content_block_start", "index": 0, "content_block": {
                    "type": "tool_use", "id": "c", "name": "look_up", "input": {},
                } })),
            event(&json!({ "type": "content_block_delta", "index": 0, "delta": {
                    "type": "input_json_delta", "partial_json": owl().to_string(),
                } })),
            event(&json!({ "type": "content_block_stop", "index": 0 })),
            event(&json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } })),
            event(&json!({ "type": "message_stop" })),
        ]
        .concat(),
    }
}

fn generations() -> Wire {
    Wire {
        kind: "gemini",
        content_type: SSE,
        begin: String::new(),
        text: |text| event(&json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] })),
        end: event(&json!({
            "candidates": [{ "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 },
        })),
        call: event(&json!({
            "candidates": [{
                "content": { "parts": [{ "functionCall": { "name": "look_up", "args": owl() } }] },
                "finishReason": "STOP",
            }],
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 },
        })),
    }
}

fn ollama() -> Wire {
    Wire {
        kind: "ollama",
        content_type: "application/x-ndjson",
        begin: String::new(),
        text: |text| line(&json!({ "message": { "content": text }, "done": false })),
        end: line(&json!({ "done": true, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4 })),
        call: [
            line(&json!({ "done": false, "message": {
                    "tool_calls": [{ "function": { "name": "look_up", "arguments": owl() } }],
                } })),
            line(&json!({ "done": true, "done_reason": "stop" })),
        ]
        .concat(),
    }
}

#[test]
fn the_http_kinds_keep_the_contract() {
    let one = |wire: Wire| async move {
        let (mut prepared, servers) = wire.prepare().await;
        assert_eq!(check(&mut prepared).await, Scenario::ALL, "{}", wire.kind);
        drop(servers);
    };
    block_on(join_all(wires().map(one)));
}

/// The same of a server that knows nothing of this crate.
const SCRIPT: &str = r#"
rule = [
    { when = { model = "Answers" }, text = "Hello — café", chunk = 1, wire_bytes = 1, comments = true },
    { when = { model = "Talks" }, text = "on and on ", fault = { drip = { every_ms = 1 } } },
    { when = { model = "Calls", after_tool = true }, text = "A bird." },
    { when = { model = "Calls" }, tools = [{ name = "look_up", input = { word = "owl" } }, { name = "look_up", input = { word = "café" } }], chunk = 3 },
    { when = { model = "Structured" }, json = { winner = "B", reason = "r" }, chunk = 4 },
    { when = { model = "Silent" }, text = "never", fault = { hang = {} } },
    { when = { model = "Empty" } },
    { when = { model = "Cut" }, text = "half an answer", fault = "no-terminator" },
    { when = { model = "Unauthorized" }, fault = { status = { code = 401 } } },
    { when = { model = "Unpaid" }, fault = { status = { code = 402 } } },
    { when = { model = "Limited" }, fault = { status = { code = 429, retry_after = "3" } } },
    { when = { model = "Overloaded" }, fault = { status = { code = 529 } } },
]
"#;

/// Every HTTP kind, and where its wire begins at a server that speaks them all.
const KINDS: [(&str, &str); 5] =
    [("openai", "/v1"), ("openai-responses", "/v1"), ("anthropic", ""), ("gemini", ""), ("ollama", "")];

#[test]
fn the_http_kinds_keep_the_contract_with_a_scripted_server() {
    let server = ScriptedServer::start(Script::parse(SCRIPT).unwrap()).unwrap();
    let shown: Vec<Scenario> = Scenario::ALL.into_iter().filter(|s| *s != Scenario::Absent).collect();
    let one = |(kind, path): (&'static str, &str)| {
        let url = format!("{}{path}", server.base_url());
        let config =
            |s: &Scenario| json!({ "kind": kind, "base_url": url, "model": format!("scripted/{s:?}") });
        let providers = shown.iter().map(|scenario| (*scenario, provider(config(scenario)))).collect();
        let mut prepared = Prepared { providers, counts_tokens: true };
        let shown = &shown;
        async move { assert_eq!(check(&mut prepared).await, *shown, "{kind}") }
    };
    block_on(join_all(KINDS.map(one)));
}
