//! Reading from a descriptor, with a way to stop.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
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
    /// Nothing is there, and nobody reads the answers any more.
    Unheard,
}

impl FdInput {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<(Self, Stop)> {
        let (stop, stopper) = io::pipe()?;
        Ok((Self { fd, stop }, Stop { _writer: stopper }))
    }

    /// Waits for bytes, for the end of the stream, for the order to stop, or until nobody reads
    /// `answers`: a descriptor that is only written to says so without being written to.
    pub(crate) fn wait(&self, answers: Option<BorrowedFd<'_>>) -> io::Result<Readiness> {
        // Where there is nothing to watch, the stop is watched twice.
        let answers = answers.unwrap_or(self.stop.as_fd());
        loop {
            let mut fds = [
                PollFd::new(&self.fd, PollFlags::IN),
                PollFd::new(&self.stop, PollFlags::IN),
                PollFd::new(&answers, PollFlags::empty()),
            ];
            match rustix::event::poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let [input, stop, answers] = fds.map(|fd| fd.revents());
            if !stop.is_empty() {
                return Ok(Readiness::Stopped);
            }
            // What the client said before it went away is heard.
            if !input.is_empty() {
                return Ok(Readiness::Ready);
            }
            // Nothing was asked of it, so it has an error, a hang-up, or is no descriptor at all.
            if !answers.is_empty() {
                return Ok(Readiness::Unheard);
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
    fn a_closed_end_of_the_answers_is_seen_behind_what_was_asked() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let (input, _stop) = FdInput::new(reader.into()).unwrap();
        let (theirs, answers) = std::io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        drop(theirs);
        assert_eq!(input.wait(Some(answers.as_fd())).unwrap(), Readiness::Ready);
        assert_eq!(input.read(&mut [0; 8]).unwrap(), 1);
        assert_eq!(input.wait(Some(answers.as_fd())).unwrap(), Readiness::Unheard);

        let (theirs, answers) = UnixStream::pair().unwrap();
        // A host that never writes to the socket it reads from may say so.
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        writer.write_all(b"x").unwrap();
        assert_eq!(input.wait(Some(answers.as_fd())).unwrap(), Readiness::Ready);
        assert_eq!(input.read(&mut [0; 8]).unwrap(), 1);
        drop(theirs);
        assert_eq!(input.wait(Some(answers.as_fd())).unwrap(), Readiness::Unheard);
    }

    #[test]
    fn reading_ends_when_it_is_told_to() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (input, stop) = FdInput::new(reader.into()).unwrap();
        drop(stop);
        assert_eq!(input.wait(None).unwrap(), Readiness::Stopped);
        assert!(input.hung_up());
        drop(writer);
    }
}
