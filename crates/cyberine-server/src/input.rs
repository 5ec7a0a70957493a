//! Reading from a descriptor, with a way to stop.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// A descriptor to read from. Reading ends when the [`Stop`] made with it is dropped.
pub(crate) struct FdInput {
    fd: OwnedFd,
    stop: io::PipeReader,
}

/// Ends the reading when dropped.
pub(crate) struct Stop {
    _writer: io::PipeWriter,
}

/// What a wait for input came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// There are bytes, or the stream has ended.
    Ready,
    /// The reading is to end.
    Stopped,
}

impl FdInput {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<(Self, Stop)> {
        let (stop, stopper) = io::pipe()?;
        Ok((Self { fd, stop }, Stop { _writer: stopper }))
    }

    /// Waits for bytes, for the end of the stream, or for the order to stop.
    pub(crate) fn wait(&self) -> io::Result<Readiness> {
        loop {
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
            match rustix::event::poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if !fds[1].revents().is_empty() => return Ok(Readiness::Stopped),
                Ok(_) => return Ok(Readiness::Ready),
            }
        }
    }

    /// Reads what is there; `Ok(0)` is the end of the stream.
    pub(crate) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.fd, &mut *space) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Whether the host has closed its end or the reading is to end, also where unread bytes are
    /// left.
    pub(crate) fn hung_up(&self) -> bool {
        let now = Timespec::try_from(Duration::ZERO).ok();
        let mut fds = [PollFd::new(&self.fd, CLOSED), PollFd::new(&self.stop, PollFlags::IN)];
        rustix::event::poll(&mut fds, now.as_ref()).is_ok_and(|_| {
            let closed = PollFlags::HUP | PollFlags::ERR | CLOSED;
            fds[0].revents().intersects(closed) || !fds[1].revents().is_empty()
        })
    }
}

/// A socket whose peer has shut down its writing says so without being read.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_closed_end_is_seen_behind_unread_bytes() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let (input, _stop) = FdInput::new(reader.into()).unwrap();
        writer.write_all(b"x").unwrap();
        assert!(!input.hung_up());
        drop(writer);
        assert!(input.hung_up());

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (input, _stop) = FdInput::new(ours.into()).unwrap();
        theirs.write_all(b"x").unwrap();
        assert!(!input.hung_up());
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(input.hung_up());
    }

    #[test]
    fn reading_ends_when_it_is_told_to() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (input, stop) = FdInput::new(reader.into()).unwrap();
        drop(stop);
        assert_eq!(input.wait().unwrap(), Readiness::Stopped);
        assert!(input.hung_up());
        drop(writer);
    }
}
