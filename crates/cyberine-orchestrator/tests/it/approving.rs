//! Runs that need an approval.

use std::sync::Arc;
use std::time::Duration;

use cyberine_orchestrator::{Effect, Gate, NoControls, NoProcesses, STEP_ID, Supervisor};
use cyberine_run_store::{Choice, DeciderKind, RunEvent, RunState, RunStore, Wish, charge};
use cyberine_types::{RunId, Usd};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::fake::{Fake, Stage, soon};

/// Two answers that differ, a judge, and a gate before it.
fn stage(on_expiry: Choice) -> (Stage, Arc<Fake>) {
    let (a, b) = (Fake::says("a", "rivers flow up"), Fake::says("b", "rivers flow down"));
    let judge = Fake::judge_for("judge", "down");
    let mut stage = Stage::new(&[&a, &b], &[&judge]);
    stage.plan.approval = Some(Gate { seconds: 3_600, on_expiry });
    (stage, judge)
}

fn wish(choice: Choice) -> Wish {
    Wish {
        choice,
        step: None,
        comment: Some("as agreed".into()),
        by: "boss@1".into(),
        kind: DeciderKind::Mcp,
    }
}

async fn kinds(stage: &Stage, run: RunId) -> Vec<&'static str> {
    let events = stage.store.events(run, 0).await.unwrap();
    let kind = |event: &RunEvent| match event {
        RunEvent::ApprovalRequested { .. } => Some("suspended"),
        RunEvent::Decided { .. } => Some("decided"),
        RunEvent::Resumed { .. } => Some("resumed"),
        RunEvent::Approved { .. } => Some("approved"),
        RunEvent::Rejected { .. } => Some("rejected"),
        RunEvent::JudgeAsked { .. } => Some("asked"),
        RunEvent::CancelRequested { .. } => Some("stop"),
        RunEvent::Settled { .. } => Some("settled"),
        _ => None,
    };
    events.iter().filter_map(|event| kind(&event.body)).collect()
}

#[tokio::test]
async fn no_judge_is_asked_before_somebody_approves() {
    let (stage, judge) = stage(Choice::Reject);
    let run = stage
        .play_with(async |id| {
            let run = stage.see(id, |run| run.state == RunState::Suspended).await;
            let awaiting = run.awaiting.unwrap();
            assert_eq!((awaiting.step.as_str(), awaiting.on_expiry), (STEP_ID, Choice::Reject));
            let left = awaiting.expires_at.unix_ms() - run.updated_at.unix_ms();
            assert!((3_590_000..=3_600_000).contains(&left), "{left}");
            assert_eq!((judge.asked(), run.usage.input), (0, 20));
            assert_eq!(run.steps[0].verdicts, []);
            stage.store.decide(id, wish(Choice::Approve)).await.unwrap();
        })
        .await;
    assert_eq!((run.state, run.steps[0].winner().unwrap().id.as_str()), (RunState::Done, "b"));
    assert_eq!(judge.asked(), 2);
    let expected = ["suspended", "decided", "resumed", "asked", "asked", "settled"];
    assert_eq!(kinds(&stage, run.run_id).await, expected);
}

#[tokio::test]
async fn a_rejection_settles_the_run_and_it_is_charged_for_its_candidates_only() {
    let (stage, judge) = stage(Choice::Approve);
    let run = stage
        .play_with(async |id| {
            stage.see(id, |run| run.state == RunState::Suspended).await;
            let step = Some(STEP_ID.to_owned());
            stage.store.decide(id, Wish { step, ..wish(Choice::Reject) }).await.unwrap();
        })
        .await;
    assert_eq!((run.state, run.detail.as_str()), (RunState::Cancelled, "rejected by mcp boss@1: as agreed"));
    assert_eq!((run.reason, run.awaiting, judge.asked()), (None, None, 0));
    assert_eq!(charge(&stage.run(run.run_id).await), Usd::from_micros(200));
    assert!(run.steps[0].candidates.iter().all(|one| one.state == RunState::Done));
    assert_eq!(kinds(&stage, run.run_id).await, ["suspended", "decided", "rejected", "settled"]);
}

#[tokio::test]
async fn a_decision_that_was_there_before_the_gate_opens_it_or_ends_the_run_at_once() {
    for (choice, state, asked) in
        [(Choice::Approve, RunState::Done, 2), (Choice::Reject, RunState::Cancelled, 0)]
    {
        let (stage, judge) = stage(Choice::Reject);
        let claim = stage.admit().await;
        let id = claim.run();
        stage.store.decide(id, wish(choice)).await.unwrap();
        let engine = stage.engine();
        let ended = engine.run(
            claim,
            &stage.plan,
            stage.team.clone(),
            Box::new(NoControls),
            CancellationToken::new(),
        );
        assert_eq!(soon(ended).await.unwrap(), state);
        assert_eq!(judge.asked(), asked);
        let kinds = kinds(&stage, id).await;
        assert!(!kinds.contains(&"suspended"));
        let run = stage.run(id).await;
        assert_eq!((run.gate.unwrap().decision, run.steps.is_empty()), (choice, choice == Choice::Reject));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_wait_takes_the_default_and_not_before_its_time() {
    for (default, state, asked) in
        [(Choice::Approve, RunState::Done, 2), (Choice::Reject, RunState::Cancelled, 0)]
    {
        let (stage, judge) = stage(default);
        let (claim, begun) = (stage.admit().await, Instant::now());
        let (id, engine) = (claim.run(), stage.engine());
        let ended = engine
            .run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new())
            .await;
        assert_eq!((ended.unwrap(), judge.asked()), (state, asked));
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(3_600) && took < Duration::from_secs(3_602), "{took:?}");
        let run = stage.run(id).await;
        match default {
            Choice::Approve => {
                let events = stage.store.events(id, 0).await.unwrap();
                let by = events.iter().find_map(|event| match &event.body {
                    RunEvent::Resumed { by } => Some(by.clone()),
                    _ => None,
                });
                assert_eq!(by.as_deref(), Some("expiry"));
            }
            Choice::Reject => {
                assert_eq!(run.detail, "rejected by expiry: nobody decided within 3600 seconds");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_on_record_goes_before_the_end_of_the_wait_also_where_nobody_was_woken() {
    for (choice, state, asked) in
        [(Choice::Approve, RunState::Done, 2), (Choice::Reject, RunState::Cancelled, 0)]
    {
        let (stage, judge) = stage(if choice == Choice::Approve { Choice::Reject } else { Choice::Approve });
        let claim = stage.admit().await;
        let (id, mut engine) = (claim.run(), stage.engine());
        engine.store = Arc::new(crate::faults::mute(stage.store.clone()));
        let running = engine.run(
            claim,
            &stage.plan,
            stage.team.clone(),
            Box::new(NoControls),
            CancellationToken::new(),
        );
        let deciding = async {
            tokio::time::sleep(Duration::from_secs(3_599)).await;
            assert_eq!(stage.run(id).await.state, RunState::Suspended);
            stage.store.decide(id, wish(choice)).await.unwrap();
        };
        let (ended, ()) = tokio::join!(running, deciding);
        assert_eq!((ended.unwrap(), judge.asked()), (state, asked));
    }
}

/// A decision gets into the log after the engine has looked and before it closes the gate.
#[tokio::test(start_paused = true)]
async fn a_decision_that_comes_at_the_very_end_of_the_wait_counts_or_finds_the_gate_closed() {
    for (default, choice, state) in [
        (Choice::Reject, Choice::Approve, RunState::Done),
        (Choice::Approve, Choice::Reject, RunState::Cancelled),
    ] {
        let (stage, judge) = stage(default);
        let claim = stage.admit().await;
        let (id, mut engine) = (claim.run(), stage.engine());
        engine.store = Arc::new(crate::faults::deciding(stage.store.clone(), wish(choice)));
        let ended = engine
            .run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new())
            .await;
        let asked = if state == RunState::Done { 2 } else { 0 };
        assert_eq!((ended.unwrap(), judge.asked()), (state, asked), "{:?}", kinds(&stage, id).await);
        let run = stage.run(id).await;
        assert_eq!(run.gate.as_ref().unwrap().by, "mcp boss@1");
        assert_eq!(run.decision(), Some(&run.decisions[0]));
    }
}

/// Both are in the log before the engine reads either.
#[tokio::test]
async fn of_two_decisions_that_are_read_at_once_a_rejection_counts() {
    for step_first in [true, false] {
        let (stage, judge) = stage(Choice::Approve);
        let run = stage
            .play_with(async |id| {
                stage.see(id, |run| run.state == RunState::Suspended).await;
                let step = || Some(STEP_ID.to_owned());
                let (first, second) = if step_first { (step(), None) } else { (None, step()) };
                stage.store.decide(id, Wish { step: first, ..wish(Choice::Approve) }).await.unwrap();
                stage.store.decide(id, Wish { step: second, ..wish(Choice::Reject) }).await.unwrap();
            })
            .await;
        assert_eq!((run.state, judge.asked()), (RunState::Cancelled, 0));
        assert_eq!(run.decision(), Some(&run.decisions[1]));
    }
}

/// A rejection gets into the log while an approval is taken in.
#[tokio::test]
async fn until_the_run_goes_on_a_rejection_of_run_or_step_rejects() {
    for early in [false, true] {
        let (stage, judge) = stage(Choice::Approve);
        let claim = stage.admit().await;
        let (id, mut engine) = (claim.run(), stage.engine());
        engine.store = Arc::new(crate::faults::deciding(stage.store.clone(), wish(Choice::Reject)));
        let running = engine.run(
            claim,
            &stage.plan,
            stage.team.clone(),
            Box::new(NoControls),
            CancellationToken::new(),
        );
        let approving = async {
            let is_there = |run: &cyberine_run_store::Run| {
                if early { !run.steps.is_empty() } else { run.state == RunState::Suspended }
            };
            stage.see(id, is_there).await;
            let step = Some(STEP_ID.to_owned());
            stage.store.decide(id, Wish { step, ..wish(Choice::Approve) }).await.unwrap();
        };
        let (ended, ()) = soon(async { tokio::join!(running, approving) }).await;
        assert_eq!((ended.unwrap(), judge.asked()), (RunState::Cancelled, 0));
        let run = stage.run(id).await;
        assert_eq!(run.decision().unwrap().decision, Choice::Reject, "the one that counted");
        let log = stage.store.events(id, 0).await.unwrap();
        assert_eq!(Effect::of(&run.decisions[1], &log), Ok(Effect::Ends));
    }
}

#[tokio::test]
async fn what_a_decision_did_is_told_as_it_was_when_it_was_made() {
    let step = || Some(STEP_ID.to_owned());
    let (stage, _) = stage(Choice::Reject);
    let run = stage
        .play_with(async |id| {
            stage.see(id, |run| run.state == RunState::Suspended).await;
            stage.store.decide(id, wish(Choice::Approve)).await.unwrap();
            stage.see(id, |run| run.gate.is_some()).await;
            stage.store.decide(id, Wish { step: step(), ..wish(Choice::Reject) }).await.unwrap();
        })
        .await;
    assert_eq!(run.state, RunState::Done);
    let log = stage.store.events(run.run_id, 0).await.unwrap();
    assert_eq!(Effect::of(&run.decisions[0], &log), Ok(Effect::GoesOn));
    let late = Effect::of(&run.decisions[1], &log).unwrap();
    assert!(
        late.to_string().contains("it was approved by mcp boss@1") || late.to_string().contains("over"),
        "{late}"
    );
    assert_eq!((late.name(), run.decision()), ("on_record", Some(&run.decisions[0])));

    // Before it waits, after a rejection, and where no approval is needed.
    let mut stage = stage;
    let claim = stage.admit().await;
    let id = claim.run();
    let began = RunEvent::StepStarted { step: STEP_ID.to_owned(), name: "Dispatch".to_owned() };
    stage.store.append(&claim, vec![began]).await.unwrap();
    let effect = async |choice, step| {
        stage.store.decide(id, Wish { step, ..wish(choice) }).await.unwrap();
        let (run, log) = (stage.run(id).await, stage.store.events(id, 0).await.unwrap());
        Effect::of(run.decisions.last().unwrap(), &log).unwrap()
    };
    assert_eq!(effect(Choice::Reject, None).await, Effect::Ends);
    let ends = effect(Choice::Approve, step()).await.to_string();
    assert!(ends.contains("the run ends, since it was rejected by mcp boss@1"), "{ends}");
    stage.plan.approval = None;
    let claim = stage.admit().await;
    stage.store.decide(claim.run(), wish(Choice::Approve)).await.unwrap();
    let (run, log) = (stage.run(claim.run()).await, stage.store.events(claim.run(), 0).await.unwrap());
    let effect = Effect::of(&run.decisions[0], &log).unwrap().to_string();
    assert!(effect.contains("the run, which is queued, needs no approval"), "{effect}");
}

#[tokio::test]
async fn a_suspended_run_is_stopped_like_any_other() {
    let (stage, judge) = stage(Choice::Approve);
    let run = stage
        .play_with(async |id| {
            stage.see(id, |run| run.state == RunState::Suspended).await;
            stage.store.request_cancel(id, "me@1".into(), None).await.unwrap();
        })
        .await;
    assert_eq!(run.detail, "cancelled by me@1; 2 of 2 candidates had answered");
    assert_eq!((run.state, run.awaiting, judge.asked()), (RunState::Cancelled, None, 0));
    assert_eq!(kinds(&stage, run.run_id).await, ["suspended", "stop", "settled"]);
}

#[tokio::test]
async fn a_run_whose_runner_dies_while_it_waits_is_settled_by_whoever_looks() {
    let (stage, _) = stage(Choice::Approve);
    let claim = stage.admit().await;
    let (id, engine) = (claim.run(), stage.engine());
    let running =
        engine.run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new());
    soon(async {
        tokio::select! {
            _ = running => unreachable!("it waits"),
            _ = stage.see(id, |run| run.state == RunState::Suspended) => {}
        }
    })
    .await;
    let launcher = cyberine_orchestrator::InProcessLauncher::new(stage.engine(), |_| unreachable!());
    let supervisor = Supervisor::new(Arc::new(stage.store.clone()), launcher, Arc::new(NoProcesses));
    assert!(supervisor.settle_if_dead(id).await.unwrap());
    let run = stage.run(id).await;
    assert_eq!(
        (run.state, run.reason.as_deref(), run.awaiting),
        (RunState::Error, Some("interrupted"), None)
    );
    assert!(run.steps[0].candidates.iter().all(|one| one.state == RunState::Done));
}

#[tokio::test]
async fn without_a_gate_a_decision_is_on_record_and_changes_nothing() {
    let (mut stage, judge) = stage(Choice::Reject);
    stage.plan.approval = None;
    let claim = stage.admit().await;
    let (id, engine) = (claim.run(), stage.engine());
    stage.store.decide(id, wish(Choice::Reject)).await.unwrap();
    let ended =
        engine.run(claim, &stage.plan, stage.team.clone(), Box::new(NoControls), CancellationToken::new());
    assert_eq!((soon(ended).await.unwrap(), judge.asked()), (RunState::Done, 2));
    assert_eq!(stage.run(id).await.decisions.len(), 1);
}
