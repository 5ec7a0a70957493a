use std::path::PathBuf;

use cyberine_fs::FsError;

/// Why something cannot be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// Hosts would read the text as a variable.
    #[error(
        "`{text}` holds `$`, which hosts replace by variables: move the program, or choose another value"
    )]
    Expanded {
        /// The text.
        text: String,
    },
    /// A variable that has no business in a host's file.
    #[error("`{name}` is not written into a host's file: set it in the environment the host starts in")]
    Variable {
        /// The variable.
        name: String,
    },
}

/// Why a host's file cannot be edited. Nothing was touched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The file is not what its host reads.
    #[error("{line}:{column}: {message}; correct it first, nothing was touched")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// Something else stands where the servers should.
    #[error("{line}:{column}: `{key}` is {found}, so nothing can be added to it; correct it first")]
    WrongShape {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The key.
        key: String,
        /// What is there, with its article.
        found: &'static str,
    },
    /// The name is taken by another entry.
    #[error("`cyberine` is registered already, as something else; --force replaces it")]
    Taken {
        /// The entry that is there, as it is written.
        existing: String,
    },
    /// The entry to be removed does not start our server.
    #[error("`cyberine` is registered as something that `install` did not write; --force removes it")]
    Foreign {
        /// The entry that is there, as it is written.
        existing: String,
    },
    /// The file is written in a way this edit does not know.
    #[error("{what}; edit the file by hand, `--print` shows what belongs into it")]
    Unusual {
        /// What is unusual.
        what: &'static str,
    },
    /// What was to be registered cannot be.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

/// Why a host's file was not read or not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A link to nothing.
    #[error("`{}` is a symbolic link to nothing; make its target, or remove it", .path.display())]
    Dangling {
        /// The link.
        path: PathBuf,
    },
    /// A file its owner may not write, as dotfile managers make them.
    #[error("`{}` is read-only; whatever manages it has to change it: `--print` shows what belongs into it", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Bytes that are no text.
    #[error("`{}` is not UTF-8 text, so it was left alone", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// Somebody wrote the file after it was read.
    #[error("`{}` was changed by someone else at the same moment; nothing was written, run the command again", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory refused.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Any other answer of the system.
    #[error("could not {action} `{}`", .path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}
