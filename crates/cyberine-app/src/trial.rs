//! Trials of the judge `command`: each in a private directory, each killed as a tree.

mod copy;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use cyberine_orchestrator::{JudgeCommand, JudgeKind, Plan, Trial, TrialError, TrialReport, Trials};
use cyberine_process::{ChildEnvironment, OutputError, Running, Spawn, spawn};
use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::discovery::executable;
use crate::environment::Environment;
use crate::problem::chain;
use crate::team::child_environment;

/// How much a command may write to its standard output before it is killed.
const OUTPUT: usize = 4 << 20;
/// How often it is looked whether there is too much of the error stream, which is read all the time.
const LOOK: Duration = Duration::from_millis(100);
/// How much of it is kept.
const TAIL: usize = 4 << 10;
/// How the names of trials' directories begin; the run's id follows.
const PREFIX: &str = "cyberine-trial-";
/// A value as short as this is not taken out of the output: it would take ordinary words along.
const SHORTEST_SECRET: usize = 8;

/// Runs the judge's command in directories below the system's temporary one.
pub(crate) struct CommandTrials {
    variables: Vec<(OsString, OsString)>,
    base: ChildEnvironment,
}

impl CommandTrials {
    /// With what children of this process may know of their surroundings.
    pub(crate) fn of(environment: &Environment) -> Self {
        Self { variables: environment.variables(), base: child_environment(environment) }
    }
}

/// What keeps the judge `command` of `plan` from trying answers in `project`, as far as it shows: a
/// program with a slash in its name may lie in what is copied.
pub(crate) fn faults(plan: &Plan, environment: &Environment, project: &Path) -> Vec<String> {
    let used = plan.judges.contains(&JudgeKind::Command);
    let Some(command) = plan.judge_command.as_ref().filter(|_| used) else { return Vec::new() };
    let mut faults = Vec::new();
    let program = command.command.first().map(Path::new).unwrap_or(Path::new(""));
    let bare = program.components().count() == 1 && !program.is_absolute();
    let path = environment.search_path();
    let there = |directory: &PathBuf| directory.is_absolute() && executable(&directory.join(program));
    if (bare && !path.iter().any(there)) || (program.is_absolute() && !executable(program)) {
        faults.push(format!("program `{}` of the judge `command` is not there", program.display()));
    }
    if let Some(copy) = command.copy.as_ref().filter(|copy| !project.join(copy).is_dir()) {
        faults.push(format!("`{}`, which the judge `command` copies, is no directory", copy.display()));
    }
    faults
}

impl Trials for CommandTrials {
    fn run(
        &self,
        trial: Trial,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<TrialReport, TrialError>> {
        let named = &trial.command.env;
        let environment = self.base.clone().pass(self.variables.clone(), named).marked(&trial.mark);
        let values =
            self.variables.iter().filter(|(name, _)| named.iter().any(|wanted| name == wanted.as_str()));
        let secrets: Vec<String> = values
            .filter_map(|(_, value)| value.to_str())
            .filter(|value| value.len() >= SHORTEST_SECRET)
            .map(str::to_owned)
            .collect();
        Box::pin(async move {
            let report = hold(trial, environment, cancel).await?;
            let tail = secrets.iter().fold(report.tail, |tail, secret| tail.replace(secret, "[redacted]"));
            Ok(TrialReport { tail, ..report })
        })
    }
}

async fn hold(
    trial: Trial,
    environment: ChildEnvironment,
    cancel: CancellationToken,
) -> Result<TrialReport, TrialError> {
    let Trial { command, text, project, mark } = trial;
    let input = text.clone().into_bytes();
    let (set, stop) = (command.clone(), cancel.clone());
    let directory = blocking(move || lay_out(&set, &text, &project, &mark, &|| stop.is_cancelled())).await?;
    let ended = attempt(&command, directory.path(), environment, input, &cancel).await;
    // What a test suite leaves can be much.
    let removed = tokio::task::spawn_blocking(move || directory.close()).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "the directory of a trial could not be removed");
    }
    ended
}

/// Removes the directories that trials of the run `mark` have left, because their runner was killed:
/// those of this user below the system's temporary directory.
pub(crate) fn sweep(mark: &str) {
    let begins = format!("{PREFIX}{mark}-");
    let Ok(entries) = fs::read_dir(tempfile::env::temp_dir()) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&begins))
            && entry.metadata().is_ok_and(|known| known.is_dir() && known.uid() == user);
        if ours && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "what a trial left could not be removed");
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, TrialError> {
    let done = tokio::task::spawn_blocking(work).await;
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(TrialError { detail: chain(&error) }),
        Err(_) => Err(TrialError { detail: "the directory of the trial was not laid out".to_owned() }),
    }
}

/// A private directory with the copy, where there is one, and the answer in its file.
fn lay_out(
    command: &JudgeCommand,
    text: &str,
    project: &Path,
    mark: &str,
    stopped: &dyn Fn() -> bool,
) -> io::Result<TempDir> {
    let directory = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{mark}-"))
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()?;
    if let Some(copy) = &command.copy {
        copy::tree(&project.join(copy), directory.path(), stopped)?;
    }
    let file = directory.path().join(&command.file);
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&file, text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    Ok(directory)
}

async fn attempt(
    command: &JudgeCommand,
    cwd: &Path,
    environment: ChildEnvironment,
    input: Vec<u8>,
    cancel: &CancellationToken,
) -> Result<TrialReport, TrialError> {
    let (program, args) = command
        .command
        .split_first()
        .ok_or_else(|| TrialError { detail: "it names no program".to_owned() })?;
    let started = spawn(Spawn {
        args: args.iter().map(OsString::from).collect(),
        input: input.into(),
        output_limit: OUTPUT,
        ..Spawn::new(program, environment, cwd)
    });
    let mut running = started.map_err(|error| TrialError { detail: chain(&error) })?;
    let mut tail = Vec::new();
    let limit = Duration::from_secs(command.timeout_seconds);
    let failed = |end: String, tail: &[u8]| Ok(TrialReport { passed: false, end, tail: shown(tail, "") });
    tokio::select! {
        biased;
        () = cancel.cancelled() => {
            running.kill_tree().await;
            Err(TrialError { detail: "it was cancelled".to_owned() })
        }
        ended = to_the_end(&mut running, &mut tail) => match ended {
            Ok((status, stderr)) => {
                Ok(TrialReport { passed: status.success(), end: end_of(status), tail: shown(&tail, &stderr) })
            }
            Err(Stopped::TooMuch(end)) => {
                running.kill_tree().await;
                failed(end, &tail)
            }
            Err(Stopped::System(detail)) => Err(TrialError { detail }),
        },
        () = tokio::time::sleep(limit) => {
            running.kill_tree().await;
            failed(format!("no end within {} s", command.timeout_seconds), &tail)
        }
    }
}

enum Stopped {
    TooMuch(String),
    System(String),
}

async fn to_the_end(running: &mut Running, tail: &mut Vec<u8>) -> Result<(ExitStatus, String), Stopped> {
    loop {
        bounded(running.stderr_bytes())?;
        let chunk = tokio::select! {
            chunk = running.next_chunk() => chunk,
            () = tokio::time::sleep(LOOK) => continue,
        };
        match chunk {
            Ok(Some(chunk)) => {
                tail.extend_from_slice(&chunk);
                let over = tail.len().saturating_sub(TAIL);
                tail.drain(..over);
            }
            Ok(None) => break,
            Err(error @ OutputError::TooMuch { .. }) => return Err(Stopped::TooMuch(error.to_string())),
            Err(error) => return Err(Stopped::System(chain(&error))),
        }
    }
    let exit = loop {
        tokio::select! {
            exit = running.finish() => break exit.map_err(|error| Stopped::System(chain(&error)))?,
            () = tokio::time::sleep(LOOK) => bounded(running.stderr_bytes())?,
        }
    };
    bounded(exit.stderr_bytes)?;
    Ok((exit.status, exit.stderr))
}

fn bounded(errors: u64) -> Result<(), Stopped> {
    if errors > OUTPUT as u64 {
        return Err(Stopped::TooMuch(format!("its error stream is longer than {OUTPUT} bytes")));
    }
    Ok(())
}

fn end_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

/// The last of both streams, standard error after standard output.
fn shown(output: &[u8], errors: &str) -> String {
    let errors: String = {
        let count = errors.chars().count();
        errors.chars().skip(count.saturating_sub(TAIL)).collect()
    };
    let output = String::from_utf8_lossy(output);
    format!("{}\n{errors}", output.trim_end()).trim().to_owned()
}

#[cfg(test)]
mod tests;
