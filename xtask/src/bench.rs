//! `cargo xtask bench`: the server beside a process that only parses and prints, in one run.
//! Only the ratios travel from machine to machine; instruction counts are repeatable.

mod bus;
mod crowd;
pub(crate) mod floor;
mod http;
mod instructions;
mod measure;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::proc::{self, Scratch};
use crate::wire::{self, Stdio2};

/// One server to measure, and its cheap tool.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    program: PathBuf,
    argument: Option<&'static str>,
    scratch: Scratch,
}

/// The tool every subject answers without I/O of its own.
pub(crate) const TOOL: &str = "echo";

impl Subject {
    fn new(name: &'static str, program: PathBuf, argument: Option<&'static str>) -> Result<Self> {
        Ok(Self { name, program, argument, scratch: Scratch::new("bench")? })
    }

    /// The subject's command, in a home and a project of its own.
    pub(crate) fn command(&self) -> Result<Command> {
        let (home, project) = (self.scratch.dir("home")?, self.scratch.dir("project")?);
        let bins = self.program.parent().unwrap_or(Path::new("."));
        let template = wire::command(&bins.join("cyberine-mcp"), &home, &project);
        let mut command = Command::new(&self.program);
        command.args(self.argument).env_clear().current_dir(project);
        command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Ok(command)
    }
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        [] => {
            stdio()?;
            crowd::run()
        }
        ["stdio"] => stdio(),
        ["start"] => crowd::run(),
        ["bus"] => bus::run(),
        ["http"] => http::run(),
        ["http-load"] => http::load(),
        _ => bail!(
            "`cargo xtask bench` knows stdio, start, bus, http and http-load, not `{}`",
            words.join(" ")
        ),
    }
}

fn stdio() -> Result<()> {
    let subjects = build()?;
    for kind in [Stdio2::Pipes, Stdio2::Sockets] {
        measure::stdio(&subjects, kind)?;
    }
    instructions::count(&subjects)
}

/// Builds everything optimised and names the subjects, the floor first.
fn build() -> Result<Vec<Subject>> {
    let mut command = proc::cargo();
    command.args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "cyberine-mcp",
        "-p",
        "xtask",
        "-p",
        "cyberine-server",
    ]);
    command.args(["--bins", "--examples"]);
    proc::run(&mut command, Duration::from_secs(1500))?;
    let bins = release_dir()?;
    Ok(vec![
        Subject::new("floor", bins.join("xtask"), Some("floor"))?,
        Subject::new("rail", bins.join("examples/fixture_server"), None)?,
        Subject::new("cyberine-mcp", bins.join("cyberine-mcp"), None)?,
    ])
}

/// Where cargo puts what it builds optimised.
fn release_dir() -> Result<PathBuf> {
    Ok(proc::bin_dir()?.parent().map(|target| target.join("release")).unwrap_or_default())
}
