//! Turns that are taken again, against a real connection and in real time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cyberine_process::find_marked;
use cyberine_provider::{MemoryGate, Provider, ProviderConfig, TurnError, TurnEvent, retrying};
use cyberine_scripted_llm::{Script, ScriptedServer};
use cyberine_types::SystemClock;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::claude::stand_in;
use crate::support::{block_on, provider, take, turn};

/// A server that plays `script`, and a provider that asks it behind a gate.
fn play(script: &str) -> (ScriptedServer, Arc<dyn Provider>) {
    let server = ScriptedServer::start(Script::parse(script).unwrap()).unwrap();
    let base = format!("{}/v1", server.base_url());
    let config = serde_json::json!({ "kind": "openai", "base_url": base, "model": "scripted/m" });
    let read: ProviderConfig = serde_json::from_value(config.clone()).unwrap();
    let gate = Arc::new(MemoryGate::new(Arc::new(SystemClock), None));
    (server, retrying(provider(config), &read, 3, gate))
}

/// What came of one turn: its text, its waits, its failure, and how often the server was asked.
fn taken(script: &str) -> (String, Vec<Duration>, Option<TurnError>, u64) {
    let (server, provider) = play(script);
    let events: Vec<_> = block_on(provider.turn(turn("q"), CancellationToken::new()).collect());
    let (mut text, mut waits, mut failure) = (String::new(), Vec::new(), None);
    for event in events {
        match event {
            Ok(TurnEvent::Text(more)) => text.push_str(&more),
            Ok(TurnEvent::Waiting { wait, .. }) => waits.push(wait),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    (text, waits, failure, server.state().seen)
}

#[test]
fn a_limit_with_a_wait_is_waited_for_and_asked_once_more() {
    let begun = Instant::now();
    let (text, waits, failure, asked) = taken(
        "[[rule]]\nwhen = { call = 1 }\nfault = { status = { code = 429, retry_after = \"1\" } }\n\
         [[rule]]\ntext = \"ok\"\n",
    );
    assert_eq!((text.as_str(), failure, asked), ("ok", None, 2));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(waits.len() == 1 && waits[0] <= Duration::from_millis(1_200), "{waits:?}");
}

#[test]
fn a_service_that_is_down_twice_answers_at_the_third_time() {
    let (text, waits, failure, asked) = taken(
        "[[rule]]\nwhen = { call_from = 3 }\ntext = \"ok\"\n[[rule]]\nfault = { status = { code = 503 } }\n",
    );
    assert_eq!((text.as_str(), failure, asked, waits.len()), ("ok", None, 3, 2));
}

#[test]
fn a_refused_key_and_an_answer_that_broke_off_are_not_asked_again() {
    let refused = taken("[[rule]]\nfault = { status = { code = 401 } }\n");
    assert!(matches!(refused, (_, _, Some(TurnError::Auth { .. }), 1)), "{refused:?}");
    let broken = taken(
        "[[rule]]\ntext = \"one two three four five six seven eight\"\nchunk = 4\nfault = { disconnect = { after = 4 } }\n",
    );
    assert!(matches!(broken, (_, _, Some(TurnError::Cut { .. }), 1)), "{broken:?}");
    assert!(!broken.0.is_empty(), "{broken:?}");
}

#[test]
fn an_answer_that_breaks_off_before_its_first_word_is_asked_again() {
    let (text, _, failure, asked) = taken(
        "[[rule]]\nwhen = { call = 1 }\ntext = \"x\"\nfault = { disconnect = { after = 0 } }\n\
         [[rule]]\ntext = \"ok\"\n",
    );
    assert_eq!((text.as_str(), failure, asked), ("ok", None, 2));
}

#[test]
fn a_program_that_goes_round_in_circles_is_killed_with_all_it_started() {
    let retry =
        r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":529,"error":"overloaded"}"#;
    let scratch = tempfile::tempdir().unwrap();
    let provider = provider(stand_in(scratch.path(), &[retry; 25], "sleep 1000 & sleep 1000"));
    let (begun, asked) = (Instant::now(), turn("q"));
    let mark = asked.mark.clone();
    let taken = block_on(take(&provider, asked));
    match taken.outcome {
        Err(TurnError::Protocol { detail }) => {
            assert!(detail.starts_with("it took the same step 20 times in a row"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(find_marked(&mark), []);
}

#[test]
fn a_server_of_this_machine_that_is_not_there_is_not_waited_for() {
    let config = serde_json::json!({ "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m" });
    let read: ProviderConfig = serde_json::from_value(config.clone()).unwrap();
    let gate = Arc::new(MemoryGate::new(Arc::new(SystemClock), None));
    let provider = retrying(provider(config), &read, 3, gate);
    let events: Vec<_> = block_on(provider.turn(turn("q"), CancellationToken::new()).collect());
    assert!(matches!(events.as_slice(), [Err(TurnError::Unreachable { .. })]), "{events:?}");
}
