//! The one table of exit codes.

use std::io::{self, Write};
use std::process::ExitCode;

/// How a Cyberine program ends. The numbers from 64 to 78 are those
/// of BSD `sysexits.h`, 130 that of a shell after SIGINT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// The work was done and came to a bad end: a run that failed or was cancelled.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Something needed is not there: no provider, no such run, no program to start.
    Unavailable = 69,
    /// A fault of ours, or of the disk under us.
    Internal = 70,
    /// It may work later: a cap is reached, another process holds what is needed.
    TryAgain = 75,
    /// Not allowed: an untrusted configuration.
    Denied = 77,
    /// The configuration is wrong.
    Configuration = 78,
    /// Interrupted at the terminal: a run that was only watched or waited for goes on, whatever else
    /// had been started is ended.
    Interrupted = 130,
}

impl Exit {
    /// The table, for `--help`.
    pub const TABLE: &'static str = "\
Exit codes:
   0  done
   1  the run ended in an error or was cancelled
   2  the command line is wrong
  69  something needed is not there (a provider, a run, a program)
  70  an internal fault, or a fault of the disk
  75  try again later (a spending cap is reached, a lock is held)
  77  not allowed (a configuration that is not trusted)
  78  the configuration is wrong
 130  interrupted; a run that was watched or waited for goes on";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Says `text` before a program ends with `exit`: on stdout where it is what was asked for, else
/// on stderr.
#[must_use]
pub fn say(exit: Exit, text: &str) -> ExitCode {
    let written = match exit {
        Exit::Done => to_stdout(text),
        _ => std::io::stderr().write_all(text.as_bytes()),
    };
    match written {
        // A closed pipe is the reader's choice.
        Err(error) if exit == Exit::Done && error.kind() != io::ErrorKind::BrokenPipe => {
            say(Exit::Internal, &format!("stdout could not be written to: {error}\n"))
        }
        // Nobody is left to tell where stderr cannot be written.
        _ => exit.into(),
    }
}

fn to_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table() {
        for code in [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Unavailable,
            Exit::Internal,
            Exit::TryAgain,
            Exit::Denied,
            Exit::Configuration,
            Exit::Interrupted,
        ] {
            let line = format!("{:>4}  ", code as u8);
            assert!(Exit::TABLE.lines().any(|row| row.starts_with(&line)), "{code:?}");
        }
    }

    #[test]
    fn the_manual_has_the_same_table() {
        let manual = include_str!("../../../docs/errors.md");
        for row in Exit::TABLE.lines().skip(1) {
            let (code, meaning) = row.trim_start().split_once("  ").unwrap();
            let row = format!("| {code} | {} |", meaning.trim_start());
            assert!(manual.contains(&row), "{row}");
        }
    }
}
