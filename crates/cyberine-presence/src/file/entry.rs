//! One record of this process, and its file.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use cyberine_fs::{Durability, FsError};
use cyberine_types::Clock;

use super::place::Place;
use super::{lock, stored};
use crate::host;
use crate::record::{Activity, Record};

pub(super) struct Entry {
    /// The file's name.
    name: String,
    activity: Mutex<Activity>,
    /// What is written. Held over the writing, so that no beat can follow the end.
    record: Mutex<Record>,
    ended: AtomicBool,
    /// Whether the last beat failed: said once, not with every beat.
    failed: AtomicBool,
}

impl Entry {
    pub(super) fn new(name: String, record: Record) -> Self {
        Self {
            name,
            activity: Mutex::new(record.activity),
            record: Mutex::new(record),
            ended: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    /// Says whether that is news.
    pub(super) fn set_activity(&self, activity: Activity) -> bool {
        std::mem::replace(&mut *lock(&self.activity), activity) != activity
    }

    /// Writes a beat, unless the entry has ended.
    pub(super) fn write(&self, place: &Place, clock: &dyn Clock) -> Result<(), FsError> {
        let mut record = lock(&self.record);
        if self.ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        record.activity = *lock(&self.activity);
        record.last_beat = clock.now();
        record.beat_uptime_ms = uptime_ms();
        self.replace(place, &record, false)
    }

    /// As [`Entry::write`], for those who beat on whatever happens.
    pub(super) fn beat(&self, place: &Place, clock: &dyn Clock) {
        match self.write(place, clock) {
            Ok(()) => {
                if self.failed.swap(false, Ordering::Relaxed) {
                    tracing::info!(file = self.name, "the presence record is written again");
                }
            }
            Err(error) if self.failed.swap(true, Ordering::Relaxed) => {
                tracing::debug!(%error, file = self.name, "the presence record still cannot be written");
            }
            Err(error) => {
                tracing::warn!(%error, file = self.name, "the presence record cannot be written; others may not see this process");
            }
        }
    }

    /// Leaves a tombstone, once. Where that cannot be written, the file is removed.
    pub(super) fn end(&self, place: &Place, clock: &dyn Clock) {
        let mut record = lock(&self.record);
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        record.last_beat = clock.now();
        record.beat_uptime_ms = uptime_ms();
        let Err(error) = self.replace(place, &record, true) else { return };
        let removed = place.existing().and_then(|dir| dir.map_or(Ok(false), |dir| dir.remove(&self.name)));
        if removed.is_err() {
            tracing::warn!(%error, file = self.name, "the presence record cannot be withdrawn; it runs out by itself");
        }
    }

    fn replace(&self, place: &Place, record: &Record, ended: bool) -> Result<(), FsError> {
        let dir = place.for_beat()?;
        let bytes = stored::bytes(record, ended).map_err(|error| FsError::Io {
            action: "write",
            path: dir.path().join(&self.name),
            source: error.into(),
        })?;
        dir.replace(&self.name, &bytes, Durability::Fast)
    }
}

fn uptime_ms() -> u64 {
    host::uptime().map_or(0, |up| u64::try_from(up.as_millis()).unwrap_or(u64::MAX))
}
