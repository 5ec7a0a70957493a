//! Changes of lists, told to a client of the `initialize` era without being asked.

use std::sync::Arc;

use cyberine_protocol::model::ListKind;

use super::Connection;
use super::follow::PAUSE;
use crate::output::Flush;

impl Connection {
    /// Tells of every change of a list from now on, while the connection lasts. It begins before
    /// anything is asked, so that no change is missed; a client that opened no session hears nothing.
    pub(crate) fn announce_lists(self: &Arc<Self>) {
        for (kind, mut changes) in self.server.list_changes() {
            let connection = Arc::clone(self);
            let scope = self.shared.scope.clone();
            let telling = async move {
                loop {
                    changes.changed().await;
                    connection.announce(kind).await;
                    tokio::time::sleep(PAUSE).await;
                }
            };
            self.shared.follows.tasks.spawn(scope.run_until_cancelled_owned(telling));
        }
    }

    async fn announce(&self, kind: ListKind) {
        let _turn = self.output.turn().await;
        let session = self.session();
        if let Some(line) = session.list_changed_unsolicited(kind) {
            self.output.push(line, Flush::Now);
        }
    }
}
