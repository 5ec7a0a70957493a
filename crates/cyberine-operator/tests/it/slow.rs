//! A store that lets others go first before it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cyberine_run_store::{
    CancelOutcome, Claim, DecideOutcome, Event, MemoryRunStore, NewRun, ProjectId, Reserve, Run, RunEvent,
    RunStore, StoreError, Wish,
};
use cyberine_types::RunId;
use futures_util::future::BoxFuture;

pub(crate) struct Slow {
    pub(crate) store: MemoryRunStore,
    /// How often others go first.
    pub(crate) turns: Arc<AtomicUsize>,
}

impl Slow {
    fn after_others<'a, T>(&self, work: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
        let turns = self.turns.load(Ordering::SeqCst);
        Box::pin(async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            work.await
        })
    }
}

impl RunStore for Slow {
    fn admit(&self, run: NewRun, reserve: Reserve) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.after_others(self.store.admit(run, reserve))
    }

    fn append<'a>(
        &'a self,
        claim: &'a Claim,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.after_others(self.store.append(claim, events))
    }

    fn append_after<'a>(
        &'a self,
        claim: &'a Claim,
        seen: u64,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.after_others(self.store.append_after(claim, seen, events))
    }

    fn project(&self, id: RunId) -> BoxFuture<'_, Result<Option<ProjectId>, StoreError>> {
        self.store.project(id)
    }

    fn load(&self, id: RunId) -> BoxFuture<'_, Result<Option<Run>, StoreError>> {
        self.after_others(self.store.load(id))
    }

    fn events(&self, id: RunId, after: u64) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.after_others(self.store.events(id, after))
    }

    fn adopt(&self, id: RunId) -> BoxFuture<'_, Result<Option<Claim>, StoreError>> {
        self.after_others(self.store.adopt(id))
    }

    fn unsettled(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        self.after_others(self.store.unsettled())
    }

    fn request_cancel(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        self.after_others(self.store.request_cancel(id, by, reason))
    }

    fn decide(&self, id: RunId, wish: Wish) -> BoxFuture<'_, Result<DecideOutcome, StoreError>> {
        self.store.decide(id, wish)
    }

    fn changed(&self, id: RunId, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        self.store.changed(id, after, timeout)
    }
}
