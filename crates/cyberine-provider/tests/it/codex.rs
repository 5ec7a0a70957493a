//! Programs that behave like `codex exec` and like `codex app-server`, as the recordings have it.

use std::path::Path;

use cyberine_provider::{TurnError, TurnEvent};
use cyberine_types::{Billing, CostBasis};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{KEY, Taken, block_on, provider, script, take, take_with, turn};

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

const DELTA: &str = r#"{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"m","delta":"Hello"}}"#;
const USED: &str = r#"{"method":"thread/tokenUsage/updated","params":{"threadId":"t","turnId":"u","tokenUsage":{"total":{"inputTokens":3,"outputTokens":2}}}}"#;

fn completed(status: &str) -> String {
    format!(
        r#"{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"id":"u","status":"{status}"}}}}}}"#
    )
}

/// What it answers to `thread/start`.
const THREAD: &str =
    r#"{"thread":{"id":"t"},"sandbox":{"type":"readOnly","networkAccess":false},"approvalPolicy":"never"}"#;
/// What it answers to `turn/start`.
const TURN: &str = r#"echo '{"id":2,"result":{"turn":{"id":"u"}}}'"#;

/// A stand-in for `codex app-server` that writes down what it was given and hears, says `lines` of its
/// turn, and does `end`.
fn server(directory: &Path, lines: &[&str], end: &str) -> Value {
    server_that(directory, TURN, lines, end)
}

/// One that does `turn` once it is asked for the turn.
fn server_that(directory: &Path, turn: &str, lines: &[&str], end: &str) -> Value {
    let here = directory.to_str().unwrap();
    let lines: String = lines.iter().map(|line| format!("echo '{line}'\n")).collect();
    let text = format!(
        "#!/bin/sh\nenv > {here}/env\nfor arg; do echo \"$arg\"; done > {here}/args\n\
         echo x > \"$CODEX_HOME/session\"\nstat -c %a \"$CODEX_HOME\" > {here}/mode\n\
         hear() {{ read -r line; printf '%s\\n' \"$line\" >> {here}/heard; }}\n\
         hear; echo '{{\"id\":0,\"result\":{{}}}}'\nhear; hear; echo '{{\"id\":1,\"result\":{THREAD}}}'\n\
         hear; {turn}\n{lines}{end}\n"
    );
    json!({ "kind": "codex-cli", "form": "app-server", "program": script(directory, "codex", &text) })
}

fn heard(directory: &Path) -> Vec<Value> {
    read(directory, "heard").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The home that the program was given.
fn home(directory: &Path) -> String {
    let environment = read(directory, "env");
    environment.lines().find_map(|line| line.strip_prefix("CODEX_HOME=")).unwrap().to_owned()
}

#[test]
fn a_dialogue_has_a_home_of_its_own_and_asks_for_nothing_to_be_kept_or_changed() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = server(scratch.path(), &[DELTA, USED, &completed("completed")], "cat > /dev/null");
    config["model"] = json!("-gpt");
    config["args"] = json!(["--config=a=1"]);
    let mut asked = turn("-x is a prompt");
    asked.output_schema = Some(json!({
        "type": "object", "properties": { "winner": { "type": "string", "minLength": 1 } }, "required": ["winner"],
    }));
    let taken = block_on(async { take(&provider(config), asked).await });
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
    let usage = taken.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.basis), (3, 2, CostBasis::Included));
    let heard = heard(scratch.path());
    let methods: Vec<&str> = heard.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "initialized", "thread/start", "turn/start"]);
    assert_eq!(
        heard[2]["params"],
        json!({ "cwd": std::env::temp_dir(), "approvalPolicy": "never", "sandbox": "read-only", "ephemeral": true, "model": "-gpt" })
    );
    assert_eq!(heard[3]["params"]["input"], json!([{ "type": "text", "text": "-x is a prompt" }]));
    // In the form that the service enforces.
    assert_eq!(heard[3]["params"]["outputSchema"]["additionalProperties"], false);
    let args = read(scratch.path(), "args");
    assert!(args.starts_with("app-server\n--config=shell_environment_policy.exclude=["), "{args}");
    assert!(args.ends_with("\n--config=a=1\n") && !args.contains("is a prompt"), "{args}");
    assert!(!args.contains("model_provider") && !read(scratch.path(), "env").contains("CODEX_API_KEY"));
    let home = home(scratch.path());
    assert!(home.contains("cyberine-turn-") && !Path::new(&home).exists(), "{home}");
    assert_eq!(read(scratch.path(), "mode"), "700\n");
}

#[test]
fn a_dialogue_takes_its_key_by_the_environment_and_says_it_nowhere() {
    let scratch = tempfile::tempdir().unwrap();
    let mut config = server(scratch.path(), &[DELTA, &completed("completed")], "cat > /dev/null");
    config["api_key_env"] = json!("TEST_KEY");
    let provider = provider(config);
    assert_eq!(provider.info().billing, Billing::Metered);
    assert!(provider.capabilities().read_only);
    assert_eq!(block_on(async { take(&provider, turn("x")).await }).code(), "ok");
    assert!(read(scratch.path(), "env").contains(&format!("CODEX_API_KEY={KEY}\n")));
    let args = read(scratch.path(), "args");
    assert!(args.contains("env_key=\"CODEX_API_KEY\"") && !args.contains(KEY), "{args}");
    assert!(!read(scratch.path(), "heard").contains(KEY));
}

/// Cancels at the first words of a server that does `turn` once it is asked for the turn.
fn cancelled_after(begin: &str) -> (tempfile::TempDir, Taken) {
    let scratch = tempfile::tempdir().unwrap();
    let end = format!("hear\necho '{USED}'\necho '{}'\nexec sleep 600", completed("interrupted"));
    let config = server_that(scratch.path(), begin, &[DELTA], &end);
    let cancel = CancellationToken::new();
    let taken = block_on(async {
        take_with(&provider(config), turn("x"), cancel.clone(), |event| {
            if matches!(event, TurnEvent::Text(_)) {
                cancel.cancel();
            }
        })
        .await
    });
    (scratch, taken)
}

#[test]
fn a_dialogue_that_is_cancelled_is_told_so_and_says_what_it_used() {
    let started = r#"echo '{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u"}}}'"#;
    for begin in [TURN, started] {
        let (scratch, taken) = cancelled_after(begin);
        assert_eq!(taken.outcome, Err(TurnError::Cancelled), "{begin}");
        assert_eq!(taken.usage.map(|usage| (usage.input, usage.output)), Some((3, 2)), "{begin}");
        let last = &heard(scratch.path())[4];
        assert_eq!(
            (&last["method"], &last["params"]),
            (&json!("turn/interrupt"), &json!({ "threadId": "t", "turnId": "u" })),
            "{begin}"
        );
    }
}
