//! Chat completions: OpenAI's wire, spoken by most servers.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::ChatParser;
use crate::config::OpenaiConfig;
use crate::http_provider::Dialect;
use crate::port::{Capabilities, Limits, Role, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

impl Dialect for OpenaiConfig {
    fn url(&self) -> String {
        format!("{}/chat/completions", self.base_url.trim_end_matches('/'))
    }

    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.expose()))
    }

    fn capabilities(&self) -> Capabilities {
        let structured_output = self.structured_output;
        Capabilities { tools: true, structured_output, resume: false, read_only: true }
    }

    fn body(&self, turn: &Turn, limits: &Limits) -> Value {
        let messages: Vec<Value> = turn
            .messages
            .iter()
            .map(|message| json!({ "role": role(message.role), "content": message.text }))
            .collect();
        let mut body = json!({
            "model": self.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
            self.max_tokens_field(): limits.max_tokens,
        });
        if !turn.tools.is_empty() {
            let tool = |tool: &crate::ToolSpec| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
                } })
            };
            body["tools"] = turn.tools.iter().map(tool).collect();
        }
        if let Some(schema) = turn.output_schema.as_ref().filter(|_| self.structured_output) {
            body["response_format"] =
                json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } });
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(ChatParser::wire(answer_bytes, quoter))
    }
}

impl OpenaiConfig {
    /// OpenAI's own reasoning models refuse the older field, compatible servers know only it.
    fn max_tokens_field(&self) -> &'static str {
        if self.base_url.starts_with("https://api.openai.com/") {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}
