//! The line by which the guardians of runs notice that the server that started them is gone, however
//! it went: the system closes the server's end of it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

/// A line from this process to whoever has an end of it. Nothing is ever sent over it: it breaks
/// when this process ends. Clones are the same line.
#[derive(Debug, Clone)]
pub(crate) struct HostLine(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    /// Close-on-exec, and handed to nobody.
    _kept: UnixStream,
    given: OwnedFd,
}

impl HostLine {
    /// # Errors
    /// Where the system gives no socket.
    pub(crate) fn new() -> io::Result<Self> {
        let (kept, given) = UnixStream::pair()?;
        Ok(Self(Arc::new(Ends { _kept: kept, given: given.into() })))
    }

    /// The other end, for one who is to notice.
    ///
    /// # Errors
    /// Where the process is out of descriptors.
    pub(crate) fn end(&self) -> io::Result<OwnedFd> {
        self.0.given.try_clone()
    }
}

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// Something came through the leash, or it broke.
    Runner,
    /// The line broke, and nothing was to be had from the leash.
    Host,
}

/// Waits until something is to be had from `leash`, be it its end, or `line` breaks.
///
/// # Errors
/// Where the system does not wait.
pub(crate) fn first(leash: impl AsFd, line: Option<impl AsFd>) -> io::Result<First> {
    let line = line.as_ref().map(|line| PollFd::new(line, PollFlags::IN));
    let mut ends: Vec<PollFd<'_>> = [PollFd::new(&leash, PollFlags::IN)].into_iter().chain(line).collect();
    rustix::io::retry_on_intr(|| poll(&mut ends, None))?;
    let runner = !ends[0].revents().is_empty();
    Ok(if runner { First::Runner } else { First::Host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_for_everybody_who_has_an_end_and_not_before_its_host_ends() {
        let line = HostLine::new().unwrap();
        let ends = [line.end().unwrap(), line.clone().end().unwrap()];
        let (leash, mut runner) = UnixStream::pair().unwrap();
        io::Write::write_all(&mut runner, b".").unwrap();
        for end in &ends {
            assert_eq!(first(&leash, Some(end)).unwrap(), First::Runner);
        }
        let (quiet, _runner) = UnixStream::pair().unwrap();
        drop(line);
        for end in &ends {
            assert_eq!(first(&quiet, Some(end)).unwrap(), First::Host);
            assert_eq!(first(&leash, Some(end)).unwrap(), First::Runner, "the runner's word goes first");
        }
    }

    #[test]
    fn without_a_line_the_end_of_the_runner_is_waited_for() {
        let (leash, runner) = UnixStream::pair().unwrap();
        drop(runner);
        assert_eq!(first(&leash, None::<OwnedFd>).unwrap(), First::Runner);
    }
}
