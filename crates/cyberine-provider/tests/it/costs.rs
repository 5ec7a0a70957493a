//! What a turn costs by its figures, whole or not, and what counts as begun.

use std::sync::Arc;
use std::time::Duration;

use cyberine_provider::{Limits, MemoryGate, ProviderConfig, TurnError, TurnEvent, retrying};
use cyberine_types::{CostBasis, SystemClock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::claude::stand_in;
use crate::http::{KINDS, of_kind};
use crate::server::{Server, Step};
use crate::support::{Taken, block_on, limited, provider, take, take_with, turn};

/// A provider of `kind` that is paid for by the token, a dollar a million.
fn metered(kind: &str, server: &Server) -> Value {
    let mut config = of_kind(kind, &server.url());
    config["billing"] = json!("metered");
    config["prices"] = json!({ "input_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0 });
    config
}

/// `events` as `kind` sends them.
fn stream(kind: &str, events: &[Value]) -> Vec<u8> {
    let (begin, end) = if kind == "ollama" { ("", "\n") } else { ("data: ", "\n\n") };
    let events: String = events.iter().map(|event| format!("{begin}{event}{end}")).collect();
    events.replace("\"[DONE]\"", "[DONE]").into_bytes()
}

async fn answered(kind: &str, events: &[Value]) -> Taken {
    let server = Server::streaming(vec![Step::Send(stream(kind, events))]).await;
    take(&provider(metered(kind, &server)), turn("x")).await
}

/// Tokens in and out and what they cost in micro-dollars.
fn cost(taken: &Taken) -> (u64, u64, Option<u64>) {
    let usage = taken.usage.unwrap_or_default();
    assert_eq!(usage.usd.is_none(), usage.basis == CostBasis::Unknown, "{usage:?}");
    (usage.input, usage.output, usage.usd.map(|usd| usd.micros()))
}

fn started(input: &Value) -> Value {
    let usage = json!({ "input_tokens": input, "output_tokens": 1 });
    json!({ "type": "message_start", "message": { "usage": usage } })
}

fn said(text: &str) -> Value {
    let delta = json!({ "type": "text_delta", "text": text });
    json!({ "type": "content_block_delta", "index": 0, "delta": delta })
}

fn ended(usage: Value) -> [Value; 2] {
    let mut delta = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
    delta["usage"] = usage;
    [delta, json!({ "type": "message_stop" })]
}

#[test]
fn a_message_that_breaks_off_has_tokens_and_no_known_cost() {
    block_on(async {
        let mut events = vec![started(&json!(25))];
        events.extend((0..400).map(|_| said("word ")));
        let cut = answered("anthropic", &events).await;
        assert_eq!((cut.code(), cost(&cut)), ("cut", (25, 1, None)));

        let hanging =
            || async { Server::streaming(vec![Step::Send(stream("anthropic", &events)), Step::Hang]).await };
        let server = hanging().await;
        let short = limited("x", |limits: &mut Limits| limits.idle = Duration::from_millis(200));
        let silent = take(&provider(metered("anthropic", &server)), short).await;
        assert_eq!((silent.code(), cost(&silent)), ("timeout-idle", (25, 1, None)));

        let server = hanging().await;
        let cancel = CancellationToken::new();
        let stop = |event: &TurnEvent| {
            if matches!(event, TurnEvent::Text(_)) {
                cancel.cancel();
            }
        };
        let asked = provider(metered("anthropic", &server));
        let cancelled = take_with(&asked, turn("x"), cancel.clone(), stop).await;
        assert_eq!((cancelled.outcome.clone(), cost(&cancelled)), (Err(TurnError::Cancelled), (25, 1, None)));
    });
}

#[test]
fn a_message_costs_by_its_last_figures_where_they_make_sense() {
    block_on(async {
        for (input, last, expected) in [
            (json!(25), json!({ "output_tokens": 400 }), (25, 400, Some(425))),
            (json!(25), Value::Null, (25, 1, None)),
            (json!(25), json!({ "output_tokens": -400 }), (25, 1, None)),
            (json!(25), json!({ "input_tokens": 25 }), (25, 1, None)),
            (json!(25), json!({ "output_tokens": 0 }), (25, 1, None)),
            (json!(-25), json!({ "output_tokens": 400 }), (0, 400, None)),
            (Value::Null, json!({ "output_tokens": 400 }), (0, 400, None)),
            (Value::Null, json!({ "input_tokens": 25, "output_tokens": 400 }), (25, 400, Some(425))),
        ] {
            let events = [vec![started(&input), said("A")], ended(last.clone()).to_vec()].concat();
            let taken = answered("anthropic", &events).await;
            assert_eq!((taken.code(), cost(&taken)), ("ok", expected), "{input} {last}");
        }
    });
}

#[test]
fn a_completion_costs_what_its_server_says_and_else_by_its_tokens() {
    block_on(async {
        for (more, expected, basis) in [
            (json!({ "cost": 0.0005 }), Some(500), CostBasis::Reported),
            (json!({ "cost": 0.0005, "is_byok": false }), Some(500), CostBasis::Reported),
            // Another account pays the model, so this is not all of it.
            (json!({ "cost": 0.0005, "is_byok": true }), Some(65), CostBasis::Computed),
            (json!({ "cost": { "total_cost": 0.0005 } }), Some(65), CostBasis::Computed),
            (json!({}), Some(65), CostBasis::Computed),
            (json!({ "cost": 0 }), Some(0), CostBasis::Reported),
            (json!({ "cost": 1e-9 }), Some(1), CostBasis::Reported),
            (json!({ "cost": 0, "is_byok": true }), Some(65), CostBasis::Computed),
            (json!({ "cost": -0.0005 }), None, CostBasis::Unknown),
            (json!({ "cost": 1e13 }), None, CostBasis::Unknown),
        ] {
            let mut usage = json!({ "prompt_tokens": 25, "completion_tokens": 40 });
            usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let said =
                json!({ "choices": [{ "index": 0, "delta": { "content": "A" }, "finish_reason": "stop" }] });
            let events = [said, json!({ "choices": [], "usage": usage }), json!("[DONE]")];
            let taken = answered("openai", &events).await;
            assert_eq!((taken.code(), cost(&taken)), ("ok", (25, 40, expected)), "{more}");
            assert_eq!(taken.usage.unwrap().basis, basis, "{more}");
        }
    });
}

#[test]
fn a_generation_costs_by_the_figures_that_come_with_its_end() {
    block_on(async {
        let chunk = |text: &str, reason: Value, usage: Value| json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": reason }], "usageMetadata": usage });
        let part = chunk("A", Value::Null, json!({ "promptTokenCount": 25, "candidatesTokenCount": 1 }));
        let cut = answered("gemini", std::slice::from_ref(&part)).await;
        assert_eq!((cut.code(), cost(&cut)), ("cut", (25, 1, None)));
        for (last, expected) in [
            (json!({ "promptTokenCount": 25, "candidatesTokenCount": 400 }), (25, 400, Some(425))),
            (json!({ "promptTokenCount": 25 }), (25, 0, None)),
            (json!({ "promptTokenCount": 25, "thoughtsTokenCount": 9 }), (25, 9, None)),
            (json!({ "promptTokenCount": 25, "candidatesTokenCount": -4 }), (0, 0, None)),
            (json!({}), (0, 0, None)),
        ] {
            let taken = answered("gemini", &[chunk("A", json!("STOP"), last.clone())]).await;
            assert_eq!((taken.code(), cost(&taken)), ("ok", expected), "{last}");
        }
    });
}

#[test]
fn a_count_of_nothing_beside_an_answer_is_no_figure_and_takes_no_figure_back() {
    block_on(async {
        let words =
            json!({ "choices": [{ "index": 0, "delta": { "content": "A" }, "finish_reason": "stop" }] });
        let usage = |input: u64, output: u64| json!({ "choices": [], "usage": { "prompt_tokens": input, "completion_tokens": output } });
        let chat = |counts: Vec<Value>| {
            let events = [vec![words.clone()], counts, vec![json!("[DONE]")]].concat();
            async move { answered("openai", &events).await }
        };
        assert_eq!(cost(&chat(vec![usage(0, 0)]).await), (0, 0, None));
        assert_eq!(cost(&chat(vec![usage(25, 0)]).await), (25, 0, None));
        assert_eq!(cost(&chat(vec![usage(25, 4), usage(0, 0)]).await), (25, 4, Some(29)));
        assert_eq!(cost(&chat(vec![]).await), (0, 0, None));

        let response = |usage: Value| {
            let delta = json!({ "type": "response.output_text.delta", "delta": "A" });
            let done = json!({ "type": "response.completed", "response": { "usage": usage } });
            async move { answered("openai-responses", &[delta, done]).await }
        };
        assert_eq!(cost(&response(json!({ "input_tokens": 0, "output_tokens": 0 })).await), (0, 0, None));
        assert_eq!(cost(&response(json!({ "input_tokens": 2, "output_tokens": 3 })).await), (2, 3, Some(5)));

        let chat = |input: u64, output: u64| {
            let line = json!({ "message": { "content": "A" }, "done": true, "done_reason": "stop", "prompt_eval_count": input, "eval_count": output });
            async move { answered("ollama", &[line]).await }
        };
        assert_eq!(cost(&chat(25, 0).await), (25, 0, None));
        assert_eq!(cost(&chat(25, 4).await), (25, 4, Some(29)));
    });
}

#[test]
fn figures_that_come_while_a_chat_goes_on_are_not_its_cost() {
    block_on(async {
        let words = json!({ "choices": [{ "index": 0, "delta": { "content": "A" } }], "usage": { "prompt_tokens": 25, "completion_tokens": 1 } });
        let cut = answered("openai", &[words]).await;
        assert_eq!((cut.code(), cost(&cut)), ("cut", (25, 1, None)));
    });
}

#[test]
fn a_number_that_is_none_costs_the_figure_and_not_the_answer() {
    block_on(async {
        let words =
            json!({ "choices": [{ "index": 0, "delta": { "content": "A" }, "finish_reason": "stop" }] });
        for number in ["NaN", "1e400", "-5"] {
            let usage = format!(
                "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":25,\"completion_tokens\":{number}}}}}\n\ndata: [DONE]\n\n"
            );
            let bytes = [stream("openai", std::slice::from_ref(&words)), usage.into_bytes()].concat();
            let server = Server::streaming(vec![Step::Send(bytes)]).await;
            let taken = take(&provider(metered("openai", &server)), turn("x")).await;
            assert_eq!(
                (taken.code(), taken.text.as_str(), cost(&taken)),
                ("ok", "A", (0, 0, None)),
                "{number}"
            );
        }
    });
}

#[test]
fn a_program_that_reports_a_senseless_cost_has_answered_for_an_unknown_one() {
    let init = r#"{"type":"system","subtype":"init","apiKeySource":"ANTHROPIC_API_KEY"}"#;
    for (reported, expected) in [
        ("0.5", Some(500_000)),
        ("-5", None),
        ("NaN", None),
        ("-Infinity", None),
        ("1e400", None),
        ("\"5\"", None),
        ("null", None),
        ("0", None),
    ] {
        let result = format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"result":"Hello","total_cost_usd":{reported},"usage":{{"input_tokens":3,"output_tokens":2}}}}"#
        );
        let scratch = tempfile::tempdir().unwrap();
        // It stays: its last line must be what ends the turn.
        let provider = provider(stand_in(scratch.path(), &[init, &result], "exec cat"));
        let taken = block_on(take(&provider, turn("x")));
        assert_eq!((taken.code(), taken.text.as_str()), ("ok", "Hello"), "{reported}");
        assert_eq!(cost(&taken), (3, 2, expected), "{reported}");
    }
}

/// The first that a model of `kind` may do which is no word of its answer.
fn first_work(kind: &str) -> Vec<Value> {
    let chat = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let message = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    match kind {
        "openai" => vec![
            chat(json!({ "reasoning_content": "hm" })),
            chat(json!({ "reasoning": "hm" })),
            chat(json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "hm" }] })),
            chat(
                json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "t", "arguments": "{" } }] }),
            ),
        ],
        "openai-responses" => vec![
            json!({ "type": "response.reasoning_text.delta", "delta": "hm" }),
            json!({ "type": "response.reasoning_summary_text.delta", "delta": "hm" }),
            json!({ "type": "response.output_item.done", "item": { "type": "reasoning", "summary": [] } }),
            json!({ "type": "response.function_call_arguments.delta", "delta": "{" }),
        ],
        "anthropic" => vec![
            message(json!({ "type": "thinking_delta", "thinking": "hm" })),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "redacted_thinking", "data": "x" } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "c", "name": "t", "input": {} } }),
        ],
        "gemini" => {
            vec![json!({ "candidates": [{ "content": { "parts": [{ "text": "hm", "thought": true }] } }] })]
        }
        _ => vec![json!({ "message": { "content": "", "thinking": "hm" } })],
    }
}

#[test]
fn what_broke_off_in_a_thought_or_a_call_is_not_asked_again() {
    block_on(async {
        for (kind, _) in KINDS {
            for work in first_work(kind) {
                let server =
                    Server::streaming(vec![Step::Send(stream(kind, std::slice::from_ref(&work)))]).await;
                let config = of_kind(kind, &server.url());
                let read: ProviderConfig = serde_json::from_value(config.clone()).unwrap();
                let gate = Arc::new(MemoryGate::new(Arc::new(SystemClock), None));
                let taken = take(&retrying(provider(config), &read, 1, gate), turn("x")).await;
                assert_eq!((taken.code(), taken.text.as_str()), ("cut", ""), "{work}");
                assert_eq!(server.requests().len(), 1, "{work}");
            }
        }
    });
}
