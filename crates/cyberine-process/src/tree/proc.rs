//! Linux: the process table is read from `/proc`, and signals go to process descriptors, which
//! cannot hit another process that got the same pid.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use tokio::process::Child;

use super::select::{Row, select};
use super::{KillReport, Process, Scope};

/// The largest environment that is searched: the system's own bound on arguments and environment
/// together is a quarter of the stack, two megabytes by default.
const ENVIRONMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Between two looks at whether something is still there.
const PAUSE: Duration = Duration::from_millis(10);

/// Children this crate started. What ends and is not among them was adopted, and is ours to reap.
static OURS: Mutex<Option<HashSet<Process>>> = Mutex::new(None);
static SUBREAPER: AtomicBool = AtomicBool::new(false);

/// Makes this process the one that orphans below it are handed to, instead of init, so that they
/// can be found. From then on every child must be started by this crate, which reaps the others.
///
/// # Errors
///
/// Fails where the system forbids it.
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    SUBREAPER.store(true, Ordering::Release);
    Ok(())
}

/// Starts a child and writes down that it is ours. The lock is held over both, so that nobody
/// takes a child that ends at once for an adopted one.
pub(crate) fn registered(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = spawn()?;
    let ours = ours.get_or_insert_default();
    ours.retain(|process| row(process.pid).is_some_and(|row| row.process == *process));
    ours.extend(child.id().and_then(row).map(|row| row.process));
    Ok(child)
}

pub(crate) fn find(scope: &Scope) -> Vec<Process> {
    look(scope, &HashSet::new()).iter().map(|row| row.process).collect()
}

/// Ends everything in `scope`: SIGTERM, `grace`, then SIGKILL until nothing is left or `deadline`
/// has passed since the SIGKILL.
pub(crate) fn kill(scope: &Scope, grace: Duration, deadline: Duration) -> KillReport {
    let mut known = HashSet::new();
    if !grace.is_zero() {
        let found = look(scope, &known);
        known.extend(found.iter().map(|row| row.process));
        signal_all(scope, &found, Signal::TERM);
        let until = Instant::now() + grace;
        while known.iter().any(|process| is_alive(*process)) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }
    let left = kill_until_gone(scope, &mut known, deadline);
    reap_adopted();
    KillReport { killed: known.len() - left, left }
}

/// Kills until two looks in a row find nothing, and says how many are left at the deadline. One look
/// is not enough: a process that is just starting its program shows no environment for an instant.
fn kill_until_gone(scope: &Scope, known: &mut HashSet<Process>, deadline: Duration) -> usize {
    let until = Instant::now() + deadline;
    let mut quiet = 0;
    loop {
        let found = look(scope, known);
        known.extend(found.iter().map(|row| row.process));
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        if quiet == 2 || Instant::now() >= until {
            return found.len();
        }
        if !found.is_empty() {
            signal_all(scope, &found, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills what is in `scope` now and does not look back.
pub(crate) fn kill_once(scope: &Scope) {
    signal_all(scope, &look(scope, &HashSet::new()), Signal::KILL);
}

fn signal_all(scope: &Scope, rows: &[Row], signal: Signal) {
    // The group first, in one call: its members cannot fork away in between.
    if let Some(group) = scope.root.and_then(as_pid) {
        // No such group: everyone in it has ended or left it.
        let _ = rustix::process::kill_process_group(group, signal);
    }
    // Politely once each, since many programs take a second signal for an impolite one. Killing is
    // repeated: what was in the group when the table was read may have left it since.
    let is_told = |row: &&Row| signal == Signal::KILL || scope.root != Some(row.group);
    for row in rows.iter().filter(is_told) {
        // One that ended meanwhile is what was wanted; one that may not be signalled is found
        // again by the next look and reported as left.
        let _ = send(row.process, signal);
    }
}

/// Signals `process` and nobody else: the descriptor is opened first, then the start time shows
/// whether it is the one that was meant.
fn send(process: Process, signal: Signal) -> Result<(), Errno> {
    let pid = as_pid(process.pid).ok_or(Errno::SRCH)?;
    let descriptor = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    if row(process.pid).is_none_or(|row| row.process != process) {
        return Err(Errno::SRCH);
    }
    match descriptor {
        Ok(descriptor) => rustix::process::pidfd_send_signal(descriptor, signal),
        // Kernels before 5.3 and some sandboxes have no process descriptors.
        Err(Errno::NOSYS | Errno::PERM) => rustix::process::kill_process(pid, signal),
        Err(errno) => Err(errno),
    }
}

/// Reaps what was handed to us when its parent died. Only in a subreaper: elsewhere a zombie that
/// is not ours belongs to another part of the program.
fn reap_adopted() {
    if !SUBREAPER.load(Ordering::Acquire) {
        return;
    }
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_ours = |process| ours.as_ref().is_some_and(|ours| ours.contains(process));
    let me = std::process::id();
    for row in table().iter().filter(|row| row.is_zombie && row.parent == me && !is_ours(&row.process)) {
        if let Some(pid) = as_pid(row.process.pid) {
            // Nothing to do when it was reaped meanwhile.
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

fn look(scope: &Scope, known: &HashSet<Process>) -> Vec<Row> {
    let carries = |pid| scope.mark.as_deref().is_some_and(|mark| has_in_environment(pid, mark));
    select(&table(), std::process::id(), scope, known, carries)
}

fn table() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(row).collect()
}

fn row(pid: u32) -> Option<Row> {
    parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn is_alive(process: Process) -> bool {
    row(process.pid).is_some_and(|row| row.process == process && !row.is_zombie)
}

/// Reads one line of `/proc/<pid>/stat` (proc_pid_stat(5)). The second field is the program's name
/// in parentheses and may itself hold spaces and parentheses, so the rest counts from the last one.
fn parse(pid: u32, stat: &[u8]) -> Option<Row> {
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(stat.get(after..)?).ok()?.split_ascii_whitespace().collect();
    // Field 3 of the manual is the first one here.
    let field = |number: usize| fields.get(number - 3).copied();
    let threads: i64 = field(20)?.parse().ok()?;
    // A process whose first thread has ended while others go on looks like a zombie, but is none.
    let is_zombie = matches!(field(3)?, "Z" | "X") && threads <= 1;
    let start = field(22)?.parse().ok()?;
    Some(Row {
        process: Process { pid, start },
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        is_zombie,
    })
}

fn has_in_environment(pid: u32, mark: &[u8]) -> bool {
    let mut environment = Vec::new();
    let read = File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment));
    read.is_ok() && environment.split(|byte| *byte == 0).any(|entry| entry == mark)
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_its_row() {
        let tail = "S 7 8 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5555 0 0";
        let expected =
            Row { process: Process { pid: 42, start: 5555 }, parent: 7, group: 8, is_zombie: false };
        for name in ["sh", "a b", "x) S 1 1 1 (", ") Z 1", "\u{e9}"] {
            assert_eq!(parse(42, format!("42 ({name}) {tail}\n").as_bytes()), Some(expected), "{name}");
        }
        assert_eq!(
            parse(42, b"42 (\xff\xfe) S 7 8 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5555 0 0"),
            Some(expected)
        );
        for broken in ["", "42", "42 (sh", "42 (sh)", "42 (sh) S 7", "42 (sh) S x 8 9"] {
            assert_eq!(parse(42, broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn a_zombie_leader_with_threads_is_alive() {
        let stat = |threads| format!("42 (sh) Z 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 5555 0 0");
        let is_zombie = |threads| parse(42, stat(threads).as_bytes()).unwrap().is_zombie;
        assert_eq!([is_zombie(1), is_zombie(2)], [true, false]);
    }

    #[test]
    fn a_pid_that_means_another_process_now_is_not_signalled() {
        let me = row(std::process::id()).unwrap().process;
        let earlier = Process { start: me.start - 1, ..me };
        // The signal would end this very test.
        assert_eq!(send(earlier, Signal::KILL), Err(Errno::SRCH));
        assert!(is_alive(me) && !is_alive(earlier));
    }
}
