//! Whole runs against the scripted server: dispatch, verdict, cancel, crash.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::scripted::Scripted;
use super::world::{Place, World, marked};
use crate::proc;
use crate::wire::{Era, Server, Stdio2};

/// Three models over two wires that wait for a release before their first byte, then agree.
const HELD: &str = r#"
[[rule]]
when = { model = "a" }
hold = "gate"
text = "42"
[[rule]]
when = { model = "b" }
hold = "gate"
text = "The answer is 42."
[[rule]]
when = { model = "c" }
hold = "gate"
text = "41"
"#;

const AGENTS: [&str; 3] = ["a", "b", "c"];
const SETTLED: [&str; 3] = ["done", "error", "cancelled"];

fn three_providers(scripted: &Scripted) -> String {
    let url = &scripted.base_url;
    format!(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"scripted/a\"\n\
         [providers.b]\nkind = \"anthropic\"\nbase_url = \"{url}\"\nmodel = \"scripted/b\"\n\
         [providers.c]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"scripted/c\"\n"
    )
}

pub(crate) fn orchestrate(world: &World) -> Result<String> {
    for (era, kind) in
        [(Era::Y2025, Stdio2::Pipes), (Era::Y2025, Stdio2::Sockets), (Era::Y2026, Stdio2::Sockets)]
    {
        one_run(world, era, kind).with_context(|| format!("{era:?} over {kind:?}"))?;
    }
    Ok("answered before the first byte of any provider; ticks, verdict, search and resource agree".to_owned())
}

fn one_run(world: &World, era: Era, kind: Stdio2) -> Result<()> {
    let scripted = Scripted::start(&world.bins, HELD)?;
    let place = world.place()?;
    place.configure(&three_providers(&scripted))?;
    let mut server = place.server(kind)?;
    server.initialize("2025-11-25")?;

    let prompt = format!("what is six times seven, needle-{era:?}");
    let params =
        era.params_with_progress(json!({"name": "orchestrate", "arguments": {"prompt": prompt}}), "tick");
    let response = server.ask("tools/call", &params)?;
    let sent = &response["result"]["structuredContent"];
    let run = sent["runId"].as_str().with_context(|| format!("no run id: {response}"))?.to_owned();
    ensure!(sent["status"] == "dispatched", "{response}");
    ensure!(sent["pollWith"] == json!({"tool": "inspect_run", "arguments": {"runId": run}}), "{response}");
    ensure!(sent["cancelWith"]["body"] == json!({"action": "stop", "target": {"type": "run"}}), "{response}");
    ensure!(sent["cancelWith"]["controlFile"] == format!(".local/runs/{run}/control.json"), "{response}");

    scripted.wait_until_held(AGENTS.len())?;
    let view = inspect(&mut server, era, &run)?;
    ensure!(view["state"] == "running", "while all are held: {view}");
    scripted.release("gate")?;
    if era == Era::Y2025 {
        ticks_until_settled(&mut server)?;
    }
    let view = until_settled(&mut server, era, &run)?;
    judged(&view)?;
    let late = server.notification_within(Duration::from_millis(300));
    ensure!(late.is_none(), "something came after the run had settled: {late:?}");
    found_everywhere(&mut server, era, &run, &prompt, &view, &place)
}

/// Every agent starts and is done, and exactly one tick says that the run is over.
fn ticks_until_settled(server: &mut Server) -> Result<()> {
    let (mut seen, mut last) = (Vec::new(), f64::NEG_INFINITY);
    loop {
        let message = server.notification()?;
        ensure!(message["method"] == "notifications/progress", "not a tick: {message}");
        ensure!(message["params"]["progressToken"] == "tick", "another token: {message}");
        let progress = message["params"]["progress"].as_f64().context("progress")?;
        ensure!(progress > last, "progress went from {last} to {progress}");
        last = progress;
        let text = message["params"]["message"].as_str().unwrap_or_default().to_owned();
        let over = text.starts_with("settled");
        seen.push(text);
        if over {
            break;
        }
    }
    for agent in AGENTS {
        for what in ["started", "done"] {
            let ticks = seen.iter().filter(|text| text.starts_with(&format!("{agent} {what}"))).count();
            ensure!(ticks == 1, "{ticks} ticks `{agent} {what}` in {seen:?}");
        }
    }
    Ok(())
}

fn judged(view: &Value) -> Result<()> {
    let step = &view["steps"][0];
    ensure!(view["state"] == "done", "{view}");
    ensure!(step["candidates"].as_array().is_some_and(|all| all.len() == AGENTS.len()), "{view}");
    ensure!(step["verdict"]["outcome"] == "majority", "{view}");
    ensure!(["a", "b"].iter().any(|name| step["verdict"]["winner"] == *name), "{view}");
    ensure!(
        step["verdict"]["rationale"].as_str().is_some_and(|text| !text.is_empty()),
        "no rationale: {view}"
    );
    ensure!(step["winnerOutput"].as_str().is_some_and(|text| text.contains("42")), "{view}");
    ensure!(
        view.to_string().contains("scripted answers, no model was called"),
        "scripted answers without label"
    );
    Ok(())
}

fn found_everywhere(
    server: &mut Server,
    era: Era,
    run: &str,
    prompt: &str,
    view: &Value,
    place: &Place,
) -> Result<()> {
    let found = server.call(era, "query_runs", &json!({"query": "needle-"}))?;
    let rows = &found["result"]["structuredContent"]["runs"];
    ensure!(rows[0]["runId"] == run && rows.as_array().is_some_and(|rows| rows.len() == 1), "{found}");
    let uri = format!("cyberine://runs/{run}");
    let list = server.ask("resources/list", &era.params(json!({})))?;
    ensure!(list["result"]["resources"][0]["uri"] == uri, "{list}");
    let read = server.ask("resources/read", &era.params(json!({"uri": uri})))?;
    let whole: Value =
        serde_json::from_str(read["result"]["contents"][0]["text"].as_str().context("a text")?)?;
    ensure!(whole["state"] == view["state"] && whole["task"] == prompt, "{whole}");
    ensure!(whole["steps"][0]["verdict"] == view["steps"][0]["verdict"], "{whole}");
    let file = std::fs::read(place.project.join(".local/runs").join(run).join("run.json"))?;
    let file: Value = serde_json::from_slice(&file)?;
    ensure!(file["state"] == "done" && file["runId"] == run, "run.json: {file}");
    Ok(())
}

fn inspect(server: &mut Server, era: Era, run: &str) -> Result<Value> {
    let response = server.call(era, "inspect_run", &json!({"runId": run}))?;
    ensure!(response["result"]["isError"] != true, "{response}");
    Ok(response["result"]["structuredContent"].clone())
}

fn until_settled(server: &mut Server, era: Era, run: &str) -> Result<Value> {
    let mut since = 0;
    for _ in 0..30 {
        let arguments = json!({"runId": run, "sinceSeq": since, "waitMs": 1000});
        let response = server.call(era, "inspect_run", &arguments)?;
        let view = response["result"]["structuredContent"].clone();
        if SETTLED.iter().any(|state| view["state"] == *state) {
            return Ok(view);
        }
        since = view["nextSeq"].as_u64().with_context(|| format!("no nextSeq: {response}"))?;
    }
    anyhow::bail!("run {run} did not settle")
}

/// One agent that holds for ever, and one program whose tool leaves its session twice.
fn stubborn(scripted: &Scripted) -> String {
    let tool = "cat > /dev/null; setsid sh -c 'setsid sleep 600 & sleep 600' & sleep 600";
    format!(
        "[providers.held]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"scripted/a\"\n\
         [providers.stray]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{tool}\"]\n\
         billing = \"subscription\"\n",
        scripted.base_url
    )
}

/// Dispatches a run whose providers never end, and waits until its strays are there.
fn dispatch_stubborn(server: &mut Server, scripted: &Scripted) -> Result<String> {
    let response = server.call(Era::Y2025, "orchestrate", &json!({"prompt": "never mind"}))?;
    let run = response["result"]["structuredContent"]["runId"]
        .as_str()
        .with_context(|| response.to_string())?
        .to_owned();
    scripted.wait_until_held(1)?;
    proc::until("the tool's processes", Duration::from_secs(10), || Ok(marked(&run).len() >= 4))?;
    Ok(run)
}

fn gone(run: &str) -> Result<()> {
    proc::until("no process of the run", Duration::from_secs(5), || Ok(marked(run).is_empty()))
}

pub(crate) fn cancel(world: &World) -> Result<String> {
    for by_tool in [true, false] {
        let scripted = Scripted::start(&world.bins, HELD)?;
        let place = world.place()?;
        place.configure(&stubborn(&scripted))?;
        let mut server = place.server(Stdio2::Pipes)?;
        server.initialize("2025-11-25")?;
        let run = dispatch_stubborn(&mut server, &scripted)?;
        if by_tool {
            let response =
                server.call(Era::Y2025, "cancel_run", &json!({"runId": run, "reason": "enough"}))?;
            ensure!(response["result"]["structuredContent"]["outcome"] == "requested", "{response}");
        } else {
            let control = place.project.join(".local/runs").join(&run).join("control.json");
            std::fs::write(control, r#"{"action":"stop","target":{"type":"run"}}"#)?;
        }
        let view = until_settled(&mut server, Era::Y2025, &run)?;
        ensure!(view["state"] == "cancelled", "{view}");
        ensure!(view["processes"]["left"] == 0, "processes: {view}");
        gone(&run)?;
        let again = server.call(Era::Y2026, "cancel_run", &json!({"runId": run}))?;
        ensure!(again["result"]["structuredContent"]["outcome"] == "already_finished", "{again}");
    }
    Ok("by tool and by control file; nothing left of a tool that left its session twice".to_owned())
}

pub(crate) fn crash(world: &World) -> Result<String> {
    server_killed(world).context("kill -9 of the server")?;
    runner_killed(world).context("kill -9 of the runner")?;
    Ok("the run outlives its server; a dead runner's run is settled, its children gone".to_owned())
}

fn server_killed(world: &World) -> Result<()> {
    let scripted = Scripted::start(&world.bins, HELD)?;
    let place = world.place()?;
    place.configure(&three_providers(&scripted))?;
    let mut server = place.server(Stdio2::Pipes)?;
    server.initialize("2025-11-25")?;
    let response = server.call(Era::Y2025, "orchestrate", &json!({"prompt": "six times seven"}))?;
    let run = response["result"]["structuredContent"]["runId"]
        .as_str()
        .with_context(|| response.to_string())?
        .to_owned();
    scripted.wait_until_held(AGENTS.len())?;
    kill(server.pid())?;
    drop(server);
    scripted.release("gate")?;
    let mut second = place.server(Stdio2::Pipes)?;
    second.initialize("2025-11-25")?;
    judged(&until_settled(&mut second, Era::Y2025, &run)?)
}

fn runner_killed(world: &World) -> Result<()> {
    let scripted = Scripted::start(&world.bins, HELD)?;
    let place = world.place()?;
    place.configure(&format!("[budget]\ndaily_usd = 1.0\n{}", stubborn(&scripted)))?;
    let mut server = place.server(Stdio2::Pipes)?;
    server.initialize("2025-11-25")?;
    let run = dispatch_stubborn(&mut server, &scripted)?;
    let view = inspect(&mut server, Era::Y2025, &run)?;
    let runner = u32::try_from(view["enginePid"].as_u64().context("enginePid")?)?;
    kill(runner)?;
    let view = until_settled(&mut server, Era::Y2025, &run)?;
    ensure!(view["state"] == "error" && view["reason"] == "interrupted", "{view}");
    gone(&run)?;
    // The whole cap was held for that run; another fits only if it was released.
    let next = server.call(Era::Y2025, "orchestrate", &json!({"prompt": "never mind"}))?;
    let next =
        next["result"]["structuredContent"]["runId"].as_str().with_context(|| next.to_string())?.to_owned();
    server.call(Era::Y2025, "cancel_run", &json!({"runId": next}))?;
    until_settled(&mut server, Era::Y2025, &next)?;
    gone(&next)
}

fn kill(pid: u32) -> Result<()> {
    proc::run(Command::new("kill").args(["-9", &pid.to_string()]), Duration::from_secs(5))
}
