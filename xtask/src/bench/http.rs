//! Streamable HTTP beside a bare axum echo of JSON, in one run; and the same for a minute, with clients
//! that do not read.

mod line;
mod load;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use self::line::{Line, all};
use super::measure::{Row, median, print};
use super::release_dir;
use crate::http::{Connection, request};
use crate::proc::{self, Scratch};
use crate::served::{FIXED, Served};
use crate::wire::{self, Era};

const BUILD: Duration = Duration::from_secs(1500);
const PATIENCE: Duration = Duration::from_secs(20);
const SLICES: usize = 20;
const CALLS: usize = 200;
const CROWD: usize = 64;
const CROWD_SLICES: usize = 7;
const CROWD_CALLS: usize = 6_400;

/// One server, and its cheap tool.
struct Subject {
    name: &'static str,
    served: Served,
    tool: &'static str,
    arguments: Value,
    _scratch: Scratch,
}

/// The floor first.
fn subjects() -> Result<Vec<Subject>> {
    let mut build = proc::cargo();
    build.args(["build", "--quiet", "--release", "-p", "cyberine-mcp", "-p", "xtask", "-p", "cyberine-http"]);
    build.args(["--bins", "--examples"]);
    proc::run(&mut build, BUILD)?;
    let bins = release_dir()?;
    let plain = |name: &str, words: &[&str]| {
        let mut command = Command::new(bins.join("examples").join(name));
        command.args(words);
        command
    };
    let scratch = Scratch::new("bench")?;
    let (home, project) = (scratch.dir("home")?, scratch.dir("project")?);
    wire::configure(&home, FIXED)?;
    let mut real = wire::command(&bins.join("cyberine-mcp"), &home, &project);
    real.args(["--http", "127.0.0.1:0"]);
    let greet = json!({"name": "hello"});
    Ok(vec![
        Subject::start(
            "axum echo",
            plain("http_floor", &[]),
            "echo",
            json!({"text": "hello"}),
            Scratch::new("bench")?,
        )?,
        Subject::start(
            "rail",
            plain("conformance_server", &["--port", "0"]),
            "greet",
            greet,
            Scratch::new("bench")?,
        )?,
        Subject::start("cyberine-mcp", real, "list_team", json!({}), scratch)?,
    ])
}

impl Subject {
    fn start(
        name: &'static str,
        command: Command,
        tool: &'static str,
        arguments: Value,
        scratch: Scratch,
    ) -> Result<Self> {
        Ok(Self { name, served: Served::start(command)?, tool, arguments, _scratch: scratch })
    }

    fn memory(&self) -> Result<Vec<f64>> {
        Ok(vec![proc::memory_kib(self.served.pid(), "VmRSS")? as f64 / 1024.0])
    }

    /// Nanoseconds its threads have had a processor.
    fn cpu(&self) -> Result<f64> {
        let mut total = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.served.pid()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            total += text.split(' ').next().context("schedstat")?.parse::<u64>()?;
        }
        Ok(total as f64)
    }

    /// Connections of clients of `era`, each in a session of its own where the era has sessions, each
    /// with its call at hand.
    fn clients(&self, era: Era, count: usize) -> Result<Vec<Line>> {
        (0..count)
            .map(|number| {
                let call = json!({"name": self.tool, "arguments": self.arguments});
                Line::open(self.served.address(), self.call(era, number, "tools/call", call)?)
            })
            .collect()
    }

    /// The bytes of a request of the client with that number.
    fn call(&self, era: Era, number: usize, method: &str, params: Value) -> Result<Vec<u8>> {
        let name = params["name"].as_str().map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": era.params(params)});
        let mut headers =
            vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let session = if era == Era::Y2025 { self.session()? } else { None };
        match era {
            Era::Y2025 => headers.push(("MCP-Protocol-Version", "2025-11-25")),
            Era::Y2026 => {
                headers.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]);
                headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
            }
        }
        headers.extend(session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        Ok(request("POST", self.served.address(), &headers, Some(message.to_string().as_bytes())))
    }

    /// Opens a session; a server that has none names none.
    fn session(&self) -> Result<Option<String>> {
        let client = json!({"name": "xtask-bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let headers =
            [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let mut connection = Connection::open(self.served.address(), PATIENCE)?;
        let body = message.to_string();
        connection.send(&request("POST", self.served.address(), &headers, Some(body.as_bytes())))?;
        let answer = connection.answer()?;
        ensure!(answer.status == 200, "{}: initialize: {}", self.name, answer.text());
        Ok(answer.head.get("mcp-session-id").map(str::to_owned))
    }
}

/// Measures and prints a table.
pub(super) fn run() -> Result<()> {
    let subjects = subjects()?;
    let memory = || subjects.iter().map(Subject::memory).collect::<Result<Vec<_>>>();
    let mut rows = vec![row("memory at start", "MiB", "", memory()?)];
    for era in [Era::Y2025, Era::Y2026] {
        let [times, cpu] = alone(&subjects, era)?;
        rows.push(row(&format!("tools/call {}, 1 connection, p50", era.year()), "µs", "≤ 1.5 ×", times));
        rows.push(row(&format!("tools/call {}, processor", era.year()), "µs", "≤ 2 ×", cpu));
    }
    for era in [Era::Y2025, Era::Y2026] {
        let what = format!("tools/call {}, {CROWD} connections", era.year());
        rows.push(row(&what, "thousand/s", "≥ 0.6 ×", crowded(&subjects, era)?));
    }
    rows.push(row("memory after all calls", "MiB", "≤ start + 1", memory()?));
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
    print("HTTP", &names, &rows);
    println!("rail: `greet` of the conformance fixture; cyberine-mcp: `list_team`, which reads a directory");
    Ok(())
}

/// `cargo xtask bench http-load`.
pub(super) fn load() -> Result<()> {
    let subjects = subjects()?;
    let rail = subjects.iter().find(|subject| subject.name == "rail").context("the rail")?;
    load::run(rail)
}

fn row(what: &str, unit: &'static str, target: &'static str, figures: Vec<Vec<f64>>) -> Row {
    Row { what: what.to_owned(), unit, target, figures }
}

/// Microseconds of a call, and of the server's processor, one call after the other.
fn alone(subjects: &[Subject], era: Era) -> Result<[Vec<Vec<f64>>; 2]> {
    let mut clients = subjects.iter().map(|subject| subject.clients(era, 1)).collect::<Result<Vec<_>>>()?;
    let mut figures = [vec![Vec::new(); subjects.len()], vec![Vec::new(); subjects.len()]];
    for slice in 0..=SLICES {
        for (index, subject) in subjects.iter().enumerate() {
            let before = subject.cpu()?;
            let line = clients[index].first_mut().context("a client")?;
            let times = (0..CALLS).map(|_| line.ask()).collect::<Result<Vec<f64>>>();
            let times = times.with_context(|| format!("{}, {era:?}", subject.name))?;
            // The first slice warms up.
            if slice > 0 {
                figures[0][index].push(median(&times));
                figures[1][index].push((subject.cpu()? - before) / CALLS as f64 / 1e3);
            }
        }
    }
    Ok(figures)
}

/// Thousand calls a second of many clients at once.
fn crowded(subjects: &[Subject], era: Era) -> Result<Vec<Vec<f64>>> {
    let mut clients =
        subjects.iter().map(|subject| subject.clients(era, CROWD)).collect::<Result<Vec<_>>>()?;
    let mut figures = vec![Vec::new(); subjects.len()];
    for _ in 0..CROWD_SLICES {
        for (index, subject) in subjects.iter().enumerate() {
            let seconds = all(&mut clients[index], CROWD_CALLS)
                .with_context(|| format!("{}, {era:?}", subject.name))?;
            figures[index].push(CROWD_CALLS as f64 / seconds / 1e3);
        }
    }
    Ok(figures)
}
