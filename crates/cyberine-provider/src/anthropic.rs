//! Messages: Anthropic's wire.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::{MessageParser, MessageUsage};
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::port::{Limits, Message, Role, ToolCall, ToolSpec, Turn};
use crate::quote::Quoter;
use crate::wire::Wire;
use crate::{schema, talk};

/// Where Anthropic itself is.
const ANTHROPIC: &str = "https://api.anthropic.com";

/// The variable that every Anthropic client reads its key from.
pub(crate) const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// Kind `anthropic`.
pub(crate) struct Messages;

impl Dialect for Messages {
    fn service(&self) -> Service {
        Service { kind: "anthropic", url: Some(ANTHROPIC), key_env: Some(ANTHROPIC_KEY) }
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
        let messages: Vec<Value> = talk::exchanges(turn).iter().map(|group| message(group)).collect();
        let mut body = json!({
            "model": config.model,
            "max_tokens": limits.max_tokens,
            "messages": messages,
            "stream": true,
        });
        if let Some(system) = talk::instructions(turn) {
            body["system"] = Value::String(system);
        }
        if !turn.tools.is_empty() {
            let tool = |tool: &ToolSpec| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema });
            body["tools"] = turn.tools.iter().map(tool).collect();
        }
        if let Some(schema) = turn.output_schema.as_ref().filter(|_| config.structured_output) {
            // Anthropic itself refuses a schema beyond its subset; other servers take any.
            let own = talk::is_makers(config, ANTHROPIC);
            let schema = if own { schema::enforced(schema) } else { schema.clone() };
            body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
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

/// What was said at once, as this wire has it: the results of tools are the user's.
fn message(group: &[&Message]) -> Value {
    let result = |message: &&Message| {
        let id = talk::answered(message);
        json!({ "type": "tool_result", "tool_use_id": id, "content": message.text })
    };
    let said = group[0];
    match said.role {
        Role::Tool => json!({ "role": "user", "content": group.iter().map(result).collect::<Vec<_>>() }),
        Role::Assistant if !said.calls.is_empty() => {
            let text = json!({ "type": "text", "text": said.text });
            // A block of white space is refused.
            let text = (!cyberine_types::is_blank(&said.text)).then_some(text);
            let call = |call: &ToolCall| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments });
            let blocks: Vec<Value> = text.into_iter().chain(said.calls.iter().map(call)).collect();
            json!({ "role": "assistant", "content": blocks })
        }
        Role::Assistant => json!({ "role": "assistant", "content": said.text }),
        Role::User | Role::System => json!({ "role": "user", "content": said.text }),
    }
}
