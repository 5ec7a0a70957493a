//! The wires, event by event, and what every response says of itself.

use serde_json::{Value, json};

use crate::client::{Exchange, Form, anthropic, gemini, ollama, openai, responses};
use crate::serve;

const EVENTS: &str = "text/event-stream; charset=utf-8";
const PARTS: &str = "/candidates/0/content/parts/0/text";
const CAFE: &str = "[[rule]]\ntext='Hello — café 🦉.'\nchunk=8\n\
    usage={input=1200,cached=1000,cache_write=30,output=44,reasoning=20}";

#[test]
fn an_openai_stream_is_role_pieces_reason_usage_done() {
    let server = serve(CAFE);
    let response = openai(&server.base_url(), "m", "hi", Form::Stream).response().unwrap();
    assert_eq!(response.head.status, 200);
    assert_eq!(response.head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert!(response.complete);
    let events = response.events();
    let id = events[0].1["id"].clone();
    assert!(id.as_str().unwrap().starts_with("chatcmpl-"));
    let chunk = |choices: Value, usage: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": 1_767_225_600, "model": "scripted/m",
            "system_fingerprint": "fp_scripted", "choices": choices, "usage": usage,
        })
    };
    let delta = |delta: Value, reason: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]), Value::Null)
    };
    let usage = json!({
        "prompt_tokens": 1200, "completion_tokens": 44, "total_tokens": 1244,
        "prompt_tokens_details": {"cached_tokens": 1000, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 20, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    });
    let expected = [
        delta(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null),
        delta(json!({"content": "Hello — "}), Value::Null),
        delta(json!({"content": "café 🦉."}), Value::Null),
        delta(json!({}), json!("stop")),
        chunk(json!([]), usage),
        json!("[DONE]"),
    ];
    assert_eq!(events, expected.map(|data| (String::new(), data)));
    assert!(response.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn an_anthropic_stream_runs_from_start_to_stop() {
    let server = serve(CAFE);
    let response = anthropic(&server.base_url(), "m", "hi", Form::Stream).response().unwrap();
    assert!(response.complete);
    let events = response.events();
    let message = json!({
        "id": events[0].1["message"]["id"], "type": "message", "role": "assistant", "model": "scripted/m", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 170, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 1000,
            "output_tokens": 1, "service_tier": "standard",
        },
    });
    let delta = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let end = json!({"stop_reason": "end_turn", "stop_sequence": null});
    let expected = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        delta("Hello — "),
        delta("café 🦉."),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 44}}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(events, expected.map(|data| (data["type"].as_str().unwrap().to_owned(), data)));
    assert!(response.text().starts_with("event: message_start\ndata: {"));
}

#[test]
fn both_wires_answer_whole_with_a_length() {
    let server = serve(CAFE);
    let response = openai(&server.base_url(), "m", "hi", Form::Whole).response().unwrap();
    assert_eq!(response.head.header("content-type"), Some("application/json"));
    assert!(response.head.header("content-length").is_some());
    let whole = response.json();
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["message"]["content"], "Hello — café 🦉.");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert_eq!(whole["usage"]["total_tokens"], 1244);

    let whole = anthropic(&server.base_url(), "m", "hi", Form::Whole).response().unwrap().json();
    assert_eq!(whole["content"], json!([{"type": "text", "text": "Hello — café 🦉.", "citations": null}]));
    assert_eq!((&whole["stop_reason"], &whole["usage"]["output_tokens"]), (&json!("end_turn"), &json!(44)));
}

#[test]
fn the_other_wires_stream_the_same_text_and_answer_it_whole() {
    let server = serve(CAFE);
    let base = server.base_url();
    let cases = [
        (responses as fn(&str, &str, &str, Form) -> Exchange, "/delta", "/output/0/content/0/text", EVENTS),
        (gemini, PARTS, PARTS, EVENTS),
        (ollama, "/message/content", "/message/content", "application/x-ndjson"),
    ];
    for (ask, piece, whole, content_type) in cases {
        let streamed = ask(&base, "m", "hi", Form::Stream).response().unwrap();
        assert!(streamed.complete);
        assert_eq!(streamed.head.header("content-type"), Some(content_type));
        let events = streamed.events();
        let text: String = events.iter().filter_map(|(_, data)| data.pointer(piece)?.as_str()).collect();
        assert_eq!(text, "Hello — café 🦉.");
        let response = ask(&base, "m", "hi", Form::Whole).response().unwrap();
        assert_eq!(response.head.header("content-type"), Some("application/json"));
        assert_eq!(response.json().pointer(whole), Some(&json!("Hello — café 🦉.")));
    }
    let wires: Vec<&str> = server.state().requests.iter().map(|seen| seen.wire).collect();
    assert_eq!(wires, ["openai-responses", "openai-responses", "gemini", "gemini", "ollama", "ollama"]);
}

#[test]
fn a_rule_can_wait_for_what_a_tool_returned() {
    let server = serve("[[rule]]\nwhen={after_tool=true}\ntext='done'\n[[rule]]\ntools=[{name='look'}]");
    let ask = |path: &str, body: Value| {
        let headers = [("anthropic-version", "2023-06-01")];
        Exchange::send(&server.base_url(), "POST", path, &headers, &body.to_string())
            .response()
            .unwrap()
            .json()
    };
    let user = json!({"role": "user", "content": "hi"});
    let openai = |last: Value| {
        let whole = ask("/v1/chat/completions", json!({"model": "m", "messages": [user, last]}));
        whole["choices"][0]["finish_reason"].clone()
    };
    assert_eq!(openai(json!({"role": "user", "content": "look"})), "tool_calls");
    assert_eq!(openai(json!({"role": "tool", "tool_call_id": "c", "content": "42"})), "stop");
    let anthropic = |content: Value| {
        let messages =
            json!([user, {"role": "user", "content": content}, {"role": "system", "content": "noon"}]);
        ask("/v1/messages", json!({"model": "m", "max_tokens": 9, "messages": messages}))["stop_reason"]
            .clone()
    };
    assert_eq!(anthropic(json!("look")), "tool_use");
    assert_eq!(anthropic(json!([{"type": "tool_result", "tool_use_id": "t", "content": "42"}])), "end_turn");
}

#[test]
fn what_agents_ask_besides_an_answer_is_answered() {
    let server = serve("models=['a']");
    let base = server.base_url();
    let get = |path: &str, headers: &[(&str, &str)]| {
        Exchange::send(&base, "GET", path, headers, "").response().unwrap().json()
    };
    let post =
        |path: &str| Exchange::send(&base, "POST", path, &[], r#"{"a": "b c"}"#).response().unwrap().json();
    let version = [("anthropic-version", "2023-06-01")];
    assert_eq!(get("/v1beta/models", &[])["models"][0]["name"], "models/scripted/a");
    assert_eq!(get("/v1beta/models/b", &[])["name"], "models/scripted/b");
    assert_eq!(get("/v1/models", &[("x-goog-api-key", "k")])["models"][0]["name"], "models/scripted/a");
    assert_eq!(get("/v1/models/b", &[])["object"], "model");
    assert_eq!(get("/v1/models/b", &version)["type"], "model");
    assert_eq!(get("/api/tags", &[])["models"][0]["name"], "scripted/a");
    assert!(get("/api/version", &[])["version"].is_string());
    assert_eq!(post("/v1/messages/count_tokens"), json!({"input_tokens": 3}));
    assert_eq!(post("/v1beta/models/b:countTokens"), json!({"totalTokens": 3}));
    assert_eq!(post("/v1beta/models/b:streamGenerateContent")["error"]["code"], 400);
    assert_eq!(server.state().seen, 0);
}

#[test]
fn every_response_says_that_no_model_was_called() {
    let server = serve("[[rule]]\nwhen={call=1}\ntext='x'\n[[rule]]\nfault={status={code=500}}");
    let base = server.base_url();
    let exchanges = [
        openai(&base, "gpt-9", "hi", Form::Stream),
        openai(&base, "gpt-9", "hi", Form::Whole),
        anthropic(&base, "scripted/other", "hi", Form::Stream),
        Exchange::get(&base, "/health"),
        Exchange::get(&base, "/v1/models"),
        Exchange::get(&base, "/control/state"),
        Exchange::get(&base, "/nothing"),
    ];
    for exchange in exchanges {
        let head = exchange.response().unwrap().head;
        assert_eq!(head.header("x-scripted"), Some("no model was called"), "{head:?}");
    }
    let models: Vec<String> = server.state().requests.into_iter().map(|seen| seen.model).collect();
    assert_eq!(models, ["scripted/gpt-9", "scripted/gpt-9", "scripted/other"]);
}

#[test]
fn models_are_listed_in_the_words_of_each_wire() {
    let server = serve("models=['b']\n[[rule]]\nwhen={model='a'}");
    let base = server.base_url();
    let ids = |list: Value| -> Vec<String> {
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let list = Exchange::get(&base, "/v1/models").response().unwrap().json();
    assert_eq!(list["object"], "list");
    assert_eq!(ids(list), ["scripted/a", "scripted/b"]);
    let version = [("anthropic-version", "2023-06-01")];
    let list = Exchange::send(&base, "GET", "/v1/models", &version, "").response().unwrap().json();
    assert_eq!(list["has_more"], false);
    assert_eq!(ids(list), ["scripted/a", "scripted/b"]);
}

#[test]
fn what_is_no_request_is_refused_in_the_words_of_its_wire() {
    let server = serve("");
    let base = server.base_url();
    let refused = |path: &str, headers: &[(&str, &str)], body: &str| {
        let response = Exchange::send(&base, "POST", path, headers, body).response().unwrap();
        (response.head.status, response.json()["error"]["type"].as_str().unwrap().to_owned())
    };
    let invalid = (400, "invalid_request_error".to_owned());
    assert_eq!(refused("/v1/chat/completions", &[], "{not json"), invalid);
    assert_eq!(refused("/v1/chat/completions", &[], "{}"), invalid);
    let version = [("anthropic-version", "2023-06-01")];
    assert_eq!(refused("/v1/messages", &version, r#"{"model":"m"}"#), invalid);
    let good = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(refused("/v1/messages", &[], good), invalid);
    assert_eq!(refused("/control/state", &[], ""), (405, "invalid_request_error".to_owned()));
    assert_eq!(server.state().seen, 0);
}

#[test]
fn a_script_with_a_key_asks_for_it() {
    let status = |server: &cyberine_scripted_llm::ScriptedServer| {
        let base = server.base_url();
        let exchanges =
            [openai, responses, anthropic, gemini, ollama].map(|ask| ask(&base, "m", "hi", Form::Whole));
        exchanges.map(|exchange| exchange.response().unwrap().head.status)
    };
    assert_eq!(status(&serve("key='key'")), [200; 5]);
    let other = serve("key='other'");
    assert_eq!(status(&other), [401, 401, 401, 400, 401]);
    let listed = |path: &str| Exchange::get(&other.base_url(), path).response().unwrap();
    assert_eq!(listed("/v1/models").head.status, 401);
    let refused = listed("/v1beta/models?key=wrong");
    assert_eq!(refused.json()["error"]["details"][0]["reason"], "API_KEY_INVALID");
    assert_eq!(listed("/v1beta/models?key=other").head.status, 200);
}

#[test]
fn the_demo_is_two_that_agree_and_one_that_does_not_and_all_say_what_they_are() {
    let server = cyberine_scripted_llm::ScriptedServer::start(cyberine_scripted_llm::Script::demo()).unwrap();
    let base = server.base_url();
    let question = "How many minutes are there in a week?";
    let north = openai(&base, "scripted/north", question, Form::Whole).response().unwrap().json();
    let south = anthropic(&base, "scripted/south", question, Form::Whole).response().unwrap().json();
    let east = openai(&base, "scripted/east", question, Form::Whole).response().unwrap().json();
    let north = north["choices"][0]["message"]["content"].as_str().unwrap();
    let south = south["content"][0]["text"].as_str().unwrap();
    let east = east["choices"][0]["message"]["content"].as_str().unwrap();
    let last = |text: &str| text.lines().last().unwrap().replace(',', "");
    assert_eq!(last(north), last(south));
    assert_ne!(last(north), last(east));
    assert_eq!(last(north), format!("Final answer: {}", 7 * 24 * 60));
    let other =
        openai(&base, "scripted/north", "Why is the sky blue?", Form::Whole).response().unwrap().json();
    let other = other["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(other.contains("Why is the sky blue?"), "{other}");
    for text in [north, south, east, other] {
        assert!(text.to_lowercase().contains("script"), "{text}");
    }
    let shown = format!(
        "[t0 begin task]\n{question}\n[t0 end task]\n\n[t0 begin candidate A]\n{east}\n[t0 end candidate A]\n\n[t0 begin candidate B]\n{north}\n[t0 end candidate B]"
    );
    let verdict = openai(&base, "scripted/judge", &shown, Form::Whole).response().unwrap().json();
    let verdict: Value =
        serde_json::from_str(verdict["choices"][0]["message"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(verdict["winner"], "B");
    assert!(verdict["rationale"].as_str().unwrap().contains("no model was called"));
}

#[test]
fn the_same_script_gives_the_same_bytes_and_another_seed_other_ones() {
    let said = |seed: u32| {
        let server = serve(&format!("seed={seed}\n[[rule]]\ntext=['one','two','three','four','five']"));
        let base = server.base_url();
        [openai(&base, "m", "hi", Form::Stream), anthropic(&base, "m", "hi", Form::Stream)]
            .map(|exchange| exchange.response().unwrap().text())
    };
    assert_eq!(said(1), said(1));
    assert_ne!(said(1), said(2));
}

#[test]
fn a_judge_judges_again_when_it_is_asked_to_repair_its_reply() {
    let server = serve(
        "[[rule]]\nwhen={judging=true,call=1}\njudge='prose'\n[[rule]]\nwhen={judging=true}\njudge='fair'\nmarker='best'\n\
         [[rule]]\ntext='no judge'",
    );
    let shown = "[t0 begin task]\nWhich?\n[t0 end task]\n\n[t0 begin candidate A]\nso so\n[t0 end candidate A]\n\n\
                 [t0 begin candidate B]\nthe best\n[t0 end candidate B]";
    let ask = |messages: Value| {
        let body = json!({"model": "judge", "messages": messages}).to_string();
        let response =
            Exchange::send(&server.base_url(), "POST", "/v1/chat/completions", &[], &body).response();
        response.unwrap().json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let first = json!({"role": "user", "content": shown});
    let prose = ask(json!([first]));
    assert!(serde_json::from_str::<Value>(&prose).is_err());
    let repair = json!({"role": "user", "content": "This reply was not accepted: it is no JSON."});
    let verdict = ask(json!([first, {"role": "assistant", "content": prose}, repair]));
    assert_eq!(serde_json::from_str::<Value>(&verdict).unwrap()["winner"], "B");
    assert_eq!(ask(json!([{"role": "user", "content": "Which?"}])), "no judge");
}
