//! The contract suite over a small real model, behind a server that knows nothing of this project.

use std::sync::Arc;

use cyberine_provider::contract::{Fixture, Scenario, check};
use cyberine_provider::{Provider, Turn};
use serde_json::json;

use crate::support::{block_on_for, provider, turn};

/// The variable with the address of the server: `http://127.0.0.1:PORT`.
const ADDRESS: &str = "CYBERINE_REAL_MODEL";

/// One wire of the server, and what it can show of it. Only its oldest wire holds an answer to a
/// schema, and its template knows no tools.
struct Wire {
    kind: &'static str,
    path: &'static str,
    shown: &'static [Scenario],
}

const WIRES: [Wire; 3] = [
    Wire {
        kind: "openai",
        path: "/v1",
        shown: &[Scenario::Answers, Scenario::Talks, Scenario::Structured, Scenario::Absent],
    },
    Wire {
        kind: "openai-responses",
        path: "/v1",
        shown: &[Scenario::Answers, Scenario::Talks, Scenario::Absent],
    },
    Wire { kind: "anthropic", path: "", shown: &[Scenario::Answers, Scenario::Talks, Scenario::Absent] },
];

struct Real<'a> {
    wire: &'a Wire,
    address: String,
}

impl Fixture for Real<'_> {
    fn provider(&mut self, scenario: Scenario) -> Option<Arc<dyn Provider>> {
        // Nobody listens at the first port.
        let address = if scenario == Scenario::Absent { "http://127.0.0.1:1" } else { &self.address };
        let url = format!("{address}{}", self.wire.path);
        let config = json!({ "kind": self.wire.kind, "base_url": url, "model": "m", "max_tokens": 1024 });
        self.wire.shown.contains(&scenario).then(|| provider(config))
    }

    fn turn(&self, scenario: Scenario) -> Turn {
        turn(match scenario {
            Scenario::Talks => "Count from 1 to 1000, one number a line.",
            Scenario::Structured => "Which is a bird, A: the owl, or B: the stone? Answer in JSON.",
            _ => "Answer with one word: what is the capital of Italy?",
        })
    }
}

#[test]
#[ignore = "needs the server of a real model, which `cargo xtask contract --real` starts"]
fn a_real_model_keeps_the_contract() {
    let address = std::env::var(ADDRESS).unwrap();
    let address = address.trim_end_matches('/');
    for wire in &WIRES {
        let begun = std::time::Instant::now();
        let mut real = Real { wire, address: address.to_owned() };
        let shown = block_on_for(std::time::Duration::from_secs(240), check(&mut real));
        assert_eq!(shown, wire.shown, "{}", wire.kind);
        println!("{}: {shown:?} in {:.1} s", wire.kind, begun.elapsed().as_secs_f64());
    }
}
