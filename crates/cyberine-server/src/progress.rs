//! News of one call on its way to the client.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

/// Where the news of one request goes. Clones share one count, so that several tasks can report
/// on one call.
///
/// The protocol wants a value that grows with every notification: a value that is not above the
/// last one sent is left out. Where the client gave no token nothing is sent at all.
#[derive(Clone)]
pub struct Progress(Option<Arc<Bound>>);

struct Bound {
    sink: Box<dyn ProgressSink>,
    outlives_reply: bool,
    last: Mutex<f64>,
}

/// One item of news.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressUpdate {
    /// How far the work has come; above every earlier value of the request.
    pub progress: f64,
    /// Where it ends, in the same unit, where that is known.
    pub total: Option<f64>,
    /// What is going on, for people. Hosts show the first 200 characters.
    pub message: Option<String>,
}

/// Carries news to one client; the rail has one per request, tests may have their own.
pub trait ProgressSink: Send + Sync {
    /// Queues one item. `false` where there is no room for it now; an item for a request that
    /// takes none any more counts as sent.
    fn send(&self, update: &ProgressUpdate) -> bool;

    /// Resolves when there may be room.
    fn room(&self) -> BoxFuture<'_, ()>;
}

impl Progress {
    /// For a request that asked for no news.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// For a request that asked for news. `outlives_reply`: whether its era allows them after
    /// the reply.
    #[must_use]
    pub fn to(sink: impl ProgressSink + 'static, outlives_reply: OutlivesReply) -> Self {
        let outlives_reply = outlives_reply == OutlivesReply::Yes;
        Self(Some(Arc::new(Bound {
            sink: Box::new(sink),
            outlives_reply,
            last: Mutex::new(f64::NEG_INFINITY),
        })))
    }

    /// Whether the client asked for news.
    #[must_use]
    pub const fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Whether news may go on after the reply: in the `initialize` era, where a token was given.
    /// The stateless era ends them with the reply.
    #[must_use]
    pub fn may_outlive_reply(&self) -> bool {
        self.0.as_ref().is_some_and(|bound| bound.outlives_reply)
    }

    /// Sends one item, or drops it where the queue to the client is full.
    pub fn send(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(bound) = &self.0 {
            let update = ProgressUpdate { progress, total, message: message.map(str::to_owned) };
            bound.offer(&update);
        }
    }

    /// Sends one item that must not be dropped, such as the last of a run: waits until the queue
    /// to the client has room.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, the item has not been sent.
    pub async fn deliver(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(bound) = &self.0 else { return };
        let update = ProgressUpdate { progress, total, message: message.map(str::to_owned) };
        while !bound.offer(&update) {
            bound.sink.room().await;
        }
    }
}

impl Bound {
    /// `false` only where the queue was full.
    fn offer(&self, update: &ProgressUpdate) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if update.progress.is_nan() || update.progress <= *last {
            return true;
        }
        let sent = self.sink.send(update);
        if sent {
            *last = update.progress;
        }
        sent
    }
}

/// Whether an era allows news of a request after its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlivesReply {
    /// The `initialize` era.
    Yes,
    /// The stateless era.
    No,
}

impl fmt::Debug for Progress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => out.write_str("Progress(none)"),
            Some(bound) => write!(out, "Progress(outlives_reply: {})", bound.outlives_reply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[derive(Clone, Default)]
    struct Fixture {
        sent: Arc<Mutex<Vec<f64>>>,
        refusals: Arc<Mutex<VecDeque<()>>>,
    }

    impl ProgressSink for Fixture {
        fn send(&self, update: &ProgressUpdate) -> bool {
            if self.refusals.lock().unwrap().pop_front().is_some() {
                return false;
            }
            self.sent.lock().unwrap().push(update.progress);
            true
        }

        fn room(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn values_that_do_not_grow_are_left_out() {
        let fixture = Fixture::default();
        let progress = Progress::to(fixture.clone(), OutlivesReply::No);
        let twin = progress.clone();
        for value in [1.0, 1.0, 0.5, f64::NAN, 2.0] {
            progress.send(value, None, None);
        }
        twin.send(2.0, None, None);
        twin.send(3.0, None, None);
        assert_eq!(*fixture.sent.lock().unwrap(), [1.0, 2.0, 3.0]);
    }

    #[tokio::test]
    async fn a_full_queue_drops_news_but_not_the_delivered_kind() {
        let fixture = Fixture::default();
        fixture.refusals.lock().unwrap().extend([(), (), ()]);
        let progress = Progress::to(fixture.clone(), OutlivesReply::Yes);
        progress.send(1.0, None, None);
        progress.deliver(1.0, None, Some("settled")).await;
        assert_eq!(*fixture.sent.lock().unwrap(), [1.0]);
    }

    #[test]
    fn a_request_without_a_token_wants_nothing() {
        let progress = Progress::none();
        progress.send(1.0, None, None);
        assert!(!progress.wanted() && !progress.may_outlive_reply());
        let modern = Progress::to(Fixture::default(), OutlivesReply::No);
        assert!(modern.wanted() && !modern.may_outlive_reply());
    }
}
