//! Writing to a descriptor without blocking, and without changing what the host shares with us.
//!
//! `O_NONBLOCK` belongs to the open file description, which the host holds too: set by us, it
//! would make the host's own reads and writes fail. So a socket is written with `MSG_DONTWAIT`, a
//! pipe through a description of our own, and anything else in pieces that fit once `poll` says so.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::SendFlags;

/// A piece that a pipe takes whole where `poll` calls it writable (POSIX: `_POSIX_PIPE_BUF`).
const PIECE: usize = 512;

/// A descriptor to write to.
pub(crate) struct FdSink {
    fd: OwnedFd,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Socket,
    /// A description of our own, which does not block.
    OwnPipe,
    /// Never blocks for long.
    File,
    /// A terminal, or a pipe that could not be opened anew.
    Other,
}

impl FdSink {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        let file_type = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        let (fd, kind) = match file_type {
            FileType::Socket => (fd, Kind::Socket),
            FileType::RegularFile => (fd, Kind::File),
            FileType::Fifo => match reopened(fd.as_fd()) {
                Some(own) => (own, Kind::OwnPipe),
                None => (fd, Kind::Other),
            },
            _ => (fd, Kind::Other),
        };
        Ok(Self { fd, kind })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes some of `bytes`, or fails with `WouldBlock`.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match self.kind {
                Kind::Socket => rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
                Kind::OwnPipe | Kind::File => rustix::io::write(&self.fd, bytes),
                Kind::Other => self.write_piece(bytes),
            };
            match written {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn write_piece(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        if rustix::event::poll(&mut fds, Some(&now))? == 0 {
            return Err(Errno::WOULDBLOCK);
        }
        rustix::io::write(&self.fd, &bytes[..bytes.len().min(PIECE)])
    }

    /// Waits until the descriptor may take bytes, for at most `limit`.
    pub(crate) fn wait_writable(&self, limit: Duration) -> io::Result<()> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        match rustix::event::poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The same pipe through an open file description of our own, which may be non-blocking.
#[cfg(target_os = "linux")]
fn reopened(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// Elsewhere `/dev/fd` gives the host's own description again.
#[cfg(not(target_os = "linux"))]
const fn reopened(_fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::OFlags;
    use std::os::unix::net::UnixStream;

    /// Fills the sink and checks that it says so without blocking, and that the host's flags are
    /// as they were.
    fn fills_without_blocking(kind: Kind, host: BorrowedFd<'_>, ours: OwnedFd) {
        let before = rustix::fs::fcntl_getfl(host).unwrap();
        let sink = FdSink::new(ours).unwrap();
        assert_eq!(sink.kind, kind);
        let error = loop {
            match sink.try_write(&[b'x'; 4096]) {
                Ok(count) => assert!(count > 0),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(rustix::fs::fcntl_getfl(host).unwrap(), before);
        assert!(!before.contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_full_socket_is_noticed_without_blocking() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let host = ours.try_clone().unwrap();
        fills_without_blocking(Kind::Socket, host.as_fd(), ours.into());
    }

    #[test]
    fn a_full_pipe_is_noticed_without_blocking() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let host = writer.try_clone().unwrap();
        let kind = if cfg!(target_os = "linux") { Kind::OwnPipe } else { Kind::Other };
        fills_without_blocking(kind, host.as_fd(), writer.into());
    }

    #[test]
    fn a_full_pipe_that_cannot_be_opened_anew_is_written_in_pieces() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let sink = FdSink { fd: writer.into(), kind: Kind::Other };
        while let Ok(count) = sink.try_write(&[b'x'; 4096]) {
            assert!(count <= PIECE);
        }
    }
}
