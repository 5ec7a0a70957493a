use std::time::Duration;

use cyberine_protocol::model::ListKind;
use futures_util::future::{pending, select_all};
use tokio::time::Instant;

use crate::changes::ListChanges;
use crate::server::Server;

/// The shortest time between two notifications.
const PAUSE: Duration = Duration::from_millis(50);

/// The lists of a server that may change, followed for one client without a task of their own.
pub(super) struct Lists {
    lists: Box<[(ListKind, ListChanges)]>,
    next: Instant,
}

impl Lists {
    /// From now on.
    pub(super) fn of(server: &Server) -> Self {
        Self { lists: server.list_changes().collect(), next: Instant::now() }
    }

    /// Waits until one has changed. What changes all the time is told of a few times a second.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, no change is lost.
    pub(super) async fn changed(&mut self) -> ListKind {
        if self.lists.is_empty() {
            return pending().await;
        }
        tokio::time::sleep_until(self.next).await;
        let changes = self.lists.iter_mut().map(|(kind, changes)| {
            Box::pin(async move {
                changes.changed().await;
                *kind
            })
        });
        let (kind, ..) = select_all(changes).await;
        self.next = Instant::now() + PAUSE;
        kind
    }
}
