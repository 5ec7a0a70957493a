//! The death of what a run has started.

use std::time::Duration;

use cyberine_orchestrator::Reaper;
use cyberine_process::KillReport;
use cyberine_run_store::ProcessCount;
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

use crate::environment;

/// How long killing goes on before what is still there is reported as left.
const DEADLINE: Duration = Duration::from_secs(5);

/// Kills by the mark a run leaves in the environment of its children, and removes the directories
/// for temporary files that turns have not removed themselves.
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
            let killing = tokio::task::spawn_blocking(move || {
                let report = reaper.kill(&run.to_string());
                crate::trial::sweep(&run.to_string());
                report
            });
            match killing.await {
                Ok(report) => count(report),
                Err(error) => {
                    tracing::error!(%run, %error, "killing what the run left behind did not come to its end");
                    ProcessCount::default()
                }
            }
        })
    }

    fn kill_runner(&self, run: RunId, pid: Option<u32>) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let killing = tokio::task::spawn_blocking(move || match pid {
                Some(pid) => kill_runner(run, pid),
                None => find_and_kill_runner(run),
            });
            killing.await.unwrap_or_else(|error| {
                tracing::error!(%run, %error, "killing the runner did not come to its end");
                false
            })
        })
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

/// Kills the runner of `run` among the processes of this user.
#[cfg(target_os = "linux")]
fn find_and_kill_runner(run: RunId) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let mine = entries.flatten().filter(|entry| entry.metadata().is_ok_and(|known| known.uid() == user));
    let pids = mine.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| kill_runner(run, *pid)).count() > 0
}

/// Which process a number belongs to cannot be told for certain here.
#[cfg(not(target_os = "linux"))]
fn kill_runner(run: RunId, pid: u32) -> bool {
    tracing::warn!(%run, pid, "the runner does not react; end it, and the run is settled");
    false
}

/// Which process is the runner cannot be told for certain here.
#[cfg(not(target_os = "linux"))]
fn find_and_kill_runner(run: RunId) -> bool {
    tracing::warn!(%run, "the runner does not react; end it, and the run is settled");
    false
}

/// Whether a command line, each argument ended by a zero byte, is that of the runner of `run`:
/// a program of ours, and every one of them has a name that begins with `cyberine`.
#[cfg(target_os = "linux")]
fn is_runner(command: &[u8], run: RunId) -> bool {
    let run = run.to_string();
    let mut arguments = command.split(|byte| *byte == 0);
    let program = arguments.next().and_then(|path| path.rsplit(|byte| *byte == b'/').next());
    program.is_some_and(|name| name.starts_with(b"cyberine"))
        && arguments.next() == Some(b"--runner")
        && arguments.next() == Some(run.as_bytes())
}

impl MarkReaper {
    fn kill(self, mark: &str) -> KillReport {
        let report = match self {
            Self::Leftovers => cyberine_process::kill_marked(mark, DEADLINE),
            Self::OwnTree => cyberine_process::kill_below(mark, DEADLINE),
        };
        cyberine_provider::remove_scratch(&environment::temporary(), mark);
        report
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
        assert!(is_runner(format!("/a/bin/cyberine\0--runner\0{run}\0").as_bytes(), run));
        assert!(!is_runner(format!("/cyberine/x\0--runner\0{run}\0").as_bytes(), run));
        assert!(!is_runner(format!("x\0y\0--runner\0{run}\0").as_bytes(), run));
        assert!(!kill_runner(run, runner.id()), "a program that only mentions the run is no runner");
        assert!(!kill_runner(run, std::process::id()) && !kill_runner(run, 0));
        assert!(!find_and_kill_runner(run));
        runner.kill().unwrap();
        assert_eq!(runner.wait().unwrap().signal(), Some(9));
    }

    /// This program does not know `--runner`, and hangs as it says so: nobody reads what it says.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a runner that does not react")]
    fn a_runner_whose_number_nobody_recorded_is_found_and_killed() {
        use std::os::unix::process::CommandExt as _;
        let (run, other) = (RunId::random(), RunId::random());
        let (_unread, full) = full_pipe().unwrap();
        let mut runner = std::process::Command::new(std::env::current_exe().unwrap())
            .arg0("/opt/bin/cyberine-mcp")
            .args(["--runner", &run.to_string()])
            .stdout(full.try_clone().unwrap())
            .stderr(full)
            .spawn()
            .unwrap();
        // The kernel shows a command line only a moment after the program was started.
        let (line, begun) = (format!("/proc/{}/cmdline", runner.id()), std::time::Instant::now());
        while !is_runner(&std::fs::read(&line).unwrap(), run) {
            assert!(begun.elapsed() < DEADLINE, "the program shows no command line");
            std::thread::yield_now();
        }
        assert!(!find_and_kill_runner(other));
        assert!(runner.try_wait().unwrap().is_none(), "the runner of another run is left alone");
        assert!(find_and_kill_runner(run));
        assert_eq!(runner.wait().unwrap().signal(), Some(9));
        assert!(!find_and_kill_runner(run));
    }

    /// A pipe that takes no byte more: who writes to it waits.
    fn full_pipe() -> rustix::io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
        use rustix::fs::{OFlags, fcntl_setfl};
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        fcntl_setfl(&writer, OFlags::NONBLOCK)?;
        for length in [4096, 1] {
            while rustix::io::write(&writer, &vec![0; length]).is_ok() {}
        }
        fcntl_setfl(&writer, OFlags::empty())?;
        Ok((reader, writer))
    }
}
