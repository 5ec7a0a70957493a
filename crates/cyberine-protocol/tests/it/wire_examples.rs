//! Hand-written messages of every revision: they pass the strict layer, satisfy the official
//! schemas, and what a client would send of them is understood.

use std::collections::HashMap;

use cyberine_protocol::strict::{Limits, check};
use cyberine_protocol::{Effect, Revision};
use serde_json::Value;

use crate::official::Official;
use crate::support::session_of;

struct Example {
    revision: String,
    definition: String,
    message: Value,
}

fn examples() -> Vec<Example> {
    let all: Vec<Value> = serde_json::from_str(include_str!("../fixtures/wire-examples.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.into_iter()
        .map(|example| Example {
            revision: text(&example["rev"]),
            definition: text(&example["def"]),
            message: example["msg"].clone(),
        })
        .collect()
}

#[test]
fn examples_pass_the_strict_layer_and_their_schema() {
    let mut schemas: HashMap<String, Option<Official>> = HashMap::new();
    let all = examples();
    assert_eq!(all.len(), 58);
    for Example { revision, definition, message } in all {
        let line = message.to_string();
        assert_eq!(check(line.as_bytes(), Limits::default()), Ok(Some(line.as_str())));
        let file = if revision == "ext-tasks" { "ext-tasks-draft-2026-08-21" } else { &revision };
        if let Some(official) = schemas.entry(revision.clone()).or_insert_with(|| Official::load(file)) {
            official.assert(&definition, &message);
        }
    }
}

#[test]
fn requests_of_clients_are_understood() {
    let mut seen = Vec::new();
    for Example { revision, definition, message } in examples() {
        if message.get("method").is_none() || message.get("id").is_none() || definition == "ElicitRequest" {
            continue;
        }
        let revision = Revision::parse(&revision).unwrap_or(Revision::V2026_07_28);
        let effects = session_of(revision).receive(message.to_string().as_bytes());
        let outcome = match &effects[..] {
            [Effect::Request(inbound)] => format!("{:?}", inbound.body),
            [Effect::Send(line)] => String::from_utf8(line.clone()).unwrap(),
            other => panic!("{message} gives {other:?}"),
        };
        seen.push(format!("{revision} {definition}: {outcome}"));
    }
    insta::assert_snapshot!(seen.join("\n"));
}
