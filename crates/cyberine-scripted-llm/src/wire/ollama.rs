//! Ollama: `POST /api/chat`, whole and as lines of JSON.

use serde_json::{Value, json};

use super::{Event, Failure, pieces};
use crate::call::{Call, Wire, said_by, user_texts};
use crate::script::{Reply, ReplyUsage, Stop, scripted_id};

/// The moment every scripted answer says it was made at.
const CREATED_AT: &str = "2026-01-01T00:00:00Z";

/// What `/api/version` says, as a client may look for a least version.
const VERSION: &str = "0.12.0";

/// Reads a request, or says what is wrong with it.
pub(crate) fn call(body: &Value) -> Result<Call, &'static str> {
    let model = body["model"].as_str().filter(|model| !model.is_empty()).ok_or("model is required")?;
    let messages = body["messages"]
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or("messages: a chat without messages only loads the model, and there is none")?;
    let (user, shown) = user_texts(messages);
    Ok(Call {
        wire: Wire::Ollama,
        model: scripted_id(model),
        system: said_by(messages, &["system"]).collect::<Vec<_>>().join("\n\n"),
        user,
        shown,
        // Here a stream is what is not asked for.
        stream: body["stream"].as_bool().unwrap_or(true),
        include_usage: true,
        forced_tool: None,
        after_tool: messages.last().is_some_and(|message| message["role"] == "tool"),
        nth: 1,
    })
}

/// The whole answer.
pub(crate) fn whole(reply: &Reply) -> Value {
    let mut whole = ended(reply);
    whole["message"] = message(said(reply), &calls(reply));
    whole
}

/// The answer as lines; the last one is done.
pub(crate) fn events(reply: &Reply) -> Vec<Event> {
    let mut events: Vec<Event> =
        pieces(said(reply), reply.chunk).into_iter().map(|text| piece(reply, text)).collect();
    let calls = calls(reply);
    if !calls.is_empty() {
        events.push(Event::line(&line(reply, message("", &calls), false)).into_piece());
    }
    events.push(Event::line(&ended(reply)));
    events
}

/// One more piece of text.
pub(crate) fn piece(reply: &Reply, text: &str) -> Event {
    Event::line(&line(reply, message(text, &[]), false)).into_piece()
}

/// An error among the lines; `kind` is its text.
pub(crate) fn stream_error(kind: Option<&str>) -> Event {
    Event::line(&json!({"error": kind.unwrap_or("scripted error inside a stream")}))
}

/// The body of a failure: a text and nothing else.
pub(crate) fn failure(failure: Failure<'_>) -> Value {
    json!({"error": failure.message})
}

/// The answer of `/api/tags`.
pub(crate) fn models(ids: &[String]) -> Value {
    let one = |id: &String| json!({"name": id, "model": id, "modified_at": CREATED_AT, "size": 0, "digest": "scripted", "details": {}});
    json!({"models": ids.iter().map(one).collect::<Vec<_>>()})
}

/// The answer of `/api/version`.
pub(crate) fn version() -> Value {
    json!({"version": VERSION})
}

/// A refusal has no field of its own on this wire: it is text like any other.
fn said(reply: &Reply) -> &str {
    reply.refusal.as_deref().unwrap_or(&reply.text)
}

fn message(text: &str, calls: &[Value]) -> Value {
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    message
}

fn calls(reply: &Reply) -> Vec<Value> {
    let call = |(at, tool): (usize, &crate::script::ToolUse)| {
        let function = json!({"index": at, "name": tool.name, "arguments": tool.input});
        json!({"id": format!("call_{:016x}{at}", reply.id), "function": function})
    };
    reply.tools.iter().enumerate().map(call).collect()
}

fn line(reply: &Reply, message: Value, done: bool) -> Value {
    json!({"model": reply.model, "created_at": CREATED_AT, "message": message, "done": done})
}

fn ended(reply: &Reply) -> Value {
    let mut ended = line(reply, message("", &[]), true);
    let reason = if matches!(reply.stop, Stop::Length | Stop::Context) { "length" } else { "stop" };
    ended["done_reason"] = json!(reason);
    ended["total_duration"] = json!(1_000_000);
    let (input, output) = match reply.usage {
        ReplyUsage::Missing => return ended,
        ReplyUsage::Wrong => (json!(-5), json!("many")),
        ReplyUsage::Tokens(tokens) => (json!(tokens.input), json!(tokens.output)),
    };
    ended["prompt_eval_count"] = input;
    ended["eval_count"] = output;
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn streamed(rule: &str) -> Vec<Value> {
        events(&reply(rule)).iter().map(|event| serde_json::from_str(&event.text).unwrap()).collect()
    }

    #[test]
    fn a_request_is_read_and_streams_unless_it_says_otherwise() {
        let body = json!({
            "model": "north",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi"},
                {"role": "tool", "tool_name": "f", "content": "42"},
            ],
        });
        let expected = Call {
            wire: Wire::Ollama,
            system: "be brief".into(),
            stream: true,
            include_usage: true,
            after_tool: true,
            ..Call::program("scripted/north".into(), "hi".into())
        };
        assert_eq!(call(&body), Ok(expected));
        let whole = json!({"model": "m", "stream": false, "messages": [{"role": "user", "content": "hi"}]});
        assert!(!call(&whole).unwrap().stream);
    }

    #[test]
    fn a_request_without_its_parts_is_refused() {
        assert!(call(&json!({"messages": [{}]})).unwrap_err().contains("model"));
        assert!(call(&json!({"model": "m"})).unwrap_err().contains("messages"));
    }

    #[test]
    fn every_line_ends_and_the_last_is_done() {
        let rule = "text='Hello — café.'\nchunk=9\nusage={input=26,output=9}";
        assert!(events(&reply(rule)).iter().all(|event| event.text.ends_with("}\n")));
        let lines = streamed(rule);
        let texts: Vec<&str> = lines.iter().filter_map(|line| line["message"]["content"].as_str()).collect();
        assert_eq!(texts, ["Hello — c", "afé.", ""]);
        assert_eq!(lines.iter().map(|line| line["done"].clone()).collect::<Vec<_>>(), [false, false, true]);
        let last = &lines[2];
        assert_eq!(
            (&last["done_reason"], &last["prompt_eval_count"], &last["eval_count"]),
            (&json!("stop"), &json!(26), &json!(9))
        );
        assert_eq!(whole(&reply(rule))["message"]["content"], "Hello — café.");
    }

    #[test]
    fn a_tool_call_is_a_message_with_its_arguments_as_an_object() {
        let lines = streamed("tools=[{name='look',input={q='a b'}}]");
        let function = &lines[0]["message"]["tool_calls"][0]["function"];
        assert_eq!((&function["name"], &function["arguments"]), (&json!("look"), &json!({"q": "a b"})));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn reasons_and_wrong_usage_are_as_scripted() {
        assert_eq!(whole(&reply("text='x'\nstop='length'"))["done_reason"], "length");
        assert_eq!(whole(&reply("refusal='no'"))["message"]["content"], "no");
        assert_eq!(whole(&reply("usage='missing'")).get("eval_count"), None);
        assert_eq!(whole(&reply("usage='wrong'"))["eval_count"], "many");
        assert_eq!(streamed("text=''").len(), 1);
    }
}
