//! Keys in memory.

use std::collections::HashMap;

use cyberine_types::Timestamp;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::MemoryRunStore;
use crate::error::StoreError;
use crate::keys::{self, Entry};
use crate::port::{Begun, Idempotency, IdempotencyKey};

/// Keys by scope and text.
#[derive(Debug, Default)]
pub(super) struct Keys {
    entries: HashMap<(String, String), Entry>,
}

impl Keys {
    fn begin(&mut self, now: Timestamp, key: IdempotencyKey, draft: String) -> Result<Begun, StoreError> {
        keys::check(&key, &draft)?;
        let oldest = keys::oldest(now);
        let entry = Entry::open(&key, draft, now);
        let place = (key.scope, key.key);
        if let Some(known) = self.entries.get(&place).filter(|known| known.begun_at >= oldest) {
            return Ok(known.begun(&key.fingerprint));
        }
        self.entries.retain(|_, known| known.begun_at >= oldest);
        self.entries.insert(place, entry);
        Ok(Begun::Fresh)
    }

    fn redraft(
        &mut self,
        now: Timestamp,
        key: IdempotencyKey,
        old: &str,
        new: String,
    ) -> Result<Begun, StoreError> {
        keys::check(&key, &new)?;
        let IdempotencyKey { scope, key, fingerprint } = key;
        let entry = self.entries.get_mut(&(scope, key.clone()));
        let Some(entry) = entry.filter(|entry| entry.begun_at >= keys::oldest(now)) else {
            return Err(StoreError::KeyNotOpen { key });
        };
        if entry.is_open(&fingerprint, old) {
            entry.draft = new;
            return Ok(Begun::Fresh);
        }
        Ok(entry.begun(&fingerprint))
    }

    fn finish(&mut self, key: IdempotencyKey, result: &Value) -> Result<(), StoreError> {
        let result = keys::kept(result)?;
        let IdempotencyKey { scope, key, fingerprint } = key;
        let entry = self.entries.get_mut(&(scope, key.clone()));
        let Some(entry) = entry.filter(|entry| entry.fingerprint == fingerprint) else {
            return Err(StoreError::KeyNotOpen { key });
        };
        entry.result.get_or_insert(result);
        Ok(())
    }
}

impl Idempotency for MemoryRunStore {
    fn begin(&self, key: IdempotencyKey, draft: String) -> BoxFuture<'_, Result<Begun, StoreError>> {
        let now = self.inner.clock.now();
        Box::pin(async move { self.with(|runs| runs.keys.begin(now, key, draft)) })
    }

    fn finish(&self, key: IdempotencyKey, result: Value) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.with(|runs| runs.keys.finish(key, &result)) })
    }

    fn redraft(
        &self,
        key: IdempotencyKey,
        old: String,
        new: String,
    ) -> BoxFuture<'_, Result<Begun, StoreError>> {
        let now = self.inner.clock.now();
        Box::pin(async move { self.with(|runs| runs.keys.redraft(now, key, &old, new)) })
    }
}
