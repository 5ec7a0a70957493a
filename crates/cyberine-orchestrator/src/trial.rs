//! The objective judge: a program is run on each answer, and its exit code speaks.

mod config;
mod extract;
mod judge;

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub use config::{Extract, JudgeCommand};
pub(crate) use judge::CommandJudge;

/// The name of this judge.
pub const COMMAND: &str = "command";

/// Tries one answer at a time.
pub trait Trials: Send + Sync {
    /// Runs the command on the answer, in a fresh private directory that is gone afterwards, and
    /// kills everything it started once it is over, out of time or cancelled.
    fn run(
        &self,
        trial: Trial,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<TrialReport, TrialError>>;
}

/// One answer to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// What to run, and how.
    pub command: JudgeCommand,
    /// What the candidate said, or the part that is tried. Data: it goes into a file and onto
    /// standard input, never into an argument.
    pub text: String,
    /// The project's directory: a relative `copy` lies in it.
    pub project: PathBuf,
    /// The run this trial belongs to: the mark put into the environment of every child.
    pub mark: String,
}

/// How a trial has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialReport {
    /// Whether the program ended by itself, in time, with exit code 0.
    pub passed: bool,
    /// How it ended, in a few words: `exit 1`, `no end within 120 s`.
    pub end: String,
    /// The last of what it wrote to standard output and standard error, at most a few KiB.
    pub tail: String,
}

/// A trial that could not be held. It says nothing about the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the judge's command could not be run: {detail}")]
pub struct TrialError {
    /// Why, and what to do about it.
    pub detail: String,
}

/// For engines without the judge `command`: every trial fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrials;

impl Trials for NoTrials {
    fn run(
        &self,
        _trial: Trial,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<TrialReport, TrialError>> {
        let detail = "this engine runs no commands".to_owned();
        Box::pin(std::future::ready(Err(TrialError { detail })))
    }
}
