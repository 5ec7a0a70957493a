//! Who is let in: nobody by default, then whoever brings a token that was handed out.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::world::World;
use super::life::initialize;
use super::{PATIENCE, Site, discover, message, modern};
use crate::proc;
use crate::served::FIXED;

const TOKENS: [(&str, &str); 2] = [("anna", "selftest-token-of-anna"), ("boris", "selftest-token-of-boris")];

pub(super) fn doors(world: &World) -> Result<usize> {
    closed(world)?;
    let config: String = TOKENS.iter().map(|(name, token)| entry(name, token)).collect();
    let site = Site::start(world, &config)?;
    let anna = format!("Bearer {}", TOKENS[0].1);
    let boris = format!("Bearer {}", TOKENS[1].1);
    let cut = anna[..anna.len() - 1].to_owned();
    let wrong = [None, Some("Bearer x"), Some(TOKENS[0].1), Some("Basic YTpi"), Some(&cut)];
    for authorization in wrong {
        let mut headers = modern("server/discover").to_vec();
        headers.extend(authorization.map(|value| ("Authorization", value)));
        let answer = site.post(&headers, &discover())?;
        ensure!(answer.status == 401, "{authorization:?}: {} {}", answer.status, answer.text());
        let challenge = answer.head.get("www-authenticate").context("401 without WWW-Authenticate")?;
        ensure!(challenge.starts_with("Bearer"), "the challenge is {challenge:?}");
        ensure!(!answer.text().contains("selftest-token"), "a token comes back: {}", answer.text());
    }
    let headers = [&modern("server/discover")[..], &[("Authorization", "Bearer")]].concat();
    let answer = site.post(&headers, &discover())?;
    ensure!(answer.status == 400, "a malformed credential: {} {}", answer.status, answer.text());
    for token in [&anna, &boris] {
        let headers = [&modern("server/discover")[..], &[("Authorization", token)]].concat();
        let answer = site.post(&headers, &discover())?;
        ensure!(answer.status == 200, "a token that was handed out: {} {}", answer.status, answer.text());
    }
    // A session is no credential: it is its opener's.
    let session = initialize(&site, "anna", &[("Authorization", &anna)])?;
    let list = message(&json!(2), "tools/list", json!({}));
    for (token, status) in [(&anna, 200), (&boris, 404)] {
        let headers = [
            ("MCP-Protocol-Version", "2025-11-25"),
            ("Mcp-Session-Id", session.as_str()),
            ("Authorization", token),
        ];
        let answer = site.post(&headers, &list)?;
        ensure!(answer.status == status, "anna's session: {} and not {status}", answer.status);
    }
    named(&site, &anna, "anna")?;
    Ok(wrong.len() + 2)
}

fn entry(name: &str, token: &str) -> String {
    let digest: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[identity.token]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n")
}

/// Without anything that says who is who, and with something that says too much, it does not start.
fn closed(world: &World) -> Result<()> {
    for (what, config, token) in
        [("no identity", "", None), ("a token for arguments", FIXED, Some("selftest"))]
    {
        let place = world.place()?;
        place.configure(config)?;
        let mut command = place.command();
        command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null());
        command.envs(token.map(|token| ("CYBERINE_MCP_AUTH_TOKEN", token)));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let code = proc::wait(&mut child, PATIENCE)?.with_context(|| format!("{what}: it started"))?;
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(code == 78, "{what}: it ended with {code}: {said}");
        ensure!(output.stdout.is_empty(), "{what}: the refusal went to stdout");
    }
    Ok(())
}

/// Who sends a message is whom the token names, whatever the client says of itself.
fn named(site: &Site, token: &str, name: &str) -> Result<()> {
    let arguments = json!({"to_kind": "chat", "to_id": "doors", "text": "hello"});
    let sent = call(site, token, "send_message", arguments)?;
    ensure!(sent["ok"] == true, "{sent}");
    let inbox = call(site, token, "poll_inbox", json!({"kind": "chat", "id": "doors"}))?;
    let sender = &inbox["messages"][0]["sender"];
    ensure!(sender.to_string().contains(name), "sent by {sender}, and the token is {name}'s");
    Ok(())
}

fn call(site: &Site, token: &str, tool: &str, arguments: Value) -> Result<Value> {
    let params = crate::wire::Era::Y2026.params(json!({"name": tool, "arguments": arguments}));
    let headers = [&modern("tools/call")[..], &[("Mcp-Name", tool), ("Authorization", token)]].concat();
    let answer = site.post(&headers, &message(&json!(3), "tools/call", params))?;
    Ok(answer.reply()?["result"]["structuredContent"].clone())
}
