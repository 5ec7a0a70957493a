//! A run that waits for a human, guided while it ran, and followed by those who subscribed.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::scripted::Scripted;
use super::world::{Place, World};
use crate::wire::{Era, Server, Stdio2};

/// Two models that disagree, and a judge that follows guidance only where it is shown some.
const SCRIPT: &str = r#"
[[rule]]
when = { model = "judge", user_contains = "prefer the shorter one, needle-steer" }
judge = "fair"
marker = "short"
[[rule]]
when = { model = "judge" }
judge = "fair"
marker = "quite another answer"
[[rule]]
when = { model = "a" }
hold = "gate"
text = "short"
[[rule]]
when = { model = "b" }
hold = "gate"
text = "quite another answer, and a longer one"
"#;
const STEER: &str = "prefer the shorter one, needle-steer";

pub(crate) fn approval(world: &World) -> Result<String> {
    for (era, approve) in [(Era::Y2025, true), (Era::Y2026, true), (Era::Y2026, false)] {
        one_run(world, era, approve).with_context(|| format!("{era:?}, approve: {approve}"))?;
    }
    Ok("no judge before the approval, a steer before the judge, every change told across processes"
        .to_owned())
}

fn one_run(world: &World, era: Era, approve: bool) -> Result<()> {
    let scripted = Scripted::start(&world.bins, SCRIPT)?;
    let place = world.place()?;
    place.configure(&config(&scripted))?;
    let (mut dispatcher, mut follower) = (place.server(Stdio2::Pipes)?, place.server(Stdio2::Sockets)?);
    dispatcher.initialize("2025-11-25")?;
    let sent = said(&mut dispatcher, "orchestrate", &json!({"prompt": "which of two"}))?;
    let run = sent["runId"].as_str().with_context(|| sent.to_string())?.to_owned();
    let uri = format!("cyberine://runs/{run}");
    let mut followed = Followed::begin(&mut follower, era, &uri)?;

    scripted.wait_until_held(2)?;
    let steer = json!({"to_kind": "run", "to_id": run, "topic": "steer", "text": STEER});
    let steered = said(&mut dispatcher, "send_message", &steer)?;
    ensure!(steered["ok"] == true && steered["delivered"] == true, "{steered}");
    followed.until(&mut follower, "the steer", |view| view["steers"][0]["text"] == STEER)?;
    scripted.release("gate")?;
    let view = followed.until(&mut follower, "the gate", |view| view["state"] == "suspended")?;
    ensure!(view["awaiting"]["step"] == "dispatch", "{view}");
    ensure!(scripted.asked("judge")? == 0, "a judge was asked before the approval");

    let decision = place.cli(&[if approve { "approve" } else { "reject" }, &run, "--comment", "seen"])?;
    ensure!(decision.status.success(), "{}", String::from_utf8_lossy(&decision.stderr));
    let over = |view: &Value| ["done", "error", "cancelled"].iter().any(|state| view["state"] == *state);
    let view = followed.until(&mut follower, "the end", over)?;
    ensure!(view["decision"]["comment"] == "seen", "{view}");
    let by = view["decision"]["decidedBy"].as_str().unwrap_or_default();
    ensure!(by.starts_with("human "), "decided by {by}");
    let step = &view["steps"][0];
    if approve {
        ensure!(view["state"] == "done" && step["winnerOutput"] == "short", "{view}");
        ensure!(scripted.asked("judge")? == 2, "the judge was asked {} times", scripted.asked("judge")?);
    } else {
        ensure!(view["state"] == "cancelled" && step.get("winnerOutput").is_none(), "{view}");
        ensure!(scripted.asked("judge")? == 0, "a judge was asked after the rejection");
    }
    let file = std::fs::read(place.project.join(".local/runs").join(&run).join("approval.json"))?;
    let file: Value = serde_json::from_slice(&file)?;
    ensure!(file["decisions"][0]["comment"] == "seen", "approval.json: {file}");
    progress_in_its_inbox(&mut dispatcher, &run)?;
    followed.end(follower)
}

/// The run tells its own inbox how it went; of its end a moment after it is on record.
fn progress_in_its_inbox(server: &mut Server, run: &str) -> Result<()> {
    let (mut progress, mut cursor) = (Vec::new(), json!(0));
    let is_end = |line: &String| line.starts_with("settled ");
    while !progress.last().is_some_and(is_end) {
        let arguments = json!({"kind": "run", "id": run, "cursor": cursor, "waitMs": 10_000});
        let inbox = said(server, "poll_inbox", &arguments)?;
        let messages = inbox["messages"].as_array().context("messages")?;
        ensure!(!messages.is_empty(), "no news of its end in the run's inbox: {progress:?}");
        let own = |message: &&Value| {
            message["topic"] == "progress" && message["from"] == json!({"kind": "run", "id": run})
        };
        let lines = messages.iter().filter(own).filter_map(|message| message["text"].as_str());
        progress.extend(lines.map(str::to_owned));
        cursor = inbox["nextCursor"].clone();
    }
    ensure!(progress.len() >= 3 && progress[0] == "started", "news of the run in its inbox: {progress:?}");
    Ok(())
}

/// A client that reads again whenever it is told of a change, and only then.
struct Followed {
    era: Era,
    uri: String,
    /// The id of the listen request.
    listen: i64,
}

impl Followed {
    fn begin(server: &mut Server, era: Era, uri: &str) -> Result<Self> {
        let listen = match era {
            Era::Y2025 => {
                server.initialize("2025-11-25")?;
                let answer = server.ask("resources/subscribe", &json!({"uri": uri}))?;
                ensure!(answer["result"] == json!({}), "{answer}");
                0
            }
            Era::Y2026 => {
                let wish = json!({"resourceSubscriptions": [uri], "toolsListChanged": true});
                let params = era.params(json!({"notifications": wish}));
                let id = server.request("subscriptions/listen", &params)?;
                let first = server.next()?;
                ensure!(first["method"] == "notifications/subscriptions/acknowledged", "{first}");
                ensure!(
                    first["params"]["notifications"] == json!({"resourceSubscriptions": [uri]}),
                    "{first}"
                );
                tagged(&first, id)?;
                id
            }
        };
        Ok(Self { era, uri: uri.to_owned(), listen })
    }

    /// Reads, and reads again after each notification, until the run is as wanted.
    fn until(&mut self, server: &mut Server, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            let read = server.ask("resources/read", &self.era.params(json!({"uri": self.uri})))?;
            let text = read["result"]["contents"][0]["text"].as_str().with_context(|| read.to_string())?;
            let view: Value = serde_json::from_str(text)?;
            if wanted(&view) {
                return Ok(view);
            }
            let news = server.notification().with_context(|| format!("waiting for {what}; last: {view}"))?;
            ensure!(news["method"] == "notifications/resources/updated", "{news}");
            ensure!(news["params"]["uri"] == self.uri, "{news}");
            if self.era == Era::Y2026 {
                tagged(&news, self.listen)?;
            }
        }
    }

    /// The end of the server ends a listen request with its result.
    fn end(self, server: Server) -> Result<()> {
        let (code, rest) = server.close()?;
        ensure!(code == 0, "exit {code}");
        if self.era == Era::Y2026 {
            let last: Value = serde_json::from_str(rest.last().context("no result of the listen request")?)?;
            ensure!(last["id"] == self.listen && last["result"]["resultType"] == "complete", "{last}");
        }
        Ok(())
    }
}

fn tagged(message: &Value, id: i64) -> Result<()> {
    let tag = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    ensure!(*tag == json!(id), "tagged {tag}: {message}");
    Ok(())
}

fn config(scripted: &Scripted) -> String {
    let url = &scripted.base_url;
    let provider = |name: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"scripted/{name}\"\n"
        )
    };
    format!(
        "[orchestrate]\napproval = \"required\"\ncandidates = [\"a\", \"b\"]\njudge_providers = [\"judge\"]\n{}{}{}",
        provider("a"),
        provider("b"),
        provider("judge")
    )
}

impl Place {
    /// Runs the human's command in this place.
    fn cli(&self, arguments: &[&str]) -> Result<std::process::Output> {
        Ok(self.program("cyberine").args(arguments).output()?)
    }
}

fn said(server: &mut Server, tool: &str, arguments: &Value) -> Result<Value> {
    let answer = server.call(Era::Y2025, tool, arguments)?;
    ensure!(answer["result"]["isError"] != true, "{answer}");
    Ok(answer["result"]["structuredContent"].clone())
}
