//! The contract suite on every kind, over fixtures of this crate and servers that know nothing of it.

mod agent;
mod http;

use std::path::Path;
use std::sync::Arc;

use cyberine_provider::contract::{Fixture, Scenario, check};
use cyberine_provider::{Provider, Turn};
use serde_json::{Value, json};

use crate::claude::stand_in;
use crate::mcp;
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

async fn keep(configs: Vec<(Scenario, Value)>, counts_tokens: bool) {
    let scenarios: Vec<Scenario> = configs.iter().map(|(scenario, _)| *scenario).collect();
    let providers = configs.into_iter().map(|(scenario, config)| (scenario, provider(config))).collect();
    assert_eq!(check(&mut Prepared { providers, counts_tokens }).await, scenarios);
}

#[test]
fn the_process_kinds_keep_the_contract() {
    let scratch = tempfile::tempdir().unwrap();
    block_on(async {
        keep(commands(), false).await;
        keep(claudes(scratch.path()), true).await;
        keep(mcp::servers(scratch.path()), false).await;
    });
}

#[test]
fn agents_keep_the_contract() {
    let scratch = tempfile::tempdir().unwrap();
    block_on(keep(agent::agents(scratch.path()), true));
}

#[test]
fn one_shots_and_aider_keep_the_contract() {
    let scratch = tempfile::tempdir().unwrap();
    block_on(async {
        keep(agent::geminis(scratch.path()), true).await;
        keep(agent::opencodes(scratch.path()), true).await;
        keep(agent::aiders(scratch.path()), true).await;
    });
}
