//! Programs that behave like agents of the Agent Client Protocol, and one like aider.

use std::path::Path;

use cyberine_process::find_marked;
use cyberine_provider::{TurnError, TurnEvent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{block_on, provider, script, take, take_with, turn};

const READY: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
const SESSION: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#;
const CHUNK: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello"}}}}"#;
const END: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;
const CANCELLED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}"#;

/// An agent that writes down its environment and everything it reads, and answers line by line.
fn agent(directory: &Path, replies: &[&[&str]], end: &str) -> Value {
    let here = directory.to_str().unwrap();
    let mut text = format!("#!/bin/sh\nenv > {here}/env\n");
    for lines in replies {
        text.push_str(&format!("read -r line; printf '%s\\n' \"$line\" >> {here}/heard\n"));
        for line in *lines {
            text.push_str(&format!("echo '{line}'\n"));
        }
    }
    json!({ "kind": "acp", "command": [script(directory, "agent", &(text + end + "\n")), "--acp", "-m", "big"] })
}

fn heard(directory: &Path) -> Vec<Value> {
    let heard = std::fs::read_to_string(directory.join("heard")).unwrap();
    heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn an_agent_is_greeted_given_a_session_asked_and_then_left() {
    let scratch = tempfile::tempdir().unwrap();
    let config = agent(scratch.path(), &[&[READY], &[SESSION], &[CHUNK, END]], "cat > /dev/null");
    let taken = block_on(async { take(&provider(config), turn("/why\n?")).await });
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
    let heard = heard(scratch.path());
    let methods: Vec<&str> = heard.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"]);
    let capabilities = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    assert_eq!(heard[0]["params"]["clientCapabilities"], capabilities);
    assert_eq!(heard[1]["params"]["cwd"], std::env::temp_dir().to_str().unwrap());
    assert_eq!(heard[2]["params"]["prompt"][0]["text"], "[user]\n/why\n?");
    let environment = read(scratch.path(), "env");
    assert!(environment.contains("OPENCODE_PERMISSION={\"*\":\"deny\""), "{environment}");
    assert!(environment.contains("GEMINI_CLI_NO_RELAUNCH=true"), "{environment}");
}

#[test]
fn every_request_of_a_burst_is_answered() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path().to_str().unwrap();
    let ask = "seq -f '{\"jsonrpc\":\"2.0\",\"id\":\"r-%.0f\",\"method\":\"fs/read_text_file\"}' 500";
    let listen = format!("for n in $(seq 500); do read -r line; echo \"$line\" >> {here}/heard; done");
    let end = format!("{ask}; {listen}; echo '{CHUNK}'; echo '{END}'; cat > /dev/null");
    let config = agent(scratch.path(), &[&[READY], &[SESSION], &[]], &end);
    let taken = block_on(async { take(&provider(config), turn("x")).await });
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
    assert_eq!(heard(scratch.path()).len(), 3 + 500);
}

#[test]
fn a_model_is_asked_for_where_the_agent_offers_a_choice_and_refused_where_it_cannot_be_had() {
    block_on(async {
        let offering = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","models":{"availableModels":[],"currentModelId":"auto"}}}"#;
        let chosen = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        let scratch = tempfile::tempdir().unwrap();
        let mut config =
            agent(scratch.path(), &[&[READY], &[offering], &[chosen], &[CHUNK, END]], "cat > /dev/null");
        config["model"] = json!("small");
        assert_eq!(take(&provider(config), turn("x")).await.code(), "ok");
        let asked = &heard(scratch.path())[2];
        assert_eq!(
            (&asked["method"], &asked["params"]["modelId"]),
            (&json!("session/set_model"), &json!("small"))
        );

        for (model, code) in [("big", "ok"), ("small", "rejected")] {
            let scratch = tempfile::tempdir().unwrap();
            let mut config = agent(scratch.path(), &[&[READY], &[SESSION], &[CHUNK, END]], "cat > /dev/null");
            config["model"] = json!(model);
            assert_eq!(take(&provider(config), turn("x")).await.code(), code, "{model}");
        }
    });
}

#[test]
fn a_cancelled_agent_is_told_so_and_leaves_nothing_behind() {
    block_on(async {
        let scratch = tempfile::tempdir().unwrap();
        let config = agent(
            scratch.path(),
            &[&[READY], &[SESSION], &[CHUNK], &[CANCELLED]],
            "setsid sleep 600 & exec sleep 600",
        );
        let asked = turn("x");
        let mark = asked.mark.clone();
        let cancel = CancellationToken::new();
        let taken = take_with(&provider(config), asked, cancel.clone(), |event| {
            if matches!(event, TurnEvent::Text(_)) {
                cancel.cancel();
            }
        })
        .await;
        assert_eq!(taken.outcome, Err(TurnError::Cancelled));
        assert_eq!(heard(scratch.path())[3]["method"], "session/cancel");
        assert_eq!(find_marked(&mark), []);
    });
}

#[test]
fn a_program_that_answers_no_greeting_is_not_waited_for_as_long_as_an_answer() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let config = json!({ "kind": "acp", "command": ["sleep", "600"] });
    let taken = runtime.block_on(async { take(&provider(config), turn("x")).await });
    assert_eq!(taken.code(), "protocol");
    assert!(taken.error().contains("did not answer the first request within 60 s"), "{}", taken.error());
}

#[test]
fn what_is_one_shot_is_started_as_such_whatever_form_the_command_names() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path().to_str().unwrap();
    let text = format!("#!/bin/sh\nfor arg; do echo \"$arg\"; done > {here}/args\ncat > {here}/prompt\n");
    let started = |form: &str, name: &str, args: &[&str]| {
        let program = script(scratch.path(), name, &text);
        let command: Vec<&str> = [program.as_str()].into_iter().chain(args.iter().copied()).collect();
        let mut config = json!({ "kind": "acp", "command": command, "model": "-m" });
        if !form.is_empty() {
            config["form"] = json!(form);
        }
        let taken = block_on(async { take(&provider(config), turn("-x is a prompt")).await });
        assert_eq!(taken.code(), "empty", "{taken:?}");
        assert_eq!(read(scratch.path(), "prompt"), "-x is a prompt");
        read(scratch.path(), "args")
    };
    let gemini = "--debug\n--output-format=stream-json\n--skip-trust\n--approval-mode=default\n--model=-m\n";
    assert_eq!(started("gemini", "first", &["--acp", "--debug"]), gemini);
    assert_eq!(started("opencode", "second", &["acp"]), "run\n--format=json\n--model=-m\n");
    assert_eq!(started("", "opencode", &[]), "run\n--format=json\n--model=-m\n");
    assert_eq!(started("", "gemini", &["--debug"]), gemini);
}

#[test]
fn aider_is_asked_by_a_file_where_no_project_is() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path().to_str().unwrap();
    let text = format!(
        "#!/bin/sh\nfor arg; do echo \"$arg\"; done > {here}/args\npwd > {here}/cwd\n(stat -c %a .; stat -c %a message.md) > {here}/mode\ncat message.md > {here}/prompt\necho 'Aider v1'\necho\necho Hello\n"
    );
    let config = json!({ "kind": "aider", "program": script(scratch.path(), "aider", &text), "model": "-m" });
    let taken = block_on(async { take(&provider(config), turn("-x is a prompt")).await });
    assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"));
    assert_eq!(
        (read(scratch.path(), "prompt").as_str(), read(scratch.path(), "mode").as_str()),
        ("-x is a prompt", "700\n600\n")
    );
    let cwd = read(scratch.path(), "cwd");
    assert!(cwd.contains("cyberine-turn-") && !Path::new(cwd.trim()).exists(), "{cwd}");
    let args = read(scratch.path(), "args");
    assert!(args.starts_with("--chat-mode=ask\n") && args.contains("\n--model=-m\n"), "{args}");
    assert!(args.contains(&format!("--message-file={}/message.md\n", cwd.trim())), "{args}");
    assert!(!args.contains("is a prompt"), "{args}");
}
