//! Chat completions: OpenAI's wire, spoken by most servers.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::ChatParser;
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::port::{Limits, Message, Role, ToolCall, ToolSpec, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;
use crate::{schema, talk};

/// Where OpenAI itself is.
pub(crate) const OPENAI: &str = "https://api.openai.com";

/// The variable that every OpenAI client reads its key from.
pub(crate) const OPENAI_KEY: &str = "OPENAI_API_KEY";

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
        let messages: Vec<Value> = turn.messages.iter().map(message).collect();
        let mut body = json!({
            "model": config.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
            max_tokens_field(config): limits.max_tokens,
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
            body["response_format"] =
                json!({ "type": "json_schema", "json_schema": answer_format(config, schema) });
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(ChatParser::wire(answer_bytes, quoter))
    }
}

/// A message as this wire has it.
fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => {
            let id = talk::answered(message);
            return json!({ "role": "tool", "tool_call_id": id, "content": message.text });
        }
    };
    let mut said = json!({ "role": role, "content": message.text });
    if !message.calls.is_empty() {
        let call = |call: &ToolCall| {
            let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
            json!({ "id": call.id, "type": "function", "function": function })
        };
        said["tool_calls"] = message.calls.iter().map(call).collect();
    }
    said
}

/// The form an answer is held to, as both of OpenAI's wires name it. OpenAI itself enforces only
/// schemas of a certain form; other servers take any.
pub(crate) fn answer_format(config: &HttpConfig, schema: &Value) -> Value {
    if is_openai(config) && schema::is_total(schema) {
        return json!({ "name": "answer", "schema": schema::enforced(schema), "strict": true });
    }
    json!({ "name": "answer", "schema": schema })
}

/// OpenAI's own reasoning models refuse the older field, compatible servers know only it.
fn max_tokens_field(config: &HttpConfig) -> &'static str {
    if is_openai(config) { "max_completion_tokens" } else { "max_tokens" }
}

fn is_openai(config: &HttpConfig) -> bool {
    talk::is_makers(config, OPENAI)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openai_itself_is_asked_to_enforce_what_it_can() {
        let schema = |required: &[&str]| {
            json!({
                "type": "object",
                "properties": { "a": { "type": "string", "maxLength": 9 } },
                "required": required,
            })
        };
        let of = |url: Option<&str>, schema: &Value| {
            let config = HttpConfig { base_url: url.map(str::to_owned), ..HttpConfig::new("", "m") };
            answer_format(&config, schema)
        };
        let enforced = json!({ "name": "answer", "strict": true, "schema": {
            "type": "object",
            "properties": { "a": { "type": "string", "description": "{\"maxLength\":9}" } },
            "required": ["a"],
            "additionalProperties": false,
        } });
        assert_eq!(of(None, &schema(&["a"])), enforced);
        assert_eq!(of(Some("https://api.openai.com/v1"), &schema(&["a"])), enforced);
        let plain = json!({ "name": "answer", "schema": schema(&[]) });
        assert_eq!(of(None, &schema(&[])), plain, "a member may be left out");
        let plain = json!({ "name": "answer", "schema": schema(&["a"]) });
        for elsewhere in ["http://127.0.0.1:1/v1", "https://api.openai.com.example/v1"] {
            assert_eq!(of(Some(elsewhere), &schema(&["a"])), plain, "{elsewhere}");
        }
    }
}
