//! What can be counted from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One request that was answered: the head of its answer was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// What was asked, as one of a few fixed words: an MCP method, `batch`, `notification`, `response`,
    /// an HTTP method in capitals for what is no message, `other` for another path, or `unknown`.
    pub method: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// How long it took to the head of the answer.
    pub took: Duration,
}

/// Hears of every request. It is called on the way of the answer, so it must be quick.
pub trait Observer: Send + Sync {
    /// A request was answered.
    fn answered(&self, answered: &Answered);
}

/// For whom nobody counts.
pub(crate) struct Nobody;

impl Observer for Nobody {
    fn answered(&self, _answered: &Answered) {}
}

/// How much goes on at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Open connections.
    pub connections: usize,
    /// Sessions of the `initialize` era.
    pub sessions: usize,
    /// Open event streams.
    pub streams: usize,
    /// Requests whose answer has not begun.
    pub in_flight: usize,
}

/// A number that goes up and down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    pub(crate) fn value(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, as long as it is kept.
    pub(crate) fn hold(&self) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self.clone())
    }

    /// As [`hold`](Self::hold), where there are fewer than `most`.
    pub(crate) fn hold_below(&self, most: usize) -> Option<Held> {
        let grow = |value: usize| (value < most).then_some(value + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok().map(|_| Held(self.clone()))
    }
}

/// One of a gauge.
#[derive(Debug)]
pub(crate) struct Held(Gauge);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How much goes on, to be asked from elsewhere. Clones tell of the same server.
#[derive(Debug, Clone, Default)]
pub struct Meters {
    pub(crate) connections: Gauge,
    pub(crate) sessions: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) in_flight: Gauge,
}

impl Meters {
    /// How much goes on now.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            connections: self.connections.value(),
            sessions: self.sessions.value(),
            streams: self.streams.value(),
            in_flight: self.in_flight.value(),
        }
    }
}
