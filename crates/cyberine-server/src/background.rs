//! Work that goes on after the reply, under the scope of the request and of the server.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that one connection may have.
const MAX_TASKS: usize = 1024;

/// Starts tasks that may outlive the reply of one request. They end when the client cancels the
/// request, when the server ends, or when they are done; the server waits for them at its end,
/// for a bounded time.
#[derive(Clone)]
pub struct Background {
    tasks: TaskTracker,
    cancel: CancellationToken,
    /// Kept by every task, so that its holder can tell when the last one is over.
    lease: Option<Arc<dyn Lease>>,
}

/// Something that lives as long as a request has tasks. Its `Drop` is the signal.
pub(crate) trait Lease: Send + Sync {}

impl Background {
    /// Tasks that `tasks` counts and `cancel` ends.
    #[must_use]
    pub const fn new(tasks: TaskTracker, cancel: CancellationToken) -> Self {
        Self { tasks, cancel, lease: None }
    }

    /// As [`new`](Self::new); every task keeps `lease` until it is over.
    pub(crate) fn leased(tasks: TaskTracker, cancel: CancellationToken, lease: Arc<dyn Lease>) -> Self {
        Self { tasks, cancel, lease: Some(lease) }
    }

    /// Starts a task. It is dropped at its next await point once the request is cancelled or the
    /// server ends: what must not stop half way belongs in the run store. Where a connection has
    /// 1,024 tasks already, a further one is dropped at once.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.tasks.len() >= MAX_TASKS {
            tracing::warn!("a background task was dropped: {MAX_TASKS} are running");
            return;
        }
        let (cancel, lease) = (self.cancel.clone(), self.lease.clone());
        self.tasks.spawn(async move {
            let _ended = cancel.run_until_cancelled_owned(task).await;
            drop(lease);
        });
    }

    /// Resolves the moment the tasks must end; for a task that wants to say goodbye itself.
    #[must_use]
    pub const fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Background({} tasks)", self.tasks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_ends_with_its_scope() {
        let (tasks, cancel) = (TaskTracker::new(), CancellationToken::new());
        let background = Background::new(tasks.clone(), cancel.clone());
        background.spawn(std::future::pending());
        background.spawn(async {});
        tasks.close();
        cancel.cancel();
        tasks.wait().await;
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn tasks_are_bounded() {
        let background = Background::new(TaskTracker::new(), CancellationToken::new());
        for _ in 0..=MAX_TASKS {
            background.spawn(std::future::pending());
        }
        assert_eq!(background.tasks.len(), MAX_TASKS);
    }
}
