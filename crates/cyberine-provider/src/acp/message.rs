//! What is said to an agent: messages of JSON-RPC 2.0.

use serde_json::{Value, json};

use crate::rpc;

/// The only revision of the protocol there is; an agent that speaks another says so.
pub(super) const PROTOCOL: u64 = 1;

/// The revision of JSON-RPC is a member of every message.
fn line(mut message: Value) -> Value {
    message["jsonrpc"] = json!("2.0");
    message
}

pub(super) fn initialize(id: u64) -> Value {
    let capabilities = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    let client = json!({ "name": "cyberine", "version": env!("CARGO_PKG_VERSION") });
    let params =
        json!({ "protocolVersion": PROTOCOL, "clientCapabilities": capabilities, "clientInfo": client });
    line(json!({ "id": id, "method": "initialize", "params": params }))
}

pub(super) fn new_session(id: u64, cwd: &str) -> Value {
    line(json!({ "id": id, "method": "session/new", "params": { "cwd": cwd, "mcpServers": [] } }))
}

/// Asks for `model` in the way that the answer to `session/new` offers; `None` where it offers none.
pub(super) fn choose_model(id: u64, session: &str, offered: &Value, model: &str) -> Option<Value> {
    if offered["models"]["availableModels"].is_array() {
        let params = json!({ "sessionId": session, "modelId": model });
        return Some(line(json!({ "id": id, "method": "session/set_model", "params": params })));
    }
    let options = offered["configOptions"].as_array()?;
    let option = options.iter().find(|option| option["category"] == "model" || option["id"] == "model")?;
    let params = json!({ "sessionId": session, "configId": option["id"], "value": model });
    Some(line(json!({ "id": id, "method": "session/set_config_option", "params": params })))
}

/// The prompt. What begins like a command of the agent is labelled, so that it is a question.
pub(super) fn prompt(id: u64, session: &str, prompt: &str) -> Value {
    let command = prompt.trim_start().starts_with(['/', '$']);
    let text = if command { format!("[user]\n{prompt}") } else { prompt.to_owned() };
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    line(json!({ "id": id, "method": "session/prompt", "params": params }))
}

pub(super) fn cancel(session: &str) -> Value {
    line(json!({ "method": "session/cancel", "params": { "sessionId": session } }))
}

pub(super) fn reply(id: &Value, result: &Value) -> Value {
    line(rpc::reply(id, result))
}

pub(super) fn no_method(id: &Value, method: &str) -> Value {
    line(rpc::no_method(id, method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_looks_like_a_command_is_a_question() {
        let text = |text: &str| prompt(2, "s", text)["params"]["prompt"][0]["text"].clone();
        assert_eq!(text("/about\nx"), "[user]\n/about\nx");
        assert_eq!(text(" $PATH is?"), "[user]\n $PATH is?");
        assert_eq!(text("a /b"), "a /b");
    }

    #[test]
    fn a_model_is_chosen_in_the_way_that_is_offered() {
        let choose = |offered: Value| choose_model(3, "s", &offered, "m");
        let models =
            choose(json!({ "models": { "availableModels": [], "currentModelId": "auto" } })).unwrap();
        assert_eq!(
            (&models["method"], &models["params"]["modelId"]),
            (&json!("session/set_model"), &json!("m"))
        );
        let options = json!([{ "id": "mode" }, { "id": "the-model", "category": "model" }]);
        let config = choose(json!({ "configOptions": options })).unwrap();
        assert_eq!(config["method"], "session/set_config_option");
        assert_eq!(config["params"], json!({ "sessionId": "s", "configId": "the-model", "value": "m" }));
        assert_eq!(choose(json!({ "configOptions": [] })), None);
        assert_eq!(choose(json!({})), None);
    }
}
