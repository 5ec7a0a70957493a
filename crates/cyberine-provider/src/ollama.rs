//! Ollama's own chat.

mod parser;

use cyberine_types::{Billing, Secret};
use serde_json::{Value, json};

pub(crate) use self::parser::OllamaParser;
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::port::{Limits, Message, Role, ToolCall, ToolSpec, Turn};
use crate::quote::Quoter;
use crate::talk;
use crate::wire::Wire;

/// Kind `ollama`.
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn service(&self) -> Service {
        Service { kind: "ollama", url: Some("http://127.0.0.1:11434"), key_env: None }
    }

    fn url(&self, base: &str, _model: &str) -> String {
        format!("{base}/api/chat")
    }

    fn models_url(&self, base: &str) -> String {
        format!("{base}/api/tags")
    }

    /// Ollama hands a model of its cloud on from this machine, and an account pays for it.
    fn usual_billing(&self, model: &str) -> Option<Billing> {
        let is_elsewhere = model.ends_with("-cloud") || model.ends_with(":cloud");
        is_elsewhere.then_some(Billing::Subscription)
    }

    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("accept", "application/x-ndjson")]
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.expose()))
    }

    fn body(&self, config: &HttpConfig, turn: &Turn, limits: &Limits) -> Value {
        let messages: Vec<Value> = turn.messages.iter().map(message).collect();
        let mut body = json!({
            "model": config.model,
            "messages": messages,
            "stream": true,
            "options": { "num_predict": limits.max_tokens },
        });
        if !turn.tools.is_empty() {
            let tool = |tool: &ToolSpec| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
                } })
            };
            body["tools"] = turn.tools.iter().map(tool).collect();
        }
        if let Some(schema) = turn.output_schema.as_ref().filter(|_| config.structured_output) {
            body["format"] = schema.clone();
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(OllamaParser::wire(answer_bytes, quoter))
    }
}

/// A message as this wire has it.
fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => {
            let (id, name) = (talk::answered(message), talk::answering(message));
            let text = &message.text;
            return json!({ "role": "tool", "tool_call_id": id, "tool_name": name, "content": text });
        }
    };
    let mut said = json!({ "role": role, "content": message.text });
    if !message.calls.is_empty() {
        let call = |call: &ToolCall| json!({ "id": call.id, "function": { "name": call.name, "arguments": call.arguments } });
        said["tool_calls"] = message.calls.iter().map(call).collect();
    }
    said
}
