use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use rustix::fs::{FileType, Mode, OFlags};
use tokio::process::Child;

use crate::start::{self, Group, Start, Streams};
use crate::{ChildEnvironment, SpawnError, tree};

/// A program to start that goes on when this process ends.
#[derive(Debug)]
pub struct Detach {
    /// The program: a name to look up in the `PATH` of `environment`, or a path.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub environment: ChildEnvironment,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// Its standard input: the lock that is handed over to it. Our copy is closed.
    pub stdin: OwnedFd,
    /// Where its standard error goes, and its standard output unless `channel` takes its place.
    pub log: File,
    /// What it finds in place of its standard output: see [`take_channel`].
    pub channel: Option<OwnedFd>,
}

/// Starts a program that this process does not end. The program is expected to call
/// [`enter_session`] and [`take_stdin`] first. Call it inside a tokio runtime.
///
/// Write the claim that owns the child before calling this.
///
/// # Errors
///
/// Says what is missing when the program or its directory is not there.
pub fn detach(detach: Detach) -> Result<Detached, SpawnError> {
    let start = Start {
        program: &detach.program,
        args: &detach.args,
        environment: &detach.environment,
        cwd: &detach.cwd,
    };
    let program = detach.program.display().to_string();
    let output = match detach.channel {
        Some(channel) => Stdio::from(channel),
        None => detach.log.try_clone().map_err(|source| SpawnError::Refused { program, source })?.into(),
    };
    let streams = Streams { input: Stdio::from(detach.stdin), output, errors: Stdio::from(detach.log) };
    start::start(&start, streams, Group::Ours).map(Detached)
}

/// A child that goes on without us. Dropping this leaves it running; when it ends, the tokio
/// runtime it was started in reaps it, so that it does not stay as a zombie.
#[derive(Debug)]
pub struct Detached(Child);

impl Detached {
    /// Its process id, until [`Detached::exited`] has returned.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.id()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot report it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the waiting only; call again.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}

/// Opens a session of its own for this process, away from the terminal and the group of whoever
/// started it, and makes it the one that orphans below it are handed to. For the first lines of a
/// process started by [`detach`].
///
/// In such a process every child must be started by this crate, which reaps the others.
///
/// # Errors
///
/// Fails when this process leads a process group, as a program typed into a shell does.
pub fn enter_session() -> io::Result<()> {
    rustix::process::setsid()?;
    tree::become_subreaper()
}

/// Takes what was handed down as standard input, close-on-exec, and leaves `/dev/null` in its
/// place, so that no library reads it and no child inherits it. For the first lines of a process
/// started by [`detach`].
///
/// # Errors
///
/// Fails when standard input is closed or the process is out of descriptors.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let taken = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(nothing)?;
    Ok(taken)
}

/// Takes the channel that was handed down in place of standard output, close-on-exec, and leaves
/// what standard error is in its place. `None` where standard output is no socket, as it is where
/// nobody handed one down. For the first lines of a process started by [`detach`].
///
/// # Errors
///
/// Fails when standard output is closed or the process is out of descriptors.
pub fn take_channel() -> io::Result<Option<UnixStream>> {
    let output = rustix::stdio::stdout();
    if FileType::from_raw_mode(rustix::fs::fstat(output)?.st_mode) != FileType::Socket {
        return Ok(None);
    }
    let taken = rustix::io::fcntl_dupfd_cloexec(output, 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(Some(UnixStream::from(taken)))
}

/// Keeps other programs of the same user from reading the memory, the environment and the open
/// files of this process, and the system from writing its memory to a file when it crashes. Their
/// starting as its children does not change that. A program of the superuser reads them all the
/// same, and so does every program where this is not Linux.
pub fn conceal() {
    #[cfg(target_os = "linux")]
    {
        // It cannot fail with this value, and what it guards against is not the caller's doing.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }
}
