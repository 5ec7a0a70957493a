//! Whether the process of a record is still there: judged by what the reader itself sees.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::record::{Liveness, Record};

/// How far ahead of the reader's a time may lie and still be one of just now: clocks are read one
/// after the other, and file systems round.
const SLACK: Duration = Duration::from_secs(2);

/// What this machine shows of a record's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shown {
    /// Nothing: it runs elsewhere, or the system does not tell.
    Nothing,
    /// It runs.
    Running,
    /// It is gone, or its number belongs to another process now.
    Gone,
}

/// What to make of a record whose last beat the reader takes to be `age` old. A process that is
/// gone is dead at once; one that is not is stale once its time is over, running or not.
#[must_use]
pub fn liveness(record: &Record, age: Duration, shown: Shown) -> Liveness {
    match shown {
        Shown::Gone => Liveness::Dead,
        Shown::Nothing | Shown::Running if age > record.ttl() => Liveness::Stale,
        Shown::Nothing | Shown::Running => Liveness::Live,
    }
}

/// How old what happened `then` is by a clock that says `now`; `None` where it has yet to come.
pub(crate) fn age(then: Duration, now: Duration) -> Option<Duration> {
    (then <= now + SLACK).then(|| now.saturating_sub(then))
}

/// What a process remembers of the files it has looked at. From the first look on, a beat's age
/// grows by the reader's own steady clock: no step of any other makes it older, or young again.
#[derive(Debug)]
pub(crate) struct Memory<V> {
    seen: HashMap<String, Seen<V>>,
    /// When the previous look began.
    before: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Seen<V> {
    version: V,
    at: Instant,
    age: Duration,
}

/// One look at all files, beginning at an instant. One that is not ended is as if it had not been.
#[derive(Debug)]
pub(crate) struct Pass<'a, V> {
    memory: &'a mut Memory<V>,
    now: Instant,
    found: HashMap<String, Seen<V>>,
}

impl<V: Copy + PartialEq> Memory<V> {
    pub(crate) fn new() -> Self {
        Self { seen: HashMap::new(), before: None }
    }

    pub(crate) fn pass(&mut self, now: Instant) -> Pass<'_, V> {
        Pass { memory: self, now, found: HashMap::new() }
    }
}

impl<V: Copy + PartialEq> Pass<'_, V> {
    /// The age of the beat in the file `name`, of which `version` was found now. `first` tells how
    /// old it looks; it is asked only where this version was not seen before. A version that came
    /// since the previous look cannot be older than that look.
    pub(crate) fn age(&mut self, name: &str, version: V, first: impl FnOnce() -> Duration) -> Duration {
        let now = self.now;
        let seen = match self.memory.seen.get(name) {
            Some(seen) if seen.version == version => *seen,
            _ => {
                let since = self.memory.before.map(|before| now.saturating_duration_since(before));
                let first = first();
                Seen { version, at: now, age: since.map_or(first, |since| since.min(first)) }
            }
        };
        let age = seen.age.saturating_add(now.saturating_duration_since(seen.at));
        self.found.insert(name.to_owned(), seen);
        age
    }

    /// Forgets what was not found this time.
    pub(crate) fn end(self) {
        self.memory.seen = self.found;
        self.memory.before = Some(self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{MAX_TTL, MIN_TTL};
    use crate::samples::record;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_process_that_is_gone_is_dead_and_one_that_is_silent_is_stale() {
        let it = record("a");
        for (age, shown, is) in [
            (s(0), Shown::Nothing, Liveness::Live),
            (s(60), Shown::Nothing, Liveness::Live),
            (s(61), Shown::Nothing, Liveness::Stale),
            (s(60), Shown::Running, Liveness::Live),
            (s(61), Shown::Running, Liveness::Stale),
            (s(0), Shown::Gone, Liveness::Dead),
            (Duration::MAX, Shown::Gone, Liveness::Dead),
        ] {
            assert_eq!(liveness(&it, age, shown), is, "{age:?} {shown:?}");
        }
    }

    #[test]
    fn no_time_to_live_is_without_bounds() {
        for (ttl_ms, bound) in [(0, MIN_TTL), (1_000_000_000_000, MAX_TTL), (u64::MAX, MAX_TTL)] {
            let it = Record { ttl_ms, ..record("a") };
            assert_eq!(liveness(&it, bound, Shown::Nothing), Liveness::Live, "{ttl_ms}");
            assert_eq!(liveness(&it, bound + s(1), Shown::Nothing), Liveness::Stale, "{ttl_ms}");
        }
    }

    #[test]
    fn what_has_yet_to_come_has_no_age() {
        assert_eq!(age(s(100), s(160)), Some(s(60)));
        assert_eq!(age(s(161), s(160)), Some(s(0)));
        assert_eq!(age(s(760), s(160)), None);
    }

    #[test]
    fn what_was_seen_ages_by_the_steady_clock_alone() {
        let start = Instant::now();
        let mut memory = Memory::new();
        let mut look = |at: u64, version: u32, first: u64| {
            let mut pass = memory.pass(start + s(at));
            let age = pass.age("a", version, || s(first));
            pass.end();
            age
        };
        assert_eq!(look(0, 1, 10), s(10));
        // Whatever the clocks say now, the same beat is ten seconds older than ten seconds ago.
        for first in [0, 610, 4_000_000_000] {
            assert_eq!(look(10, 1, first), s(20), "{first}");
        }
        // The clocks went ten minutes forward, or to 2038: a new beat came since the last look.
        assert_eq!(look(30, 2, 600), s(20));
        assert_eq!(look(50, 3, 400_000_000), s(20));
        // They stand at 1970: a beat that looks fresh still runs out.
        assert_eq!(look(70, 4, 0), s(0));
        assert_eq!(look(170, 4, 0), s(100));
    }

    #[test]
    fn a_look_that_failed_makes_nobody_younger() {
        let start = Instant::now();
        let mut memory = Memory::new();
        let mut pass = memory.pass(start);
        assert_eq!(pass.age("a", 1, || s(50)), s(50));
        pass.end();
        assert_eq!(memory.pass(start + s(5)).age("a", 1, || s(55)), s(55));
        assert_eq!(memory.pass(start + s(15)).age("a", 1, || s(65)), s(65));
    }

    #[test]
    fn what_is_not_found_is_forgotten() {
        let start = Instant::now();
        let mut memory = Memory::new();
        let mut pass = memory.pass(start);
        pass.age("a", 1, || s(0));
        pass.end();
        memory.pass(start).end();
        assert!(memory.seen.is_empty());
    }
}
