//! Anthropic Messages: `POST /v1/messages`, whole and as server-sent events.

use serde_json::{Value, json};

use super::{Event, Failure, pieces};
use crate::call::{Call, Wire, said_by, text_of, user_texts};
use crate::script::{Reply, ReplyUsage, Stop, ToolUse, scripted_id};

/// The id that error bodies and the `request-id` header carry.
pub(crate) const REQUEST_ID: &str = "req_scripted";

/// Reads a request, or says what is wrong with it.
pub(crate) fn call(body: &Value) -> Result<Call, &'static str> {
    let model = body["model"].as_str().filter(|model| !model.is_empty()).ok_or("model: Field required")?;
    body["max_tokens"].as_u64().filter(|max| *max > 0).ok_or("max_tokens: Field required, at least 1")?;
    let messages = body["messages"]
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or("messages: at least one message is required")?;
    // Newer models also take system messages, and Claude Code sends them, but never as the first.
    let roles = ["user", "assistant", "system"];
    if said_by(messages, &roles).count() != messages.len() || messages[0]["role"] == "system" {
        return Err(
            "messages: the role of a message is \"user\" or \"assistant\"; \"system\" is not the first",
        );
    }
    let choice = &body["tool_choice"];
    let forced = choice["name"].as_str().filter(|_| choice["type"] == "tool");
    let (user, shown) = user_texts(messages);
    let own = std::iter::once(text_of(&body["system"])).filter(|text| !text.is_empty());
    let system = own.chain(said_by(messages, &["system"])).collect::<Vec<_>>().join("\n\n");
    Ok(Call {
        wire: Wire::Anthropic,
        model: scripted_id(model),
        system,
        user,
        shown,
        stream: body["stream"].as_bool().unwrap_or(false),
        include_usage: true,
        forced_tool: forced.map(str::to_owned),
        after_tool: messages.iter().rfind(|message| message["role"] == "user").is_some_and(has_tool_result),
        nth: 1,
    })
}

fn has_tool_result(message: &Value) -> bool {
    message["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"))
}

/// The whole answer.
pub(crate) fn whole(reply: &Reply) -> Value {
    let text = shown(reply);
    let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text, "citations": null}));
    let tools = reply.tools.iter().enumerate().map(|(at, tool)| tool_block(reply, at, tool));
    let mut whole = message(reply, json!(text.into_iter().chain(tools).collect::<Vec<_>>()));
    whole["stop_reason"] = json!(stop_reason(reply.stop));
    if let Some(usage) = usage(reply.usage, None) {
        whole["usage"] = usage;
    }
    whole
}

/// The answer as a stream from `message_start` to `message_stop`.
pub(crate) fn events(reply: &Reply) -> Vec<Event> {
    let mut events = vec![start(reply)];
    let text = shown(reply);
    let has_text = !text.is_empty();
    if has_text {
        let deltas = pieces(text, reply.chunk).into_iter().map(piece);
        events.extend(block(0, &json!({"type": "text", "text": ""}), deltas.collect()));
    }
    for (at, tool) in reply.tools.iter().enumerate() {
        let index = at + usize::from(has_text);
        let mut opening = tool_block(reply, at, tool);
        opening["input"] = json!({});
        let input = tool.input.to_string();
        let mut deltas = vec![delta(index, &json!({"type": "input_json_delta", "partial_json": ""}))];
        let rest = pieces(&input, reply.chunk).into_iter();
        deltas.extend(
            rest.map(|piece| delta(index, &json!({"type": "input_json_delta", "partial_json": piece}))),
        );
        events.extend(block(index, &opening, deltas));
    }
    // The service sends its first ping right after the first block has begun.
    let ping = Event::named("ping", &json!({"type": "ping"}));
    events.insert(events.len().min(2), ping);
    events.extend(end(reply));
    events
}

/// One more piece of text.
pub(crate) fn piece(text: &str) -> Event {
    delta(0, &json!({"type": "text_delta", "text": text}))
}

/// An error inside a stream.
pub(crate) fn stream_error(kind: Option<&str>) -> Event {
    let error =
        json!({"type": kind.unwrap_or("overloaded_error"), "message": "scripted error inside a stream"});
    Event::named("error", &json!({"type": "error", "error": error, "request_id": REQUEST_ID}))
}

/// The body of a failure.
pub(crate) fn failure(failure: Failure<'_>) -> Value {
    let usual = match failure.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({"type": failure.kind.unwrap_or(usual), "message": failure.message});
    json!({"type": "error", "error": error, "request_id": REQUEST_ID})
}

/// The answer of `/v1/models`.
pub(crate) fn models(ids: &[String]) -> Value {
    let data: Vec<Value> = ids.iter().map(|id| model(id)).collect();
    json!({"data": data, "has_more": false, "first_id": ids.first(), "last_id": ids.last()})
}

/// The answer of `/v1/models/{model}`.
pub(crate) fn model(id: &str) -> Value {
    json!({"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"})
}

/// The answer of `/v1/messages/count_tokens`.
pub(crate) fn count(tokens: usize) -> Value {
    json!({"input_tokens": tokens})
}

/// A refusal has no field of its own on this wire: it is text that ends with its own reason.
fn shown(reply: &Reply) -> &str {
    reply.refusal.as_deref().unwrap_or(&reply.text)
}

fn message(reply: &Reply, content: Value) -> Value {
    json!({
        "id": format!("msg_{:016x}", reply.id),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
    })
}

fn start(reply: &Reply) -> Event {
    let mut message = message(reply, json!([]));
    // Output is counted from one here: the figure of `message_delta` replaces it.
    message["usage"] = usage(reply.usage, Some(1)).unwrap_or_else(|| json!({}));
    Event::named("message_start", &json!({"type": "message_start", "message": message}))
}

fn block(index: usize, opening: &Value, deltas: Vec<Event>) -> Vec<Event> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": opening});
    let stop = json!({"type": "content_block_stop", "index": index});
    let mut events = vec![Event::named("content_block_start", &start)];
    events.extend(deltas);
    events.push(Event::named("content_block_stop", &stop));
    events
}

fn delta(index: usize, delta: &Value) -> Event {
    let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
    Event::named("content_block_delta", &data).into_piece()
}

fn end(reply: &Reply) -> [Event; 2] {
    let delta = json!({"stop_reason": stop_reason(reply.stop), "stop_sequence": null});
    let output = match reply.usage {
        ReplyUsage::Tokens(tokens) => json!({"output_tokens": tokens.output}),
        ReplyUsage::Missing => json!({}),
        ReplyUsage::Wrong => json!({"output_tokens": "many"}),
    };
    let data = json!({"type": "message_delta", "delta": delta, "usage": output});
    [Event::named("message_delta", &data), Event::named("message_stop", &json!({"type": "message_stop"}))]
}

fn tool_block(reply: &Reply, at: usize, tool: &ToolUse) -> Value {
    let id = format!("toolu_{:016x}{at}", reply.id);
    json!({"type": "tool_use", "id": id, "name": tool.name, "input": tool.input})
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Context => "model_context_window_exceeded",
        Stop::Filter | Stop::Refusal => "refusal",
        Stop::Tool => "tool_use",
    }
}

/// On this wire the input excludes what came from and went to the cache.
fn usage(usage: ReplyUsage, output: Option<u64>) -> Option<Value> {
    match usage {
        ReplyUsage::Missing => None,
        ReplyUsage::Wrong => Some(json!({"input_tokens": -5, "output_tokens": "many"})),
        ReplyUsage::Tokens(tokens) => Some(json!({
            "input_tokens": tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_write),
            "cache_creation_input_tokens": tokens.cache_write,
            "cache_read_input_tokens": tokens.cached,
            "output_tokens": output.unwrap_or(tokens.output),
            "service_tier": "standard",
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn streamed(rule: &str) -> Vec<(String, Value)> {
        let split = |event: Event| {
            let (name, data) = event.text.split_once('\n').unwrap();
            let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            (name.strip_prefix("event: ").unwrap().to_owned(), data)
        };
        events(&reply(rule)).into_iter().map(split).collect()
    }

    #[test]
    fn a_request_is_read() {
        let body = json!({
            "model": "south", "max_tokens": 5, "stream": true,
            "system": [{"type": "text", "text": "be brief"}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "tool_choice": {"type": "tool", "name": "f"},
        });
        let expected = Call {
            wire: Wire::Anthropic,
            system: "be brief".into(),
            stream: true,
            include_usage: true,
            forced_tool: Some("f".into()),
            ..Call::program("scripted/south".into(), "hi".into())
        };
        assert_eq!(call(&body), Ok(expected));
    }

    #[test]
    fn a_system_message_may_follow_the_users() {
        let body = json!({
            "model": "m", "max_tokens": 1, "system": "be brief",
            "messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "it is noon"}],
        });
        let call = call(&body).unwrap();
        assert_eq!((call.system.as_str(), call.user.as_str()), ("be brief\n\nit is noon", "hi"));
    }

    #[test]
    fn a_request_without_its_parts_is_refused() {
        let user = json!([{"role": "user", "content": "x"}]);
        assert!(call(&json!({"max_tokens": 1, "messages": user})).unwrap_err().contains("model"));
        assert!(call(&json!({"model": "m", "messages": user})).unwrap_err().contains("max_tokens"));
        assert!(
            call(&json!({"model": "m", "max_tokens": 1, "messages": []})).unwrap_err().contains("messages")
        );
        let system = json!([{"role": "system", "content": "x"}]);
        assert!(
            call(&json!({"model": "m", "max_tokens": 1, "messages": system})).unwrap_err().contains("role")
        );
    }

    #[test]
    fn the_stream_runs_from_start_to_stop() {
        let rule = "text='Hello — café.'\nchunk=9\nusage={input=2150,cached=2000,cache_write=30,output=25}";
        let message = json!({
            "id": format!("msg_{:016x}", reply(rule).id), "type": "message", "role": "assistant", "model": "scripted/m",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {
                "input_tokens": 120, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 2000,
                "output_tokens": 1, "service_tier": "standard",
            },
        });
        let data = [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello — c"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "afé."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 25}}),
            json!({"type": "message_stop"}),
        ];
        let expected = data.map(|data| (data["type"].as_str().unwrap().to_owned(), data));
        assert_eq!(streamed(rule), expected);
    }

    #[test]
    fn a_tool_is_a_block_of_its_own() {
        let events = streamed("text='x'\ntools=[{name='look',input={q='a b'}}]\nchunk=4");
        let opening = events.iter().rfind(|(name, _)| name == "content_block_start").unwrap();
        assert_eq!(opening.1["index"], 1);
        assert_eq!(opening.1["content_block"]["input"], json!({}));
        let input: String =
            events.iter().filter_map(|(_, data)| data["delta"]["partial_json"].as_str()).collect();
        assert_eq!(input, r#"{"q":"a b"}"#);
        let stop = events.iter().find(|(name, _)| name == "message_delta").unwrap();
        assert_eq!(stop.1["delta"]["stop_reason"], "tool_use");
    }

    #[test]
    fn an_empty_answer_has_no_content() {
        assert_eq!(whole(&reply("text=''"))["content"], json!([]));
        let names: Vec<String> = streamed("text=''").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["message_start", "ping", "message_delta", "message_stop"]);
    }

    #[test]
    fn reasons_and_wrong_usage_are_as_scripted() {
        assert_eq!(whole(&reply("text='x'\nstop='length'"))["stop_reason"], "max_tokens");
        assert_eq!(whole(&reply("refusal='no'"))["stop_reason"], "refusal");
        assert_eq!(whole(&reply("stop='context'"))["stop_reason"], "model_context_window_exceeded");
        assert_eq!(whole(&reply("usage='missing'")).get("usage"), None);
        assert_eq!(whole(&reply("usage='wrong'"))["usage"]["input_tokens"], -5);
    }
}
