//! Holds: order without sleeping.

use cyberine_scripted_llm::{Phase, State};
use serde_json::json;

use crate::client::{Exchange, Form, anthropic, openai};
use crate::{LIMIT, serve};

const GATE: &str = "[[rule]]\nwhen={model='free'}\ntext='free'\n[[rule]]\nwhen={model='other'}\nhold='b'\ntext='b'\n[[rule]]\nhold='a'\ntext='held'";

fn held(count: usize) -> impl Fn(&State) -> bool {
    move |state| state.held.len() == count
}

#[test]
fn three_are_held_until_their_name_is_released_and_no_other() {
    let server = serve(GATE);
    let base = server.base_url();
    let first = openai(&base, "m", "1", Form::Stream);
    server.wait(LIMIT, held(1)).unwrap();
    let second = anthropic(&base, "m", "2", Form::Stream);
    server.wait(LIMIT, held(2)).unwrap();
    let other = openai(&base, "other", "3", Form::Whole);
    let state = server.wait(LIMIT, held(3)).unwrap();
    let names: Vec<&str> = state.held.iter().map(|held| held.name.as_str()).collect();
    assert_eq!(names, ["a", "a", "b"]);

    // Others pass while they wait.
    let free = openai(&base, "free", "4", Form::Whole).response().unwrap();
    assert_eq!(free.json()["choices"][0]["message"]["content"], "free");

    assert_eq!(server.release("a"), 2);
    for exchange in [first, second] {
        assert!(exchange.response().unwrap().text().contains("held"));
    }
    let state = server.state();
    assert_eq!((state.released, state.held.len(), state.done, state.disconnected), (2, 1, 3, 0));
    assert_eq!(server.release("b"), 1);
    assert!(other.response().unwrap().text().contains("\"b\""));
    // What is released stays released.
    assert!(openai(&base, "m", "5", Form::Whole).response().unwrap().text().contains("held"));
}

#[test]
fn a_client_that_leaves_while_it_is_held_is_seen() {
    let server = serve(GATE);
    let stays = openai(&server.base_url(), "m", "1", Form::Stream);
    server.wait(LIMIT, held(1)).unwrap();
    let leaves = anthropic(&server.base_url(), "m", "2", Form::Stream);
    server.wait(LIMIT, held(2)).unwrap();
    drop(leaves);
    let state = server.wait(LIMIT, |state| state.disconnected == 1).unwrap();
    let phases: Vec<Phase> = state.requests.iter().map(|seen| seen.phase).collect();
    assert_eq!(phases, [Phase::Held, Phase::Disconnected]);
    server.release("a");
    assert!(stays.response().unwrap().complete);
}

#[test]
fn the_same_is_to_be_had_over_http() {
    let server = serve(GATE);
    let base = server.base_url();
    let waits = Exchange::get(&base, "/control/wait?held=1&seen=1");
    let held = openai(&base, "m", "a prompt that is nobody's business", Form::Whole);
    let state = waits.response().unwrap();
    assert_eq!(state.head.status, 200);
    let expected = json!({
        "seen": 1, "held": [{"name": "a", "seq": 1, "model": "scripted/m"}], "released": 0, "answering": 0, "done": 0,
        "broken": 0, "disconnected": 0,
        "requests": [{"seq": 1, "wire": "openai", "model": "scripted/m", "rule": "#3", "phase": "held"}],
    });
    assert_eq!(state.json(), expected);
    let released = Exchange::send(&base, "POST", "/control/release/a", &[], "").response().unwrap().json();
    assert_eq!(released, json!({"released": 1}));
    assert!(held.response().unwrap().complete);
    let late = Exchange::get(&base, "/control/wait?disconnected=9&timeoutMs=1").response().unwrap();
    assert_eq!((late.head.status, &late.json()["done"]), (408, &json!(1)));
}

#[test]
fn a_server_that_is_dropped_ends_its_connections_and_frees_its_port() {
    let server = serve(GATE);
    let base = server.base_url();
    let held_back = openai(&base, "m", "1", Form::Whole);
    server.wait(LIMIT, held(1)).unwrap();
    drop(server);
    assert!(held_back.response().is_none());
    assert!(std::net::TcpStream::connect(base.strip_prefix("http://").unwrap()).is_err());
}

#[test]
fn the_prompt_is_remembered_for_the_test_that_asks() {
    let server = serve("");
    let body = json!({"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]});
    Exchange::send(&server.base_url(), "POST", "/v1/chat/completions", &[], &body.to_string())
        .response()
        .unwrap();
    let seen = &server.state().requests[0];
    assert_eq!((&*seen.system, &*seen.user, seen.rule.as_str()), ("s", "u", "generic"));
}
