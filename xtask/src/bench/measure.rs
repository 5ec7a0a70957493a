//! Times and memory, the subjects interleaved slice by slice.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Subject, TOOL};
use crate::proc;
use crate::wire::{Era, Server, Stdio2};

const COLD: usize = 15;
const SLICES: usize = 20;
const CALLS: usize = 100;
const PIPELINED: usize = 5_000;
const WINDOW: usize = 64;

/// A figure of one subject, and of how many slices.
pub(super) type Figures = Vec<f64>;

/// A row of the table: what is measured, and one list of figures a subject.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) unit: &'static str,
    /// What the figure should be, in words.
    pub(super) target: &'static str,
    pub(super) figures: Vec<Figures>,
}

/// Measures every subject over stdio of `kind` and prints a table.
pub(crate) fn stdio(subjects: &[Subject], kind: Stdio2) -> Result<()> {
    let mut rows = vec![cold(subjects, kind)?];
    let mut servers = subjects.iter().map(|subject| warm(subject, kind)).collect::<Result<Vec<_>>>()?;
    let start = servers.iter().map(|(server, _)| resident(server)).collect::<Result<Vec<_>>>()?;
    rows.push(Row { what: "memory at start".into(), unit: "MiB", target: "≤ 10 MiB", figures: start });
    for (what, era, method, params) in requests() {
        rows.push(round_trips(&mut servers, what, era, method, &params)?);
    }
    rows.push(pipelined(&mut servers)?);
    let end = servers.iter().map(|(server, _)| resident(server)).collect::<Result<Vec<_>>>()?;
    rows.push(Row {
        what: "memory after all calls".into(),
        unit: "MiB",
        target: "≤ start + 1",
        figures: end,
    });
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
    print(&format!("{kind:?}"), &names, &rows);
    Ok(())
}

/// The requests to time: `tools/call` of the cheap tool on what has it, else of a tool that fails.
fn requests() -> Vec<(&'static str, Era, &'static str, Value)> {
    let call = json!({"name": TOOL, "arguments": {"text": "hello"}});
    vec![
        ("ping", Era::Y2025, "ping", json!({})),
        ("tools/list 2025", Era::Y2025, "tools/list", json!({})),
        ("tools/call 2025", Era::Y2025, "tools/call", call.clone()),
        ("tools/call 2026", Era::Y2026, "tools/call", call),
    ]
}

pub(super) fn warm(subject: &Subject, kind: Stdio2) -> Result<(Server, bool)> {
    let mut server = Server::start(subject.command()?, kind)?;
    server.initialize("2025-11-25")?;
    let list = server.ask("tools/list", &json!({}))?;
    let tools = list["result"]["tools"].as_array().context("a list of tools")?;
    let has_tool = tools.iter().any(|tool| tool["name"] == TOOL);
    Ok((server, has_tool))
}

fn cold(subjects: &[Subject], kind: Stdio2) -> Result<Row> {
    let mut figures = vec![Vec::new(); subjects.len()];
    for _ in 0..COLD {
        for (subject, figures) in subjects.iter().zip(&mut figures) {
            let start = Instant::now();
            warm(subject, kind)?;
            figures.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Row { what: "spawn to tools/list".into(), unit: "ms", target: "≤ 1.5 ×", figures })
}

fn round_trips(
    servers: &mut [(Server, bool)],
    what: &str,
    era: Era,
    method: &str,
    params: &Value,
) -> Result<Row> {
    let mut figures = vec![Vec::new(); servers.len()];
    let params = era.params(params.clone());
    for _ in 0..SLICES {
        for ((server, has_tool), figures) in servers.iter_mut().zip(&mut figures) {
            if method == "tools/call" && !*has_tool {
                continue;
            }
            let mut slice = Vec::with_capacity(CALLS);
            for _ in 0..CALLS {
                let start = Instant::now();
                let response = server.ask(method, &params)?;
                slice.push(start.elapsed().as_secs_f64() * 1e6);
                ensure!(response["error"].is_null(), "{method}: {response}");
            }
            figures.push(median(&slice));
        }
    }
    let target = if method == "tools/call" { "≤ 1.3 × pipes, 1.5 × sockets" } else { "" };
    Ok(Row { what: format!("{what}, p50"), unit: "µs", target, figures })
}

fn pipelined(servers: &mut [(Server, bool)]) -> Result<Row> {
    let params = json!({"name": TOOL, "arguments": {"text": "hello"}});
    let mut figures = vec![Vec::new(); servers.len()];
    for _ in 0..3 {
        for ((server, has_tool), figures) in servers.iter_mut().zip(&mut figures) {
            if !*has_tool {
                continue;
            }
            let start = Instant::now();
            for _ in 0..WINDOW {
                server.request("tools/call", &params)?;
            }
            for sent in WINDOW..PIPELINED + WINDOW {
                server.next()?;
                if sent < PIPELINED {
                    server.request("tools/call", &params)?;
                }
            }
            figures.push(PIPELINED as f64 / start.elapsed().as_secs_f64() / 1e3);
        }
    }
    Ok(Row {
        what: format!("tools/call, {WINDOW} in flight"),
        unit: "thousand/s",
        target: "≥ 0.35 ×",
        figures,
    })
}

fn resident(server: &Server) -> Result<Figures> {
    let kib = proc::memory_kib(server.pid(), "VmRSS")? as f64;
    Ok(vec![kib / 1024.0])
}

pub(super) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median over slices of the subject's figure by the floor's figure of the same slice.
pub(super) fn ratio(figures: &[f64], floor: &[f64]) -> f64 {
    let ratios: Vec<f64> = figures.iter().zip(floor).map(|(figure, floor)| figure / floor).collect();
    median(&ratios)
}

/// Prints a table of medians, each with its ratio to the first of `names`.
pub(super) fn print(title: &str, names: &[&str], rows: &[Row]) {
    println!("\n{title}: median (ratio to {}); each slice visits every server", names[0]);
    println!(
        "| measure | unit | target | {} |\n|---|---|---|{}",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for row in rows {
        let cells: Vec<String> = row
            .figures
            .iter()
            .map(|figures| match figures.as_slice() {
                [] => "-".to_owned(),
                figures => format!("{:.1} ({:.2})", median(figures), ratio(figures, &row.figures[0])),
            })
            .collect();
        println!("| {} | {} | {} | {} |", row.what, row.unit, row.target, cells.join(" | "));
    }
}
