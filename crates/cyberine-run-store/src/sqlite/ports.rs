//! The ports, as thin shells around blocking work.

use std::time::{Duration, Instant};

use cyberine_fs::{Identity, POLL, Watcher};
use cyberine_types::{RunId, UtcDay};
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::write::Addition;
use super::{SqliteRunStore, keys, money, read, search};
use crate::claim::Claim;
use crate::error::StoreError;
use crate::event::{Event, RunEvent};
use crate::home::Home;
use crate::money::{Cap, DaySpending, DayTotals, Ledger, Reserve};
use crate::port::{
    Begun, CancelOutcome, Cursor, DecideOutcome, Idempotency, IdempotencyKey, NewRun, ProjectId, Registry,
    RunStore, RunSummary, Wish,
};
use crate::run::Run;

impl RunStore for SqliteRunStore {
    fn admit(&self, run: NewRun, reserve: Reserve) -> BoxFuture<'_, Result<Claim, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.admit(&run, &reserve)))
    }

    fn append<'a>(
        &'a self,
        claim: &'a Claim,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.extend(claim, None, events)
    }

    fn append_after<'a>(
        &'a self,
        claim: &'a Claim,
        seen: u64,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.extend(claim, Some(seen), events)
    }

    fn project(&self, id: RunId) -> BoxFuture<'_, Result<Option<ProjectId>, StoreError>> {
        Box::pin(self.blocking(move |inner| {
            let known = inner.database.read(|conn| read::project(conn, id))?;
            Ok(known.map(|(_, Identity { device, inode })| ProjectId { device, inode }))
        }))
    }

    fn load(&self, id: RunId) -> BoxFuture<'_, Result<Option<Run>, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.load(id)))
    }

    fn events(&self, id: RunId, after: u64) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        Box::pin(self.blocking(move |inner| {
            inner.database.read(|conn| match read::row(conn, id)? {
                Some(row) => read::events(conn, &row, after),
                None => Err(StoreError::NotFound { run: id }),
            })
        }))
    }

    fn adopt(&self, id: RunId) -> BoxFuture<'_, Result<Option<Claim>, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.adopt(id)))
    }

    fn unsettled(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        Box::pin(self.blocking(|inner| inner.database.read(read::unsettled)))
    }

    fn request_cancel(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.request_cancel(id, by, reason)))
    }

    fn decide(&self, id: RunId, wish: Wish) -> BoxFuture<'_, Result<DecideOutcome, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.decide(id, wish)))
    }

    fn changed(&self, id: RunId, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_for_change(id, after, timeout))
    }
}

impl Registry for SqliteRunStore {
    fn query(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.database.read(|conn| search::query(conn, &text, limit))))
    }

    fn recent(
        &self,
        after: Option<Cursor>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.database.read(|conn| search::recent(conn, after, limit))))
    }
}

impl Ledger for SqliteRunStore {
    fn day(&self, day: UtcDay) -> BoxFuture<'_, Result<DayTotals, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.database.read(|conn| money::under(conn, day, &Cap::Day))))
    }

    fn under(&self, day: UtcDay, cap: Cap) -> BoxFuture<'_, Result<DayTotals, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.database.read(|conn| money::under(conn, day, &cap))))
    }

    fn spending(&self, first: UtcDay, last: UtcDay) -> BoxFuture<'_, Result<Vec<DaySpending>, StoreError>> {
        Box::pin(self.blocking(move |inner| inner.database.read(|conn| money::spending(conn, first, last))))
    }
}

impl Idempotency for SqliteRunStore {
    fn begin(&self, key: IdempotencyKey, draft: String) -> BoxFuture<'_, Result<Begun, StoreError>> {
        Box::pin(self.blocking(move |inner| {
            let now = inner.clock.now();
            inner.database.write(|conn| keys::begin(conn, now, &key, draft))
        }))
    }

    fn finish(&self, key: IdempotencyKey, result: Value) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.blocking(move |inner| inner.database.write(|conn| keys::finish(conn, &key, &result))))
    }

    fn redraft(
        &self,
        key: IdempotencyKey,
        old: String,
        new: String,
    ) -> BoxFuture<'_, Result<Begun, StoreError>> {
        Box::pin(self.blocking(move |inner| {
            let now = inner.clock.now();
            inner.database.write(|conn| keys::redraft(conn, now, &key, &old, new))
        }))
    }
}

impl SqliteRunStore {
    fn extend(
        &self,
        claim: &Claim,
        seen: Option<u64>,
        bodies: Vec<RunEvent>,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        let addition = Addition { run: claim.run(), epoch: claim.epoch(), seen, bodies };
        let projector = claim.projector();
        Box::pin(self.blocking(move |inner| inner.append(addition, projector.as_deref())))
    }

    /// Looks, and waits for the next wake-up, until the run has moved on or the time is up. The
    /// subscription is made before the first look, so that no change falls between the two.
    async fn wait_for_change(&self, id: RunId, after: u64, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let watched =
            self.in_turn(|inner| inner.database.home().map(|_| Home::wake_path(inner.database.path())));
        let Ok(wake) = watched.await else {
            tokio::time::sleep(timeout.min(POLL)).await;
            return;
        };
        let mut subscription = Watcher::shared().watch(&wake);
        loop {
            let look = self.in_turn(move |inner| inner.database.read(|conn| read::row(conn, id)));
            if let Ok(Some(row)) = look.await
                && row.last_seq > after
            {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            subscription.changed(left).await;
        }
    }
}
