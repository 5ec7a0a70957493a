//! What a run goes through, and who may write it.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use cyberine_types::{Billing, RunId, Usd};

use super::{Subject, answered, asked, settled, won};
use crate::error::StoreError;
use crate::event::{RunEvent, RunState};
use crate::fold::fold;
use crate::money::{Ledger, Reserve};
use crate::port::{CancelOutcome, ProjectId, Registry, RunStore};

/// Longer than any implementation takes to notice a change.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn an_admitted_run_is_queued_with_one_event<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let new = subject.run("three rivers");
    let reserve = Reserve::of(Usd::from_dollars(1.0), None);
    let claim = subject.store.admit(new.clone(), reserve).await.expect("it is admitted");
    assert_eq!((claim.run(), claim.epoch()), (new.id, 1));
    let run = subject.other.load(new.id).await.expect("it loads").expect("it is there");
    assert_eq!((run.state, run.next_seq, run.reserved), (RunState::Queued, 2, Usd::from_dollars(1.0)));
    assert_eq!((&run.task, &run.cwd, &run.spec), (&new.prompt, &new.cwd, &new.spec));
    let log = subject.other.events(new.id, 0).await.expect("it has events");
    assert_eq!(fold(new.id, &log), Ok(run));
    assert_eq!(subject.other.load(RunId::random()).await.expect("absence is an answer"), None);
}

pub(super) async fn an_id_is_admitted_once<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let new = subject.run("once");
    let reserve = Reserve::of(Usd::from_dollars(1.0), None);
    let claim = subject.store.admit(new.clone(), reserve.clone()).await.expect("the first is admitted");
    let again = subject.other.admit(new.clone(), reserve.clone()).await;
    assert!(matches!(again, Err(StoreError::AlreadyAdmitted { run }) if run == new.id), "{again:?}");
    // Who repeats a dispatch finds its run also on a day that has no room for another.
    let full = Reserve { daily_cap: Some(Usd::ZERO), ..reserve.clone() };
    let again = subject.other.admit(new.clone(), full).await;
    assert!(matches!(again, Err(StoreError::AlreadyAdmitted { run }) if run == new.id), "{again:?}");
    subject.append(&claim, vec![RunEvent::Started { pid: 1 }]).await;
    let held =
        subject.store.day(cyberine_types::Clock::now(&*subject.clock).day()).await.expect("it adds up");
    assert_eq!(held.reserved, Usd::from_dollars(1.0));
    subject.append(&claim, vec![settled(RunState::Done)]).await;
    drop(claim);
    let again = subject.other.admit(new.clone(), reserve.clone()).await;
    assert!(matches!(again, Err(StoreError::AlreadyAdmitted { run }) if run == new.id), "{again:?}");
}

pub(super) async fn events_are_numbered_without_holes_and_fold_to_the_run<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("rivers").await;
    assert_eq!(subject.append(&claim, asked(Billing::Free)).await, 4);
    assert_eq!(subject.append(&claim, vec![answered("Rhine", None), won()]).await, 6);
    let log = subject.other.events(claim.run(), 0).await.expect("it has events");
    assert_eq!(log.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(log.iter().all(|event| event.epoch == 1));
    let later = subject.other.events(claim.run(), 4).await.expect("it has later events");
    assert_eq!(later, log[4..]);
    let run = subject.other.load(claim.run()).await.expect("it loads");
    assert_eq!(run, fold(claim.run(), &log).ok());
    assert!(matches!(subject.store.events(RunId::random(), 0).await, Err(StoreError::NotFound { .. })));
}

pub(super) async fn an_event_that_does_not_fit_records_nothing<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("misfit").await;
    let before = subject.store.load(claim.run()).await.expect("it loads");
    let refused = subject.store.append(&claim, vec![RunEvent::Started { pid: 1 }, won()]).await;
    assert!(matches!(refused, Err(StoreError::EventRefused { .. })), "{refused:?}");
    assert_eq!(subject.other.load(claim.run()).await.expect("it loads"), before);
    assert_eq!(subject.append(&claim, vec![RunEvent::Started { pid: 1 }]).await, 2);
}

pub(super) async fn a_run_is_adopted_only_when_its_holder_is_gone<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("adopted").await;
    let id = claim.run();
    assert!(subject.other.adopt(id).await.expect("it is asked").is_none(), "its holder lives");
    drop(claim);
    let adopted = subject.other.adopt(id).await.expect("it is asked").expect("its holder is gone");
    assert_eq!((adopted.run(), adopted.epoch()), (id, 2));
    assert!(subject.store.adopt(id).await.expect("it is asked").is_none(), "one adopter at a time");
    assert!(subject.store.adopt(RunId::random()).await.expect("it is asked").is_none());
}

pub(super) async fn an_old_claim_is_fenced<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let first = subject.admitted("fenced").await;
    let (id, epoch) = (first.run(), first.epoch());
    drop(first);
    let second = subject.store.adopt(id).await.expect("it is asked").expect("it is free");
    drop(second);
    let third = subject.store.adopt(id).await.expect("it is asked").expect("it is free");
    assert_eq!(third.epoch(), epoch + 2);
    let stale = third.with_epoch(epoch);
    let refused = subject.store.append(&stale, vec![RunEvent::Started { pid: 1 }]).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    let log = subject.store.events(id, 0).await.expect("it has events");
    assert_eq!(log.len(), 1, "a fenced append records nothing");
}

pub(super) async fn nothing_follows_the_end<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    for state in [RunState::Done, RunState::Error, RunState::Cancelled] {
        let claim = subject.admitted("ends").await;
        subject.append(&claim, vec![RunEvent::Started { pid: 1 }, settled(state)]).await;
        let late = subject.store.append(&claim, vec![settled(RunState::Done)]).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })), "{late:?}");
        let id = claim.run();
        drop(claim);
        assert!(subject.other.adopt(id).await.expect("it is asked").is_none());
        let outcome = subject.other.request_cancel(id, "cli".to_owned(), None).await.expect("it is asked");
        assert_eq!(outcome, CancelOutcome::AlreadyFinished(state));
        assert_eq!(subject.other.events(id, 0).await.expect("it has events").len(), 3);
    }
}

pub(super) async fn a_request_to_stop_is_recorded_once<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("stopped").await;
    for by in ["cli", "control-file"] {
        let asked = subject.other.request_cancel(claim.run(), by.to_owned(), Some("enough".to_owned())).await;
        assert_eq!(asked.expect("it is recorded"), CancelOutcome::Requested);
    }
    let run = subject.store.load(claim.run()).await.expect("it loads").expect("it is there");
    assert_eq!((run.cancel_requested_by.as_deref(), run.next_seq), (Some("cli"), 3));
    assert_eq!(subject.append(&claim, vec![RunEvent::Started { pid: 1 }]).await, 3, "the holder goes on");
    let nobody = subject.store.request_cancel(RunId::random(), "cli".to_owned(), None).await;
    assert_eq!(nobody.expect("absence is an answer"), CancelOutcome::NotFound);
}

pub(super) async fn open_runs_are_listed_oldest_first<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let mut claims = Vec::new();
    for name in ["one", "two", "three"] {
        claims.push(subject.admitted(name).await);
    }
    subject.append(&claims[1], vec![settled(RunState::Cancelled)]).await;
    let open = subject.other.unsettled().await.expect("they are listed");
    assert_eq!(open, [claims[0].run(), claims[2].run()]);
}

pub(super) async fn a_change_ends_the_wait_for_it<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let claim = subject.admitted("watched").await;
    let since = Instant::now();
    subject.other.changed(claim.run(), 0, PATIENCE).await;
    let change = async {
        tokio::task::yield_now().await;
        subject.append(&claim, vec![RunEvent::Started { pid: 1 }]).await
    };
    let ((), last) = tokio::join!(subject.other.changed(claim.run(), 1, PATIENCE), change);
    assert_eq!(last, 2);
    let cancel = subject.store.request_cancel(claim.run(), "cli".to_owned(), None);
    let ((), outcome) = tokio::join!(subject.other.changed(claim.run(), 2, PATIENCE), cancel);
    assert_eq!(outcome.expect("it is recorded"), CancelOutcome::Requested);
    assert!(since.elapsed() < PATIENCE, "the waits ended with the changes");
}

pub(super) async fn a_wait_without_a_change_ends_in_time<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("quiet").await;
    let (since, wait) = (Instant::now(), Duration::from_millis(30));
    subject.other.changed(claim.run(), 1, wait).await;
    assert!(since.elapsed() >= wait && since.elapsed() < PATIENCE);
}

pub(super) async fn a_run_belongs_to_the_directory_it_was_admitted_for<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("ours").await;
    let metadata = std::fs::metadata(&subject.project).expect("the project is there");
    let expected = ProjectId { device: metadata.dev(), inode: metadata.ino() };
    assert_eq!(subject.other.project(claim.run()).await.expect("it is asked"), Some(expected));
    let nobody = subject.other.project(RunId::random()).await;
    assert_eq!(nobody.expect("it is asked"), None);
}
