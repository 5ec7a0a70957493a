//! Systems without `/proc`: only whether a number is in use can be told. A home shared between two
//! such machines would be misread; homes are local.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::Found;
use crate::record::Host;

pub(super) fn here() -> Host {
    Host { boot_id: String::new(), pid_started: 0 }
}

pub(super) fn shares_processes(one: &str, other: &str) -> bool {
    one.is_empty() && other.is_empty()
}

pub(super) fn uptime() -> Option<Duration> {
    None
}

pub(super) fn find(pid: u32) -> Found {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Found::Gone };
    match test_kill_process(pid) {
        Ok(()) | Err(Errno::PERM) => Found::Running { started: 0 },
        Err(Errno::SRCH) => Found::Gone,
        Err(_) => Found::Untold,
    }
}
