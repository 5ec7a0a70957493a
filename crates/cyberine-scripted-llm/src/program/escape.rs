//! A process that gets away: what a provider's tool does that daemonises itself.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::script::Escape;

/// How long an escaped process sleeps if nobody finds it.
const SLEEP: Duration = Duration::from_secs(600);

/// The argument under which this program runs outside; the word after it is how far out it is.
pub(crate) const ARGUMENT: &str = "escape";

/// Starts a process in a session of its own, which starts another in yet another session and
/// ends. Returns the pid of the one that sleeps.
pub(super) fn leave_behind(escape: Escape) -> std::io::Result<u32> {
    let mut first = spawn(OsStr::new("1"), escape, Stdio::piped())?;
    let mut pid = String::new();
    if let Some(mut stderr) = first.stderr.take() {
        stderr.read_to_string(&mut pid)?;
    }
    first.wait()?;
    pid.trim()
        .parse()
        .map_err(|_| std::io::Error::other(format!("the process outside said `{}`", pid.trim())))
}

/// Runs in the escaping processes: the first starts the second, the second sleeps.
pub(crate) fn sleep_outside(depth: &str, stderr: &mut dyn Write) -> std::io::Result<()> {
    rustix::process::setsid()?;
    if depth == "1" {
        let second = spawn(OsStr::new("2"), Escape::HoldingStdout, Stdio::null())?;
        return writeln!(stderr, "{}", second.id());
    }
    std::thread::sleep(SLEEP);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this process is meant to escape whoever owns the tree")]
fn spawn(depth: &OsStr, escape: Escape, stderr: Stdio) -> std::io::Result<Child> {
    let stdout = match escape {
        Escape::Quiet => Stdio::null(),
        Escape::HoldingStdout => Stdio::inherit(),
    };
    let program = std::env::current_exe()?;
    Command::new(program).arg(ARGUMENT).arg(depth).stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn()
}
