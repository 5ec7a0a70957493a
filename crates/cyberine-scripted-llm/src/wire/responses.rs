//! OpenAI Responses: `POST /v1/responses`, whole and as typed server-sent events.

use serde_json::{Value, json};

use super::{CREATED, Event, Failure, openai, pieces};
use crate::call::{Call, Wire, said_by, user_texts};
use crate::script::{Reply, ReplyUsage, Stop, ToolUse, scripted_id};

/// The service refuses a smaller limit on the output.
const LEAST_OUTPUT: u64 = 16;

/// Reads a request, or says what is wrong with it.
pub(crate) fn call(body: &Value) -> Result<Call, &'static str> {
    let model = body["model"]
        .as_str()
        .filter(|model| !model.is_empty())
        .ok_or("you must provide a model parameter")?;
    if !body["messages"].is_null() {
        return Err("unsupported parameter: 'messages' is 'input' in this API");
    }
    if body["max_output_tokens"].as_u64().is_some_and(|limit| limit < LEAST_OUTPUT) {
        return Err("invalid 'max_output_tokens': it is at least 16");
    }
    let items = match &body["input"] {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        Value::Array(items) if !items.is_empty() => items.clone(),
        _ => return Err("'input' must be a text or a non-empty list of items"),
    };
    let own = body["instructions"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let system: Vec<String> = own.into_iter().chain(said_by(&items, &["system", "developer"])).collect();
    let (user, shown) = user_texts(&items);
    let last = items.last().and_then(|item| item["type"].as_str()).unwrap_or_default();
    Ok(Call {
        wire: Wire::Responses,
        model: scripted_id(model),
        system: system.join("\n\n"),
        user,
        shown,
        stream: body["stream"].as_bool().unwrap_or(false),
        include_usage: true,
        forced_tool: body["tool_choice"]["name"].as_str().map(str::to_owned),
        after_tool: last.ends_with("_output"),
        nth: 1,
    })
}

/// The whole answer.
pub(crate) fn whole(reply: &Reply) -> Value {
    let (_, status, details) = ending(reply.stop);
    let items: Vec<Value> = items(reply, status).into_iter().map(|item| item.whole).collect();
    let mut whole = response(reply, status, &items);
    whole["incomplete_details"] = details;
    if let Some(usage) = usage(reply.usage) {
        whole["usage"] = usage;
    }
    whole
}

/// The answer as a stream from `response.created` to the event that ends it.
pub(crate) fn events(reply: &Reply) -> Vec<Event> {
    let mut stream = Stream::default();
    let opened = response(reply, "in_progress", &[]);
    stream.push("response.created", json!({"response": opened}));
    stream.push("response.in_progress", json!({"response": opened}));
    let (end, status, _) = ending(reply.stop);
    for (at, item) in items(reply, status).into_iter().enumerate() {
        stream.item(at, &item, reply.chunk);
    }
    stream.push(end, json!({"response": whole(reply)}));
    stream.events
}

/// One more piece of text.
pub(crate) fn piece(reply: &Reply, text: &str) -> Event {
    let kind = "response.output_text.delta";
    let data = json!({"type": kind, "item_id": message_id(reply), "output_index": 0, "content_index": 0, "delta": text});
    Event::named(kind, &data).into_piece()
}

/// A failure inside a stream. One whose kind is known ends the response; the other is the
/// service's own.
pub(crate) fn stream_error(kind: Option<&str>) -> Event {
    let message = "scripted error inside a stream";
    match kind {
        None => {
            let error = json!({"type": "error", "code": "server_error", "message": message, "param": null});
            Event::named("error", &error)
        }
        Some(code) => {
            let response = json!({
                "id": "resp_scripted", "object": "response", "created_at": CREATED, "status": "failed",
                "output": [], "error": {"code": code, "message": message},
            });
            Event::named("response.failed", &json!({"type": "response.failed", "response": response}))
        }
    }
}

/// The body of a failure: as the service's other API says it.
pub(crate) fn failure(failure: Failure<'_>) -> Value {
    openai::failure(failure)
}

/// An item of the output: as it stands at the end, and what its pieces are.
struct Item {
    whole: Value,
    part: Part,
}

/// What the pieces of an item are made of.
enum Part {
    Text(String),
    Refusal(String),
    Arguments(String),
}

/// The events of a stream, numbered.
#[derive(Default)]
struct Stream {
    events: Vec<Event>,
}

impl Stream {
    fn push(&mut self, kind: &str, data: Value) {
        let event = self.event(kind, data);
        self.events.push(event);
    }

    fn push_piece(&mut self, kind: &str, data: Value) {
        let event = self.event(kind, data).into_piece();
        self.events.push(event);
    }

    fn event(&self, kind: &str, mut data: Value) -> Event {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.events.len());
        Event::named(kind, &data)
    }

    fn item(&mut self, at: usize, item: &Item, chunk: usize) {
        let id = &item.whole["id"];
        let mut opening = item.whole.clone();
        opening["status"] = json!("in_progress");
        let (delta, done, field, text) = match &item.part {
            Part::Text(text) => ("response.output_text.delta", "response.output_text.done", "text", text),
            Part::Refusal(text) => ("response.refusal.delta", "response.refusal.done", "refusal", text),
            Part::Arguments(text) => {
                let delta = "response.function_call_arguments.delta";
                (delta, "response.function_call_arguments.done", "arguments", text)
            }
        };
        let arguments = matches!(item.part, Part::Arguments(_));
        opening[if arguments { "arguments" } else { "content" }] =
            if arguments { json!("") } else { json!([]) };
        self.push("response.output_item.added", json!({"output_index": at, "item": opening}));
        let place = || {
            let mut place = json!({"item_id": id, "output_index": at});
            if !arguments {
                place["content_index"] = json!(0);
            }
            place
        };
        let with = |key: &str, value: Value| {
            let mut data = place();
            data[key] = value;
            data
        };
        let mut part = item.whole["content"][0].clone();
        if !arguments {
            let whole = std::mem::replace(&mut part[field], json!(""));
            self.push("response.content_part.added", with("part", part.clone()));
            part[field] = whole;
        }
        for piece in pieces(text, chunk) {
            self.push_piece(delta, with("delta", json!(piece)));
        }
        self.push(done, with(field, json!(text)));
        if !arguments {
            self.push("response.content_part.done", with("part", part));
        }
        self.push("response.output_item.done", json!({"output_index": at, "item": item.whole}));
    }
}

/// The event that ends a stream, the status of the response, and why it is not whole.
fn ending(stop: Stop) -> (&'static str, &'static str, Value) {
    let incomplete = |reason: &str| ("response.incomplete", "incomplete", json!({"reason": reason}));
    match stop {
        Stop::End | Stop::Tool | Stop::Refusal => ("response.completed", "completed", Value::Null),
        Stop::Length | Stop::Context => incomplete("max_output_tokens"),
        Stop::Filter => incomplete("content_filter"),
    }
}

fn response(reply: &Reply, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_{:016x}", reply.id),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "max_output_tokens": null,
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "store": false,
        "tool_choice": "auto",
        "tools": [],
        "usage": null,
        "metadata": {},
    })
}

fn items(reply: &Reply, status: &str) -> Vec<Item> {
    let said = match &reply.refusal {
        Some(refusal) => Some(Part::Refusal(refusal.clone())),
        None => (!reply.text.is_empty()).then(|| Part::Text(reply.text.clone())),
    };
    let said = said.map(|part| Item { whole: message(reply, status, &part), part });
    let tools = reply.tools.iter().enumerate().map(|(at, tool)| function_call(reply, at, tool));
    said.into_iter().chain(tools).collect()
}

fn message(reply: &Reply, status: &str, part: &Part) -> Value {
    let content = match part {
        Part::Refusal(text) => json!({"type": "refusal", "refusal": text}),
        Part::Text(text) | Part::Arguments(text) => {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        }
    };
    json!({"id": message_id(reply), "type": "message", "role": "assistant", "status": status, "content": [content]})
}

fn message_id(reply: &Reply) -> String {
    format!("msg_{:016x}", reply.id)
}

fn function_call(reply: &Reply, at: usize, tool: &ToolUse) -> Item {
    let arguments = tool.input.to_string();
    let whole = json!({
        "id": format!("fc_{:016x}{at}", reply.id),
        "type": "function_call",
        "status": "completed",
        "call_id": format!("call_{:016x}{at}", reply.id),
        "name": tool.name,
        "arguments": arguments,
    });
    Item { whole, part: Part::Arguments(arguments) }
}

/// On this wire the input includes what came from the cache, and the output the reasoning.
fn usage(usage: ReplyUsage) -> Option<Value> {
    match usage {
        ReplyUsage::Missing => None,
        ReplyUsage::Wrong => Some(json!({"input_tokens": -5, "output_tokens": "many", "total_tokens": 1})),
        ReplyUsage::Tokens(tokens) => Some(json!({
            "input_tokens": tokens.input,
            "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_write},
            "output_tokens": tokens.output,
            "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
            "total_tokens": tokens.input.saturating_add(tokens.output),
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
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            (name.strip_prefix("event: ").unwrap().to_owned(), data)
        };
        events(&reply(rule)).into_iter().map(split).collect()
    }

    fn joined(events: &[(String, Value)], kind: &str) -> String {
        events
            .iter()
            .filter(|(name, _)| name == kind)
            .filter_map(|(_, data)| data["delta"].as_str())
            .collect()
    }

    #[test]
    fn a_request_is_read() {
        let body = json!({
            "model": "north", "stream": true, "instructions": "be brief",
            "input": [
                {"role": "developer", "content": "be kind"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "42"},
            ],
            "tool_choice": {"type": "function", "name": "f"},
        });
        let expected = Call {
            wire: Wire::Responses,
            system: "be brief\n\nbe kind".into(),
            stream: true,
            include_usage: true,
            forced_tool: Some("f".into()),
            after_tool: true,
            ..Call::program("scripted/north".into(), "hi".into())
        };
        assert_eq!(call(&body), Ok(expected));
        assert_eq!(call(&json!({"model": "m", "input": "hi"})).unwrap().user, "hi");
    }

    #[test]
    fn a_request_without_its_parts_is_refused() {
        assert!(call(&json!({"input": "x"})).unwrap_err().contains("model"));
        assert!(call(&json!({"model": "m", "input": []})).unwrap_err().contains("input"));
        assert!(call(&json!({"model": "m", "messages": []})).unwrap_err().contains("messages"));
        let small = json!({"model": "m", "input": "x", "max_output_tokens": 1});
        assert!(call(&small).unwrap_err().contains("at least 16"));
    }

    #[test]
    fn the_stream_runs_from_created_to_completed_and_its_last_event_is_the_whole_answer() {
        let rule = "text='Hello — café.'\nchunk=9\nusage={input=1200,cached=1000,output=44,reasoning=20}";
        let events = streamed(rule);
        let names: Vec<&str> = events.iter().map(|(name, _)| name.trim_start_matches("response.")).collect();
        let expected = [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ];
        assert_eq!(names, expected);
        for (at, (name, data)) in events.iter().enumerate() {
            assert_eq!((data["type"].as_str(), &data["sequence_number"]), (Some(name.as_str()), &json!(at)));
        }
        assert_eq!(joined(&events, "response.output_text.delta"), "Hello — café.");
        let last = &events[9].1["response"];
        assert_eq!(*last, whole(&reply(rule)));
        assert_eq!(last["output"][0]["content"][0]["text"], "Hello — café.");
        let usage = json!({
            "input_tokens": 1200, "input_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 0},
            "output_tokens": 44, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 1244,
        });
        assert_eq!(last["usage"], usage);
    }

    #[test]
    fn a_tool_call_is_an_item_whose_arguments_are_a_text() {
        let rule = "text='x'\ntools=[{name='look',input={q='a b'}}]\nchunk=4";
        let events = streamed(rule);
        assert_eq!(joined(&events, "response.function_call_arguments.delta"), r#"{"q":"a b"}"#);
        let added: Vec<&Value> = events
            .iter()
            .filter(|(name, _)| name == "response.output_item.added")
            .map(|(_, data)| data)
            .collect();
        assert_eq!((&added[1]["output_index"], &added[1]["item"]["arguments"]), (&json!(1), &json!("")));
        let item = &whole(&reply(rule))["output"][1];
        assert_eq!((&item["name"], &item["arguments"]), (&json!("look"), &json!(r#"{"q":"a b"}"#)));
        assert!(item["call_id"].as_str().unwrap().starts_with("call_"));
    }

    #[test]
    fn a_refusal_is_a_part_of_its_own() {
        let events = streamed("refusal='no'");
        assert_eq!(joined(&events, "response.refusal.delta"), "no");
        assert_eq!(events.last().unwrap().1["response"]["output"][0]["content"][0]["refusal"], "no");
    }

    #[test]
    fn an_answer_that_is_cut_ends_incomplete() {
        for (stop, reason) in [("length", "max_output_tokens"), ("filter", "content_filter")] {
            let (name, data) = streamed(&format!("text='x'\nstop='{stop}'")).pop().unwrap();
            assert_eq!(name, "response.incomplete");
            assert_eq!(data["response"]["incomplete_details"]["reason"], reason);
            assert_eq!(data["response"]["status"], "incomplete");
        }
    }

    #[test]
    fn empty_answers_and_wrong_usage_are_as_scripted() {
        assert_eq!(whole(&reply("text=''"))["output"], json!([]));
        assert_eq!(whole(&reply("usage='missing'"))["usage"], Value::Null);
        assert_eq!(whole(&reply("usage='wrong'"))["usage"]["output_tokens"], "many");
    }

    #[test]
    fn a_failure_inside_the_stream_is_the_response_s_or_the_service_s() {
        assert!(stream_error(None).text.starts_with("event: error\ndata: {"));
        assert!(stream_error(Some("rate_limit_exceeded")).text.starts_with("event: response.failed\n"));
    }
}
