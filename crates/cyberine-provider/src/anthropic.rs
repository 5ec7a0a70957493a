//! Messages: Anthropic's wire.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::{MessageParser, MessageUsage};
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::port::{Limits, Role, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;

/// The variable that every Anthropic client reads its key from.
pub(crate) const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// Kind `anthropic`.
pub(crate) struct Messages;

impl Dialect for Messages {
    fn service(&self) -> Service {
        Service { kind: "anthropic", url: Some("https://api.anthropic.com"), key_env: Some(ANTHROPIC_KEY) }
    }

    fn url(&self, base: &str, _model: &str) -> String {
        format!("{}/v1/messages", root(base))
    }

    fn models_url(&self, base: &str) -> String {
        format!("{}/v1/models", root(base))
    }

    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("x-api-key", key.expose().to_owned())
    }

    fn body(&self, config: &HttpConfig, turn: &Turn, limits: &Limits) -> Value {
        let (system, talk): (Vec<_>, Vec<_>) =
            turn.messages.iter().partition(|message| message.role == Role::System);
        let messages: Vec<Value> = talk
            .iter()
            .map(|message| {
                let role = if message.role == Role::Assistant { "assistant" } else { "user" };
                json!({ "role": role, "content": message.text })
            })
            .collect();
        let mut body = json!({
            "model": config.model,
            "max_tokens": limits.max_tokens,
            "messages": messages,
            "stream": true,
        });
        if !system.is_empty() {
            let texts: Vec<&str> = system.iter().map(|message| message.text.as_str()).collect();
            body["system"] = Value::String(texts.join("\n\n"));
        }
        if !turn.tools.is_empty() {
            let tool = |tool: &crate::ToolSpec| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema });
            body["tools"] = turn.tools.iter().map(tool).collect();
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(MessageParser::wire(answer_bytes, quoter))
    }
}

/// The address without the version, which belongs to the paths of this wire.
fn root(base: &str) -> &str {
    base.strip_suffix("/v1").unwrap_or(base)
}
