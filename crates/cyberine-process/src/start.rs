//! The one place where a child is started.

use std::io;
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;
use tokio::process::{Child, Command};

use crate::{ChildEnvironment, SpawnError, lookup, tree};

pub(crate) struct Start<'a> {
    pub(crate) program: &'a std::ffi::OsStr,
    pub(crate) args: &'a [std::ffi::OsString],
    pub(crate) environment: &'a ChildEnvironment,
    pub(crate) cwd: &'a Path,
}

/// The three standard streams of a child.
pub(crate) struct Streams {
    pub(crate) input: Stdio,
    pub(crate) output: Stdio,
    pub(crate) errors: Stdio,
}

/// Which process group a child starts in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// One of its own, so that it can be signalled as a whole.
    Own,
    /// Ours, for a child that is about to open a session: the leader of a group may not.
    Ours,
}

pub(crate) fn start(start: &Start<'_>, streams: Streams, group: Group) -> Result<Child, SpawnError> {
    let program = || start.program.display().to_string();
    if !start.cwd.is_dir() {
        return Err(SpawnError::NoDirectory { program: program(), cwd: start.cwd.to_owned() });
    }
    let found = lookup::find(start.program, start.environment.get("PATH"), start.cwd)?;
    #[expect(clippy::disallowed_methods, reason = "this is the place the others are sent to")]
    let mut command = Command::new(found);
    command.args(start.args).env_clear().envs(start.environment.pairs()).current_dir(start.cwd);
    command.stdin(streams.input).stdout(streams.output).stderr(streams.errors);
    if group == Group::Own {
        command.process_group(0);
    }
    tree::registered(|| command.spawn()).map_err(|source| refused(program(), source))
}

fn refused(program: String, source: io::Error) -> SpawnError {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::TOOBIG) => SpawnError::TooLong { program },
        _ => SpawnError::Refused { program, source },
    }
}
