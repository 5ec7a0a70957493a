//! The death of what a run has started.

use std::time::Duration;

use cyberine_orchestrator::Reaper;
use cyberine_process::KillReport;
use cyberine_run_store::ProcessCount;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

/// How long killing goes on before what is still there is reported as left.
const DEADLINE: Duration = Duration::from_secs(5);

/// Kills by the mark a run leaves in the environment of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkReaper {
    /// What a dead runner left behind, wherever it has moved to.
    Leftovers,
    /// From within the runner: also everything below this process.
    OwnTree,
}

impl Reaper for MarkReaper {
    fn reap(&self, run: RunId) -> BoxFuture<'_, ProcessCount> {
        let reaper = *self;
        Box::pin(async move {
            let killing = tokio::task::spawn_blocking(move || reaper.kill(&run.to_string()));
            match killing.await {
                Ok(report) => count(report),
                Err(error) => {
                    tracing::error!(%run, %error, "killing what the run left behind did not come to its end");
                    ProcessCount::default()
                }
            }
        })
    }

    fn kill_runner(&self, run: RunId, pid: u32) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(kill_runner(run, pid)))
    }
}

/// Kills the process `pid` where its command line says that it is the runner of `run`. The process
/// is held by a descriptor before it is looked at, so that no other can take its number between.
#[cfg(target_os = "linux")]
fn kill_runner(run: RunId, pid: u32) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(held) = pidfd_open(process, PidfdFlags::empty()) else { return false };
    let Ok(command) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    is_runner(&command, run) && pidfd_send_signal(&held, Signal::KILL).is_ok()
}

/// Which process a number belongs to cannot be told for certain here.
#[cfg(not(target_os = "linux"))]
fn kill_runner(run: RunId, pid: u32) -> bool {
    tracing::warn!(%run, pid, "the runner does not react; end it, and the run is settled");
    false
}

/// Whether a command line, each argument ended by a zero byte, is that of the runner of `run`.
#[cfg(target_os = "linux")]
fn is_runner(command: &[u8], run: RunId) -> bool {
    let run = run.to_string();
    let mut arguments = command.split(|byte| *byte == 0).skip(1);
    arguments.next() == Some(b"--runner") && arguments.next() == Some(run.as_bytes())
}

impl MarkReaper {
    fn kill(self, mark: &str) -> KillReport {
        match self {
            Self::Leftovers => cyberine_process::kill_marked(mark, DEADLINE),
            Self::OwnTree => cyberine_process::kill_below(mark, DEADLINE),
        }
    }
}

fn count(report: KillReport) -> ProcessCount {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ProcessCount { killed: number(report.killed), left: number(report.left) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a process that is no runner of ours")]
    fn only_the_runner_of_the_run_is_killed() {
        let (run, other) = (RunId::random(), RunId::random());
        let mut runner = std::process::Command::new("sh")
            .args(["-c", "kill -STOP $$", "--runner", &run.to_string()])
            .spawn()
            .unwrap();
        let command = format!("cyberine-mcp\0--runner\0{run}\0").into_bytes();
        assert!(is_runner(&command, run) && !is_runner(&command, other));
        assert!(!is_runner(format!("x\0y\0--runner\0{run}\0").as_bytes(), run));
        assert!(!kill_runner(run, runner.id()), "a program that only mentions the run is no runner");
        assert!(!kill_runner(run, std::process::id()) && !kill_runner(run, 0));
        runner.kill().unwrap();
        assert_eq!(runner.wait().unwrap().signal(), Some(9));
    }
}
