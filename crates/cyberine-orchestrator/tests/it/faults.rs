//! A store that breaks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_orchestrator::{EngineError, NoControls};
use cyberine_run_store::{
    CancelOutcome, Claim, DecideOutcome, Event, NewRun, ProjectId, Reserve, Run, RunEvent, RunState,
    RunStore, StoreError, Wish,
};
use cyberine_types::RunId;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fake::{Fake, Stage, soon};

/// Refuses the append of this number, counted from 1, and `and_on` also all that follow.
struct Breaking<S> {
    inner: S,
    at: usize,
    and_on: bool,
    fenced: bool,
    appends: AtomicUsize,
    /// Nobody is told of a change, and waiting for one never ends.
    mute: bool,
    /// Somebody decides this right before the first append that rests on what was read.
    decision: Mutex<Option<Wish>>,
}

/// A store that refuses the append of this number, counted from 1.
pub(crate) fn breaking(inner: impl RunStore, at: usize) -> impl RunStore {
    let (appends, decision) = (AtomicUsize::new(0), Mutex::default());
    Breaking { inner, at, and_on: false, fenced: false, appends, mute: false, decision }
}

/// A store that is whole and tells nobody of a change.
pub(crate) fn mute(inner: impl RunStore) -> impl RunStore {
    let (appends, decision) = (AtomicUsize::new(0), Mutex::default());
    Breaking { inner, at: usize::MAX, and_on: false, fenced: false, appends, mute: true, decision }
}

impl<S: RunStore> RunStore for Breaking<S> {
    fn admit(&self, run: NewRun, reserve: Reserve) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.inner.admit(run, reserve)
    }

    fn append<'a>(
        &'a self,
        claim: &'a Claim,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.at || (self.and_on && number > self.at) {
            let error = if self.fenced {
                StoreError::Fenced { run: claim.run(), epoch: 1, detail: "adopted".into() }
            } else {
                StoreError::Worker { detail: "disk full".into() }
            };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.append(claim, events)
    }

    fn append_after<'a>(
        &'a self,
        claim: &'a Claim,
        seen: u64,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let wish = self.decision.lock().unwrap().take();
        Box::pin(async move {
            if let Some(wish) = wish {
                self.inner.decide(claim.run(), wish).await?;
            }
            self.inner.append_after(claim, seen, events).await
        })
    }

    fn project(&self, id: RunId) -> BoxFuture<'_, Result<Option<ProjectId>, StoreError>> {
        self.inner.project(id)
    }

    fn load(&self, id: RunId) -> BoxFuture<'_, Result<Option<Run>, StoreError>> {
        self.inner.load(id)
    }

    fn events(&self, id: RunId, after: u64) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.inner.events(id, after)
    }

    fn decide(&self, id: RunId, wish: Wish) -> BoxFuture<'_, Result<DecideOutcome, StoreError>> {
        self.inner.decide(id, wish)
    }

    fn adopt(&self, id: RunId) -> BoxFuture<'_, Result<Option<Claim>, StoreError>> {
        self.inner.adopt(id)
    }

    fn unsettled(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        self.inner.unsettled()
    }

    fn request_cancel(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        self.inner.request_cancel(id, by, reason)
    }

    fn changed(&self, id: RunId, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        if self.mute {
            return Box::pin(std::future::pending());
        }
        self.inner.changed(id, after, timeout)
    }
}

/// A store into which somebody writes a decision right before the first append that rests on what
/// was read.
pub(crate) fn deciding(inner: impl RunStore, wish: Wish) -> impl RunStore {
    let appends = AtomicUsize::new(0);
    let (at, and_on, fenced, mute) = (usize::MAX, false, false, false);
    Breaking { inner, at, and_on, fenced, appends, mute, decision: Mutex::new(Some(wish)) }
}

/// Plays two candidates, one of which never ends by itself, with a store that breaks.
async fn play(at: usize, and_on: bool, fenced: bool) -> (Result<RunState, EngineError>, Run, usize, usize) {
    let gate = Arc::new(Notify::new());
    let (a, b) = (Fake::says("a", "x"), Fake::holds("b", &gate));
    let stage = Stage::new(&[&a, &b], &[]);
    let claim = stage.admit().await;
    let id = claim.run();
    let mut engine = stage.engine();
    let (inner, appends) = (stage.store.clone(), AtomicUsize::new(0));
    let decision = Mutex::default();
    engine.store = Arc::new(Breaking { inner, at, and_on, fenced, appends, mute: false, decision });
    let ended = soon(engine.run(
        claim,
        &stage.plan,
        stage.team.clone(),
        Box::new(NoControls),
        CancellationToken::new(),
    ))
    .await;
    let asked = a.asked() + b.asked();
    (ended, stage.run(id).await, asked, b.cancelled.load(Ordering::SeqCst))
}

#[tokio::test]
async fn nothing_is_spent_that_could_not_be_recorded_first() {
    for at in [1, 2] {
        let (ended, run, asked, _) = play(at, false, false).await;
        assert!(matches!(ended, Err(EngineError::Store(StoreError::Worker { .. }))));
        assert_eq!((asked, run.state, run.reason.as_deref()), (0, RunState::Error, Some("store")));
    }
}

#[tokio::test]
async fn a_store_that_breaks_later_ends_the_turns_and_settles_the_run_if_it_can() {
    let (ended, run, asked, cancelled) = play(3, false, false).await;
    assert!(ended.is_err());
    assert_eq!((asked, cancelled), (2, 1));
    assert_eq!((run.state, run.reason.as_deref()), (RunState::Error, Some("store")));

    let (ended, run, _, cancelled) = play(3, true, false).await;
    assert!(ended.is_err());
    assert_eq!((cancelled, run.state), (1, RunState::Running), "whoever looks next settles it");
}

#[tokio::test]
async fn a_runner_that_was_fenced_off_writes_nothing_more() {
    let (ended, run, _, cancelled) = play(3, false, true).await;
    assert!(matches!(ended, Err(EngineError::Store(StoreError::Fenced { .. }))));
    assert_eq!((cancelled, run.state), (1, RunState::Running));
}
