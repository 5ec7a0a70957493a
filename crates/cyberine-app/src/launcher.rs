//! A process of its own for every run.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cyberine_orchestrator::{LaunchError, Launched, Launcher, Plan};
use cyberine_process::{ChildEnvironment, Detach, Detached, detach};
use cyberine_run_store::Claim;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;
use rustix::fs::{Mode, OFlags};

use crate::config::{Config, HostExit};
use crate::environment::{BACKEND_VARIABLE, Environment, HOME_VARIABLE, LOG_VARIABLE};
use crate::handover::{self, Channel};
use crate::home::Home;
use crate::host_line::HostLine;
use crate::invocation::GUARD;
use crate::problem::chain;
use crate::project::Project;
use crate::team;

/// Programs that carry a run out when they are started with `--runner`.
const RUNNERS: [&str; 2] = ["cyberine-mcp", "cyberine"];

/// Starts a runner (`--runner <run>`) for every run, with the run's lock as its standard input:
/// this program again, where it is one of ours, else the `cyberine-mcp` beside it.
///
/// Before it a guardian is started (`--guard <run>`), which settles the run should its runner die, or
/// this process before it has started one. A launcher that [holds](Self::holding) its runs gives it a
/// [line](HostLine) to this process, in place of its standard output, by which it ends the run with
/// this process.
///
/// The runner's environment is the allow-list of every child. The variables that the plan's
/// providers need go to it through a [channel](handover), since the system shows the environment of
/// a process to others; the token of the gate is never among them.
#[derive(Debug, Clone)]
pub struct ProcessLauncher {
    environment: Arc<Environment>,
    home: Home,
    /// The line to this process, and the project whose configuration says whether runs hang on it.
    hold: Option<(HostLine, Project)>,
}

impl ProcessLauncher {
    /// A launcher of runs of `home`, which go on when this process ends.
    #[must_use]
    pub const fn new(environment: Arc<Environment>, home: Home) -> Self {
        Self { environment, home, hold: None }
    }

    /// The same, of runs that end with this process where the configuration of `project` says so
    /// when they are started.
    pub(crate) fn holding(self, line: HostLine, project: Project) -> Self {
        Self { hold: Some((line, project)), ..self }
    }

    /// What the guardian of a run that starts now notices the end of this process by, where the run
    /// is to end with it.
    fn line(&self) -> Result<Option<OwnedFd>, String> {
        let Some((line, project)) = &self.hold else { return Ok(None) };
        let config = Config::load(&self.home, project).map_err(|error| chain(&error))?;
        match config.run.on_host_exit {
            HostExit::Continue => Ok(None),
            HostExit::Cancel => line.end().map(Some).map_err(|error| error.to_string()),
        }
    }

    fn program(&self) -> Result<PathBuf, LaunchError> {
        let ours =
            |path: &PathBuf| path.file_stem().is_some_and(|stem| RUNNERS.iter().any(|name| stem == *name));
        let this = self.environment.program().filter(|path| ours(path) && path.is_file()).cloned();
        let beside = || self.environment.sibling(RUNNERS[0]).filter(|path| path.is_file());
        this.or_else(beside).ok_or_else(|| LaunchError {
            detail: format!("`{}` is not installed beside this program; install it there", RUNNERS[0]),
        })
    }

    fn start(&self, claim: Claim, plan: &Plan) -> Result<Launched, LaunchError> {
        let failed = |detail| LaunchError { detail };
        let program = self.program()?;
        let run = claim.run();
        let stdin = claim
            .into_lock()
            .ok_or_else(|| failed("the run's claim lives in this process only".to_owned()))?;
        let Channel { runner, guardian } = handover::offer(&self.handed_over(plan)).map_err(failed)?;
        let line = self.line().map_err(failed)?;
        let of = |flag, stdin, channel| self.attendant(flag, run, &program, stdin, channel).map_err(failed);
        let (guardian, runner) = (of(GUARD, guardian, line)?, of("--runner", stdin, Some(runner))?);
        let mut child = start_both(run, guardian, runner).map_err(failed)?;
        let pid = child.pid().ok_or_else(|| failed("the runner ended as soon as it began".to_owned()))?;
        let ended = Box::pin(async move {
            match child.exited().await {
                Ok(status) => tracing::debug!(%run, %status, "the runner has ended"),
                Err(error) => tracing::warn!(%run, %error, "how the runner ended is not known"),
            }
        });
        Ok(Launched { pid, ended })
    }

    /// This program as what `flag` says it is to `run`.
    fn attendant(
        &self,
        flag: &str,
        run: RunId,
        program: &Path,
        stdin: OwnedFd,
        channel: Option<OwnedFd>,
    ) -> Result<Detach, String> {
        Ok(Detach {
            program: program.into(),
            args: vec![flag.into(), run.to_string().into()],
            environment: self.child_environment(),
            cwd: self.home.directory().to_owned(),
            stdin,
            log: self.log(run)?,
            channel,
        })
    }

    /// The variables that the providers of `plan` need.
    fn handed_over(&self, plan: &Plan) -> ChildEnvironment {
        ChildEnvironment::allowed([]).pass(self.environment.variables(), &team::variables(plan))
    }

    fn child_environment(&self) -> ChildEnvironment {
        let base = team::child_environment(&self.environment).set(HOME_VARIABLE, self.home.directory());
        [LOG_VARIABLE, BACKEND_VARIABLE].into_iter().fold(base, |base, name| {
            match self.environment.raw(name) {
                Some(value) => base.set(name, value),
                None => base,
            }
        })
    }

    fn log(&self, run: RunId) -> Result<File, String> {
        let directory = self.home.logs().map_err(|error| chain(&error))?;
        let path = directory.path().join(log_name(run));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(|error| format!("cannot write the log `{}`: {error}", path.display()))
    }
}

/// Starts the guardian and then the runner, so that no runner is ever left alone by the end of this
/// process: a guardian whose runner never came finds the channel broken, and settles the run.
///
/// Without a guardian that has the line of this process nobody would end the run with it, and so no
/// runner is started. Without any other one the run goes on, and is settled by whoever looks next.
fn start_both(run: RunId, guardian: Detach, runner: Detach) -> Result<Detached, String> {
    let ends_with_us = guardian.channel.is_some();
    let leash = runner.channel.as_ref().map(OwnedFd::try_clone).transpose();
    let leash = leash.map_err(|error| format!("the guardian cannot be held: {error}"))?;
    match detach(guardian).map_err(|error| chain(&error)) {
        Ok(_goes_on) => {}
        Err(error) if ends_with_us => {
            return Err(format!("nobody would end the run with this server, as `[run]` says: {error}"));
        }
        Err(error) => tracing::warn!(%run, "nobody watches over the runner: {error}"),
    }
    detach(runner).map_err(|error| {
        // Whoever asked for the run settles it, and knows why it was not started.
        leash.map(UnixStream::from).into_iter().for_each(handover::dismiss);
        chain(&error)
    })
}

/// The log of a run's runner, in the home's `logs`.
pub(crate) fn log_name(run: RunId) -> String {
    format!("run-{run}.log")
}

impl Launcher for ProcessLauncher {
    fn launch(&self, claim: Claim, plan: Plan) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(std::future::ready(self.start(claim, &plan)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    use cyberine_orchestrator::{OrchestrateConfig, plan};

    #[test]
    fn a_runner_gets_what_its_providers_need_and_never_the_token_of_the_gate() {
        let text = r#"{"kind":"openai","base_url":"https://h/v1","model":"m","api_key_env":"THE_KEY"}"#;
        let providers = [("a".to_owned(), serde_json::from_str(text).unwrap())];
        let plan = plan(&OrchestrateConfig::default(), &providers.into(), 1).unwrap();
        let environment = Environment::of(
            [
                ("PATH", "/bin"),
                ("THE_KEY", "k"),
                ("OTHER_KEY", "o"),
                ("CYBERINE_MCP_AUTH_TOKEN", "t"),
                ("CYBERINE_LOG", "info"),
                ("CYBERINE_BUS_BACKEND", "none"),
            ],
            "/",
        );
        let launcher = ProcessLauncher::new(Arc::new(environment), Home::at("/home/x"));
        let child = launcher.child_environment();
        let names: Vec<_> = child.names().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["CYBERINE_BUS_BACKEND", "CYBERINE_HOME", "CYBERINE_LOG", "PATH", "TERM"]);
        let handed = launcher.handed_over(&plan);
        assert_eq!(handed.names().collect::<Vec<_>>(), ["TERM", "THE_KEY"]);
        assert_eq!(child.get("CYBERINE_HOME"), Some("/home/x".as_ref()));
        assert!(launcher.program().unwrap_err().detail.contains("cyberine-mcp"));
    }

    /// A shell in place of an attendant, or a program that is not there, whose input is `stdin`.
    fn shell(script: Option<&str>, stdin: OwnedFd, log: File, channel: Option<OwnedFd>) -> Detach {
        Detach {
            program: script.map_or("/nowhere/sh", |_| "/bin/sh").into(),
            args: vec!["-c".into(), script.unwrap_or_default().into()],
            environment: ChildEnvironment::allowed([]),
            cwd: "/".into(),
            stdin,
            log,
            channel,
        }
    }

    /// Starts these two; whether the runner was started, what it said into the channel, and what the
    /// guardian read from it, which it notes in its log.
    fn started(guardian: Option<&str>, runner: Option<&str>, cancel: bool) -> (Result<(), String>, String) {
        let nothing = || File::open("/dev/null").unwrap();
        let (mut ours, said) = UnixStream::pair().unwrap();
        let line = HostLine::new().unwrap();
        let channel = handover::offer(&ChildEnvironment::allowed([])).unwrap();
        let said = File::from(OwnedFd::from(said));
        let held = cancel.then(|| line.end().unwrap());
        let guardian = shell(guardian, channel.guardian, said.try_clone().unwrap(), held);
        let runner = shell(runner, nothing().into(), said, Some(channel.runner));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(async { start_both(RunId::random(), guardian, runner).map(drop) });
        let mut told = String::new();
        // It ends once nobody is left who could say something.
        ours.read_to_string(&mut told).unwrap();
        (outcome, told)
    }

    #[test]
    fn no_runner_is_started_whose_guardian_is_needed_and_is_not_there() {
        let (refused, told) = started(None, Some("echo runner >&2"), true);
        assert!(refused.unwrap_err().contains("nobody would end the run with this server"));
        assert_eq!(told, "");
        assert_eq!(started(None, Some("echo runner >&2"), false), (Ok(()), "runner\n".to_owned()));
    }

    #[test]
    fn a_guardian_is_there_before_its_runner_and_is_told_of_one_that_could_not_be_started() {
        for cancel in [true, false] {
            let (refused, told) = started(Some("echo guardian >&2; head -c 1 >&2"), None, cancel);
            assert!(refused.unwrap_err().contains("/nowhere/sh"));
            assert_eq!(told, "guardian\n.");
        }
    }
}
