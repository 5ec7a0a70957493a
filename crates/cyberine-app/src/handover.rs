//! What a runner is told without anybody else seeing it: the variables that its providers need. The
//! environment of a process is shown to every program of the same user, a socket's content to none.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;

use cyberine_process::ChildEnvironment;

/// What a runner says of a run that it has settled.
const SETTLED: &[u8] = b".";
/// The most that is handed over, in bytes.
const LIMIT: usize = 1 << 20;

/// A channel with `variables` in it: the end of a runner that is about to be started, and that of its
/// guardian, who learns through it of the runner's end.
///
/// # Errors
/// Says so where the system does not take them all at once.
pub(crate) fn offer(variables: &ChildEnvironment) -> Result<Channel, String> {
    let mut text = Vec::new();
    for name in variables.names() {
        let value = variables.get(name).unwrap_or_default();
        text.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => "the variables that the providers need are too long: shorten them, \
                                      or ask fewer providers in one run"
            .to_owned(),
        _ => format!("cannot hand the runner what its providers need: {error}"),
    };
    send(&text).map_err(refused)
}

/// The two ends of a channel.
pub(crate) struct Channel {
    pub(crate) runner: OwnedFd,
    pub(crate) guardian: OwnedFd,
}

fn send(text: &[u8]) -> io::Result<Channel> {
    if text.len() > LIMIT {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let (mut ours, theirs) = UnixStream::pair()?;
    // Nobody reads yet: what does not fit would be waited for without end.
    ours.set_nonblocking(true)?;
    let room = text.len().saturating_mul(2).max(1 << 16);
    rustix::net::sockopt::set_socket_send_buffer_size(&ours, room)?;
    ours.write_all(text)?;
    ours.shutdown(Shutdown::Write)?;
    ours.set_nonblocking(false)?;
    Ok(Channel { runner: theirs.into(), guardian: ours.into() })
}

/// What was handed over through `channel`.
///
/// # Errors
/// Where it cannot be read, or was not written by [`offer`].
pub(crate) fn accept(channel: &UnixStream) -> io::Result<Vec<(OsString, OsString)>> {
    let mut text = Vec::new();
    channel.take(LIMIT as u64).read_to_end(&mut text)?;
    let variables = text.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    variables.map(variable).collect()
}

/// Tells the guardian that the run is settled. A guardian that is not there needs no telling.
pub(crate) fn dismiss(mut channel: UnixStream) {
    let _ = channel.write_all(SETTLED);
}

/// Waits for the end of the runner, and says whether it left its run settled.
pub(crate) fn was_dismissed(channel: OwnedFd) -> bool {
    UnixStream::from(channel).read_exact(&mut [0; SETTLED.len()]).is_ok()
}

fn variable(text: &[u8]) -> io::Result<(OsString, OsString)> {
    let at = text.iter().position(|byte| *byte == b'=');
    let at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a variable without a value"))?;
    let (name, value) = (&text[..at], &text[at + 1..]);
    Ok((OsStr::from_bytes(name).to_owned(), OsString::from_vec(value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_accepted_as_it_was() {
        let long = "k".repeat(90_000);
        let given = ChildEnvironment::allowed([]).set("A_KEY", "a=b\nc").set("EMPTY", "").set("LONG", &long);
        let taken = accept(&UnixStream::from(offer(&given).unwrap().runner)).unwrap();
        let expected = [("A_KEY", "a=b\nc"), ("EMPTY", ""), ("LONG", long.as_str()), ("TERM", "dumb")];
        assert_eq!(taken, expected.map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_not_waited_for() {
        let given = (0..60).fold(ChildEnvironment::allowed([]), |all, number| {
            all.set(format!("KEY_{number}"), "k".repeat(100_000))
        });
        assert!(offer(&given).err().unwrap().contains("too long"));
    }

    #[test]
    fn a_guardian_knows_a_settled_run_from_a_dead_runner() {
        for settled in [true, false] {
            let Channel { runner, guardian } = offer(&ChildEnvironment::allowed([])).unwrap();
            let runner = UnixStream::from(runner);
            accept(&runner).unwrap();
            if settled {
                dismiss(runner)
            } else {
                drop(runner)
            }
            assert_eq!(was_dismissed(guardian), settled);
        }
    }

    #[test]
    fn a_channel_that_breaks_off_is_an_error() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"A=1\0half").unwrap();
        drop(ours);
        assert_eq!(accept(&theirs).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
