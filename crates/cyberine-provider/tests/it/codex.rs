//! A program that behaves like `codex exec`, as the recordings have it.

use std::path::Path;

use cyberine_types::{Billing, CostBasis};
use serde_json::{Value, json};

use crate::support::{KEY, block_on, provider, script, take, turn};

const LINES: &str = concat!(
    r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello"}}"#,
    "\n",
    r#"{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}"#,
    "\n",
);

/// A stand-in that writes down what it was given and answers.
fn stand_in(directory: &Path) -> Value {
    let here = directory.to_str().unwrap();
    std::fs::write(directory.join("lines"), LINES).unwrap();
    let text = format!(
        "#!/bin/sh\nenv > {here}/env\nfor arg; do echo \"$arg\"; case $arg in --output-schema=*) cat \"${{arg#*=}}\" > {here}/schema;; esac; done > {here}/args\ncat > {here}/prompt\ncat {here}/lines\n"
    );
    json!({ "kind": "codex-cli", "program": script(directory, "codex", &text) })
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn a_turn_is_started_bare_and_its_prompt_goes_by_its_input() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = stand_in(scratch.path());
    config["model"] = json!("-gpt");
    config["args"] = json!(["--config=a=1"]);
    let mut asked = turn("-x is a prompt");
    asked.output_schema = Some(json!({
        "type": "object", "properties": { "winner": { "type": "string", "minLength": 1 } }, "required": ["winner"],
    }));
    let provider = provider(config);
    let taken = block_on(async { take(&provider, asked).await });
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
    assert_eq!(provider.info().billing, Billing::Subscription);
    assert!(!provider.capabilities().read_only, "further arguments may widen it");
    let usage = taken.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.basis), (3, 2, CostBasis::Included));
    assert_eq!(read(scratch.path(), "prompt"), "-x is a prompt");
    let args = read(scratch.path(), "args");
    let begin = concat!(
        "exec\n--json\n--skip-git-repo-check\n--ephemeral\n--ignore-user-config\n--ignore-rules\n--sandbox=read-only\n",
        "--color=never\n--config=shell_environment_policy.exclude=[\"CODEX_API_KEY\",\"OPENAI_API_KEY\"]\n",
        "--model=-gpt\n--output-schema=",
    );
    assert!(args.starts_with(begin) && args.ends_with("/schema.json\n--config=a=1\n-\n"), "{args}");
    // In the form that the service enforces.
    let schema: Value = serde_json::from_str(&read(scratch.path(), "schema")).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["winner"]["type"], "string");
    assert!(!read(scratch.path(), "env").contains("CODEX_API_KEY"));
}

#[test]
fn a_key_reaches_the_program_only_where_it_is_configured_and_a_loose_schema_not_at_all() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = stand_in(scratch.path());
    config["api_key_env"] = json!("TEST_KEY");
    let mut asked = turn("x");
    asked.output_schema = Some(json!({ "type": "object", "properties": { "a": {} } }));
    let provider = provider(config);
    assert_eq!(provider.info().billing, Billing::Metered);
    assert!(provider.capabilities().read_only);
    let usage = block_on(async { take(&provider, asked).await.usage.unwrap() });
    // It reports no cost, and no prices are configured.
    assert_eq!((usage.usd, usage.basis), (None, CostBasis::Unknown));
    assert!(read(scratch.path(), "env").contains(&format!("CODEX_API_KEY={KEY}\n")));
    assert!(!read(scratch.path(), "args").contains("--output-schema"));
}
