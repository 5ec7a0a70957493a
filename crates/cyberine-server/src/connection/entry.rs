//! What is kept of one request while anything of it goes on.

use std::sync::Arc;

use cyberine_protocol::RequestKey;
use futures_util::future::BoxFuture;

use super::Connection;
use crate::background::Lease;
use crate::output::Flush;
use crate::progress::{ProgressSink, ProgressUpdate};

/// One request's place in the tables. It is kept by the handler, by its news, by its background
/// tasks and by what it follows; when the last of them is gone, the client can cancel it no more.
pub(crate) struct Entry {
    pub(crate) connection: Arc<Connection>,
    pub(crate) key: RequestKey,
    /// Whether its news may go on.
    pub(super) progress: bool,
    /// Whether it asks to follow a resource.
    pub(super) subscribes: bool,
}

impl Lease for Entry {}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connection.requests().remove(&self.key);
        if self.subscribes {
            self.connection.shared.follows.forget(&self.connection, self.key);
            self.connection.session().end_subscription(self.key);
        }
        if self.progress {
            self.connection.session().end_progress(self.key);
        }
    }
}

/// Carries the news of one request.
pub(crate) struct News(pub(crate) Arc<Entry>);

impl ProgressSink for News {
    fn send(&self, update: &ProgressUpdate) -> bool {
        let Entry { connection, key, .. } = &*self.0;
        let mut session = connection.session();
        if !connection.output.has_room() {
            return false;
        }
        let ProgressUpdate { progress, total, message } = update;
        if let Some(line) = session.progress(*key, *progress, *total, message.as_deref().unwrap_or_default())
        {
            connection.output.push(line, Flush::Now);
        }
        true
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.connection.output.room())
    }
}
