//! Responses: OpenAI's newer wire.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::ResponseParser;
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::openai::{OPENAI_KEY, answer_format};
use crate::port::{Limits, Message, Role, ToolSpec, Turn};
use crate::quote::Quoter;
use crate::talk;
use crate::wire::Wire;

/// The smallest limit on the output that the service takes.
const LEAST_OUTPUT: u32 = 16;

/// Kind `openai-responses`.
pub(crate) struct Responses;

impl Dialect for Responses {
    fn service(&self) -> Service {
        let url = Some("https://api.openai.com/v1");
        Service { kind: "openai-responses", url, key_env: Some(OPENAI_KEY) }
    }

    fn url(&self, base: &str, _model: &str) -> String {
        format!("{base}/responses")
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.expose()))
    }

    fn body(&self, config: &HttpConfig, turn: &Turn, limits: &Limits) -> Value {
        let input: Vec<Value> = talk::exchanges(turn).into_iter().flatten().flat_map(items).collect();
        let mut body = json!({
            "model": config.model,
            "input": input,
            "stream": true,
            // Nothing is kept with the service: every turn brings its whole conversation.
            "store": false,
            "max_output_tokens": limits.max_tokens.max(LEAST_OUTPUT),
        });
        if let Some(instructions) = talk::instructions(turn) {
            body["instructions"] = Value::String(instructions);
        }
        if !turn.tools.is_empty() {
            let tool = |tool: &ToolSpec| {
                json!({
                    "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.input_schema, "strict": false,
                })
            };
            body["tools"] = turn.tools.iter().map(tool).collect();
        }
        if let Some(schema) = turn.output_schema.as_ref().filter(|_| config.structured_output) {
            let mut format = answer_format(config, schema);
            format["type"] = json!("json_schema");
            body["text"] = json!({ "format": format });
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(ResponseParser::wire(answer_bytes, quoter))
    }
}

/// A message as this wire has it: what is said, and every call and result as an item of its own.
fn items(message: &Message) -> Vec<Value> {
    let said = |role| json!({ "role": role, "content": message.text });
    match message.role {
        Role::Tool => {
            let id = talk::answered(message);
            vec![json!({ "type": "function_call_output", "call_id": id, "output": message.text })]
        }
        Role::Assistant => {
            let text = (!cyberine_types::is_blank(&message.text)).then(|| said("assistant"));
            let calls = message.calls.iter().map(|call| {
                let arguments = call.arguments.to_string();
                json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments })
            });
            text.into_iter().chain(calls).collect()
        }
        Role::System => vec![said("developer")],
        Role::User => vec![said("user")],
    }
}
