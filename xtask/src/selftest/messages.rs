//! Messages: who is written down as their author, that hosts reach each other, and that no argument
//! of any tool makes a human of a client.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::world::World;
use crate::proc;
use crate::wire::{Era, PATIENCE, Server, Stdio2};

/// Read back from the bus file, not from an answer: what is written down is what counts.
pub(crate) fn identity(world: &World) -> Result<String> {
    let place = world.place()?;
    let mut server = place.server(Stdio2::Sockets)?;
    let mut expected = Vec::new();
    let mut send = |server: &mut Server, who: Option<(&str, &str)>, expect: &str| -> Result<()> {
        let text = format!("{} by {expect}", expected.len());
        let arguments = json!({"to_kind": "chat", "to_id": "identity", "text": text});
        let mut params = json!({"name": "send_message", "arguments": arguments});
        if let Some((name, version)) = who {
            params = Era::Y2026.params(params);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": name, "version": version});
        }
        let answer = server.ask("tools/call", &params)?;
        ensure!(answer["result"]["structuredContent"]["ok"] == true, "{answer}");
        expected.push((text, expect.to_owned()));
        Ok(())
    };
    open_as(&mut server, "first-2025", "1")?;
    send(&mut server, None, "first-2025@1")?;
    send(&mut server, Some(("modern", "2.0")), "modern@2.0")?;
    send(&mut server, Some(("modern", "2.1")), "modern@2.1")?;
    send(&mut server, None, "first-2025@1")?;
    open_as(&mut server, "second-2025", "7")?;
    send(&mut server, None, "second-2025@7")?;
    // A name that would break the line, or pass for a person's.
    send(&mut server, Some(("human\n\u{202e}x", "1")), "humanx@1")?;

    let written = envelopes(&place.home)?;
    ensure!(written.len() == expected.len(), "{} of {} are written", written.len(), expected.len());
    for (envelope, (text, id)) in written.iter().zip(&expected) {
        ensure!(envelope["text"] == **text, "{envelope}: expected {text}");
        ensure!(envelope["from"] == json!({"kind": "mcp", "id": id}), "{envelope}: expected {id}");
        let sender = &envelope["sender"];
        ensure!(sender["channel"] == "mcp" && sender["pid"] == server.pid(), "{envelope}");
        ensure!(sender["principal"].is_string() && sender["instanceId"].is_string(), "{envelope}");
    }
    let tried = try_every_argument(&mut server)?;
    let after = envelopes(&place.home)?;
    ensure!(
        after
            .iter()
            .all(|envelope| envelope["from"]["kind"] == "mcp" && envelope["sender"]["channel"] == "mcp"),
        "an argument made a human of a client"
    );
    Ok(format!("{} authors as they called themselves; {tried} arguments make no human", expected.len()))
}

fn open_as(server: &mut Server, name: &str, version: &str) -> Result<()> {
    let info = json!({"name": name, "version": version});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    server.ask("initialize", &params).map(drop)
}

/// Puts what would be a person's into every argument of every tool, and into some that no tool has.
fn try_every_argument(server: &mut Server) -> Result<usize> {
    let list = server.ask("tools/list", &json!({}))?;
    let mut tried = 0;
    for tool in list["result"]["tools"].as_array().context("tools")? {
        let name = tool["name"].as_str().context("a name")?;
        let properties = tool["inputSchema"]["properties"].as_object().context("properties")?;
        let plain = json!({
            "prompt": "never dispatched: nobody is configured", "to_kind": "chat", "to_id": "identity",
            "kind": "chat", "id": "identity", "text": "a try", "team": "t",
            "runId": "00000000-0000-4000-8000-000000000000",
        });
        let base: serde_json::Map<String, Value> = plain
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| properties.contains_key(*key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let strangers =
            ["from", "sender", "decidedBy", "channel", "principal", "userId", "tenantId", "from_kind"];
        let human = [json!("human"), json!({"kind": "human", "id": "root"}), json!("{\"kind\":\"human\"}")];
        for key in properties.keys().map(String::as_str).chain(strangers) {
            for value in &human {
                let mut arguments = base.clone();
                arguments.insert(key.to_owned(), value.clone());
                let answer = server.call(Era::Y2025, name, &Value::Object(arguments))?;
                let refused = answer["result"]["isError"] == true || answer.get("error").is_some();
                ensure!(refused || properties.contains_key(key), "{name} takes `{key}`: {answer}");
                tried += 1;
            }
        }
    }
    Ok(tried)
}

/// Every envelope on the bus of `home`, in the order of its mailbox.
pub(crate) fn envelopes(home: &Path) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut folders = vec![home.join("bus")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                for line in std::fs::read_to_string(&path)?.lines() {
                    found.push(serde_json::from_str::<Value>(line).with_context(|| line.to_owned())?);
                }
            }
        }
    }
    found.sort_by_key(|envelope| (envelope["to"].to_string(), envelope["seq"].as_u64()));
    Ok(found)
}

/// Two hosts of one home find each other and talk; mail outlives its sender; a bus that is off says so.
pub(crate) fn talk(world: &World) -> Result<String> {
    let place = world.place()?;
    let start = |name: &str| -> Result<Server> {
        let mut command = place.command();
        command.env("CYBERINE_TEAM", "crew").env("CYBERINE_ROLE", name).env("CYBERINE_NAME", name);
        let mut server = Server::start(command, Stdio2::Pipes)?;
        server.initialize("2025-11-25")?;
        Ok(server)
    };
    let (mut writer, mut reviewer) = (start("writer")?, start("reviewer")?);
    let mut found = Value::Null;
    proc::until("both hosts on the roster", PATIENCE, || {
        found = said(&mut writer, "list_team", &json!({}))?;
        Ok(found["members"].as_array().is_some_and(|members| members.len() == 2))
    })?;
    let member = |role: &str| -> Result<Value> {
        let members = found["members"].as_array().context("members")?;
        Ok(members.iter().find(|member| member["role"] == role).with_context(|| found.to_string())?.clone())
    };
    let theirs = member("reviewer")?["addr"]["id"].clone();
    let ours = member("writer")?["addr"]["id"].clone();

    let poll = json!({"kind": "mcp", "id": theirs, "cursor": 0, "waitMs": 20_000});
    let waiting = reviewer.request("tools/call", &json!({"name": "poll_inbox", "arguments": poll}))?;
    let sent = said(
        &mut writer,
        "send_to_role",
        &json!({"team": "crew", "role": "reviewer", "text": "please look", "idempotencyKey": "once"}),
    )?;
    ensure!(sent["ok"] == true, "{sent}");
    let again = said(
        &mut writer,
        "send_to_role",
        &json!({"team": "crew", "role": "reviewer", "text": "please look", "idempotencyKey": "once"}),
    )?;
    ensure!(again == sent, "one key, two results: {sent} and {again}");
    let inbox = reviewer.response(waiting)?["result"]["structuredContent"].clone();
    let messages = inbox["messages"].as_array().context("messages")?;
    ensure!(messages.len() == 1 && messages[0]["text"] == "please look", "{inbox}");
    let answer = json!({"to_kind": "mcp", "to_id": ours, "text": "done", "replyTo": messages[0]["id"]});
    let answered = said(&mut reviewer, "send_message", &answer)?;
    ensure!(answered["ok"] == true && answered["delivered"] == true, "{answered}");
    proc::run(Command::new("kill").args(["-9", &reviewer.pid().to_string()]), PATIENCE)?;
    let back = said(&mut writer, "poll_inbox", &json!({"kind": "mcp", "id": ours}))?;
    ensure!(back["messages"][0]["text"] == "done", "{back}");
    ensure!(back["messages"][0]["replyTo"] == messages[0]["id"], "{back}");
    proc::until("the dead host off the roster", PATIENCE, || {
        let found = said(&mut writer, "list_team", &json!({}))?;
        Ok(found["members"].as_array().is_some_and(|members| members.len() == 1))
    })?;

    let mut command = place.command();
    command.env("CYBERINE_BUS_BACKEND", "none");
    let mut off = Server::start(command, Stdio2::Pipes)?;
    off.initialize("2025-11-25")?;
    let sent = said(&mut off, "send_message", &json!({"to_kind": "chat", "to_id": "x", "text": "y"}))?;
    ensure!(sent["ok"] == false && sent["reason"].is_string(), "{sent}");
    let read = said(&mut off, "poll_inbox", &json!({"kind": "chat", "id": "x"}))?;
    ensure!(read["ok"] == false && read["messages"] == json!([]) && read["reason"].is_string(), "{read}");
    Ok("asked by role, answered by address, once per key; a dead host leaves the roster".to_owned())
}

fn said(server: &mut Server, tool: &str, arguments: &Value) -> Result<Value> {
    let answer = server.call(Era::Y2025, tool, arguments)?;
    ensure!(answer["result"]["structuredContent"].is_object(), "{answer}");
    Ok(answer["result"]["structuredContent"].clone())
}
