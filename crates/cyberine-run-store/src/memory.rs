//! The store in the memory of one process, for embedders and tests.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cyberine_types::{Clock, RunId, Usd, UtcDay};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::charge;
use crate::claim::{Claim, Hold};
use crate::error::StoreError;
use crate::event::{Event, RunEvent};
use crate::fold::{self, preview};
use crate::money::{Cap, DaySpending, DayTotals, Ledger, Reserve, check_caps};
use crate::port::{
    CancelOutcome, Cursor, DecideOutcome, NewRun, ProjectId, Registry, RunStore, RunSummary, Wish,
};
use crate::run::Run;
use crate::sqlite::write::first_event;

mod keys;
mod money;

/// Runs in memory. They end with the process, and nothing is written to a project. Clones share
/// their runs. Everything else is as the ports say.
#[derive(Clone)]
pub struct MemoryRunStore {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    runs: Mutex<Runs>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Runs {
    /// In the order of admission.
    entries: Vec<Entry>,
    places: HashMap<RunId, usize>,
    keys: keys::Keys,
}

struct Entry {
    run: Run,
    log: Vec<Event>,
    epoch: u64,
    holder: Weak<()>,
    /// The directory, where there was one.
    project: Option<ProjectId>,
    /// Set once, when the run settles.
    spent: Option<Usd>,
}

impl MemoryRunStore {
    /// An empty store.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (changes, _) = watch::channel(());
        Self { inner: Arc::new(Inner { clock, runs: Mutex::default(), changes }) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Runs) -> T) -> T {
        let mut runs: MutexGuard<'_, Runs> = self.inner.runs.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut runs)
    }

    fn tell(&self) {
        self.inner.changes.send_replace(());
    }

    fn admit_now(
        &self,
        new: &NewRun,
        project: Option<ProjectId>,
        reserve: &Reserve,
    ) -> Result<Claim, StoreError> {
        let first = first_event(self.inner.clock.now(), new, reserve);
        let run =
            fold::begin(new.id, &first).map_err(|source| StoreError::EventRefused { run: new.id, source })?;
        let alive = Arc::new(());
        self.with(|runs| {
            if runs.places.contains_key(&new.id) {
                return Err(StoreError::AlreadyAdmitted { run: new.id });
            }
            check_caps(reserve, |cap| Ok(runs.under(first.at.day(), cap)))?;
            runs.places.insert(new.id, runs.entries.len());
            let holder = Arc::downgrade(&alive);
            let log = vec![first];
            runs.entries.push(Entry { run, log, epoch: 1, holder, project, spent: None });
            Ok(())
        })?;
        self.tell();
        Ok(Claim::new(new.id, 1, Hold::Token { _alive: alive }))
    }

    fn append_now(&self, claim: &Claim, seen: Option<u64>, bodies: Vec<RunEvent>) -> Result<u64, StoreError> {
        let (id, epoch) = (claim.run(), claim.epoch());
        let fenced = |detail: &str| StoreError::Fenced { run: id, epoch, detail: detail.to_owned() };
        let last = self.with(|runs| {
            let entry = runs.entry(id).ok_or(StoreError::NotFound { run: id })?;
            if entry.epoch != epoch {
                return Err(fenced("another claim has been taken since"));
            }
            if entry.run.state.is_terminal() {
                return Err(fenced("the run is over"));
            }
            let last = entry.run.next_seq - 1;
            if let Some(seen) = seen.filter(|seen| *seen != last) {
                return Err(StoreError::Moved { run: id, last, seen });
            }
            entry.extend(self.inner.clock.now(), bodies)
        })?;
        self.tell();
        Ok(last)
    }

    fn adopt_now(&self, id: RunId) -> Option<Claim> {
        let claim = self.with(|runs| {
            let entry = runs.entry(id)?;
            if entry.run.state.is_terminal() || entry.holder.strong_count() > 0 {
                return None;
            }
            let alive = Arc::new(());
            entry.holder = Arc::downgrade(&alive);
            entry.epoch += 1;
            Some(Claim::new(id, entry.epoch, Hold::Token { _alive: alive }))
        });
        self.tell();
        claim
    }

    fn request_cancel_now(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> Result<CancelOutcome, StoreError> {
        let outcome = self.with(|runs| {
            let Some(entry) = runs.entry(id) else { return Ok(CancelOutcome::NotFound) };
            if entry.run.state.is_terminal() {
                return Ok(CancelOutcome::AlreadyFinished(entry.run.state));
            }
            if entry.run.cancel_requested_by.is_none() {
                entry.extend(self.inner.clock.now(), vec![RunEvent::CancelRequested { by, reason }])?;
            }
            Ok(CancelOutcome::Requested)
        });
        self.tell();
        outcome
    }

    fn decide_now(&self, id: RunId, wish: Wish) -> Result<DecideOutcome, StoreError> {
        wish.check()?;
        let outcome = self.with(|runs| {
            let Some(entry) = runs.entry(id) else { return Ok(DecideOutcome::NotFound) };
            let at = entry.run.moment(self.inner.clock.now());
            let decision = match entry.run.decide(wish, at) {
                Ok(decision) => decision,
                Err(outcome) => return Ok(outcome),
            };
            entry.extend(at, vec![RunEvent::Decided { decision: decision.clone() }])?;
            Ok(DecideOutcome::Recorded(decision))
        });
        self.tell();
        outcome
    }

    async fn wait_for_change(&self, id: RunId, after: u64, timeout: Duration) {
        let mut changes = self.inner.changes.subscribe();
        let moved = async {
            while self.with(|runs| runs.entry(id).is_none_or(|entry| entry.run.next_seq - 1 <= after)) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // An elapsed timeout and a change are told apart by the caller, who looks again.
        let _ = tokio::time::timeout(timeout, moved).await;
    }
}

impl Runs {
    fn entry(&mut self, id: RunId) -> Option<&mut Entry> {
        let place = *self.places.get(&id)?;
        self.entries.get_mut(place)
    }
}

impl Entry {
    fn extend(&mut self, now: cyberine_types::Timestamp, bodies: Vec<RunEvent>) -> Result<u64, StoreError> {
        let (mut run, at) = (self.run.clone(), self.run.moment(now));
        let mut added = Vec::with_capacity(bodies.len());
        for body in bodies {
            let event = Event { seq: run.next_seq, at, epoch: self.epoch, body };
            fold::apply(&mut run, &event)
                .map_err(|source| StoreError::EventRefused { run: run.run_id, source })?;
            added.push(event);
        }
        if run.state.is_terminal() && !self.run.state.is_terminal() {
            self.spent = Some(charge::charge(&run));
        }
        self.log.append(&mut added);
        self.run = run;
        Ok(self.run.next_seq - 1)
    }

    fn contains(&self, text: &str) -> bool {
        let run = &self.run;
        let winner = run.winner().map(|winner| preview(&winner.output)).unwrap_or_default();
        let fields =
            [&run.task, &run.workflow_name, &run.cwd, run.state.name(), &run.run_id.to_string(), &winner];
        fields.iter().any(|field| field.to_lowercase().contains(text))
    }
}

/// One line about a run.
pub(crate) fn summary(run: &Run) -> RunSummary {
    RunSummary {
        run_id: run.run_id,
        workflow_name: run.workflow_name.clone(),
        state: run.state,
        detail: run.detail.clone(),
        task_preview: preview(&run.task),
        cwd: run.cwd.clone(),
        winner_preview: run.winner().map(|winner| preview(&winner.output)),
        started_at: run.started_at,
        updated_at: run.updated_at,
    }
}

/// Which directory lies at `path`.
fn directory(path: &str) -> Option<ProjectId> {
    let found = std::fs::metadata(path).ok().filter(Metadata::is_dir)?;
    Some(ProjectId { device: found.dev(), inode: found.ino() })
}

fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

impl RunStore for MemoryRunStore {
    fn admit(&self, run: NewRun, reserve: Reserve) -> BoxFuture<'_, Result<Claim, StoreError>> {
        Box::pin(async move {
            let cwd = run.cwd.clone();
            let project = tokio::task::spawn_blocking(move || directory(&cwd)).await.ok().flatten();
            self.admit_now(&run, project, &reserve)
        })
    }

    fn append<'a>(
        &'a self,
        claim: &'a Claim,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.append_now(claim, None, events) })
    }

    fn append_after<'a>(
        &'a self,
        claim: &'a Claim,
        seen: u64,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.append_now(claim, Some(seen), events) })
    }

    fn project(&self, id: RunId) -> BoxFuture<'_, Result<Option<ProjectId>, StoreError>> {
        Box::pin(async move { Ok(self.with(|runs| runs.entry(id).and_then(|entry| entry.project))) })
    }

    fn load(&self, id: RunId) -> BoxFuture<'_, Result<Option<Run>, StoreError>> {
        Box::pin(async move { Ok(self.with(|runs| runs.entry(id).map(|entry| entry.run.clone()))) })
    }

    fn events(&self, id: RunId, after: u64) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        Box::pin(async move {
            self.with(|runs| {
                let entry = runs.entry(id).ok_or(StoreError::NotFound { run: id })?;
                Ok(entry.log.iter().filter(|event| event.seq > after).cloned().collect())
            })
        })
    }

    fn adopt(&self, id: RunId) -> BoxFuture<'_, Result<Option<Claim>, StoreError>> {
        Box::pin(async move { Ok(self.adopt_now(id)) })
    }

    fn unsettled(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        Box::pin(async move {
            let open = |entry: &&Entry| !entry.run.state.is_terminal();
            Ok(self.with(|runs| runs.entries.iter().filter(open).map(|entry| entry.run.run_id).collect()))
        })
    }

    fn request_cancel(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        Box::pin(async move { self.request_cancel_now(id, by, reason) })
    }

    fn decide(&self, id: RunId, wish: Wish) -> BoxFuture<'_, Result<DecideOutcome, StoreError>> {
        Box::pin(async move { self.decide_now(id, wish) })
    }

    fn changed(&self, id: RunId, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_for_change(id, after, timeout))
    }
}

impl Registry for MemoryRunStore {
    fn query(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        let text = text.to_lowercase();
        Box::pin(async move {
            Ok(self.with(|runs| {
                let found = runs.entries.iter().rev().filter(|entry| entry.contains(&text));
                found.take(count(limit)).map(|entry| summary(&entry.run)).collect()
            }))
        })
    }

    fn recent(
        &self,
        after: Option<Cursor>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(async move {
            self.with(|runs| {
                let after = match after {
                    Some(Cursor { updated_at, run }) => {
                        let place = *runs.places.get(&run).ok_or(StoreError::NotFound { run })?;
                        Some((updated_at, place))
                    }
                    None => None,
                };
                let keys =
                    runs.entries.iter().enumerate().map(|(place, entry)| (entry.run.updated_at, place));
                let mut keys: Vec<_> = keys.filter(|key| after.is_none_or(|after| *key < after)).collect();
                keys.sort_unstable_by_key(|key| std::cmp::Reverse(*key));
                keys.truncate(count(limit));
                Ok(keys.into_iter().map(|(_, place)| summary(&runs.entries[place].run)).collect())
            })
        })
    }
}

impl Ledger for MemoryRunStore {
    fn day(&self, day: UtcDay) -> BoxFuture<'_, Result<DayTotals, StoreError>> {
        self.under(day, Cap::Day)
    }

    fn under(&self, day: UtcDay, cap: Cap) -> BoxFuture<'_, Result<DayTotals, StoreError>> {
        Box::pin(async move { Ok(self.with(|runs| runs.under(day, &cap))) })
    }

    fn spending(&self, first: UtcDay, last: UtcDay) -> BoxFuture<'_, Result<Vec<DaySpending>, StoreError>> {
        Box::pin(async move { Ok(self.with(|runs| runs.spending(first, last))) })
    }
}
