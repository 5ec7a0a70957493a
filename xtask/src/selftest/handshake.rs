//! Opening a connection, listing tools, ending it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::world::World;
use crate::wire::{Era, Stdio2};

const LEGACY: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// What every session costs before it begins: all twelve tools must fit this.
const TOOLS_BUDGET: usize = 24_000;

pub(crate) fn handshake(world: &World) -> Result<String> {
    for kind in [Stdio2::Pipes, Stdio2::Sockets] {
        for revision in LEGACY {
            let mut server = world.place()?.server(kind)?;
            let result = server.initialize(revision)?;
            ensure!(result["protocolVersion"] == *revision, "{revision} was answered with {result}");
            introduces_itself(&result["serverInfo"], &result)?;
        }
        let mut server = world.place()?.server(kind)?;
        let response = server.ask("server/discover", &Era::Y2026.params(json!({})))?;
        let result = &response["result"];
        ensure!(result["supportedVersions"] == json!(["2026-07-28"]), "discover: {response}");
        ensure!(result["resultType"] == "complete", "discover: {response}");
        introduces_itself(&result["_meta"]["io.modelcontextprotocol/serverInfo"], result)?;
    }
    Ok(format!("{} revisions, over pipes and sockets", LEGACY.len() + 1))
}

fn introduces_itself(info: &Value, result: &Value) -> Result<()> {
    ensure!(info["name"] == "cyberine", "serverInfo.name is {}", info["name"]);
    ensure!(info["version"].as_str().is_some_and(|version| !version.is_empty()), "no version: {info}");
    ensure!(result["capabilities"]["tools"].is_object(), "no tools capability: {result}");
    ensure!(result["capabilities"]["resources"].is_object(), "no resources capability: {result}");
    let instructions = result["instructions"].as_str().unwrap_or_default();
    ensure!((1..=3).contains(&instructions.lines().count()), "instructions: {instructions:?}");
    ensure!(
        instructions.contains("cyberine guide"),
        "instructions name no `cyberine guide`: {instructions:?}"
    );
    Ok(())
}

pub(crate) fn tools(world: &World) -> Result<String> {
    let mut server = world.place()?.server(Stdio2::Pipes)?;
    server.initialize("2025-11-25")?;
    let legacy = server.ask("tools/list", &json!({}))?;
    let modern = server.ask("tools/list", &Era::Y2026.params(json!({})))?;
    let tools = check_tools(&legacy["result"]["tools"])?;
    check_tools(&modern["result"]["tools"])?;
    ensure!(
        modern["result"]["ttlMs"].is_u64() && modern["result"]["cacheScope"].is_string(),
        "no cache hints: {modern}"
    );
    ensure!(legacy["result"].get("resultType").is_none(), "a 2025 client got a 2026 result: {legacy}");
    let bytes = legacy.to_string().len();
    ensure!(bytes <= TOOLS_BUDGET, "the list takes {bytes} of {TOOLS_BUDGET} bytes");

    // The control: the same check must turn red when one schema says nothing.
    for index in 0..tools {
        let mut emptied = legacy["result"]["tools"].clone();
        emptied[index]["inputSchema"]["properties"] = json!({});
        ensure!(check_tools(&emptied).is_err(), "an emptied schema of tool {index} went unnoticed");
    }
    Ok(format!("{tools} tools, {bytes} bytes, and {tools} emptied schemas noticed"))
}

fn check_tools(tools: &Value) -> Result<usize> {
    let tools =
        tools.as_array().filter(|tools| !tools.is_empty()).ok_or_else(|| anyhow::anyhow!("no tools"))?;
    for tool in tools {
        let name = &tool["name"];
        ensure!(tool["inputSchema"]["type"] == "object", "{name}: the input schema is no object");
        let properties = tool["inputSchema"]["properties"].as_object();
        ensure!(
            properties.is_some_and(|properties| !properties.is_empty()),
            "{name}: the input schema says nothing"
        );
        ensure!(tool["inputSchema"].get("oneOf").is_none(), "{name}: a oneOf at the root");
        ensure!(tool["outputSchema"]["type"] == "object", "{name}: the output schema is no object");
        ensure!(
            tool["title"].is_string() && tool["annotations"].is_object(),
            "{name}: no title or annotations"
        );
        ensure!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{name}: no description");
    }
    Ok(tools.len())
}

pub(crate) fn end_of_file(world: &World) -> Result<String> {
    let mut longest = Duration::ZERO;
    for kind in [Stdio2::Pipes, Stdio2::Sockets] {
        for opened in [false, true] {
            let place = world.place()?;
            let mut server = place.server(kind)?;
            if opened {
                server.initialize("2025-11-25")?;
            }
            let start = Instant::now();
            let (code, rest) = server.close()?;
            longest = longest.max(start.elapsed());
            ensure!(code == 0, "exit {code} at the end of stdin, opened: {opened}, {kind:?}");
            ensure!(rest.is_empty(), "it said {rest:?} after the end");
            ensure!(!place.home.join("state.db").exists(), "the store was opened without need");
        }
    }
    ensure!(longest < Duration::from_secs(1), "it took {longest:?} to end");
    Ok(format!("four ends, the longest took {} ms", longest.as_millis()))
}
