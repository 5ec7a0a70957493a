//! The port: announcing oneself, and the roster.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::PresenceError;
use crate::record::{Activity, Member, RecordAddr};

/// Who is there.
pub trait Presence: Send + Sync {
    /// Announces an address of this process and keeps the record fresh until the announcement is
    /// ended. The record is there when this returns. Another process may announce the same
    /// address: both are listed, told apart by their instance ids.
    ///
    /// # Errors
    /// Where a text of it cannot be seen or is too long, where this process announces the address
    /// already, and where the record cannot be written.
    fn announce(&self, announcing: Announcing)
    -> BoxFuture<'_, Result<Arc<dyn Announcement>, PresenceError>>;

    /// Everybody who is live, by address, then instance. Nobody stale, gone or departed.
    ///
    /// # Errors
    /// [`PresenceError`].
    fn roster(&self) -> BoxFuture<'_, Result<Vec<Member>, PresenceError>>;
}

/// What is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcing {
    /// Where messages reach it.
    pub addr: RecordAddr,
    /// The directory it works in.
    pub repo_cwd: String,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// Its team.
    pub team: Option<String>,
    /// Its role in the team.
    pub role: Option<String>,
    /// Its own name.
    pub name: Option<String>,
}

/// An announcement that is kept fresh. Dropped without [`end`](Self::end), it withdraws as well
/// as it can; a process that dies leaves that to the readers.
pub trait Announcement: Send + Sync {
    /// Says what the process does from now on.
    fn set_activity(&self, activity: Activity);

    /// Withdraws the record: the address is no longer listed when this returns.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Nobody is there, and nobody is told of.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPresence;

impl Presence for NoPresence {
    fn announce(
        &self,
        _announcing: Announcing,
    ) -> BoxFuture<'_, Result<Arc<dyn Announcement>, PresenceError>> {
        Box::pin(std::future::ready(Ok(Arc::new(Self) as Arc<dyn Announcement>)))
    }

    fn roster(&self) -> BoxFuture<'_, Result<Vec<Member>, PresenceError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

impl Announcement for NoPresence {
    fn set_activity(&self, _activity: Activity) {}

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
