//! The contract suite on every kind, over fixtures of this crate.

use std::path::Path;
use std::sync::Arc;

use cyberine_provider::contract::{Fixture, Scenario, check};
use cyberine_provider::{Provider, Turn};
use cyberine_scripted_llm::{Script, ScriptedServer};
use serde_json::{Value, json};

use crate::claude::stand_in;
use crate::http::{CHAT_END, chat};
use crate::mcp;
use crate::server::{Server, Step, response};
use crate::support::{block_on, provider, turn};

/// One provider per scenario, made ready beforehand.
struct Prepared {
    providers: Vec<(Scenario, Arc<dyn Provider>)>,
    counts_tokens: bool,
}

impl Fixture for Prepared {
    fn provider(&mut self, scenario: Scenario) -> Option<Arc<dyn Provider>> {
        let found = self.providers.iter().find(|(prepared, _)| *prepared == scenario);
        found.map(|(_, provider)| Arc::clone(provider))
    }

    fn turn(&self, _: Scenario) -> Turn {
        turn("question")
    }

    fn answer(&self) -> Option<String> {
        Some("Hello — café".to_owned())
    }

    fn counts_tokens(&self) -> bool {
        self.counts_tokens
    }
}

/// What a server of one wire says.
struct Wire {
    kind: &'static str,
    text: fn(&str) -> String,
    begin: &'static str,
    end: &'static str,
}

const CHAT: Wire = Wire { kind: "openai", text: |text| chat(&[text]), begin: "", end: CHAT_END };

const MESSAGES: Wire = Wire {
    kind: "anthropic",
    text: |text| {
        let delta = json!({ "type": "text_delta", "text": text });
        format!("data: {}\n\n", json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    },
    begin: "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    end: concat!(
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    ),
};

impl Wire {
    fn stream(&self, texts: &[&str]) -> Vec<u8> {
        let texts: String = texts.iter().map(|text| (self.text)(text)).collect();
        (self.begin.to_owned() + &texts).into_bytes()
    }

    fn steps(&self, scenario: Scenario) -> Vec<Step> {
        let head = Step::Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_vec());
        let end = Step::Send(self.end.into());
        let fail = |status, headers: &str| vec![Step::Send(response(status, headers, "{\"error\":{}}"))];
        match scenario {
            Scenario::Answers => vec![head, Step::OneByOne(self.stream(&["Hello", " — ", "café"])), end],
            Scenario::Talks => vec![head, Step::Drip(self.stream(&["on and "]))],
            Scenario::Silent => vec![Step::Hang],
            Scenario::Empty => vec![head, Step::Send(self.stream(&[])), end],
            Scenario::Cut => vec![head, Step::Send(self.stream(&["half"]))],
            Scenario::Unauthorized => fail(401, ""),
            Scenario::Unpaid => fail(402, ""),
            Scenario::Limited => fail(429, "Retry-After: 3\r\n"),
            Scenario::Overloaded => fail(503, ""),
            Scenario::Absent => vec![],
        }
    }

    async fn prepare(&self) -> (Prepared, Vec<Server>) {
        let (mut providers, mut servers) = (Vec::new(), Vec::new());
        for scenario in Scenario::ALL {
            let server = Server::start(self.steps(scenario)).await;
            let config = json!({ "kind": self.kind, "base_url": server.url(), "model": "m" });
            providers.push((scenario, provider(config)));
            if scenario != Scenario::Absent {
                servers.push(server);
            }
        }
        (Prepared { providers, counts_tokens: true }, servers)
    }
}

#[test]
fn the_http_kinds_keep_the_contract() {
    block_on(async {
        for wire in [CHAT, MESSAGES] {
            let (mut prepared, servers) = wire.prepare().await;
            assert_eq!(check(&mut prepared).await, Scenario::ALL, "{}", wire.kind);
            drop(servers);
        }
    });
}

fn commands() -> Vec<(Scenario, Value)> {
    let shell = |script: &str| json!({ "kind": "command", "command": ["sh", "-c", script] });
    vec![
        (Scenario::Answers, shell("printf 'Hello — '; printf 'caf\\303'; printf '\\251\\n'")),
        (Scenario::Talks, shell("while :; do echo on and; sleep 0.01; done")),
        (Scenario::Silent, shell("sleep 600")),
        (Scenario::Empty, shell("exit 0")),
        (Scenario::Absent, json!({ "kind": "command", "command": ["no-such-program-anywhere"] })),
    ]
}

fn claudes(directory: &Path) -> Vec<(Scenario, Value)> {
    let delta = |text: &str| {
        let event = json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } });
        json!({ "type": "stream_event", "event": event }).to_string()
    };
    let result = |text: &str| {
        let usage = json!({ "input_tokens": 3, "output_tokens": 2 });
        let result = json!({ "type": "result", "subtype": "success", "is_error": false, "result": text, "usage": usage });
        result.to_string()
    };
    let retry =
        |status: u16| json!({ "type": "system", "subtype": "api_retry", "error_status": status }).to_string();
    let unpaid = json!({ "type": "result", "subtype": "success", "is_error": true, "result": "Credit balance is too low" });
    let lines = [
        (Scenario::Answers, vec![delta("Hello — "), delta("café"), result("Hello — café")], ""),
        (Scenario::Talks, vec![delta("on and on")], "sleep 600"),
        (Scenario::Silent, vec![], "sleep 600"),
        (Scenario::Empty, vec![result("")], ""),
        (Scenario::Cut, vec![delta("half")], ""),
        (Scenario::Unauthorized, vec![retry(401)], "sleep 600"),
        (Scenario::Unpaid, vec![unpaid.to_string()], "exit 1"),
        (Scenario::Overloaded, vec![retry(529)], "exit 1"),
    ];
    lines
        .into_iter()
        .map(|(scenario, lines, end)| {
            let directory = directory.join(format!("{scenario:?}"));
            std::fs::create_dir(&directory).unwrap();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            (scenario, stand_in(&directory, &lines, end))
        })
        .collect()
}

#[test]
fn the_process_kinds_keep_the_contract() {
    let scratch = tempfile::tempdir().unwrap();
    block_on(async {
        for (configs, counts_tokens) in
            [(commands(), false), (claudes(scratch.path()), true), (mcp::servers(scratch.path()), false)]
        {
            let scenarios: Vec<Scenario> = configs.iter().map(|(scenario, _)| *scenario).collect();
            let providers =
                configs.into_iter().map(|(scenario, config)| (scenario, provider(config))).collect();
            let checked = check(&mut Prepared { providers, counts_tokens }).await;
            assert_eq!(checked, scenarios);
        }
    });
}

/// The same of a server that knows nothing of this crate.
const SCRIPT: &str = r#"
rule = [
    { when = { model = "Answers" }, text = "Hello — café", chunk = 1, wire_bytes = 1, comments = true },
    { when = { model = "Talks" }, text = "on and on ", fault = { drip = { every_ms = 1 } } },
    { when = { model = "Silent" }, text = "never", fault = { hang = {} } },
    { when = { model = "Empty" } },
    { when = { model = "Cut" }, text = "half an answer", fault = "no-terminator" },
    { when = { model = "Unauthorized" }, fault = { status = { code = 401 } } },
    { when = { model = "Unpaid" }, fault = { status = { code = 402 } } },
    { when = { model = "Limited" }, fault = { status = { code = 429, retry_after = "3" } } },
    { when = { model = "Overloaded" }, fault = { status = { code = 529 } } },
]
"#;

#[test]
fn the_http_kinds_keep_the_contract_with_a_scripted_server() {
    let server = ScriptedServer::start(Script::parse(SCRIPT).unwrap()).unwrap();
    let shown: Vec<Scenario> = Scenario::ALL.into_iter().filter(|s| *s != Scenario::Absent).collect();
    block_on(async {
        for (kind, path) in [("openai", "/v1"), ("anthropic", "")] {
            let url = format!("{}{path}", server.base_url());
            let config =
                |s: &Scenario| json!({ "kind": kind, "base_url": url, "model": format!("scripted/{s:?}") });
            let providers = shown.iter().map(|scenario| (*scenario, provider(config(scenario)))).collect();
            assert_eq!(check(&mut Prepared { providers, counts_tokens: true }).await, shown, "{kind}");
        }
    });
}
