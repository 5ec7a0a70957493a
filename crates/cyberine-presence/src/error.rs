//! How presence fails, and what to do about it.

use cyberine_fs::FsError;

use crate::record::RecordAddr;

/// Presence that could not be announced or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresenceError {
    /// The files could not be used.
    #[error("the presence files cannot be used")]
    Files(#[from] FsError),
    /// A text of the announcement would mislead whoever reads the roster.
    #[error("the {what} {text} cannot be announced: {reason}")]
    Refused {
        /// Which text: `team`, `role`, `name`, `capability`, `address`, `directory`.
        what: &'static str,
        /// The text, shortened, with what cannot be seen escaped.
        text: String,
        /// The rule it breaks.
        reason: String,
    },
    /// This process announces that address already.
    #[error("this process announces {addr} already")]
    Twice {
        /// The address.
        addr: RecordAddr,
    },
    /// The blocking work panicked or the runtime is shutting down.
    #[error("the presence worker stopped: {detail}")]
    Worker {
        /// What is known about it.
        detail: String,
    },
}

impl PresenceError {
    /// A stable code for people and programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Files(_) => "presence_files",
            Self::Refused { .. } => "presence_refused",
            Self::Twice { .. } => "presence_twice",
            Self::Worker { .. } => "presence_worker",
        }
    }

    /// What to do next, in one sentence.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Files(_) => {
                "Make `bus/presence` in the home yours alone (directories 0700, files 0600) and writable, and free some space."
            }
            Self::Refused { .. } => "Choose another one: short, and of characters that can be seen.",
            Self::Twice { .. } => "End the earlier announcement first.",
            Self::Worker { .. } => "Try again; if it happens again, report it as a bug.",
        }
    }
}
