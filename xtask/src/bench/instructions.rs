//! Instructions per request, counted by callgrind: no clock, so load does not matter. The slope
//! between a short and a long series is the cost of one request.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Subject, TOOL};
use crate::proc::Scratch;
use crate::wire::{Era, Server, Stdio2};

const SHORT: usize = 50;
const LONG: usize = 250;

/// Counts for every subject and prints a table; says so and goes on where valgrind is missing.
pub(crate) fn count(subjects: &[Subject]) -> Result<()> {
    if !can_count() {
        return Ok(());
    }
    println!("\nthousand instructions (user space), by callgrind");
    println!(
        "| server | start to tools/list | tools/list | tools/call 2025 | tools/call 2026 |\n|---|---|---|---|---|"
    );
    println!("| target | ≤ 1400 | ≤ 15 | ≤ 45 | ≤ 60 |");
    let call = json!({"name": TOOL, "arguments": {"text": "hello"}});
    for subject in subjects {
        let start = start(subject)?;
        let mut cells = vec![start.map(|count| count / 1000)];
        for (era, method, params) in [
            (Era::Y2025, "tools/list", json!({})),
            (Era::Y2025, "tools/call", call.clone()),
            (Era::Y2026, "tools/call", call.clone()),
        ] {
            let short = series(subject, era, method, &params, SHORT)?;
            let long = series(subject, era, method, &params, LONG)?;
            let slope = short
                .zip(long)
                .map(|(short, long)| long.saturating_sub(short) / (LONG - SHORT) as u64 / 1000);
            cells.push(slope);
        }
        let cells: Vec<String> =
            cells.iter().map(|cell| cell.map_or("-".to_owned(), |cell| cell.to_string())).collect();
        println!("| {} | {} |", subject.name, cells.join(" | "));
    }
    Ok(())
}

/// Whether there is what counts; says so where there is not.
pub(crate) fn can_count() -> bool {
    let can = Command::new("valgrind").arg("--version").output().is_ok();
    if !can {
        println!("\ninstructions: skipped, valgrind is not installed");
    }
    can
}

/// The instructions from the start of a process to its list of tools, and to its end.
pub(crate) fn start(subject: &Subject) -> Result<Option<u64>> {
    series(subject, Era::Y2025, "tools/list", &json!({}), 1)
}

/// The instructions of a whole process that answers `n` requests; `None` where it does not have
/// what is asked.
fn series(subject: &Subject, era: Era, method: &str, params: &Value, n: usize) -> Result<Option<u64>> {
    let scratch = Scratch::new("callgrind")?;
    let out = scratch.path().join("out");
    let plain = subject.command()?;
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--log-file=/dev/null",
        &format!("--callgrind-out-file={}", out.display()),
    ]);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(plain.get_current_dir().context("a directory of its own")?);
    let mut server = Server::start(command, Stdio2::Pipes)?;
    server.initialize("2025-11-25")?;
    for _ in 0..n {
        if !server.ask(method, &era.params(params.clone()))?["error"].is_null() {
            return Ok(None);
        }
    }
    server.close()?;
    let text = std::fs::read_to_string(&out).context("callgrind's output")?;
    let total =
        text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    Ok(Some(total.context("callgrind's total")?.trim().parse()?))
}
