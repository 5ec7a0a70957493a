use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant on the wall clock, in milliseconds since the Unix epoch. On the wire and in files
/// it is an RFC 3339 text in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// The UTC day the instant lies in: the day budgets count by, whatever the local time zone.
    #[must_use]
    pub const fn day(self) -> UtcDay {
        UtcDay(self.0.div_euclid(86_400_000))
    }

    fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        DateTime::parse_from_rfc3339(&text)
            .map(|at| Self(at.timestamp_millis()))
            .map_err(|_| serde::de::Error::custom(format!("`{text}` is not an RFC 3339 instant")))
    }
}

/// One UTC day, counted from the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcDay(i64);

impl UtcDay {
    /// From days since 1970-01-01.
    #[must_use]
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    /// The day `days` before this one.
    #[must_use]
    pub const fn before(self, days: i64) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for UtcDay {
    /// `2026-11-30`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Timestamp(self.0.saturating_mul(86_400_000));
        write!(out, "{}", start.utc().format("%Y-%m-%d"))
    }
}

/// Tells the time, so that tests can.
pub trait Clock: Send + Sync {
    /// The present instant on the wall clock.
    fn now(&self) -> Timestamp;
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        Timestamp(ms)
    }
}

/// A clock that moves only when told.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `at`.
    #[must_use]
    pub fn at(at: Timestamp) -> Self {
        Self(AtomicI64::new(at.0))
    }

    /// Moves the clock by `ms` milliseconds, backwards where negative.
    pub fn step(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_round_trip_and_days_are_utc() {
        let at = Timestamp::from_unix_ms(1_796_083_199_999);
        assert_eq!(at.to_string(), "2026-11-30T23:59:59.999Z");
        let text = serde_json::to_string(&at).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), at);
        assert_eq!(at.day().to_string(), "2026-11-30");
        assert_eq!(Timestamp::from_unix_ms(at.unix_ms() + 1).day().to_string(), "2026-12-01");
        assert_eq!(Timestamp::from_unix_ms(-1).day().to_string(), "1969-12-31");
    }
}
