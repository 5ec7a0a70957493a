//! A session from its beginning to its end, and the end of the server.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::super::world::World;
use super::{DECENT, Site, message, modern};
use crate::http::{Connection, request};
use crate::served::FIXED;
use crate::wire::Era;

/// Calls that wait when the server is told to end.
pub(super) const IN_FLIGHT: usize = 64;
/// An end may take as long as what is in flight is waited for.
const END: Duration = Duration::from_secs(60);

const LEGACY: (&str, &str) = ("MCP-Protocol-Version", "2025-11-25");

/// Opens a session, with headers beside those of a decent client.
pub(super) fn initialize(site: &Site, client: &str, headers: &[(&str, &str)]) -> Result<String> {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
    });
    let answer = site.post(headers, &message(&json!(1), "initialize", params))?;
    ensure!(answer.status == 200, "initialize: {} {}", answer.status, answer.text());
    ensure!(answer.reply()?["result"]["protocolVersion"] == "2025-11-25", "{}", answer.text());
    let session = answer.head.get("mcp-session-id").context("no session id")?.to_owned();
    ensure!(
        session.len() >= 16 && session.bytes().all(|byte| byte.is_ascii_graphic()),
        "the session id {session:?}"
    );
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = site.post(&[&[LEGACY, ("Mcp-Session-Id", &session)], headers].concat(), &ready)?;
    ensure!(answer.status == 202 && answer.body.is_empty(), "initialized: {}", answer.status);
    Ok(session)
}

pub(super) fn session(site: &Site) -> Result<()> {
    let (one, other) = (initialize(site, "one", &[])?, initialize(site, "other", &[])?);
    ensure!(one != other, "two sessions of one name");
    let headers = [LEGACY, ("Mcp-Session-Id", one.as_str())];
    let list = message(&json!(2), "tools/list", json!({}));
    let answer = site.post(&headers, &list)?;
    ensure!(answer.reply()?["result"]["tools"].is_array(), "{}", answer.text());
    let wrong = site.post(&[("MCP-Protocol-Version", "1999-01-01"), headers[1]], &list)?;
    ensure!(wrong.status == 400, "an unknown version header: {} {}", wrong.status, wrong.text());
    let ended = site.raw("DELETE", &headers, None)?;
    ensure!([200, 202, 204].contains(&ended.status), "DELETE: {} {}", ended.status, ended.text());
    let after = site.post(&headers, &list)?;
    ensure!(after.status == 404, "after its end: {} {}", after.status, after.text());
    let answer = site.post(&[LEGACY, ("Mcp-Session-Id", &other)], &list)?;
    ensure!(answer.status == 200, "the other session: {} {}", answer.status, answer.text());
    Ok(())
}

/// Two clients that use one id at the same time each get their own answer, in both eras.
pub(super) fn same_ids(site: &Site) -> Result<()> {
    let sessions = [initialize(site, "one", &[])?, initialize(site, "other", &[])?];
    let mut asked: Vec<(Connection, &str)> = Vec::new();
    for (session, tool) in sessions.iter().zip(["query_runs", "list_team"]) {
        let call = message(&json!(1), "tools/call", json!({"name": tool, "arguments": {}}));
        let headers = [&DECENT[..], &[LEGACY, ("Mcp-Session-Id", session)]].concat();
        asked.push((send(site, &headers, &call)?, tool));
    }
    for tool in ["query_runs", "list_team"] {
        let call =
            message(&json!(1), "tools/call", Era::Y2026.params(json!({"name": tool, "arguments": {}})));
        let headers = [&DECENT[..], &modern("tools/call"), &[("Mcp-Name", tool)]].concat();
        asked.push((send(site, &headers, &call)?, tool));
    }
    for (mut connection, tool) in asked {
        let reply = connection.answer()?.reply()?;
        let key = if tool == "query_runs" { "runs" } else { "members" };
        ensure!(reply["id"] == 1, "{reply}");
        ensure!(reply["result"]["structuredContent"][key].is_array(), "{tool} was answered with {reply}");
    }
    Ok(())
}

fn send(site: &Site, headers: &[(&str, &str)], message: &Value) -> Result<Connection> {
    let mut connection = site.connect()?;
    let body = message.to_string();
    connection.send(&request("POST", site.served.address(), headers, Some(body.as_bytes())))?;
    Ok(connection)
}

/// A server that is told to end answers what is in flight, or ends it where a message ends.
pub(super) fn drain(world: &World) -> Result<()> {
    let slow = "[providers.slow]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; sleep 3; echo 42\"]\n";
    let mut site = Site::start(world, &format!("{FIXED}{slow}"))?;
    let call = |tool: &str, arguments: Value| {
        message(&json!(1), "tools/call", Era::Y2026.params(json!({"name": tool, "arguments": arguments})))
    };
    let headers = |tool| [&DECENT[..], &modern("tools/call"), &[("Mcp-Name", tool)]].concat();
    let reply = send(&site, &headers("orchestrate"), &call("orchestrate", json!({"prompt": "wait"})))?
        .answer()?
        .reply()?;
    let run = reply["result"]["structuredContent"]["runId"].clone();
    ensure!(run.is_string(), "{reply}");
    let wait = call("inspect_run", json!({"runId": run, "sinceSeq": 1_000_000, "waitMs": 45_000}));
    let mut waiting = Vec::new();
    for _ in 0..IN_FLIGHT {
        waiting.push(send(&site, &headers("inspect_run"), &wait)?);
    }
    // Answered after those before it were taken in.
    site.discovers()?;
    site.served.terminate()?;
    for (index, mut connection) in waiting.into_iter().enumerate() {
        match connection.head() {
            Ok(head) => {
                let body = connection.body(&head).with_context(|| format!("call {index} was cut short"))?;
                ensure!(!body.is_empty(), "call {index} was answered with nothing: {}", head.line);
            }
            Err(error) => ensure!(connection.closed(), "call {index} was left without an answer: {error:#}"),
        }
    }
    let code = site.served.wait(END)?.context("SIGTERM did not end the server")?;
    ensure!(code == 0, "SIGTERM ended the server with {code}");
    Ok(())
}
