//! 64 clients at work for a minute, beside three that do not read: one that sends requests and reads no
//! answer, and one of each era that is told of every change and reads none of it. Judged by counts, never
//! by a clock: memory does not grow, everybody is served, nobody much less than the others.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::line::{Line, readable};
use super::{CROWD, Subject};
use crate::http::request;
use crate::proc;
use crate::wire::Era;

const MINUTE: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_secs(10);
/// What memory may grow by after the first window, in KiB.
const GROWTH: u64 = 4 << 10;
/// The least a client gets, as a part of what all get on average.
const SHARE: u64 = 4;
/// After this many calls of one client the tools change, which whoever listens is told.
const CHANGE: u64 = 50;
/// The client that changes them.
const FIRST_OF_2026: usize = CROWD / 2;

pub(super) fn run(rail: &Subject) -> Result<()> {
    let mut lines = rail.clients(Era::Y2025, CROWD / 2)?;
    lines.extend(rail.clients(Era::Y2026, CROWD / 2)?);
    let change = json!({"name": "test_trigger_tool_change", "arguments": {}});
    let change = rail.call(Era::Y2026, 1, "tools/call", change)?;
    let mut stopped = Stopped::start(rail)?;
    for line in &mut lines {
        line.send()?;
    }
    println!(
        "\n{CROWD} connections, and three that do not read\n| s | calls | fewest of one | memory MiB |\n|---|---|---|---|"
    );
    let start = Instant::now();
    let mut window = start;
    let mut before: Vec<u64> = vec![0; lines.len()];
    let mut settled = None;
    while start.elapsed() < MINUTE {
        for index in readable(&lines)? {
            let line = &mut lines[index];
            if line.read()? {
                if index == FIRST_OF_2026 && line.answered.is_multiple_of(CHANGE) {
                    line.send_other(&change)?;
                } else {
                    line.send()?;
                }
            }
        }
        if window.elapsed() < WINDOW {
            continue;
        }
        window = Instant::now();
        stopped.go_on()?;
        let now: Vec<u64> = lines.iter().map(|line| line.answered).collect();
        let calls: Vec<u64> = now.iter().zip(&before).map(|(now, before)| now - before).collect();
        before = now;
        let (all, fewest) = (calls.iter().sum::<u64>(), calls.iter().min().copied().unwrap_or(0));
        let memory = proc::memory_kib(rail.served.pid(), "VmRSS")?;
        let first = *settled.get_or_insert(memory);
        println!("| {} | {all} | {fewest} | {:.1} |", start.elapsed().as_secs(), memory as f64 / 1024.0);
        ensure!(memory <= first + GROWTH, "memory grew from {first} to {memory} KiB");
        let average = all / calls.len() as u64;
        ensure!(fewest * SHARE >= average, "somebody got {fewest} answers where {average} are the average");
    }
    println!("the one that sent on and on got rid of {} KiB of requests", stopped.sent >> 10);
    Ok(())
}

/// Clients that do not read.
struct Stopped {
    sender: Line,
    sent: usize,
    _told: Vec<Line>,
}

impl Stopped {
    fn start(rail: &Subject) -> Result<Self> {
        let listing = rail.call(Era::Y2026, 1, "tools/list", json!({}))?;
        let mut sender = Line::open(rail.served.address(), listing)?;
        let sent = sender.stuff()?;
        let filter = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
        let listen = rail.call(Era::Y2026, 1, "subscriptions/listen", filter)?;
        let session = rail.session()?;
        let mut headers = vec![("Accept", "text/event-stream"), ("MCP-Protocol-Version", "2025-11-25")];
        headers.extend(session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        let stream = request("GET", rail.served.address(), &headers, None);
        let told = [listen, stream]
            .into_iter()
            .map(|request| {
                let mut line = Line::open(rail.served.address(), request)?;
                line.send()?;
                Ok(line)
            })
            .collect::<Result<Vec<Line>>>()?;
        Ok(Self { sender, sent, _told: told })
    }

    /// The sender tries to go on.
    fn go_on(&mut self) -> Result<()> {
        self.sent += self.sender.stuff()?;
        Ok(())
    }
}
