//! The start of a server over a home with many runs and much mail, beside one over an empty home.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::measure::{median, ratio, warm};
use super::{Subject, instructions, release_dir};
use crate::proc;
use crate::wire::{Era, Stdio2};

/// Runs in the database, and messages in one mailbox.
const MANY: u32 = 100_000;
const SLICES: usize = 21;

const BUILD: Duration = Duration::from_secs(1500);
const FILL: Duration = Duration::from_secs(300);

/// What a server is asked once its tools are listed, if anything.
struct Question {
    what: &'static str,
    call: Option<(&'static str, Value)>,
    /// How much longer it may take over the crowded home.
    target: &'static str,
}

fn questions() -> [Question; 3] {
    let newest = json!({ "limit": 20 });
    let mail = json!({ "kind": "chat", "id": "crowded", "cursor": MANY - 20 });
    [
        Question { what: "spawn to tools/list", call: None, target: "<= 1.2x" },
        Question {
            what: "spawn to the newest 20 runs",
            call: Some(("query_runs", newest)),
            target: "+ <= 1 ms",
        },
        Question { what: "spawn to the newest 20 messages", call: Some(("poll_inbox", mail)), target: "" },
    ]
}

/// Builds, fills one of two homes, and prints how their servers start.
pub(super) fn run() -> Result<()> {
    let mut build = proc::cargo();
    build.args(["build", "--quiet", "--release", "-p", "cyberine-mcp", "-p", "cyberine-app"]);
    build.args(["--bin", "cyberine-mcp", "--example", "crowded_home"]);
    proc::run(&mut build, BUILD)?;
    let program = release_dir()?.join("cyberine-mcp");
    let subjects = ["empty home", "crowded home"].map(|name| Subject::new(name, program.clone(), None));
    let [empty, crowded] = subjects;
    let (empty, crowded) = (empty?, crowded?);
    let mut fill = Command::new(release_dir()?.join("examples/crowded_home"));
    fill.arg(crowded.scratch.dir("home")?).arg(MANY.to_string());
    proc::run(&mut fill, FILL)?;
    println!("\na home with {MANY} runs and a mailbox of {MANY} messages, beside an empty one");
    println!("| measure | empty | crowded | ratio | target |\n|---|---|---|---|---|");
    for Question { what, call, target } in questions() {
        let [without, with] = times(&empty, &crowded, call.as_ref())?;
        let (alone, among) = (median(&without), median(&with));
        println!("| {what} | {alone:.1} ms | {among:.1} ms | {:.2} | {target} |", ratio(&with, &without));
    }
    if instructions::can_count() {
        let count = |subject| {
            Ok::<_, anyhow::Error>(instructions::start(subject)?.context("a list of tools")? / 1000)
        };
        let (alone, among) = (count(&empty)?, count(&crowded)?);
        let ratio = among as f64 / alone as f64;
        println!("| … in thousand instructions | {alone} | {among} | {ratio:.2} | <= 1.2x |");
    }
    Ok(())
}

/// Milliseconds from the start to the answer, the two homes in turn.
fn times(empty: &Subject, crowded: &Subject, call: Option<&(&str, Value)>) -> Result<[Vec<f64>; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..SLICES {
        for (subject, times) in [empty, crowded].into_iter().zip(&mut times) {
            let started = Instant::now();
            let (mut server, _) = warm(subject, Stdio2::Pipes)?;
            if let Some((tool, arguments)) = call {
                let answer = server.call(Era::Y2025, tool, arguments)?;
                ensure!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer}");
            }
            times.push(started.elapsed().as_secs_f64() * 1e3);
            server.close()?;
        }
    }
    Ok(times)
}
