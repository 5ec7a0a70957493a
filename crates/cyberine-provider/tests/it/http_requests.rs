//! How a conversation with tools and a schema is put to each HTTP wire, and where its key goes.

use cyberine_provider::{Message, Role, ToolCall, ToolSpec, Turn};
use serde_json::{Value, json};

use crate::server::{Request, Server};
use crate::support::{KEY, block_on, provider, take, turn};

/// Two calls at once, one of which carries a signature, and their results.
fn conversation() -> Turn {
    let mut turn = turn("what flies?");
    turn.messages.insert(0, Message::new(Role::System, "be brief"));
    turn.messages.insert(1, Message::new(Role::System, "be kind"));
    let owl =
        ToolCall { signature: Some("c2ln".into()), ..ToolCall::new("a", "look", json!({ "q": "owl" })) };
    let add = ToolCall::new("b", "add", json!({}));
    turn.messages.push(Message::calling("I look.", vec![owl.clone(), add.clone()]));
    turn.messages.push(Message::result(owl, "a bird"));
    turn.messages.push(Message::result(add, "done"));
    turn.messages.push(Message::new(Role::Assistant, "An owl."));
    turn.messages.push(Message::new(Role::User, "and?"));
    turn.tools = vec![ToolSpec { name: "look".into(), description: "d".into(), input_schema: schema() }];
    turn.output_schema = Some(schema());
    turn
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "q": { "type": "string", "maxLength": 9 } } })
}

/// The one request that `config` makes for `turn`, at a server of its own.
async fn requested(config: Value, turn: Turn) -> Request {
    let server = Server::saying(503, "", "").await;
    let mut config = config;
    config["base_url"] = json!(format!("{}/base", server.url()));
    take(&provider(config), turn).await;
    server.requests()[0].clone()
}

async fn asked(kind: &str) -> Request {
    requested(json!({ "kind": kind, "model": "m", "api_key_env": "TEST_KEY" }), conversation()).await
}

/// The head is in small letters, and so is the key.
fn check_head(request: &Request, line: &str, key: &str) {
    assert!(request.head.starts_with(&format!("post {line} http/1.1\r\n")), "{}", request.head);
    assert!(request.head.contains(&format!("\r\n{key}\r\n")), "{}", request.head);
    assert_eq!(request.head.matches(KEY).count(), 1, "the key goes into one header only: {}", request.head);
    assert!(!request.body.to_string().contains(KEY));
}

#[test]
fn a_chat_completion_goes_on_after_its_tools() {
    let request = block_on(asked("openai"));
    check_head(&request, "/base/chat/completions", &format!("authorization: bearer {KEY}"));
    let expected = json!([
        { "role": "system", "content": "be brief" },
        { "role": "system", "content": "be kind" },
        { "role": "user", "content": "what flies?" },
        { "role": "assistant", "content": "I look.", "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": "look", "arguments": "{\"q\":\"owl\"}" } },
            { "id": "b", "type": "function", "function": { "name": "add", "arguments": "{}" } },
        ] },
        { "role": "tool", "tool_call_id": "a", "content": "a bird" },
        { "role": "tool", "tool_call_id": "b", "content": "done" },
        { "role": "assistant", "content": "An owl." },
        { "role": "user", "content": "and?" },
    ]);
    assert_eq!(request.body["messages"], expected);
    let format = json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema() } });
    assert_eq!(request.body["response_format"], format);
}

#[test]
fn a_response_goes_on_after_its_tools() {
    let request = block_on(asked("openai-responses"));
    check_head(&request, "/base/responses", &format!("authorization: bearer {KEY}"));
    let expected = json!({
        "model": "m",
        "instructions": "be brief\n\nbe kind",
        "input": [
            { "role": "user", "content": "what flies?" },
            { "role": "assistant", "content": "I look." },
            { "type": "function_call", "call_id": "a", "name": "look", "arguments": "{\"q\":\"owl\"}" },
            { "type": "function_call", "call_id": "b", "name": "add", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "a bird" },
            { "type": "function_call_output", "call_id": "b", "output": "done" },
            { "role": "assistant", "content": "An owl." },
            { "role": "user", "content": "and?" },
        ],
        "stream": true,
        "store": false,
        "max_output_tokens": 8192,
        "tools": [{
            "type": "function", "name": "look", "description": "d", "parameters": schema(), "strict": false,
        }],
        "text": { "format": { "type": "json_schema", "name": "answer", "schema": schema() } },
    });
    assert_eq!(request.body, expected);
}

#[test]
fn a_message_goes_on_after_its_tools() {
    let request = block_on(asked("anthropic"));
    check_head(&request, "/base/v1/messages", &format!("x-api-key: {KEY}"));
    let expected = json!({
        "model": "m",
        "system": "be brief\n\nbe kind",
        "messages": [
            { "role": "user", "content": "what flies?" },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "a", "name": "look", "input": { "q": "owl" } },
                { "type": "tool_use", "id": "b", "name": "add", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "a bird" },
                { "type": "tool_result", "tool_use_id": "b", "content": "done" },
            ] },
            { "role": "assistant", "content": "An owl." },
            { "role": "user", "content": "and?" },
        ],
        "stream": true,
        "max_tokens": 8192,
        "tools": [{ "name": "look", "description": "d", "input_schema": schema() }],
        "output_config": { "format": { "type": "json_schema", "schema": schema() } },
    });
    assert_eq!(request.body, expected);
}

#[test]
fn a_generation_goes_on_after_its_tools() {
    let request = block_on(asked("gemini"));
    let line = "/base/v1beta/models/m:streamgeneratecontent?alt=sse";
    check_head(&request, line, &format!("x-goog-api-key: {KEY}"));
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "be brief\n\nbe kind" }] },
        "contents": [
            { "role": "user", "parts": [{ "text": "what flies?" }] },
            { "role": "model", "parts": [
                { "text": "I look." },
                {
                    "functionCall": { "id": "a", "name": "look", "args": { "q": "owl" } },
                    "thoughtSignature": "c2ln",
                },
                { "functionCall": { "id": "b", "name": "add", "args": {} } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "a", "name": "look", "response": { "output": "a bird" } } },
                { "functionResponse": { "id": "b", "name": "add", "response": { "output": "done" } } },
            ] },
            { "role": "model", "parts": [{ "text": "An owl." }] },
            { "role": "user", "parts": [{ "text": "and?" }] },
        ],
        "generationConfig": {
            "maxOutputTokens": 8192,
            "responseMimeType": "application/json",
            "responseJsonSchema": schema(),
        },
        "tools": [{ "functionDeclarations": [
            { "name": "look", "description": "d", "parametersJsonSchema": schema() },
        ] }],
    });
    assert_eq!(request.body, expected);
}

#[test]
fn a_chat_of_ollama_goes_on_after_its_tools() {
    let request = block_on(asked("ollama"));
    check_head(&request, "/base/api/chat", &format!("authorization: bearer {KEY}"));
    assert!(request.head.contains("\r\naccept: application/x-ndjson\r\n"), "{}", request.head);
    let expected = json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": "what flies?" },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "id": "a", "function": { "name": "look", "arguments": { "q": "owl" } } },
                { "id": "b", "function": { "name": "add", "arguments": {} } },
            ] },
            { "role": "tool", "tool_call_id": "a", "tool_name": "look", "content": "a bird" },
            { "role": "tool", "tool_call_id": "b", "tool_name": "add", "content": "done" },
            { "role": "assistant", "content": "An owl." },
            { "role": "user", "content": "and?" },
        ],
        "stream": true,
        "options": { "num_predict": 8192 },
        "tools": [{ "type": "function", "function": {
            "name": "look", "description": "d", "parameters": schema(),
        } }],
        "format": schema(),
    });
    assert_eq!(request.body, expected);
}

#[test]
fn without_structured_output_no_wire_sends_a_schema() {
    block_on(async {
        for kind in ["openai", "openai-responses", "anthropic", "gemini", "ollama"] {
            let mut turn = turn("x");
            turn.output_schema = Some(schema());
            let config = json!({ "kind": kind, "model": "m", "structured_output": false });
            let request = requested(config, turn).await;
            assert!(!request.body.to_string().contains("maxLength"), "{kind}: {}", request.body);
            assert!(!request.head.contains("authorization") && !request.head.contains("key"), "{kind}");
        }
    });
}

#[test]
fn a_call_without_words_says_nothing_blank() {
    block_on(async {
        let mut turn = turn("x");
        turn.messages.push(Message::calling(" ", vec![ToolCall::new("a", "look", json!({}))]));
        for kind in ["openai-responses", "anthropic", "gemini"] {
            let request = requested(json!({ "kind": kind, "model": "m" }), turn.clone()).await;
            assert!(!request.body.to_string().contains("\" \""), "{kind}: {}", request.body);
        }
    });
}
