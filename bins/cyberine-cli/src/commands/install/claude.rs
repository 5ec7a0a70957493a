//! Claude Code's own command. The file of its user scope holds its state and is written whole
//! while it runs, so that an edit from outside can be lost, or lose what it wrote: where its
//! command is there, that makes the change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cyberine_app::{Environment, Exit, Problem, chain};
use cyberine_install::{ConfigFile, Host, NAME, Plan, PlanError, Scope, plan, registered, snippet};
use cyberine_process::{ChildEnvironment, Spawn, spawn};
use rustix::fs::Access;
use serde_json::Value;

use super::{Done, Report, Task, file_problem};
use crate::args::Install;
use crate::out::Style;
use crate::plain::escaped;

/// How long the command may take. It starts in one or two seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command, where it is to make the change.
pub(super) fn program(args: &Install, environment: &Environment) -> Option<PathBuf> {
    if args.host != Host::ClaudeCode || args.scope != Scope::User {
        return None;
    }
    let usable = |path: &PathBuf| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    environment.search_path().into_iter().map(|directory| directory.join("claude")).find(usable)
}

impl Task<'_> {
    /// Has the host's command make the change, and looks whether it did.
    pub(super) async fn through_claude(&self, claude: &Path, file: &ConfigFile) -> Result<Report, Problem> {
        let present = match file.text() {
            Some(text) => registered(Host::ClaudeCode, text).map_err(|error| self.problem(&error))?,
            None => None,
        };
        let remove = ["mcp", "remove", "--scope", "user", NAME].map(str::to_owned).to_vec();
        let mut commands = Vec::new();
        if self.args.uninstall {
            // What may be taken out is decided as it is for a file.
            let text = file.text().unwrap_or_default();
            cyberine_install::withdraw(Host::ClaudeCode, text, &[], self.overwrite())
                .map_err(|error| self.problem(&error))?;
            if present.is_none() {
                return Ok(self.report(Done::NotRegistered, None));
            }
            commands.push(remove);
        } else {
            let planned = plan(Host::ClaudeCode, file.text(), &self.entry, self.overwrite());
            if planned.map_err(|error| self.problem(&error))? == Plan::Nothing {
                return Ok(self.report(Done::AlreadyRegistered, None));
            }
            if present.is_some() {
                commands.push(remove);
            }
            let json = self.json().map_err(|error| self.problem(&error))?;
            commands.push(["mcp", "add-json", "--scope", "user", NAME, &json].map(str::to_owned).to_vec());
        }
        let done = if self.args.uninstall { Done::TakenOut } else { Done::Registered };
        let mut report = self.report(done, None);
        for command in commands {
            let shown =
                format!("claude {}", command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
            if !self.out.is_json() {
                self.out.line(self.out.paint(Style::Strong, escaped(&shown)));
            }
            if !self.args.dry_run {
                self.carry_out(claude, command).await?;
            }
            report.ran.push(shown);
        }
        if !self.args.dry_run {
            self.check()?;
        }
        Ok(report)
    }

    /// The entry alone, on one line.
    fn json(&self) -> Result<String, PlanError> {
        let document: Value =
            serde_json::from_str(&snippet(Host::ClaudeCode, &self.entry)?).unwrap_or_default();
        Ok(document[Host::ClaudeCode.key()][NAME].to_string())
    }

    async fn carry_out(&self, claude: &Path, args: Vec<String>) -> Result<(), Problem> {
        let failed = |words: String| {
            Problem::new(Exit::Unavailable, format!("`claude {}` {words}", args[..2].join(" ")))
        };
        let environment = ChildEnvironment::allowed(self.environment.variables())
            .pass(self.environment.variables(), &["CLAUDE_CONFIG_DIR"]);
        let home = self.environment.user_home().unwrap_or_else(|| PathBuf::from("/"));
        let mut child = Spawn::new(claude, environment, home);
        child.args = args.iter().map(Into::into).collect();
        let mut running =
            spawn(child).map_err(|error| failed(format!("could not be started: {}", chain(&error))))?;
        match tokio::time::timeout(PATIENCE, running.finish()).await {
            Ok(Ok(exit)) if exit.status.success() => Ok(()),
            Ok(Ok(exit)) => Err(failed(format!("failed ({}): {}", exit.status, exit.stderr.trim()))),
            Ok(Err(error)) => Err(failed(format!("could not be waited for: {error}"))),
            Err(_) => {
                running.kill_tree().await;
                Err(failed(format!("was not done after {} s", PATIENCE.as_secs())))
            }
        }
    }

    /// Whether the file says now what it should.
    fn check(&self) -> Result<(), Problem> {
        let file = ConfigFile::read(&self.path).map_err(|error| file_problem(&error))?;
        let planned = plan(Host::ClaudeCode, file.text(), &self.entry, self.overwrite());
        let there = matches!(planned, Ok(Plan::Nothing));
        if there == self.args.uninstall {
            let path = self.path.display();
            let words =
                format!("`claude` said it is done, and `{path}` does not show it; run `claude mcp list`");
            return Err(Problem::new(Exit::Unavailable, words));
        }
        Ok(())
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
