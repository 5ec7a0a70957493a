//! How a bus fails, and what to do about it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cyberine_fs::FsError;

use crate::address::Address;
use crate::envelope::MAX_TEXT_BYTES;

/// A bus that cannot do what was asked. Nothing was acknowledged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// There is no bus (`CYBERINE_BUS_BACKEND=none`).
    #[error("the message bus is switched off (`CYBERINE_BUS_BACKEND=none`)")]
    Off,
    /// The text is too long.
    #[error("the text has {length} bytes; a message may have {MAX_TEXT_BYTES}")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// Something beside the text is too long.
    #[error("the {what} has {length} bytes; it may have {limit}")]
    LabelTooLong {
        /// What it is: `thread`, say.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The longest it may be.
        limit: usize,
    },
    /// A reader without a name.
    #[error("a reader needs a name that can be seen")]
    NamelessReader,
    /// The mailbox's files could not be used.
    #[error("the mailbox of {mailbox} cannot be used")]
    Files {
        /// The mailbox.
        mailbox: Address,
        /// What happened. Shared by all whose messages went down in one write.
        source: Arc<FsError>,
    },
    /// The files of the bus as a whole could not be used.
    #[error("the message bus cannot be used")]
    Home {
        /// What happened.
        source: FsError,
    },
    /// The mailbox's directory was removed or replaced while this process used it.
    #[error("the mailbox of {mailbox} was removed while it was in use: `{}` is gone", .path.display())]
    Gone {
        /// The mailbox.
        mailbox: Address,
        /// Its directory.
        path: PathBuf,
    },
    /// The mailbox is held by another writer for longer than anybody should.
    #[error("the mailbox of {mailbox} has been locked by another process for {waited:?}")]
    Busy {
        /// The mailbox.
        mailbox: Address,
        /// How long was waited.
        waited: Duration,
    },
    /// The blocking work of the operation panicked or the runtime is shutting down.
    #[error("the bus worker stopped: {detail}")]
    Worker {
        /// What is known about it.
        detail: String,
    },
}

impl BusError {
    /// A stable code for people and programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Off => "bus_off",
            Self::TooLong { .. } => "text_too_long",
            Self::LabelTooLong { .. } => "label_too_long",
            Self::NamelessReader => "nameless_reader",
            Self::Files { source, .. } => files_code(source),
            Self::Home { source } => files_code(source),
            Self::Gone { .. } => "mailbox_gone",
            Self::Busy { .. } => "mailbox_busy",
            Self::Worker { .. } => "bus_worker",
        }
    }

    /// What to do next, in one sentence.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Off => "Set `CYBERINE_BUS_BACKEND` to `file`, or leave it out.",
            Self::TooLong { .. } => {
                "Split the text into several messages, or put it in a file and send its path."
            }
            Self::LabelTooLong { .. } => "Choose a shorter one.",
            Self::NamelessReader => "Give the reader's name.",
            Self::Files { source, .. } => files_advice(source),
            Self::Home { source } => files_advice(source),
            Self::Gone { .. } => "Try again: the mailbox is made anew.",
            Self::Busy { .. } => "Try again; if it stays so, look for a stopped process of this program.",
            Self::Worker { .. } => "Try again; if it happens again, report it as a bug.",
        }
    }

    /// A failure on the files of `mailbox`.
    pub(crate) fn files(mailbox: &Address, source: FsError) -> Self {
        Self::Files { mailbox: mailbox.clone(), source: Arc::new(source) }
    }

    /// The same failure, for another one whom it concerns.
    pub(crate) fn share(&self) -> Self {
        match self {
            Self::Files { mailbox, source } => {
                Self::Files { mailbox: mailbox.clone(), source: Arc::clone(source) }
            }
            Self::Gone { mailbox, path } => Self::Gone { mailbox: mailbox.clone(), path: path.clone() },
            Self::Busy { mailbox, waited } => Self::Busy { mailbox: mailbox.clone(), waited: *waited },
            other => Self::Worker { detail: other.to_string() },
        }
    }
}

fn files_code(error: &FsError) -> &'static str {
    match error {
        FsError::Full { .. } => "bus_full",
        FsError::NotWritable { .. } => "bus_not_writable",
        FsError::NotSynced { .. } => "bus_not_synced",
        FsError::NoLocks { .. } => "no_locks",
        FsError::Io { .. } => "bus_io",
        _ => "bus_refused",
    }
}

fn files_advice(error: &FsError) -> &'static str {
    match error {
        FsError::Full { .. } => "Free some space and try again; nothing needs a restart.",
        FsError::NotWritable { .. } => {
            "Make the directory writable, or set `CYBERINE_HOME` to one that is; then try again."
        }
        FsError::NotSynced { .. } => {
            "Check the disk; the message may or may not be there, so repeat it only if it may be read twice."
        }
        FsError::NoLocks { .. } => "Set `CYBERINE_HOME` to a directory on a local file system.",
        FsError::Io { .. } => "Check the disk and the limit on open files, then try again.",
        _ => "Make `bus/` in the home yours alone (directories 0700, files 0600), without links.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_a_code_and_says_what_to_do() {
        let path = || PathBuf::from("/home/bus");
        let source = || std::io::Error::from_raw_os_error(28);
        let files = [
            FsError::Full { path: path(), source: source() },
            FsError::NotWritable { path: path(), source: source() },
            FsError::NotSynced { path: path(), source: source() },
            FsError::NoLocks { path: path(), source: source() },
            FsError::Io { action: "open", path: path(), source: source() },
            FsError::Symlink { path: path() },
        ];
        let mut errors: Vec<BusError> = files.into_iter().map(|source| BusError::Home { source }).collect();
        errors.extend([
            BusError::Off,
            BusError::TooLong { length: 9 },
            BusError::LabelTooLong { what: "thread", length: 9, limit: 8 },
            BusError::NamelessReader,
            BusError::Worker { detail: "it panicked".to_owned() },
        ]);
        let mut codes: Vec<_> = errors.iter().map(BusError::code).collect();
        assert!(errors.iter().all(|error| error.advice().ends_with('.') && !error.to_string().is_empty()));
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), errors.len(), "{codes:?}");
    }
}
