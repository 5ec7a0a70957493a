//! Programs that answer, and programs that do not.

use std::time::Duration;

use cyberine_process::find_marked;
use cyberine_provider::{Limits, Message, Role, ToolSpec, TurnError};
use cyberine_types::{Billing, CostBasis};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{KEY, PATIENCE, Taken, block_on, limited, provider, take, take_with, turn};

const SHORT: Duration = Duration::from_millis(300);

fn shell(script: &str) -> Value {
    json!({ "kind": "command", "command": ["sh", "-c", script] })
}

fn run(script: &str, prompt: &str) -> Taken {
    block_on(async { take(&provider(shell(script)), turn(prompt)).await })
}

fn check(script: &str, prompt: &str, code: &str, text: &str) {
    let taken = run(script, prompt);
    assert_eq!((taken.code(), taken.text.as_str()), (code, text), "{script}: {:?}", taken.outcome);
}

#[test]
fn the_prompt_is_the_input_and_the_output_the_answer() {
    check("cat", "what is 6 × 7?", "ok", "what is 6 × 7?");
    check("cat", "-x --help", "ok", "-x --help");
    check("printf ' \\n an  answer\\n\\n'", "x", "ok", "an  answer");
    check("printf '\\033[1mbold\\033[0m\\r\\n\\tend\\033]0;title\\007'", "x", "ok", "bold\n\tend");
}

#[test]
fn a_megabyte_goes_in_whole_and_unread_input_is_no_fault() {
    let prompt = "é".repeat(512 << 10);
    check("wc -c | tr -d ' '", &prompt, "ok", "1048576");
    check("echo ignored", &prompt, "ok", "ignored");
}

#[test]
fn an_answer_needs_exit_status_0_and_words() {
    check("true", "x", "empty", "");
    check("printf ' \\n\\t'", "x", "empty", "");
    check("echo only complaints >&2", "x", "empty", "");
    check("echo half; exit 3", "x", "crashed", "half");
    check("printf 'caf\\303'", "x", "ok", "caf\u{fffd}");
    check("printf '\\303'", "x", "empty", "\u{fffd}");
}

#[test]
fn a_crash_is_told_with_its_status_and_the_end_of_its_complaints() {
    let taken = run("echo part; echo 'out of \\033[31mmemory' >&2; kill -9 $$", "x");
    let expected = "the program ended with signal: 9 (SIGKILL): out of memory";
    assert_eq!((taken.error().as_str(), taken.text.as_str()), (expected, "part"));
}

#[test]
fn fifty_megabytes_are_cut_off_at_the_bound() {
    let taken = block_on(async {
        let asked = limited("x", |limits: &mut Limits| limits.answer_bytes = 1 << 20);
        let mark = asked.mark.clone();
        let taken = take(&provider(shell("head -c 52428800 /dev/zero | tr '\\0' x; sleep 600")), asked).await;
        assert_eq!(find_marked(&mark), []);
        taken
    });
    assert_eq!(taken.outcome, Err(TurnError::TooLong { limit: 1 << 20 }));
    assert!(taken.text.len() <= 1 << 20);
}

#[test]
fn escapes_without_end_are_cut_off_too() {
    let taken = block_on(async {
        let asked = limited("x", |limits: &mut Limits| limits.answer_bytes = 1 << 10);
        take(&provider(shell("yes \"$(printf '\\033[1m')\" | tr -d '\\n'")), asked).await
    });
    // Of all that the program may write, and not of the answer, in which they are not.
    assert_eq!(taken.outcome, Err(TurnError::TooLong { limit: 64 << 10 }));
}

#[test]
fn a_program_that_hangs_is_killed_with_all_it_started() {
    block_on(async {
        for script in ["echo first; sleep 600", "exec >&-; sleep 600", "sleep 600 & setsid sleep 600"] {
            let asked = limited("x", |limits: &mut Limits| limits.idle = SHORT);
            let mark = asked.mark.clone();
            let taken = take(&provider(shell(script)), asked).await;
            assert_eq!(taken.outcome, Err(TurnError::IdleTimeout { limit: SHORT }), "{script}");
            assert_eq!(find_marked(&mark), [], "{script}");
        }
        let asked = limited("x", |limits: &mut Limits| limits.wall = SHORT);
        let taken = take(&provider(shell("while :; do echo x; sleep 0.02; done")), asked).await;
        assert_eq!(taken.outcome, Err(TurnError::WallTimeout { limit: SHORT }));
    });
}

#[test]
fn cancelling_leaves_nothing_behind() {
    block_on(async {
        let asked = turn("x");
        let (mark, cancel) = (asked.mark.clone(), CancellationToken::new());
        let script = "trap '' TERM; setsid setsid sleep 600 & echo begun; while :; do sleep 600; done";
        let taken = take_with(&provider(shell(script)), asked, cancel.clone(), |_| cancel.cancel()).await;
        assert_eq!(taken.outcome, Err(TurnError::Cancelled));
        assert_eq!(find_marked(&mark), []);
    });
}

#[test]
fn dropping_the_stream_kills() {
    block_on(async {
        use futures_util::StreamExt;
        let asked = turn("x");
        let mark = asked.mark.clone();
        let mut stream = provider(shell("echo begun; exec sleep 600")).turn(asked, CancellationToken::new());
        assert!(stream.next().await.unwrap().is_ok());
        assert_ne!(find_marked(&mark), []);
        drop(stream);
        tokio::time::timeout(PATIENCE, async {
            while !find_marked(&mark).is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_child_knows_what_was_named_for_it_and_nothing_else() {
    // Its answers show no secret, so it tells how long the one is that it was given.
    let config = json!({
        "kind": "command",
        "command": ["sh", "-c", "env; echo \"length ${#TEST_KEY}\""],
        "env": ["TEST_KEY"],
    });
    let text = block_on(async { take(&provider(config), turn("x")).await.text });
    assert!(text.contains("TEST_KEY=[redacted]") && !text.contains(KEY), "{text}");
    assert!(text.ends_with(&format!("length {}", KEY.len())), "{text}");
    assert!(text.contains("CYBERINE_RUN=provider-test-"), "{text}");
    assert!(!text.contains("stray") && !text.contains("CARGO"), "{text}");
}

#[test]
fn an_ordinary_word_in_the_environment_stays_in_answers_and_complaints() {
    let said = |script: &str| {
        let env = ["TEST_MODE", "TEST_KEY"];
        let config = json!({ "kind": "command", "command": ["sh", "-c", script], "env": env });
        block_on(async { take(&provider(config), turn("x")).await })
    };
    let answered = said("echo \"ready for production: $TEST_MODE $TEST_KEY\"");
    assert_eq!(answered.text, "ready for production: production [redacted]");
    let failed = said("echo \"no $TEST_MODE\" >&2; exit 1");
    assert_eq!(failed.error(), "the program ended with exit status: 1: no production");
}

#[test]
fn a_key_in_a_complaint_is_not_passed_on() {
    let config = json!({
        "kind": "command",
        "command": ["sh", "-c", "echo \"bad key $TEST_KEY\" >&2; exit 1"],
        "env": ["TEST_KEY"],
    });
    let error = block_on(async { take(&provider(config), turn("x")).await.error() });
    assert_eq!(error, "the program ended with exit status: 1: bad key [redacted]");
}

#[test]
fn a_program_or_a_directory_that_is_not_there_is_unreachable() {
    let missing = json!({ "kind": "command", "command": ["no-such-program-anywhere"] });
    let nowhere = json!({ "kind": "command", "command": ["true"], "cwd": "no/such/directory" });
    for config in [missing, nowhere] {
        let taken = block_on(async { take(&provider(config), turn("x")).await });
        assert_eq!(taken.code(), "unreachable", "{taken:?}");
    }
}

#[test]
fn the_directory_is_the_turns_or_the_configured_one_below_it() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("sub")).unwrap();
    let here = scratch.path().canonicalize().unwrap();
    for (config, expected) in [
        (json!({ "kind": "command", "command": ["pwd", "-P"] }), here.clone()),
        (json!({ "kind": "command", "command": ["pwd", "-P"], "cwd": "sub" }), here.join("sub")),
    ] {
        let mut asked = turn("x");
        asked.cwd.clone_from(&here);
        let taken = block_on(async { take(&provider(config), asked).await });
        assert_eq!(taken.text, expected.to_str().unwrap());
    }
}

#[test]
fn a_scripted_program_says_so_and_costs_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let path = crate::support::script(scratch.path(), "cyberine-scripted-llm", "#!/bin/sh\necho canned\n");
    let config = json!({ "kind": "command", "command": [path] });
    let provider = provider(config);
    assert_eq!(provider.info().billing, Billing::Scripted);
    let taken = block_on(async { take(&provider, turn("x")).await });
    let usage = taken.usage.unwrap();
    assert_eq!(
        (taken.text.as_str(), usage.usd.unwrap().micros(), usage.basis),
        ("canned", 0, CostBasis::Scripted)
    );
}

#[test]
fn a_conversation_is_one_text_and_tools_are_refused() {
    let mut asked = turn("why?");
    asked.messages.insert(0, Message::new(Role::System, "be brief"));
    let tool = ToolSpec { name: "t".into(), description: String::new(), input_schema: json!({}) };
    let taken = block_on(async { take(&provider(shell("cat")), asked.clone()).await });
    assert_eq!(taken.text, "be brief\n\nwhy?");
    asked.tools = vec![tool];
    assert_eq!(block_on(async { take(&provider(shell("cat")), asked).await }).code(), "rejected");
}
