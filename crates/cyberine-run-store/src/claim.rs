//! A claim: the right to carry a run out, held as long as a lock is.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use cyberine_fs::LockFile;
use cyberine_types::RunId;

use crate::projection::Projector;

/// The right to append to one run. It is two things together: a lock that the operating system
/// frees when its last holder dies, and an epoch that is in every event written under it, so that
/// a holder that wakes up late is told apart from its successor.
///
/// Dropping the claim gives it up; whoever looks next may adopt the run.
#[derive(Debug)]
pub struct Claim {
    run: RunId,
    epoch: u64,
    /// `None` once the lock has been handed over.
    hold: Option<Hold>,
    /// Writes the run's files in its project, which only the claim's holder does. `None` where
    /// there are none, or the project cannot be used.
    projector: Option<SharedProjector>,
}

/// A projector that a claim shares with the blocking work done under it.
pub(crate) type SharedProjector = Arc<Mutex<Projector>>;

/// What keeps others from adopting the run.
#[derive(Debug)]
pub(crate) enum Hold {
    /// An exclusive lock on the run's lock file. It belongs to the open file description: it is
    /// free once every descriptor of it, in whatever process, is closed.
    File(LockFile),
    /// A token of this process.
    Token {
        /// Alive as long as the claim is.
        _alive: Arc<()>,
    },
}

impl Claim {
    pub(crate) const fn new(run: RunId, epoch: u64, hold: Hold) -> Self {
        Self { run, epoch, hold: Some(hold), projector: None }
    }

    pub(crate) fn with_projector(mut self, projector: Option<Projector>) -> Self {
        self.projector = projector.map(|projector| Arc::new(Mutex::new(projector)));
        self
    }

    pub(crate) fn projector(&self) -> Option<SharedProjector> {
        self.projector.clone()
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> RunId {
        self.run
    }

    /// The epoch its events carry.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The same claim as somebody would hold it who has not noticed that it was taken over.
    #[cfg(feature = "contract")]
    pub(crate) fn with_epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// Takes the claim's lock out, to be the standard input of a process that is about to be
    /// spawned: the lock passes to it without a moment in which it is free, and this process has
    /// given it up once the returned value is dropped.
    /// `None` where the store lives in this process only.
    #[must_use]
    pub fn into_lock(mut self) -> Option<OwnedFd> {
        match self.hold.take()? {
            Hold::File(lock) => Some(OwnedFd::from(lock.into_file())),
            Hold::Token { .. } => None,
        }
    }
}

impl Drop for Claim {
    /// Frees the lock by name, not by closing alone: a child that is between its fork and its
    /// program holds a copy of every descriptor for an instant.
    fn drop(&mut self) {
        if let Some(Hold::File(lock)) = self.hold.take()
            && let Err(error) = lock.release()
        {
            tracing::debug!(run = %self.run, %error, "the run's lock is freed by closing it");
        }
    }
}
