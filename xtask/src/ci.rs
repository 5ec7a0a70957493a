//! The lanes of continuous integration, each with a time box.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::proc;

/// One lane: a name, its time box, and what it does.
struct Lane {
    name: &'static str,
    limit: Duration,
    work: fn(Duration) -> Result<()>,
}

const fn lane(name: &'static str, seconds: u64, work: fn(Duration) -> Result<()>) -> Lane {
    Lane { name, limit: Duration::from_secs(seconds), work }
}

const CORE: &[Lane] = &[
    lane("fmt", 60, |limit| proc::run(proc::cargo().args(["fmt", "--all", "--check"]), limit)),
    lane("clippy", 900, |limit| {
        let arguments = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        proc::run(proc::cargo().args(arguments), limit)
    }),
    lane("tests", 1200, |limit| {
        proc::run(proc::cargo().args(["test", "--workspace", "--all-features"]), limit)
    }),
    lane("layers", 60, |_| crate::layers::run()),
    lane("selftest", 300, |_| crate::selftest::run(&[])),
    lane("docs", 300, |_| crate::docs_run::run(&[])),
];

const OUTSIDE: &[Lane] = &[
    lane("conformance", 900, |_| crate::conformance::run(&[])),
    lane("agent clis", 1800, |limit| script("tests/cli/run", &["all"], limit)),
    lane("interop node", 300, |limit| script("tests/interop/run", &["node", "all"], limit)),
    lane("interop python", 300, |limit| script("tests/interop/run", &["python", "all"], limit)),
    lane("interop rust", 600, |limit| script("tests/interop/run", &["rust", "all"], limit)),
    lane("interop inspector", 600, |limit| script("tests/interop/run", &["inspector", "all"], limit)),
    lane("real model", 600, |_| crate::demo::real()),
    lane("real contract", 900, |_| crate::contract::real()),
    lane("faults", 1800, |limit| {
        let mut command = proc::cargo();
        command.env("CYBERINE_FAULTS", "10000").args(["test", "-p", "cyberine-run-store", "--all-features"]);
        proc::run(command.args(["--", "kill"]), limit)?;
        // 64 writers of one mailbox, 500 messages each.
        let mut mail = proc::cargo();
        mail.env("CYBERINE_FAULTS", "500").args([
            "test",
            "-p",
            "cyberine-bus",
            "--all-features",
            "--",
            "kill",
        ]);
        proc::run(&mut mail, limit)
    }),
    lane("bundle", 600, |_| crate::bundle::lane()),
    lane("bench", 900, |_| crate::bench::run(&[])),
    lane("bench http", 900, |_| {
        crate::bench::run(&["http"])?;
        crate::bench::run(&["http-load"])
    }),
];

/// What every change must pass.
pub(crate) fn core() -> Result<()> {
    run(CORE.iter())
}

/// Everything.
pub(crate) fn full() -> Result<()> {
    run(CORE.iter().chain(OUTSIDE))
}

/// Rewrites the golden files.
pub(crate) fn bless() -> Result<()> {
    let mut command = proc::cargo();
    command.env("CYBERINE_BLESS", "1").env("INSTA_UPDATE", "always").args([
        "test",
        "--workspace",
        "--all-features",
    ]);
    proc::run(&mut command, Duration::from_secs(1800))
}

fn script(path: &str, arguments: &[&str], limit: Duration) -> Result<()> {
    proc::build_binaries()?;
    let mut command = Command::new("bash");
    proc::run(
        command.current_dir(proc::root()).arg(path).args(arguments).env("CYBERINE_BINS", proc::bin_dir()?),
        limit,
    )
}

/// Runs every lane, prints what each took, and fails if one failed or outlasted its box.
fn run<'a>(lanes: impl Iterator<Item = &'a Lane>) -> Result<()> {
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for lane in lanes {
        println!("== {}", lane.name);
        let start = Instant::now();
        let outcome = (lane.work)(lane.limit);
        let seconds = start.elapsed().as_secs_f64();
        let verdict = match outcome {
            Ok(()) if start.elapsed() > lane.limit => "over its time box".to_owned(),
            Ok(()) => "ok".to_owned(),
            Err(error) => format!("FAILED: {error:#}"),
        };
        if verdict != "ok" {
            failed.push(lane.name);
        }
        rows.push(format!(
            "| {:<17} | {seconds:>7.1} s of {:>5} | {verdict}",
            lane.name,
            lane.limit.as_secs()
        ));
    }
    println!("\n{}", rows.join("\n"));
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}
