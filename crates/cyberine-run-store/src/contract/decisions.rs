//! What is decided on runs, and runs that wait for it.

use std::time::Duration;

use cyberine_types::{Billing, Clock as _, RunId, Timestamp};

use super::{Subject, answered, asked, settled, won};
use crate::error::StoreError;
use crate::event::{Choice, DeciderKind, OperatorDecision, RunEvent, RunState};
use crate::fold::fold;
use crate::money::Ledger;
use crate::port::{COMMENT_CHARS, DecideOutcome, Registry, RunStore, Wish};

/// Longer than any implementation takes to notice a change.
const PATIENCE: Duration = Duration::from_secs(20);

fn wish(choice: Choice, step: Option<&str>) -> Wish {
    Wish {
        choice,
        step: step.map(str::to_owned),
        comment: None,
        by: "contract@1".to_owned(),
        kind: DeciderKind::Mcp,
    }
}

fn waits() -> RunEvent {
    let (step, expires_at) = ("dispatch".to_owned(), Timestamp::from_unix_ms(0));
    RunEvent::ApprovalRequested { step, expires_at, on_expiry: Choice::Reject }
}

async fn decide<S: RunStore>(store: &S, id: RunId, wish: Wish) -> DecideOutcome {
    store.decide(id, wish).await.expect("a decision is answered")
}

pub(super) async fn the_first_decision_on_a_target_stands<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("decided").await;
    let id = claim.run();
    subject.append(&claim, asked(Billing::Free)).await;
    let comment = "\0\u{1b}[2J".repeat(COMMENT_CHARS / 5);
    let first = Wish { comment: Some(comment.clone()), ..wish(Choice::Approve, Some("dispatch")) };
    let expected = OperatorDecision {
        decision: Choice::Approve,
        run_id: id,
        step_id: Some("dispatch".to_owned()),
        comment: Some(comment),
        decided_by: "contract@1".to_owned(),
        decider_kind: DeciderKind::Mcp,
        decided_at: subject.clock.now(),
    };
    assert_eq!(decide(&subject.store, id, first).await, DecideOutcome::Recorded(expected.clone()));
    for choice in [Choice::Approve, Choice::Reject] {
        let again = decide(&subject.other, id, wish(choice, Some("dispatch"))).await;
        assert_eq!(again, DecideOutcome::Standing(expected.clone()));
    }
    let whole = decide(&subject.other, id, wish(Choice::Reject, None)).await;
    assert!(matches!(whole, DecideOutcome::Recorded(_)), "the run is another target: {whole:?}");
    let unknown = decide(&subject.store, id, wish(Choice::Approve, Some("nowhere"))).await;
    assert_eq!(unknown, DecideOutcome::UnknownStep { known: vec!["dispatch".to_owned()] });
    let nobody = decide(&subject.store, RunId::random(), wish(Choice::Approve, None)).await;
    assert_eq!(nobody, DecideOutcome::NotFound);
    let long = Wish { comment: Some("é".repeat(COMMENT_CHARS + 1)), ..wish(Choice::Approve, None) };
    let refused = subject.store.decide(id, long).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { what: "comment", .. })), "{refused:?}");
    let run = subject.other.load(id).await.expect("it loads").expect("it is there");
    assert_eq!((run.decisions.len(), run.next_seq, run.state), (2, 7, RunState::Running));
    assert_eq!(subject.append(&claim, vec![settled(RunState::Done)]).await, 7, "its holder goes on");
}

pub(super) async fn a_run_that_is_over_can_be_decided_on<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("over").await;
    let id = claim.run();
    subject.append(&claim, asked(Billing::Free)).await;
    subject.append(&claim, vec![answered("Rhine", None), won(), settled(RunState::Done)]).await;
    drop(claim);
    let later = subject.admitted("later").await;
    let day = subject.store.day(subject.clock.now().day()).await.expect("it adds up");
    subject.clock.step(1_000);
    let waiting = subject.other.changed(id, 7, PATIENCE);
    let ((), outcome) = tokio::join!(waiting, subject.store.decide(id, wish(Choice::Approve, None)));
    assert!(matches!(outcome, Ok(DecideOutcome::Recorded(_))), "{outcome:?}");
    let log = subject.other.events(id, 0).await.expect("it has events");
    assert!(matches!(log.last().map(|event| &event.body), Some(RunEvent::Decided { .. })));
    let run = subject.other.load(id).await.expect("it loads").expect("it is there");
    assert_eq!((run.state, run.updated_at, run.next_seq), (RunState::Done, subject.clock.now(), 9));
    assert_eq!(fold(id, &log), Ok(run));
    let recent = subject.other.recent(None, 9).await.expect("they are listed");
    assert_eq!(recent.iter().map(|run| run.run_id).collect::<Vec<_>>(), [id, later.run()]);
    assert_eq!(subject.other.day(subject.clock.now().day()).await.expect("it adds up"), day);
    assert!(subject.other.adopt(id).await.expect("it is asked").is_none(), "it stays over");
}

pub(super) async fn a_run_that_waits_can_be_stopped_and_its_answers_stay<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("waiting").await;
    let id = claim.run();
    subject.append(&claim, asked(Billing::Free)).await;
    subject.append(&claim, vec![answered("Rhine", None), waits()]).await;
    let run = subject.other.load(id).await.expect("it loads").expect("it is there");
    assert_eq!((run.state, run.awaiting.is_some()), (RunState::Suspended, true));
    assert_eq!(subject.other.unsettled().await.expect("they are listed"), [id], "it is not over");
    for misfit in [won(), waits()] {
        let refused = subject.store.append(&claim, vec![misfit]).await;
        assert!(matches!(refused, Err(StoreError::EventRefused { .. })), "{refused:?}");
    }
    drop(claim);
    let adopted = subject.other.adopt(id).await.expect("it is asked").expect("its holder is gone");
    subject.append(&adopted, vec![settled(RunState::Error)]).await;
    let run = subject.store.load(id).await.expect("it loads").expect("it is there");
    assert_eq!((run.state, run.awaiting.is_none()), (RunState::Error, true));
    assert_eq!(run.steps[0].candidates[0].output, "Rhine");
    assert_eq!(subject.other.unsettled().await.expect("they are listed"), []);
}

pub(super) async fn a_run_that_waits_goes_on<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let claim = subject.admitted("resumed").await;
    let id = claim.run();
    subject.append(&claim, asked(Billing::Free)).await;
    subject.append(&claim, vec![answered("Rhine", None), waits()]).await;
    let approved = decide(&subject.other, id, wish(Choice::Approve, None)).await;
    assert!(matches!(approved, DecideOutcome::Recorded(_)), "{approved:?}");
    let run = subject.store.load(id).await.expect("it loads").expect("it is there");
    assert_eq!(run.state, RunState::Suspended, "its runner takes it on, not who decides");
    let resumed = RunEvent::Resumed { by: "contract@1".to_owned() };
    subject.append(&claim, vec![resumed.clone(), won()]).await;
    let again = subject.store.append(&claim, vec![resumed]).await;
    assert!(matches!(again, Err(StoreError::EventRefused { .. })), "{again:?}");
    subject.append(&claim, vec![settled(RunState::Done)]).await;
    let run = subject.other.load(id).await.expect("it loads").expect("it is there");
    assert_eq!((run.state, run.awaiting.is_none(), run.winner().is_some()), (RunState::Done, true, true));
}

pub(super) async fn what_rests_on_a_log_that_has_gone_on_is_not_appended<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let claim = subject.admitted("moved").await;
    let id = claim.run();
    subject.append(&claim, asked(Billing::Free)).await;
    let seen = subject.append(&claim, vec![answered("Rhine", None), waits()]).await;
    decide(&subject.other, id, wish(Choice::Reject, None)).await;
    let resumed = || vec![RunEvent::Resumed { by: "expiry".to_owned() }];
    for stale in [0, seen - 1, seen, seen + 2] {
        let refused = subject.store.append_after(&claim, stale, resumed()).await;
        let moved = matches!(
            refused,
            Err(StoreError::Moved { run, last, seen: shown })
                if (run, last, shown) == (id, seen + 1, stale)
        );
        assert!(moved, "{stale}: {refused:?}");
    }
    let run = subject.other.load(id).await.expect("it loads").expect("it is there");
    assert_eq!((run.state, run.next_seq), (RunState::Suspended, seen + 2), "nothing was recorded");
    let rejected = vec![RunEvent::Rejected { by: "mcp contract@1".to_owned() }];
    let appended = subject.store.append_after(&claim, seen + 1, rejected).await;
    assert_eq!(appended.expect("nothing has come since"), seen + 2);
    decide(&subject.other, id, wish(Choice::Approve, Some("dispatch"))).await;
    let run = subject.other.load(id).await.expect("it loads").expect("it is there");
    let gate = run.gate.as_ref().map(|gate| gate.decision);
    assert_eq!((run.state, gate, run.awaiting.is_none()), (RunState::Running, Some(Choice::Reject), true));
    assert_eq!(run.decision().map(|decision| decision.decision), Some(Choice::Reject));
}

pub(super) async fn a_log_does_not_go_back_in_time<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let begun = subject.clock.now();
    let claim = subject.admitted("backwards").await;
    let id = claim.run();
    subject.clock.step(5_000);
    subject.append(&claim, asked(Billing::Free)).await;
    subject.clock.step(-4_000);
    decide(&subject.other, id, wish(Choice::Approve, None)).await;
    subject.other.request_cancel(id, "contract@1".to_owned(), None).await.expect("it is recorded");
    drop(claim);
    let claim = subject.other.adopt(id).await.expect("it is asked").expect("its holder is gone");
    subject.append(&claim, vec![settled(RunState::Cancelled)]).await;
    let log = subject.store.events(id, 0).await.expect("it has events");
    assert!(log.is_sorted_by_key(|event| event.at), "{log:?}");
    let last = log.last().map(|event| event.at.unix_ms());
    assert_eq!(last, Some(begun.unix_ms() + 5_000));
    let run = subject.store.load(id).await.expect("it loads").expect("it is there");
    assert_eq!(run.decisions[0].decided_at.unix_ms(), begun.unix_ms() + 5_000);
}
