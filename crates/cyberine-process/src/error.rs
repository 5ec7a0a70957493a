use std::io;
use std::path::PathBuf;

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No such program.
    #[error("`{program}` was not found in {searched}; install it or name it by its full path")]
    NotFound {
        /// The program as it was named.
        program: String,
        /// Where it was looked for: `PATH` with its value, or the path itself.
        searched: String,
    },
    /// The directory to work in is not there.
    #[error("the directory `{}` to run `{program}` in is not there", .cwd.display())]
    NoDirectory {
        /// The program.
        program: String,
        /// The directory.
        cwd: PathBuf,
    },
    /// The system takes no argument list and environment of this size.
    #[error("the arguments of `{program}` are longer than the system allows; pass long text on its input")]
    TooLong {
        /// The program.
        program: String,
    },
    /// The system refused.
    #[error("could not start `{program}`")]
    Refused {
        /// The program.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Why a child's output ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The child wrote more than it may. It has been killed.
    #[error("the program wrote more than {limit} bytes")]
    TooMuch {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The pipe broke.
    #[error("could not read what the program writes")]
    Read {
        /// The system's answer.
        source: io::Error,
    },
}

/// Why a child does not hear a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Its input is closed, or the child is gone.
    #[error("its input is closed")]
    Closed,
    /// It does not read what it is told.
    #[error("it leaves unread what it is told")]
    Full,
}
