//! The auth gate, derived from what the server itself lists: a tool that is added later cannot
//! escape this check.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::world::World;
use crate::wire::{Era, Server, Stdio2};

const TOKEN: &str = "selftest-0123456789abcdef";

pub(crate) fn gate(world: &World) -> Result<String> {
    let place = world.place()?;
    let mut command = place.command();
    command.env("CYBERINE_MCP_AUTH_TOKEN", TOKEN);
    let mut server = Server::start(command, Stdio2::Pipes)?;
    server.initialize("2025-11-25")?;
    let list = server.ask("tools/list", &json!({}))?;
    let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
    ensure!(!tools.is_empty(), "no tools: {list}");
    let long = "x".repeat(1 << 20);
    let (cut, spaced, cased) = (&TOKEN[..TOKEN.len() - 1], format!("{TOKEN} "), TOKEN.to_uppercase());
    let wrong = [None, Some(""), Some(cut), Some(&spaced), Some(&cased), Some(&long)];
    for tool in &tools {
        for era in [Era::Y2025, Era::Y2026] {
            for token in wrong {
                shut(&mut server, era, tool, token)?;
            }
            open(&mut server, era, tool)?;
        }
    }
    resources(&mut server)?;
    server.close()?;
    empty_token_refuses(world)?;
    Ok(format!("{} tools, {} wrong tokens each, in both eras; resources too", tools.len(), wrong.len()))
}

fn shut(server: &mut Server, era: Era, tool: &Value, token: Option<&str>) -> Result<()> {
    let name = tool["name"].as_str().unwrap_or_default();
    ensure!(tool["inputSchema"]["properties"]["authToken"].is_object(), "{name} has no `authToken`");
    let mut arguments = json!({});
    if let Some(token) = token {
        arguments["authToken"] = json!(token);
    }
    let response = server.call(era, name, &arguments)?;
    let result = &response["result"];
    ensure!(result["isError"] == true, "{name} is open to a wrong token: {response}");
    let body = if result["structuredContent"].is_object() {
        result["structuredContent"].clone()
    } else {
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap_or_default())?
    };
    ensure!(body == json!({"error": "unauthorized"}), "{name} says more than it should: {response}");
    Ok(())
}

/// With the right token the gate is no longer what answers.
fn open(server: &mut Server, era: Era, tool: &Value) -> Result<()> {
    let name = tool["name"].as_str().unwrap_or_default();
    let response = server.call(era, name, &json!({"authToken": TOKEN}))?.to_string();
    ensure!(!response.contains("unauthorized"), "{name} is shut to the right token: {response}");
    ensure!(!response.contains(TOKEN), "{name} gives the token away: {response}");
    Ok(())
}

fn resources(server: &mut Server) -> Result<()> {
    let unknown = "cyberine://runs/00000000-0000-4000-8000-000000000000";
    for era in [Era::Y2025, Era::Y2026] {
        for uri in [unknown.to_owned(), format!("{unknown}?authToken=wrong")] {
            let response = server.ask("resources/read", &era.params(json!({"uri": uri})))?;
            ensure!(response["error"]["code"] == -33001, "a read without the token: {response}");
            ensure!(response["error"]["data"]["reason"] == "unauthorized", "{response}");
        }
        let uri = format!("{unknown}?authToken={TOKEN}");
        let response = server.ask("resources/read", &era.params(json!({"uri": uri})))?;
        let code = if era == Era::Y2025 { -32002 } else { -32602 };
        ensure!(response["error"]["code"] == code, "a read of nothing, with the token: {response}");
        ensure!(!response.to_string().contains(TOKEN), "the token comes back: {response}");
        let response = server.ask("resources/list", &era.params(json!({})))?;
        ensure!(response["result"]["resources"] == json!([]), "the gate does not cover the list: {response}");
    }
    Ok(())
}

fn empty_token_refuses(world: &World) -> Result<()> {
    let place = world.place()?;
    let mut command = place.command();
    let output = command.env("CYBERINE_MCP_AUTH_TOKEN", "").stdin(std::process::Stdio::null()).output()?;
    ensure!(output.status.code() == Some(78), "an empty token: exit {:?}", output.status.code());
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("CYBERINE_MCP_AUTH_TOKEN"), "the refusal does not name the variable: {said}");
    ensure!(output.stdout.is_empty(), "the refusal went to stdout");
    Ok(())
}
