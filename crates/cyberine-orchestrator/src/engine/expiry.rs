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

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_types::ManualClock;

    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_or_the_time_awake_whichever_comes_first() {
        let clock = ManualClock::at(Timestamp::from_unix_ms(5_000));
        let begun = Instant::now();
        let expiry = Expiry::after(3_600, &clock);
        assert_eq!(expiry.at, Timestamp::from_unix_ms(3_605_000));
        expiry.reached(&clock).await;
        assert_eq!(begun.elapsed().as_secs(), 3_600, "a clock that stands still does not prolong it");

        // The machine slept for an hour, which no timer counts.
        let (begun, expiry) = (Instant::now(), Expiry::after(3_600, &clock));
        let slept = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            clock.step(3_600_000);
        };
        tokio::join!(expiry.reached(&clock), slept);
        assert_eq!(begun.elapsed().as_secs(), 120);
    }
}
