//! How many requests may be in flight at once, and how much of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for requests in flight.
const PLACES: usize = 256;

/// How many bytes of a request one place holds: a longer one takes several, so that all requests
/// in flight together have no more than 64 MiB.
const PLACE_BYTES: usize = 256 * 1024;

/// Further places, one each, for calls that control others: who has filled all the places can still
/// stop what fills them.
const RESERVE: usize = 8;

/// How long the reader holds back for a place before it lets a request be refused.
const PLACE_WAIT: Duration = Duration::from_millis(250);

/// The places of one connection.
pub(super) struct Places {
    free: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    /// Set where a wait for a place was in vain and none was taken since: further requests are then
    /// refused at once, and hold up nobody.
    crowded: AtomicBool,
}

/// How many places each of `requests` takes, whose line has `length` bytes.
pub(super) fn places_of(length: usize, requests: usize) -> u32 {
    let places = (length / requests.max(1)).div_ceil(PLACE_BYTES).clamp(1, PLACES);
    u32::try_from(places).unwrap_or(1)
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            free: Arc::new(Semaphore::new(PLACES)),
            reserve: Arc::new(Semaphore::new(RESERVE)),
            crowded: AtomicBool::new(false),
        }
    }

    /// Takes `count` places, where they are free; for a request that controls others (`is_control` is
    /// asked only then) one of the reserve, where one is enough.
    pub(super) fn take(&self, count: u32, is_control: impl FnOnce() -> bool) -> Option<OwnedSemaphorePermit> {
        if let Ok(places) = Arc::clone(&self.free).try_acquire_many_owned(count) {
            self.crowded.store(false, Ordering::Relaxed);
            return Some(places);
        }
        if count > 1 || !is_control() {
            return None;
        }
        Arc::clone(&self.reserve).try_acquire_owned().ok()
    }

    /// Whether waiting is in vain.
    pub(super) fn are_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    /// Takes note that a place is about to come free.
    pub(super) fn will_be_free(&self) {
        self.crowded.store(false, Ordering::Relaxed);
    }

    /// Waits, for a bounded time, until `count` places are free.
    pub(super) async fn wait(&self, count: u32) {
        let free = self.free.acquire_many(count);
        if tokio::time::timeout(PLACE_WAIT, free).await.is_err() {
            self.crowded.store(true, Ordering::Relaxed);
        }
    }
}
