//! A process that gets away: what a provider's tool does that daemonises itself.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::script::Escape;

/// How long an escaped process sleeps if nobody finds it.
const SLEEP: Duration = Duration::from_secs(600);

/// The argument under which this program runs outside; the word after it is how far out it is.
pub(crate) const ARGUMENT: &str = "escape";

/// Starts a process in a session of its own, which starts another in yet another session and
/// ends. Returns the pid of the one that sleeps, once it is outside.
pub(super) fn leave_behind(escape: Escape) -> std::io::Result<u32> {
    let mut first = spawn(OsStr::new("1"), escape, Stdio::piped())?;
    let mut pid = String::new();
    if let Some(stderr) = first.stderr.take() {
        // One line, not all: the sleeper holds the other end for as long as it sleeps.
        BufReader::new(stderr).read_line(&mut pid)?;
    }
    first.wait()?;
    pid.trim()
        .parse()
        .map_err(|_| std::io::Error::other(format!("the process outside said `{}`", pid.trim())))
}

/// Runs in the escaping processes: the first starts the second, the second says its pid and sleeps.
pub(crate) fn sleep_outside(depth: &str, stderr: &mut dyn Write) -> std::io::Result<()> {
    rustix::process::setsid()?;
    if depth == "1" {
        return spawn(OsStr::new("2"), Escape::HoldingStdout, Stdio::inherit()).map(drop);
    }
    writeln!(stderr, "{}", std::process::id())?;
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
