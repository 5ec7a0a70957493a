//! The things a client follows: resources, tasks, and lists of what is served.

use cyberine_protocol::model::{DetailedTask, ListKind};
use cyberine_protocol::{RequestKey, ServerSession};

use crate::changes::ListChanges;
use crate::dispatch::task::detailed;
use crate::resource_set::ResourceWatch;
use crate::task_set::TaskWatch;

/// One of them.
pub(crate) enum Watched {
    Resource { uri: String, watch: Box<dyn ResourceWatch> },
    Task(Box<dyn TaskWatch>),
    List(ListKind, ListChanges),
}

/// What has become of it.
pub(super) enum Change<'a> {
    Resource(&'a str),
    Task(DetailedTask),
    List(ListKind),
}

impl Watched {
    /// Waits for the next change; `None` where there will be none.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, no change is lost.
    pub(super) async fn next(&mut self) -> Option<Change<'_>> {
        match self {
            Self::Resource { uri, watch } => {
                watch.changed().await;
                Some(Change::Resource(uri))
            }
            Self::Task(watch) => Some(Change::Task(detailed(watch.next().await?))),
            Self::List(kind, changes) => {
                changes.changed().await;
                Some(Change::List(*kind))
            }
        }
    }
}

impl Change<'_> {
    /// What tells of it, under the key of the request that wanted to know. `None` where nothing more
    /// will be sent for that.
    pub(super) fn line(&self, session: &ServerSession, key: RequestKey) -> Option<Vec<u8>> {
        match self {
            Self::Resource(uri) => session.updated(key, uri),
            Self::Task(task) => session.task_changed(key, task),
            Self::List(kind) => session.list_changed(*kind, key),
        }
    }
}
