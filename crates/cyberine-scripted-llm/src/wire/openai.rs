//! OpenAI chat completions: `POST /v1/chat/completions`, whole and as server-sent events.

use serde_json::{Value, json};

use super::{CREATED, Event, Failure, pieces};
use crate::call::{Call, Wire, said_by, user_texts};
use crate::script::{Reply, ReplyUsage, Stop, ToolUse, scripted_id};

/// What the service itself says about the build that answered.
const FINGERPRINT: &str = "fp_scripted";

/// Reads a request, or says what is wrong with it.
pub(crate) fn call(body: &Value) -> Result<Call, &'static str> {
    let model = body["model"]
        .as_str()
        .filter(|model| !model.is_empty())
        .ok_or("you must provide a model parameter")?;
    let messages = body["messages"]
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or("'messages' must be a non-empty array")?;
    let options = &body["stream_options"];
    let stream = body["stream"].as_bool().unwrap_or(false);
    if !stream && !options.is_null() {
        return Err("the 'stream_options' parameter is only allowed when 'stream' is enabled");
    }
    let (user, shown) = user_texts(messages);
    Ok(Call {
        wire: Wire::OpenAi,
        model: scripted_id(model),
        system: said_by(messages, &["system", "developer"]).collect::<Vec<_>>().join("\n\n"),
        user,
        shown,
        stream,
        include_usage: options["include_usage"].as_bool().unwrap_or(false),
        forced_tool: body["tool_choice"]["function"]["name"].as_str().map(str::to_owned),
        after_tool: messages.last().is_some_and(|message| message["role"] == "tool"),
        nth: 1,
    })
}

/// The whole answer.
pub(crate) fn whole(reply: &Reply) -> Value {
    let content =
        (!reply.text.is_empty() || reply.tools.is_empty() && reply.refusal.is_none()).then_some(&reply.text);
    let mut message =
        json!({"role": "assistant", "content": content, "refusal": reply.refusal, "annotations": []});
    if !reply.tools.is_empty() {
        let tools: Vec<Value> =
            reply.tools.iter().enumerate().map(|(at, tool)| tool_call(reply, at, tool)).collect();
        message["tool_calls"] = Value::Array(tools);
    }
    let mut whole = json!({
        "id": id(reply),
        "object": "chat.completion",
        "created": CREATED,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply.stop)}],
        "system_fingerprint": FINGERPRINT,
    });
    if let Some(usage) = usage(reply.usage) {
        whole["usage"] = usage;
    }
    whole
}

/// The answer as a stream that ends with `[DONE]`.
pub(crate) fn events(call: &Call, reply: &Reply) -> Vec<Event> {
    let usage = if call.include_usage { usage(reply.usage) } else { None };
    let asked = call.include_usage && usage.is_some();
    let delta = |delta: Value, finish: Option<&str>| {
        let mut chunk =
            chunk(reply, json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]));
        if asked {
            chunk["usage"] = Value::Null;
        }
        Event::data(&chunk.to_string())
    };
    let opening = if reply.text.is_empty() && !reply.tools.is_empty() { Value::Null } else { json!("") };
    let mut events = vec![delta(json!({"role": "assistant", "content": opening, "refusal": null}), None)];
    events.extend(
        pieces(&reply.text, reply.chunk)
            .into_iter()
            .map(|piece| delta(json!({"content": piece}), None).into_piece()),
    );
    let refusal = reply.refusal.as_deref().unwrap_or_default();
    events.extend(
        pieces(refusal, reply.chunk)
            .into_iter()
            .map(|piece| delta(json!({"refusal": piece}), None).into_piece()),
    );
    for (at, tool) in reply.tools.iter().enumerate() {
        events.extend(tool_deltas(reply, at, tool).into_iter().map(|calls| delta(calls, None).into_piece()));
    }
    events.push(delta(json!({}), Some(finish_reason(reply.stop))));
    if let Some(usage) = usage {
        let mut last = chunk(reply, json!([]));
        last["usage"] = usage;
        events.push(Event::data(&last.to_string()));
    }
    events.push(Event::data("[DONE]"));
    events
}

/// One more piece of text.
pub(crate) fn piece(reply: &Reply, text: &str) -> Event {
    let choice = json!([{"index": 0, "delta": {"content": text}, "logprobs": null, "finish_reason": null}]);
    Event::data(&chunk(reply, choice).to_string()).into_piece()
}

/// An error object inside a stream, as gateways send it.
pub(crate) fn stream_error(kind: Option<&str>) -> Event {
    let kind = kind.unwrap_or("server_error");
    Event::data(
        &json!({"error": {"message": "scripted error inside a stream", "type": kind, "code": 502}})
            .to_string(),
    )
}

/// The body of a failure.
pub(crate) fn failure(failure: Failure<'_>) -> Value {
    let (usual, code) = match failure.status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", None),
        _ => ("server_error", None),
    };
    let kind = failure.kind.unwrap_or(usual);
    let code = failure.kind.or(code);
    json!({"error": {"message": failure.message, "type": kind, "param": null, "code": code}})
}

/// The answer of `/v1/models`.
pub(crate) fn models(ids: &[String]) -> Value {
    json!({"object": "list", "data": ids.iter().map(|id| model(id)).collect::<Vec<_>>()})
}

/// The answer of `/v1/models/{model}`.
pub(crate) fn model(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": CREATED, "owned_by": "scripted"})
}

fn id(reply: &Reply) -> String {
    format!("chatcmpl-{:016x}", reply.id)
}

fn chunk(reply: &Reply, choices: Value) -> Value {
    json!({
        "id": id(reply),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": reply.model,
        "system_fingerprint": FINGERPRINT,
        "choices": choices,
    })
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Refusal => "stop",
        Stop::Length | Stop::Context => "length",
        Stop::Filter => "content_filter",
        Stop::Tool => "tool_calls",
    }
}

fn tool_id(reply: &Reply, at: usize) -> String {
    format!("call_{:016x}{at}", reply.id)
}

fn tool_call(reply: &Reply, at: usize, tool: &ToolUse) -> Value {
    json!({
        "id": tool_id(reply, at),
        "type": "function",
        "function": {"name": tool.name, "arguments": tool.input.to_string()},
    })
}

/// A tool call comes as its name, then as pieces of the text of its arguments.
fn tool_deltas(reply: &Reply, at: usize, tool: &ToolUse) -> Vec<Value> {
    let mut first = tool_call(reply, at, tool);
    first["index"] = json!(at);
    first["function"]["arguments"] = json!("");
    let arguments = tool.input.to_string();
    let rest = pieces(&arguments, reply.chunk)
        .into_iter()
        .map(|piece| json!({"index": at, "function": {"arguments": piece}}));
    std::iter::once(first).chain(rest).map(|call| json!({"tool_calls": [call]})).collect()
}

fn usage(usage: ReplyUsage) -> Option<Value> {
    match usage {
        ReplyUsage::Missing => None,
        ReplyUsage::Wrong => {
            Some(json!({"prompt_tokens": -5, "completion_tokens": "many", "total_tokens": 1}))
        }
        ReplyUsage::Tokens(tokens) => Some(json!({
            "prompt_tokens": tokens.input,
            "completion_tokens": tokens.output,
            "total_tokens": tokens.input.saturating_add(tokens.output),
            "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": tokens.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn streamed(include_usage: bool, rule: &str) -> Vec<String> {
        let call = Call { include_usage, ..Call::program("scripted/m".into(), "hi".into()) };
        events(&call, &reply(rule)).into_iter().map(|event| event.text).collect()
    }

    fn deltas(events: &[String]) -> Vec<Value> {
        let json = events
            .iter()
            .filter_map(|event| serde_json::from_str::<Value>(event.strip_prefix("data: ")?.trim()).ok());
        json.map(|chunk| chunk["choices"][0]["delta"].clone()).collect()
    }

    #[test]
    fn a_request_is_read() {
        let body = json!({
            "model": "north", "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "developer", "content": "be kind"},
                {"role": "user", "content": "first"},
                {"role": "assistant", "content": "ok"},
                {"role": "user", "content": [{"type": "text", "text": "second"}, {"type": "text", "text": "part"}]},
            ],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        });
        let expected = Call {
            wire: Wire::OpenAi,
            model: "scripted/north".into(),
            system: "be brief\n\nbe kind".into(),
            user: "second\npart".into(),
            shown: "first\n\nsecond\npart".into(),
            stream: true,
            include_usage: true,
            forced_tool: Some("f".into()),
            after_tool: false,
            nth: 1,
        };
        assert_eq!(call(&body), Ok(expected));
    }

    #[test]
    fn a_request_without_its_parts_is_refused() {
        assert!(call(&json!({"messages": [{}]})).unwrap_err().contains("model"));
        assert!(call(&json!({"model": "m", "messages": []})).unwrap_err().contains("messages"));
        let body = json!({"model": "m", "messages": [{}], "stream_options": {"include_usage": true}});
        assert!(call(&body).unwrap_err().contains("stream_options"));
    }

    #[test]
    fn role_comes_first_and_usage_last() {
        let rule = "text='Hello — café.'\nchunk=6\nusage={input=1200,cached=1000,output=44,reasoning=20}";
        let id = format!("chatcmpl-{:016x}", reply(rule).id);
        let head = format!(
            r#"data: {{"id":"{id}","object":"chat.completion.chunk","created":1767225600,"model":"scripted/m","system_fingerprint":"fp_scripted","choices":"#
        );
        let expect = |delta: &str, finish: &str| {
            format!(
                "{head}[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
            )
        };
        let last = r#"[],"usage":{"prompt_tokens":1200,"completion_tokens":44,"total_tokens":1244,"prompt_tokens_details":{"cached_tokens":1000,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":20,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}"#;
        let expected = [
            expect(r#"{"role":"assistant","content":"","refusal":null}"#, "null"),
            expect(r#"{"content":"Hello "}"#, "null"),
            expect(r#"{"content":"— café"}"#, "null"),
            expect(r#"{"content":"."}"#, "null"),
            expect("{}", "\"stop\""),
            format!("{head}{last}\n\n"),
            "data: [DONE]\n\n".to_owned(),
        ];
        let sorted = |events: &[String]| -> Vec<Value> {
            let json = |event: &String| serde_json::from_str(event.trim_start_matches("data: ").trim());
            events.iter().map(|event| json(event).unwrap_or(Value::String(event.clone()))).collect()
        };
        assert_eq!(sorted(&streamed(true, rule)), sorted(&expected));
    }

    #[test]
    fn usage_is_streamed_only_when_asked() {
        assert!(!streamed(false, "text='x'").concat().contains("usage"));
        assert!(!streamed(true, "text='x'\nusage='missing'").concat().contains("usage"));
        assert!(streamed(true, "text='x'\nusage='wrong'").concat().contains("\"many\""));
    }

    #[test]
    fn a_tool_call_is_named_and_then_pieced_together() {
        let rule = "tools=[{name='look',input={q='a b'}}]\nchunk=4";
        let deltas = deltas(&streamed(false, rule));
        let call = &deltas[1]["tool_calls"][0];
        assert_eq!(call["function"]["name"], "look");
        assert_eq!(call["type"], "function");
        let arguments: String = deltas
            .iter()
            .filter_map(|delta| delta["tool_calls"][0]["function"]["arguments"].as_str())
            .collect();
        assert_eq!(arguments, r#"{"q":"a b"}"#);
        assert_eq!(whole(&reply(rule))["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(whole(&reply(rule))["choices"][0]["message"]["content"], Value::Null);
    }

    #[test]
    fn a_refusal_has_its_own_field_and_a_filter_its_own_reason() {
        let refusal = whole(&reply("refusal='no'"));
        assert_eq!(refusal["choices"][0]["message"]["refusal"], "no");
        assert_eq!(refusal["choices"][0]["message"]["content"], Value::Null);
        assert_eq!(deltas(&streamed(false, "refusal='no'"))[1], json!({"refusal": "no"}));
        assert_eq!(whole(&reply("stop='filter'"))["choices"][0]["finish_reason"], "content_filter");
        assert_eq!(whole(&reply("stop='length'"))["choices"][0]["finish_reason"], "length");
    }

    #[test]
    fn an_empty_answer_is_an_empty_string() {
        assert_eq!(whole(&reply("text=''"))["choices"][0]["message"]["content"], "");
    }
}
