//! What this process announces, and the beat that keeps it fresh.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cyberine_types::{Clock, Timestamp};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::entry::Entry;
use super::stored::SUFFIX;
use super::{Shared, blocking, lock};
use crate::error::PresenceError;
use crate::port::{Announcement, Announcing};
use crate::record::{Activity, Record, RecordAddr};

/// How long news wait for more of them before they are written.
const SOON: Duration = Duration::from_millis(100);
/// The wall clock and the steady one part by so much only where the machine slept, or a clock was
/// set. Either is reason enough for a beat.
const PARTED: Duration = Duration::from_secs(2);
/// Temporary files of this age have no writer any more.
const ABANDONED: Duration = Duration::from_secs(600);

/// An announcement in a file. Dropping it writes the tombstone then and there, which takes as long
/// as one small file does.
pub(super) struct FileAnnouncement {
    shared: Arc<Shared>,
    entry: Arc<Entry>,
    addr: RecordAddr,
}

impl Shared {
    /// Takes the address among those of this process. Nothing is written.
    pub(super) fn enter(&self, announcing: Announcing) -> Result<(RecordAddr, Arc<Entry>), PresenceError> {
        let Announcing { addr, repo_cwd, capabilities, team, role, name } = announcing;
        let mut entries = lock(&self.entries);
        if entries.contains_key(&addr) {
            return Err(PresenceError::Twice { addr });
        }
        let now = self.clock.now();
        let record = Record {
            addr: addr.clone(),
            instance_id: self.instance,
            repo_cwd,
            capabilities,
            pid: std::process::id(),
            host: self.host().clone(),
            started_at: now,
            last_beat: now,
            beat_uptime_ms: 0,
            ttl_ms: u64::try_from((self.interval * 3).as_millis()).unwrap_or(u64::MAX),
            activity: Activity::default(),
            team,
            role,
            name,
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry::new(format!("{}-{number}{SUFFIX}", self.instance), record));
        entries.insert(addr.clone(), Arc::clone(&entry));
        Ok((addr, entry))
    }

    /// Starts the task that keeps the records fresh, unless it runs.
    pub(super) fn ensure_heart(self: &Arc<Self>) {
        let mut heart = lock(&self.heart);
        while heart.try_join_next().is_some() {}
        if heart.is_empty() {
            let (clock, news) = (Arc::clone(&self.clock), Arc::clone(&self.news));
            heart.spawn(beat_on(Arc::downgrade(self), clock, news, self.interval));
        }
    }

    fn leave(&self, addr: &RecordAddr, entry: &Arc<Entry>) {
        let mut entries = lock(&self.entries);
        if entries.get(addr).is_some_and(|held| Arc::ptr_eq(held, entry)) {
            entries.remove(addr);
        }
    }

    fn beat(&self) {
        let entries: Vec<_> = lock(&self.entries).values().cloned().collect();
        for entry in entries {
            entry.beat(&self.place, &*self.clock);
        }
    }

    /// Removes what killed writers left behind. A failure costs nothing but the space.
    pub(super) fn tidy(&self, dir: &cyberine_fs::PrivateDir) {
        if let Err(error) = dir.sweep_temporary(ABANDONED) {
            tracing::debug!(%error, "temporary presence files were left");
        }
    }
}

impl FileAnnouncement {
    pub(super) fn new(shared: Arc<Shared>, addr: RecordAddr, entry: Arc<Entry>) -> Self {
        Self { shared, entry, addr }
    }
}

impl Announcement for FileAnnouncement {
    fn set_activity(&self, activity: Activity) {
        if self.entry.set_activity(activity) {
            self.shared.news.notify_one();
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        let (shared, entry, addr) = (Arc::clone(&self.shared), Arc::clone(&self.entry), self.addr.clone());
        Box::pin(async move {
            let ended = blocking(move || {
                entry.end(&shared.place, &*shared.clock);
                shared.leave(&addr, &entry);
                Ok(())
            });
            if let Err(error) = ended.await {
                tracing::warn!(%error, "the presence record was not withdrawn");
            }
        })
    }
}

impl Drop for FileAnnouncement {
    fn drop(&mut self) {
        self.entry.end(&self.shared.place, &*self.shared.clock);
        self.shared.leave(&self.addr, &self.entry);
    }
}

/// When the heart beats: a pure reckoning on two clocks.
#[derive(Debug)]
struct Rhythm {
    interval: Duration,
    beat: Instant,
    looked: Instant,
    wall: Timestamp,
}

impl Rhythm {
    fn new(interval: Duration, now: Instant, wall: Timestamp) -> Self {
        Self { interval, beat: now, looked: now, wall }
    }

    /// How long to wait before the next look: to the next beat, and never so long that a machine
    /// that slept would go unnoticed.
    fn pause(&self, now: Instant) -> Duration {
        let due = self.interval.saturating_sub(now.saturating_duration_since(self.beat));
        due.min(self.interval / 4)
    }

    /// Whether a beat is due: in its turn, or since the clocks have parted.
    fn is_due(&mut self, now: Instant, wall: Timestamp) -> bool {
        let steady =
            i128::try_from(now.saturating_duration_since(self.looked).as_millis()).unwrap_or(i128::MAX);
        let told = i128::from(wall.unix_ms()) - i128::from(self.wall.unix_ms());
        (self.looked, self.wall) = (now, wall);
        let parted = told.saturating_sub(steady).unsigned_abs() > PARTED.as_millis();
        parted || now.saturating_duration_since(self.beat) >= self.interval
    }
}

async fn beat_on(shared: Weak<Shared>, clock: Arc<dyn Clock>, news: Arc<Notify>, interval: Duration) {
    let mut rhythm = Rhythm::new(interval, Instant::now(), clock.now());
    loop {
        let is_told = tokio::select! {
            () = news.notified() => true,
            () = tokio::time::sleep(rhythm.pause(Instant::now())) => false,
        };
        if is_told {
            tokio::time::sleep(SOON).await;
        }
        if !rhythm.is_due(Instant::now(), clock.now()) && !is_told {
            continue;
        }
        let Some(shared) = shared.upgrade() else { return };
        let beaten = blocking(move || {
            shared.beat();
            Ok(())
        });
        if let Err(error) = beaten.await {
            tracing::warn!(%error, "presence records were not kept fresh");
        }
        rhythm.beat = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_due_in_its_turn_and_after_a_sleep() {
        let (start, wall) = (Instant::now(), Timestamp::from_unix_ms(1_796_040_000_000));
        let after = |ms: u64| start + Duration::from_millis(ms);
        let at = |ms: i64| Timestamp::from_unix_ms(wall.unix_ms() + ms);
        let rhythm = || Rhythm::new(Duration::from_secs(20), start, wall);
        assert_eq!(rhythm().pause(start), Duration::from_secs(5));
        assert_eq!(rhythm().pause(after(18_000)), Duration::from_secs(2));
        assert_eq!(rhythm().pause(after(99_000)), Duration::ZERO);

        assert!(!rhythm().is_due(after(5_000), at(5_900)));
        assert!(rhythm().is_due(after(20_000), at(20_000)));
        // The steady clock stood while the machine slept; or somebody set the other one.
        for told in [605_000, -595_000, i64::MIN / 2] {
            let mut rhythm = rhythm();
            assert!(rhythm.is_due(after(5_000), at(told)), "{told}");
            rhythm.beat = after(5_000);
            assert!(!rhythm.is_due(after(10_000), at(told + 5_000)), "a step counts once: {told}");
        }
    }
}
