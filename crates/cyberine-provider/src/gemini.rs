//! `streamGenerateContent`: Google's wire.

mod parser;

use cyberine_types::Secret;
use serde_json::{Value, json};

pub(crate) use self::parser::GeminiParser;
use crate::config::HttpConfig;
use crate::http_provider::{Dialect, Service};
use crate::port::{Limits, Message, Role, ToolCall, ToolSpec, Turn};
use crate::quote::Quoter;
use crate::talk;
use crate::wire::Wire;

/// The version of the wire.
const VERSION: &str = "/v1beta";

/// Kind `gemini`.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn service(&self) -> Service {
        let url = Some("https://generativelanguage.googleapis.com");
        Service { kind: "gemini", url, key_env: Some("GEMINI_API_KEY") }
    }

    fn url(&self, base: &str, model: &str) -> String {
        format!("{}/{}:streamGenerateContent?alt=sse", versioned(base), resource(model))
    }

    fn models_url(&self, base: &str) -> String {
        format!("{}/models?pageSize=1000", versioned(base))
    }

    /// The key goes into a header: an address is written down in too many places.
    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("x-goog-api-key", key.expose().to_owned())
    }

    fn body(&self, config: &HttpConfig, turn: &Turn, limits: &Limits) -> Value {
        let contents: Vec<Value> = talk::exchanges(turn).iter().map(|group| content(group)).collect();
        let mut generation = json!({ "maxOutputTokens": limits.max_tokens });
        if let Some(schema) = turn.output_schema.as_ref().filter(|_| config.structured_output) {
            generation["responseMimeType"] = json!("application/json");
            generation["responseJsonSchema"] = schema.clone();
        }
        let mut body = json!({ "contents": contents, "generationConfig": generation });
        if let Some(instructions) = talk::instructions(turn) {
            body["systemInstruction"] = json!({ "parts": [{ "text": instructions }] });
        }
        if !turn.tools.is_empty() {
            let tool = |tool: &ToolSpec| json!({ "name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema });
            let tools: Vec<Value> = turn.tools.iter().map(tool).collect();
            body["tools"] = json!([{ "functionDeclarations": tools }]);
        }
        body
    }

    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire> {
        Box::new(GeminiParser::wire(answer_bytes, quoter))
    }
}

fn versioned(base: &str) -> String {
    format!("{}{VERSION}", base.strip_suffix(VERSION).unwrap_or(base))
}

/// The model as a part of a path. A tuned one is named with the collection it is in.
fn resource(model: &str) -> String {
    let (collection, name) = match model.split_once('/') {
        Some((collection @ ("models" | "tunedModels"), name)) => (collection, name),
        _ => ("models", model),
    };
    let mut path = format!("{collection}/");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte))
            }
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    path
}

/// What was said at once, as this wire has it: the results of tools are the user's.
fn content(group: &[&Message]) -> Value {
    let parts: Vec<Value> = group.iter().flat_map(|message| parts(message)).collect();
    let role = if group[0].role == Role::Assistant { "model" } else { "user" };
    json!({ "role": role, "parts": parts })
}

fn parts(message: &Message) -> Vec<Value> {
    if message.role == Role::Tool {
        let (id, name) = (talk::answered(message), talk::answering(message));
        let response = json!({ "id": id, "name": name, "response": { "output": message.text } });
        return vec![json!({ "functionResponse": response })];
    }
    let blank = !message.calls.is_empty() && cyberine_types::is_blank(&message.text);
    let text = (!blank).then(|| json!({ "text": message.text }));
    text.into_iter().chain(message.calls.iter().map(call)).collect()
}

fn call(call: &ToolCall) -> Value {
    let mut part = json!({ "functionCall": { "id": call.id, "name": call.name, "args": call.arguments } });
    if let Some(signature) = &call.signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_one_part_of_the_path() {
        for (base, model, expected) in [
            ("https://h", "gemini-3-pro", "https://h/v1beta/models/gemini-3-pro"),
            ("https://h/v1beta", "models/gemini-3-pro", "https://h/v1beta/models/gemini-3-pro"),
            ("https://h/x", "tunedModels/a-1", "https://h/x/v1beta/tunedModels/a-1"),
            ("https://h", "scripted/m?key=1#:..", "https://h/v1beta/models/scripted%2Fm%3Fkey%3D1%23%3A.."),
            ("https://h", "models/../é", "https://h/v1beta/models/..%2F%C3%A9"),
        ] {
            assert_eq!(Gemini.url(base, model), format!("{expected}:streamGenerateContent?alt=sse"));
        }
    }
}
