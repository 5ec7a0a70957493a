//! What all exchanges of one client share; on a pipe there is one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::follow::Follows;
use super::places::Places;

/// Resources that are read at once. Each may be as large as a line, and is kept until the queue to
/// the client takes it.
const MAX_READS: usize = 4;

/// How long tasks have to end.
const END_WAIT: Duration = Duration::from_millis(200);

/// One client's places, and the tasks that work for it.
pub(crate) struct Shared {
    /// Those of all sessions of the client.
    pub(super) places: Arc<Places>,
    pub(super) reads: Arc<Semaphore>,
    pub(super) follows: Follows,
    /// Calls in flight.
    pub(super) calls: TaskTracker,
    /// What goes on after replies.
    pub(super) background: TaskTracker,
    /// Ends with the client.
    pub(super) scope: CancellationToken,
}

impl Default for Shared {
    fn default() -> Self {
        Self::with(Arc::new(Places::new()))
    }
}

impl Shared {
    fn with(places: Arc<Places>) -> Self {
        Self {
            places,
            reads: Arc::new(Semaphore::new(MAX_READS)),
            follows: Follows::new(),
            calls: TaskTracker::new(),
            background: TaskTracker::new(),
            scope: CancellationToken::new(),
        }
    }

    /// That of a client's session, which takes the places of the client and shares nothing else with it.
    pub(crate) fn session(&self) -> Self {
        Self::with(Arc::clone(&self.places))
    }

    /// Ends everything: gives calls in flight `grace` to finish, then cancels them, what goes on in
    /// the background and what is followed. Each step is bounded.
    pub(crate) async fn wind_down(&self, grace: Duration) {
        self.calls.close();
        let _ = tokio::time::timeout(grace, self.calls.wait()).await;
        self.scope.cancel();
        self.background.close();
        self.follows.tasks.close();
        let ended =
            async { tokio::join!(self.calls.wait(), self.background.wait(), self.follows.tasks.wait()) };
        if tokio::time::timeout(END_WAIT, ended).await.is_err() {
            tracing::warn!(
                calls = self.calls.len(),
                tasks = self.background.len(),
                follows = self.follows.tasks.len(),
                "tasks did not end in time"
            );
        }
    }

    /// Cancels everything at once, without a wait.
    pub(crate) fn cancel(&self) {
        self.scope.cancel();
    }

    /// Whether nothing goes on.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.background.is_empty() && self.follows.tasks.is_empty()
    }
}
