//! Whatever happens, stdout carries the protocol and nothing else. The client fails on any line
//! that is not JSON.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::world::World;
use crate::proc;
use crate::wire::{Era, Server, Stdio2};

/// A provider that writes wherever it can, besides answering.
const NOISY: &str = "[providers.noisy]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"\
    cat > /dev/null; echo noise >&2; echo noise >&0; echo noise >&3; echo noise >&4; echo an answer\"]\n";

pub(crate) fn purity(world: &World) -> Result<String> {
    for kind in [Stdio2::Pipes, Stdio2::Sockets] {
        noisy_child(world, kind).with_context(|| format!("a noisy child, {kind:?}"))?;
        noisy_server(kind).with_context(|| format!("a noisy server, {kind:?}"))?;
    }
    Ok("a noisy provider, a tool that prints, a tool that panics; over pipes and sockets".to_owned())
}

fn noisy_child(world: &World, kind: Stdio2) -> Result<()> {
    let place = world.place()?;
    place.configure(NOISY)?;
    let mut server = place.server(kind)?;
    server.initialize("2025-11-25")?;
    let response = server.call(Era::Y2025, "orchestrate", &json!({"prompt": "make noise"}))?;
    let run = response["result"]["structuredContent"]["runId"].clone();
    ensure!(run.is_string(), "{response}");
    proc::until("the run's end", Duration::from_secs(15), || {
        let view = server.call(Era::Y2025, "inspect_run", &json!({"runId": run, "waitMs": 1000}))?;
        Ok(view["result"]["structuredContent"]["state"] == "done")
    })?;
    let (code, rest) = server.close()?;
    ensure!(code == 0 && rest.is_empty(), "exit {code}, and then {rest:?}");
    Ok(())
}

/// The rail's fixture server has a tool that prints, with a child that does, and one that panics.
fn noisy_server(kind: Stdio2) -> Result<()> {
    let mut build = proc::cargo();
    build.args(["build", "--quiet", "-p", "cyberine-server", "--example", "fixture_server"]);
    proc::run(&mut build, Duration::from_secs(600))?;
    let mut command = Command::new(proc::bin_dir()?.join("examples/fixture_server"));
    command.stderr(Stdio::null());
    let mut server = Server::start(command, kind)?;
    server.initialize("2025-11-25")?;
    let printed = server.call(Era::Y2025, "noise", &json!({}))?;
    ensure!(printed["result"]["structuredContent"]["child"] == true, "{printed}");
    for later in [false, true] {
        let panicked = server.call(Era::Y2025, "fail", &json!({"later": later}))?;
        ensure!(panicked["error"]["code"] == -32603, "a panic is an internal error: {panicked}");
    }
    let echoed = server.call(Era::Y2026, "echo", &json!({"text": "still here"}))?;
    ensure!(echoed["result"]["structuredContent"]["text"] == "still here", "{echoed}");
    let (code, rest) = server.close()?;
    ensure!(code == 0 && rest.is_empty(), "exit {code}, and then {rest:?}");
    Ok(())
}
