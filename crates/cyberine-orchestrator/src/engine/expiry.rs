//! When the wait for an approval is over.

use std::time::Duration;

use cyberine_types::{Clock, Timestamp};
use tokio::time::Instant;

/// How often the wall clock is looked at.
const LOOK: Duration = Duration::from_secs(30);

/// The end of a wait: by the wall clock, as it was told, or after as long a time of this machine
/// being awake, whichever comes first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expiry {
    pub(super) at: Timestamp,
    by: Instant,
}

impl Expiry {
    pub(super) fn after(seconds: u64, clock: &dyn Clock) -> Self {
        let ms = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let at = Timestamp::from_unix_ms(clock.now().unix_ms().saturating_add(ms));
        Self { at, by: Instant::now() + Duration::from_secs(seconds) }
    }

    /// Returns once the wait is over.
    pub(super) async fn reached(self, clock: &dyn Clock) {
        while Instant::now() < self.by && clock.now() < self.at {
            tokio::time::sleep_until(self.by.min(Instant::now() + LOOK)).await;
        }
    }
}
