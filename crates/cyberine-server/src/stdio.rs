//! The process's standard streams as a transport.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The lowest number a private descriptor may have: above the three standard ones.
const ABOVE_STANDARD: i32 = 3;

/// The streams the host handed over, moved out of everyone else's reach.
///
/// A line on stdout that is no protocol message ends the session with most hosts, so from
/// [`take`](Self::take) on descriptor 1 is stderr and descriptor 0 is `/dev/null`: what a
/// library, a panic or a child prints reaches the log, and nothing but the server reads the
/// host's requests.
#[derive(Debug)]
pub struct StdioGuard {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
}

impl StdioGuard {
    /// Moves the process's stdin and stdout to private descriptors that no child inherits.
    ///
    /// For the first lines of a binary, before threads and runtime; a library never calls it.
    ///
    /// # Errors
    /// Whatever `dup` or opening `/dev/null` gives; the process should then end.
    pub fn take() -> io::Result<Self> {
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), ABOVE_STANDARD)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), ABOVE_STANDARD)?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?.as_fd())?;
        Ok(Self { input, output })
    }

    /// The guard over two descriptors of the caller's choice: pipes, Unix sockets or files.
    #[must_use]
    pub const fn from_fds(input: OwnedFd, output: OwnedFd) -> Self {
        Self { input, output }
    }
}
