//! Gemini: `POST /v1beta/models/{model}:generateContent` and, as server-sent events,
//! `:streamGenerateContent?alt=sse`.

use serde_json::{Value, json};

use super::{Event, Failure, pieces};
use crate::call::{Call, Wire, text_of};
use crate::script::{Reply, ReplyUsage, Stop, scripted_id};

/// Why a failure of the key is HTTP 400 on this wire.
const KEY_INVALID: &str = "API_KEY_INVALID";

/// Reads a request for `model`, or says what is wrong with it.
pub(crate) fn call(model: &str, stream: bool, body: &Value) -> Result<Call, &'static str> {
    let contents = body["contents"]
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or("GenerateContentRequest.contents: contents is not specified")?;
    let role = |content: &Value| content["role"].as_str().unwrap_or("user").to_owned();
    if contents.iter().any(|content| !matches!(role(content).as_str(), "user" | "model" | "function")) {
        return Err("Please use a valid role: user, model.");
    }
    let texts: Vec<String> = contents
        .iter()
        .filter(|content| role(content) == "user")
        .map(|content| text_of(&content["parts"]))
        .filter(|text| !text.is_empty())
        .collect();
    let system = [&body["systemInstruction"], &body["system_instruction"]];
    let config = &body["toolConfig"]["functionCallingConfig"];
    let forced = config["allowedFunctionNames"][0].as_str().filter(|_| config["mode"] == "ANY");
    let last = contents.last().and_then(|content| content["parts"].as_array());
    Ok(Call {
        wire: Wire::Gemini,
        model: scripted_id(model),
        system: system.map(|system| text_of(&system["parts"])).concat(),
        user: texts.last().cloned().unwrap_or_default(),
        shown: texts.join("\n\n"),
        stream,
        include_usage: true,
        forced_tool: forced.map(str::to_owned),
        after_tool: last.is_some_and(|parts| parts.iter().any(|part| part["functionResponse"].is_object())),
        nth: 1,
    })
}

/// The whole answer.
pub(crate) fn whole(reply: &Reply) -> Value {
    let text = (!reply.text.is_empty()).then(|| json!({"text": reply.text}));
    let parts: Vec<Value> = text.into_iter().chain(calls(reply)).collect();
    ended(reply, &if refused(reply) { Vec::new() } else { parts })
}

/// The answer as a stream: pieces, then a chunk with the reason and the usage.
pub(crate) fn events(reply: &Reply) -> Vec<Event> {
    if refused(reply) {
        return vec![event(&ended(reply, &[]))];
    }
    let mut events: Vec<Event> =
        pieces(&reply.text, reply.chunk).into_iter().map(|text| piece(reply, text)).collect();
    events.extend(calls(reply).map(|call| event(&chunk(reply, &[call])).into_piece()));
    events.push(event(&ended(reply, &[json!({"text": ""})])));
    events
}

/// One more piece of text.
pub(crate) fn piece(reply: &Reply, text: &str) -> Event {
    event(&chunk(reply, &[json!({"text": text})])).into_piece()
}

/// An error object inside a stream; `kind` is its status.
pub(crate) fn stream_error(kind: Option<&str>) -> Event {
    let error = json!({"code": 503, "message": "scripted error inside a stream", "status": kind.unwrap_or("UNAVAILABLE")});
    event(&json!({"error": error}))
}

/// The body of a failure. What `kind` names is the status, or the reason of a refused key.
pub(crate) fn failure(failure: Failure<'_>) -> Value {
    let usual = match failure.status {
        400 | 402 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "FAILED_PRECONDITION",
        _ => "INTERNAL",
    };
    let is_key = failure.kind == Some(KEY_INVALID);
    let status = failure.kind.filter(|_| !is_key).unwrap_or(usual);
    let mut error = json!({"code": failure.status, "message": failure.message, "status": status});
    let mut details = Vec::new();
    if is_key {
        details.push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": KEY_INVALID, "domain": "googleapis.com"}));
    }
    if let Some(seconds) = failure.retry_after {
        let delay = format!("{seconds}s");
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}));
    }
    if !details.is_empty() {
        error["details"] = json!(details);
    }
    json!({"error": error})
}

/// A refused key: HTTP 400 here, where other services say 401.
pub(crate) fn key_refused() -> Value {
    let message = "API key not valid. Please pass a valid API key.";
    failure(Failure { status: 400, kind: Some(KEY_INVALID), message, retry_after: None })
}

/// The answer of `/v1beta/models`.
pub(crate) fn models(ids: &[String]) -> Value {
    json!({"models": ids.iter().map(|id| model(id)).collect::<Vec<_>>()})
}

/// The answer of `/v1beta/models/{model}`.
pub(crate) fn model(id: &str) -> Value {
    json!({
        "name": format!("models/{id}"),
        "version": "001",
        "displayName": id,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}

/// The answer of `:countTokens`.
pub(crate) fn count(tokens: usize) -> Value {
    json!({"totalTokens": tokens})
}

/// This wire has no field for a refusal: the answer is withheld.
fn refused(reply: &Reply) -> bool {
    reply.refusal.is_some() || matches!(reply.stop, Stop::Filter | Stop::Refusal)
}

fn event(data: &Value) -> Event {
    Event::data(&data.to_string())
}

fn calls(reply: &Reply) -> impl Iterator<Item = Value> {
    reply.tools.iter().enumerate().map(|(at, tool)| {
        let id = format!("call_{:016x}{at}", reply.id);
        json!({"functionCall": {"id": id, "name": tool.name, "args": tool.input}})
    })
}

fn chunk(reply: &Reply, parts: &[Value]) -> Value {
    let candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    json!({
        "candidates": [candidate],
        "modelVersion": reply.model,
        "responseId": format!("{:016x}", reply.id),
    })
}

/// The last chunk, or the whole answer. A prompt that a filter stops has no candidates at all.
fn ended(reply: &Reply, parts: &[Value]) -> Value {
    let mut ended = chunk(reply, parts);
    if reply.stop == Stop::Filter {
        ended["promptFeedback"] = json!({"blockReason": "PROHIBITED_CONTENT"});
        if let Value::Object(members) = &mut ended {
            members.remove("candidates");
        }
    } else {
        ended["candidates"][0]["finishReason"] = json!(finish_reason(reply.stop));
    }
    if let Some(usage) = usage(reply.usage) {
        ended["usageMetadata"] = usage;
    }
    ended
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Tool => "STOP",
        Stop::Length | Stop::Context => "MAX_TOKENS",
        Stop::Filter | Stop::Refusal => "SAFETY",
    }
}

/// On this wire the output leaves out what the thoughts took.
fn usage(usage: ReplyUsage) -> Option<Value> {
    match usage {
        ReplyUsage::Missing => None,
        ReplyUsage::Wrong => {
            Some(json!({"promptTokenCount": -5, "candidatesTokenCount": "many", "totalTokenCount": 1}))
        }
        ReplyUsage::Tokens(tokens) => Some(json!({
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning),
            "thoughtsTokenCount": tokens.reasoning,
            "totalTokenCount": tokens.input.saturating_add(tokens.output),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::reply;

    fn streamed(rule: &str) -> Vec<Value> {
        let data = |event: Event| serde_json::from_str(event.text.strip_prefix("data: ").unwrap()).unwrap();
        events(&reply(rule)).into_iter().map(data).collect()
    }

    #[test]
    fn a_request_is_read() {
        let body = json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "42"}}}]},
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        });
        let expected = Call {
            wire: Wire::Gemini,
            system: "be brief".into(),
            stream: true,
            include_usage: true,
            forced_tool: Some("f".into()),
            after_tool: true,
            ..Call::program("scripted/north".into(), "hi".into())
        };
        assert_eq!(call("north", true, &body), Ok(expected));
    }

    #[test]
    fn a_request_without_its_parts_is_refused() {
        assert!(call("m", false, &json!({})).unwrap_err().contains("contents"));
        let system = json!({"contents": [{"role": "system", "parts": [{"text": "x"}]}]});
        assert!(call("m", false, &system).unwrap_err().contains("role"));
    }

    #[test]
    fn the_last_chunk_carries_the_reason_and_the_usage() {
        let rule = "text='Hello — café.'\nchunk=9\nusage={input=1200,cached=1000,output=44,reasoning=20}";
        let chunks = streamed(rule);
        let texts: Vec<&str> = chunks
            .iter()
            .filter_map(|chunk| chunk["candidates"][0]["content"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(texts, ["Hello — c", "afé.", ""]);
        assert_eq!(chunks[0]["candidates"][0].get("finishReason"), None);
        assert_eq!(chunks[2]["candidates"][0]["finishReason"], "STOP");
        let usage = json!({
            "promptTokenCount": 1200, "cachedContentTokenCount": 1000, "candidatesTokenCount": 24,
            "thoughtsTokenCount": 20, "totalTokenCount": 1244,
        });
        assert_eq!(chunks[2]["usageMetadata"], usage);
        assert_eq!(whole(&reply(rule))["candidates"][0]["content"]["parts"][0]["text"], "Hello — café.");
    }

    #[test]
    fn a_tool_call_is_a_part_with_its_arguments_as_an_object() {
        let chunks = streamed("tools=[{name='look',input={q='a b'}}]");
        let call = &chunks[0]["candidates"][0]["content"]["parts"][0]["functionCall"];
        assert_eq!((&call["name"], &call["args"]), (&json!("look"), &json!({"q": "a b"})));
        assert_eq!(chunks[1]["candidates"][0]["finishReason"], "STOP");
    }

    #[test]
    fn a_refused_answer_is_empty_and_a_refused_prompt_has_no_candidate() {
        let chunks = streamed("refusal='no'");
        assert_eq!(chunks[0]["candidates"][0]["content"]["parts"], json!([]));
        assert_eq!(chunks[0]["candidates"][0]["finishReason"], "SAFETY");
        let blocked = whole(&reply("text='x'\nstop='filter'"));
        assert_eq!(blocked.get("candidates"), None);
        assert_eq!(blocked["promptFeedback"]["blockReason"], "PROHIBITED_CONTENT");
    }

    #[test]
    fn failures_say_when_to_come_back_and_that_a_key_is_bad() {
        let failed = failure(Failure { status: 429, kind: None, message: "slow", retry_after: Some("7") });
        assert_eq!(failed["error"]["status"], "RESOURCE_EXHAUSTED");
        assert_eq!(failed["error"]["details"][0]["retryDelay"], "7s");
        let key = key_refused();
        assert_eq!(
            (&key["error"]["code"], &key["error"]["status"]),
            (&json!(400), &json!("INVALID_ARGUMENT"))
        );
        assert_eq!(key["error"]["details"][0]["reason"], "API_KEY_INVALID");
    }

    #[test]
    fn an_answer_that_is_cut_and_wrong_usage_are_as_scripted() {
        assert_eq!(whole(&reply("text='x'\nstop='length'"))["candidates"][0]["finishReason"], "MAX_TOKENS");
        assert_eq!(streamed("text=''").len(), 1);
        assert_eq!(whole(&reply("usage='missing'")).get("usageMetadata"), None);
        assert_eq!(whole(&reply("usage='wrong'"))["usageMetadata"]["candidatesTokenCount"], "many");
    }
}
