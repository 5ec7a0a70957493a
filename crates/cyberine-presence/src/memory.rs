//! Presence in memory: for tests, and for embedders who are one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cyberine_types::{Clock, InstanceId};
use futures_util::future::BoxFuture;

use crate::error::PresenceError;
use crate::port::{Announcement, Announcing, Presence};
use crate::record::{Activity, Host, MAX_TTL, Member, Record, RecordAddr};
use crate::text;

type Records = BTreeMap<(RecordAddr, InstanceId), Record>;

/// Presence in memory. Clones are one process; [`MemoryPresence::another`] is a second one beside
/// it. What is announced is there until it is withdrawn: it has no heart that could stop.
#[derive(Clone)]
pub struct MemoryPresence {
    records: Arc<Mutex<Records>>,
    clock: Arc<dyn Clock>,
    instance: InstanceId,
}

impl MemoryPresence {
    /// Presence of the process `instance`, with nobody there.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, instance: InstanceId) -> Self {
        Self { records: Arc::default(), clock, instance }
    }

    /// Presence of the process `instance` among the same others.
    #[must_use]
    pub fn another(&self, instance: InstanceId) -> Self {
        Self { instance, ..self.clone() }
    }
}

impl Presence for MemoryPresence {
    fn announce(
        &self,
        announcing: Announcing,
    ) -> BoxFuture<'_, Result<Arc<dyn Announcement>, PresenceError>> {
        Box::pin(std::future::ready(self.enter(announcing)))
    }

    fn roster(&self) -> BoxFuture<'_, Result<Vec<Member>, PresenceError>> {
        let members = lock(&self.records).values().cloned().map(Member::live).collect();
        Box::pin(std::future::ready(Ok(members)))
    }
}

impl MemoryPresence {
    fn enter(&self, announcing: Announcing) -> Result<Arc<dyn Announcement>, PresenceError> {
        text::check(&announcing)?;
        let Announcing { addr, repo_cwd, capabilities, team, role, name } = announcing;
        let key = (addr.clone(), self.instance);
        let mut records = lock(&self.records);
        if records.contains_key(&key) {
            return Err(PresenceError::Twice { addr });
        }
        let now = self.clock.now();
        let record = Record {
            addr,
            instance_id: self.instance,
            repo_cwd,
            capabilities,
            pid: std::process::id(),
            host: Host { boot_id: String::new(), pid_started: 0 },
            started_at: now,
            last_beat: now,
            beat_uptime_ms: 0,
            ttl_ms: u64::try_from(MAX_TTL.as_millis()).unwrap_or(u64::MAX),
            activity: Activity::default(),
            team,
            role,
            name,
        };
        records.insert(key.clone(), record);
        Ok(Arc::new(MemoryAnnouncement { presence: self.clone(), key, ended: Mutex::new(false) }))
    }
}

struct MemoryAnnouncement {
    presence: MemoryPresence,
    key: (RecordAddr, InstanceId),
    /// Whether the record under the key is no longer this announcement's.
    ended: Mutex<bool>,
}

impl MemoryAnnouncement {
    fn withdraw(&self) {
        if !std::mem::replace(&mut *lock(&self.ended), true) {
            lock(&self.presence.records).remove(&self.key);
        }
    }
}

impl Announcement for MemoryAnnouncement {
    fn set_activity(&self, activity: Activity) {
        let ended = lock(&self.ended);
        if !*ended && let Some(record) = lock(&self.presence.records).get_mut(&self.key) {
            record.activity = activity;
            record.last_beat = self.presence.clock.now();
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.withdraw();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for MemoryAnnouncement {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
