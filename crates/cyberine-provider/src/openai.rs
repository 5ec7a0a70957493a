//! Chat completions: OpenAI's wire, spoken by most servers.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::ChatParser;
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::port::{Limits, Role, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

/// Kind `openai`.
pub(crate) struct Chat;

impl Dialect for Chat {
    fn service(&self) -> Service {
        Service { kind: "openai", url: None, key_env: None }
    }

    fn url(&self, base: &str, _model: &str) -> String {
        format!("{base}/chat/completions")
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.expose()))
    }

    fn body(&self, config: &HttpConfig, turn: &Turn, limits: &Limits) -> Value {
        let messages: Vec<Value> = turn
            .messages
            .iter()
            .map(|message| json!({ "role": role(message.role), "content": message.text }))
            .collect();
        let mut body = json!({
            "model": config.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
            max_tokens_field(config): limits.max_tokens,
        });
        if !turn.tools.is_empty() {
            let tool = |tool: &crate::ToolSpec| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
                } })
            };
            body["tools"] = turn.tools.iter().map(tool).collect();
        }
        if let Some(schema) = turn.output_schema.as_ref().filter(|_| config.structured_output) {
            body["response_format"] =
                json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } });
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(ChatParser::wire(answer_bytes, quoter))
    }
}

/// OpenAI's own reasoning models refuse the older field, compatible servers know only it.
fn max_tokens_field(config: &HttpConfig) -> &'static str {
    let url = config.base_url.as_deref().unwrap_or_default();
    if url.starts_with("https://api.openai.com/") { "max_completion_tokens" } else { "max_tokens" }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}
