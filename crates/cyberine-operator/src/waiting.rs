//! Calls that wait for news.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// How many calls wait at once. A connection carries more calls than that, so that those which do
/// not wait always find room.
pub(crate) const WAITS: usize = 128;

/// Said by a call that would have waited.
const FULL: &str = "128 calls wait already, which is the most: this one did not. End some of them, or ask \
                    again after a while.";

/// The places of calls that wait.
pub(crate) struct Waits(Semaphore);

/// Leave to wait. Its place is given back when it is dropped.
pub(crate) struct Wait<'a> {
    _place: Option<SemaphorePermit<'a>>,
    /// How long.
    pub(crate) time: Duration,
    /// Why not as long as was asked for.
    pub(crate) note: Option<&'static str>,
}

impl Waits {
    pub(crate) const fn new() -> Self {
        Self(Semaphore::const_new(WAITS))
    }

    /// Leave to wait so long; not at all, where as many wait as may.
    pub(crate) fn ask(&self, wait_ms: u64) -> Wait<'_> {
        let time = Duration::from_millis(wait_ms);
        if time.is_zero() {
            return Wait { _place: None, time, note: None };
        }
        match self.0.try_acquire() {
            Ok(place) => Wait { _place: Some(place), time, note: None },
            Err(_) => Wait { _place: None, time: Duration::ZERO, note: Some(FULL) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_wait_and_no_more_and_a_place_is_given_back() {
        let waits = Waits::new();
        let mut held: Vec<Wait<'_>> = (0..WAITS).map(|_| waits.ask(5)).collect();
        assert!(held.iter().all(|wait| wait.time == Duration::from_millis(5) && wait.note.is_none()));
        let refused = waits.ask(5);
        assert!(refused.time.is_zero() && refused.note.is_some_and(|note| note.contains(&WAITS.to_string())));
        assert_eq!(waits.ask(0).note, None, "what does not wait needs no place");
        held.pop();
        assert_eq!(waits.ask(5).note, None);
    }
}
