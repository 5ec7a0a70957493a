use std::sync::Arc;

use cyberine_orchestrator::{Control, ControlSource, NoControls, Unavailable};
use cyberine_provider::{ProviderInfo, TurnError};
use cyberine_run_store::{CancelOutcome, RunEvent, RunState, RunStore, TickKind, VerdictOutcome};
use cyberine_types::Billing;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fake::{Fake, Stage, soon};

#[tokio::test]
async fn three_answers_become_a_verdict_and_every_step_is_in_the_log() {
    let (a, b, c) = (Fake::says("a", "42"), Fake::says("b", "The answer is 42."), Fake::says("c", "7"));
    let stage = Stage::new(&[&a, &b, &c], &[&a]);
    let run = stage.play().await;
    let step = &run.steps[0];
    assert_eq!((run.state, step.id.as_str(), step.name.as_str()), (RunState::Done, "dispatch", "Dispatch"));
    assert_eq!(step.winner().unwrap().id, "a");
    assert_eq!(step.verdict.as_ref().unwrap().outcome, VerdictOutcome::Majority);
    assert_eq!((run.usage.input, run.usage.output), (30, 6));
    assert_eq!([a.asked(), b.asked(), c.asked()], [1, 1, 1]);
    assert_eq!(run.engine_pid, Some(std::process::id()));
}

#[tokio::test]
async fn ticks_begin_and_end_for_every_candidate_and_once_for_the_run() {
    let (a, b) = (Fake::says("a", "1"), Fake::fails("b", TurnError::Auth { detail: "no key".into() }));
    let stage = Stage::new(&[&a, &b], &[]);
    stage.play().await;
    let heard = stage.heard.0.lock().unwrap();
    let of = |name: &str| {
        heard.iter().filter(|tick| tick.candidate == name).map(|tick| tick.kind).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), [TickKind::Started, TickKind::Usage, TickKind::Text, TickKind::Done]);
    assert_eq!(of("b"), [TickKind::Started, TickKind::Error]);
    assert_eq!(of(""), [TickKind::Settled]);
    assert_eq!(heard.last().unwrap().kind, TickKind::Settled);
}

#[tokio::test]
async fn one_that_fails_and_one_that_is_empty_cannot_win_and_the_run_says_why() {
    let (a, b, c) = (
        Fake::says("a", "x"),
        Fake::says("b", "  \n"),
        Fake::fails("c", TurnError::Overloaded { detail: "busy".into(), retry_after: None }),
    );
    let run = Stage::new(&[&a, &b, &c], &[&a, &b, &c]).play().await;
    let step = &run.steps[0];
    assert_eq!(step.verdict.as_ref().unwrap().outcome, VerdictOutcome::NoQuorum);
    assert_eq!(step.winner(), None);
    assert_eq!(
        step.verdict.as_ref().unwrap().rationale,
        "1 of 3 candidates answered, and 2 are needed: b (empty), c (overloaded)"
    );
    let codes: Vec<_> =
        step.candidates.iter().map(|one| one.error.as_ref().map(|error| error.code.as_str())).collect();
    assert_eq!(codes, [None, Some("empty"), Some("overloaded")]);
    assert_eq!(a.asked(), 1, "nobody is paid for judging");
}

#[tokio::test]
async fn without_an_answer_the_run_ends_as_an_error_that_keeps_the_failures() {
    let (a, b) = (Fake::says("a", ""), Fake::fails("b", TurnError::Billing { detail: "no credit".into() }));
    let run = Stage::new(&[&a, &b], &[]).play().await;
    assert_eq!((run.state, run.reason.as_deref()), (RunState::Error, Some("no_answer")));
    assert_eq!(run.detail, "no candidate answered: a (empty), b (billing)");
}

#[tokio::test]
async fn a_provider_that_could_not_be_built_fails_alone() {
    let a = Fake::says("a", "x");
    let mut stage = Stage::new(&[&a, &a], &[]);
    let info =
        ProviderInfo { name: "b".into(), kind: "anthropic".into(), model: None, billing: Billing::Metered };
    let why = TurnError::Auth { detail: "`KEY` is not set".into() };
    stage.plan.candidates[1].name = "b".into();
    stage.plan.quorum = 1;
    stage.team.candidates[1] = Arc::new(Unavailable::new(info, why));
    let run = stage.play().await;
    assert_eq!(run.steps[0].candidates[1].error.as_ref().unwrap().code, "auth");
    assert_eq!(run.steps[0].verdict.as_ref().unwrap().outcome, VerdictOutcome::Unjudged);
    assert_eq!(run.state, RunState::Done);
}

#[tokio::test]
async fn a_request_in_the_store_stops_the_turns_and_keeps_what_is_done() {
    let gate = Arc::new(Notify::new());
    let (a, b) = (Fake::says("a", "x"), Fake::holds("b", &gate));
    let stage = Stage::new(&[&a, &b], &[]);
    let claim = stage.admit().await;
    let id = claim.run();
    let engine = stage.engine();
    let running =
        engine.run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new());
    let stopping = async {
        stage.see(id, |run| run.steps.iter().any(|step| step.candidates[0].state == RunState::Done)).await;
        let outcome = stage.store.request_cancel(id, "me@1".into(), Some("enough".into())).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Requested);
    };
    let (state, ()) = soon(async { tokio::join!(running, stopping) }).await;
    assert_eq!(state.unwrap(), RunState::Cancelled);
    let run = stage.run(id).await;
    let states: Vec<_> = run.steps[0].candidates.iter().map(|one| one.state).collect();
    assert_eq!(states, [RunState::Done, RunState::Cancelled]);
    assert_eq!(run.detail, "cancelled by me@1 (enough); 1 of 2 candidates had answered");
    assert_eq!(b.cancelled.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(run.processes.is_some());
}

#[tokio::test]
async fn a_run_that_was_cancelled_before_it_began_asks_nobody() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let claim = stage.admit().await;
    let id = claim.run();
    stage.store.request_cancel(id, "me@1".into(), None).await.unwrap();
    let ended = stage
        .engine()
        .run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new())
        .await;
    assert_eq!((ended.unwrap(), a.asked()), (RunState::Cancelled, 0));
}

/// Gives what it is told to, then nothing more.
struct Words(Vec<Control>);

impl ControlSource for Words {
    fn next(&mut self) -> BoxFuture<'_, Control> {
        match self.0.pop() {
            Some(word) => Box::pin(std::future::ready(word)),
            None => Box::pin(std::future::pending()),
        }
    }
}

#[tokio::test]
async fn a_control_stops_the_run_and_one_that_is_not_understood_is_recorded() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let stage = Stage::new(&[&a], &[]);
    let claim = stage.admit().await;
    let id = claim.run();
    let stop = Control::Stop { by: "control-file".into(), reason: None };
    let words = Words(vec![stop, Control::Unknown { detail: "action `dance`".into() }]);
    let ended = soon(stage.engine().run(
        claim,
        &stage.plan,
        stage.team.clone(),
        Box::new(words),
        CancellationToken::new(),
    ))
    .await;
    assert_eq!(ended.unwrap(), RunState::Cancelled);
    let events = stage.store.events(id, 0).await.unwrap();
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunEvent::ControlIgnored { detail } => Some(detail.as_str()),
            RunEvent::CancelRequested { by, .. } => Some(by.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["action `dance`", "control-file"]);
}

#[tokio::test]
async fn the_owner_of_the_process_can_stop_the_run() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let stage = Stage::new(&[&a], &[]);
    let (claim, cancel) = (stage.admit().await, CancellationToken::new());
    cancel.cancel();
    let id = claim.run();
    let ended =
        soon(stage.engine().run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), cancel)).await;
    assert_eq!(ended.unwrap(), RunState::Cancelled);
    assert_eq!(stage.run(id).await.cancel_requested_by.as_deref(), Some("shutdown"));
}

#[tokio::test]
async fn all_candidates_are_asked_before_the_first_has_answered() {
    let gate = Arc::new(Notify::new());
    let (a, b, c) = (Fake::holds("a", &gate), Fake::holds("b", &gate), Fake::holds("c", &gate));
    let stage = Stage::new(&[&a, &b, &c], &[]);
    let claim = stage.admit().await;
    let id = claim.run();
    let engine = stage.engine();
    let running =
        engine.run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new());
    let releasing = async {
        let run = stage.see(id, |run| run.steps.first().is_some_and(|step| step.candidates.len() == 3)).await;
        assert!(run.steps[0].candidates.iter().all(|one| one.state == RunState::Running));
        for _ in 0..3 {
            gate.notify_one();
            tokio::task::yield_now().await;
        }
    };
    let state = soon(async {
        tokio::select! {
            state = running => state,
            () = async { releasing.await; loop { gate.notify_one(); tokio::task::yield_now().await } } => unreachable!(),
        }
    });
    assert_eq!(state.await.unwrap(), RunState::Done);
    assert_eq!(stage.run(id).await.steps[0].winner().unwrap().output, "begun and ended");
}
