//! Systems without `/proc`: the process group is all that can be found of a tree. What opens a
//! session of its own escapes, and leftovers of a dead process are not found at all.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::process::Child;

use super::{KillReport, Process, Scope};

const PAUSE: Duration = Duration::from_millis(10);

/// Does nothing: orphans go to init on this system.
///
/// # Errors
///
/// None.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(crate) fn registered(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    spawn()
}

pub(crate) fn find(_scope: &Scope) -> Vec<Process> {
    Vec::new()
}

/// Ends the group. The report counts it as one, since its members cannot be told apart.
pub(crate) fn kill(scope: &Scope, grace: Duration, deadline: Duration) -> KillReport {
    let Some(group) = group(scope).filter(|group| is_there(*group)) else { return KillReport::default() };
    if !grace.is_zero() {
        let _ = rustix::process::kill_process_group(group, Signal::TERM);
        wait_until_gone(group, grace);
    }
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    wait_until_gone(group, deadline.min(Duration::from_millis(200)));
    // The leader stays as a zombie of ours until it is reaped, which keeps its group there; a
    // group that takes SIGKILL is as good as gone.
    KillReport { killed: 1, left: 0 }
}

pub(crate) fn kill_once(scope: &Scope) {
    if let Some(group) = group(scope) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

fn group(scope: &Scope) -> Option<Pid> {
    scope.root.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}

fn is_there(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

fn wait_until_gone(group: Pid, limit: Duration) {
    let until = Instant::now() + limit;
    while is_there(group) && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
}
