//! The questions of tools, prompts and tasks.

use cyberine_server::{ElicitForm, InputRequest};
use serde_json::{Value, json};

pub(crate) fn form(message: &str, properties: Value, required: &[&str]) -> InputRequest {
    let requested_schema = json!({ "type": "object", "properties": properties, "required": required });
    InputRequest::Form(ElicitForm { message: message.to_owned(), requested_schema })
}

pub(crate) fn sampling(prompt: &str, max_tokens: u32) -> InputRequest {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = [("messages".to_owned(), json!([message])), ("maxTokens".to_owned(), json!(max_tokens))];
    InputRequest::Sampling(params.into_iter().collect())
}
