//! Killing a whole tree of processes, and making sure of it.
//!
//! A process group is not enough: tools open sessions of their own, and what a dead parent leaves
//! behind moves to another parent. So a tree is what hangs together by parentage, by group, or by
//! a mark in the environment, looked up again until nothing of it is left. Systems without
//! `/proc` get the group only.

use std::time::Duration;

#[cfg_attr(not(target_os = "linux"), path = "tree/group.rs")]
#[cfg_attr(target_os = "linux", path = "tree/proc.rs")]
mod system;

#[cfg(target_os = "linux")]
mod select;

use crate::environment::RUN_MARK;

pub use system::become_subreaper;
pub(crate) use system::{kill, kill_once, registered};

/// How long killing is repeated before what is still there is reported as left.
pub(crate) const KILL_DEADLINE: Duration = Duration::from_secs(5);

/// One process, whatever its pid means later: the pid together with the time it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process {
    pub(crate) pid: u32,
    /// In clock ticks since boot.
    pub(crate) start: u64,
}

impl Process {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

/// What came of killing a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KillReport {
    /// Processes that were alive and are gone.
    pub killed: usize,
    /// Processes that are still there.
    pub left: usize,
}

/// Which processes a kill is about. Never this process and never its ancestors.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "without `/proc` only the root's group is known")
)]
pub(crate) struct Scope {
    /// A child of ours that has not been reaped, so that its pid and its group are its own.
    root: Option<u32>,
    /// `NAME=value`, looked for in every environment.
    mark: Option<Vec<u8>>,
    /// Whether everything below this process is meant.
    everything_below: bool,
}

impl Scope {
    pub(crate) fn marked(name: &str, value: &str) -> Self {
        Self { mark: Some(format!("{name}={value}").into_bytes()), ..Self::default() }
    }

    pub(crate) fn with_root(self, pid: u32) -> Self {
        Self { root: Some(pid), ..self }
    }
}

/// Finds the processes of the run `run` by the mark in their environment. Empty on systems
/// without `/proc`. Blocks while it reads the process table.
#[must_use]
pub fn find_marked(run: &str) -> Vec<Process> {
    system::find(&Scope::marked(RUN_MARK, run))
}

/// Kills what a dead runner left behind: every process that carries the mark of the run `run` and
/// everything below it, at once, until nothing is left or `deadline` has passed. Never kills this
/// process or its ancestors. Blocks: in async code run it in a blocking task.
#[must_use]
pub fn kill_marked(run: &str, deadline: Duration) -> KillReport {
    kill(&Scope::marked(RUN_MARK, run), Duration::ZERO, deadline)
}

/// Kills everything of the run `run` from within its runner: what carries the mark, and whatever
/// else runs below this process, a run started from inside this one included. For the end of a
/// run, when nothing below may be left. Blocks: in async code run it in a blocking task.
#[must_use]
pub fn kill_below(run: &str, deadline: Duration) -> KillReport {
    let scope = Scope { everything_below: true, ..Scope::marked(RUN_MARK, run) };
    kill(&scope, Duration::ZERO, deadline)
}
