use std::sync::Arc;

use cyberine_orchestrator::{
    DispatchError, DispatchRequest, InProcessLauncher, LaunchError, Launched, Launcher, NoProcesses, Plan,
    Supervisor,
};
use cyberine_run_store::{CancelOutcome, Claim, Ledger, Reserve, RunEvent, RunState, RunStore, StoreError};
use cyberine_types::{Billing, Clock, RunId, SystemClock, Usd};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::fake::{Fake, Stage, soon};

fn supervisor(stage: &Stage, launcher: Arc<dyn Launcher>) -> Supervisor {
    Supervisor::new(Arc::new(stage.store.clone()), launcher, Arc::new(NoProcesses))
}

fn in_process(stage: &Stage) -> Arc<InProcessLauncher> {
    let team = stage.team.clone();
    InProcessLauncher::new(stage.engine(), move |_| team.clone())
}

fn request(plan: &Plan) -> DispatchRequest {
    DispatchRequest {
        run: RunId::random(),
        prompt: "what is it?".into(),
        cwd: "/project".into(),
        requested_by: "test@1".into(),
        plan: plan.clone(),
        reserve: Reserve::of(Usd::from_dollars(1.0), Some(Usd::from_dollars(2.5))),
    }
}

async fn held(stage: &Stage) -> Usd {
    stage.store.day(SystemClock.now().day()).await.unwrap().reserved
}

#[tokio::test]
async fn a_dispatched_run_comes_to_its_end_and_releases_what_it_held() {
    let (a, b) = (Fake::says("a", "x"), Fake::says("b", "x"));
    let stage = Stage::new(&[&a, &b], &[]);
    let supervisor = supervisor(&stage, in_process(&stage));
    let dispatched = supervisor.dispatch(request(&stage.plan)).await.unwrap();
    let run = stage.see(dispatched.run, |run| run.state.is_terminal()).await;
    assert_eq!(
        (run.state, run.workflow_name.as_str(), run.requested_by.as_str()),
        (RunState::Done, "mcp-orchestrate", "test@1")
    );
    assert_eq!(Plan::from_spec(&run.spec).unwrap(), stage.plan);
    assert_eq!(held(&stage).await, Usd::ZERO);
}

#[tokio::test]
async fn what_cannot_start_is_refused_before_anything_is_recorded() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let supervisor = supervisor(&stage, in_process(&stage));
    let refused = |request| async { supervisor.dispatch(request).await.unwrap_err() };
    let empty = DispatchRequest { prompt: " \n".into(), ..request(&stage.plan) };
    assert!(matches!(refused(empty).await, DispatchError::EmptyPrompt));
    let long = DispatchRequest { prompt: "x".repeat((1 << 20) + 1), ..request(&stage.plan) };
    assert!(matches!(refused(long).await, DispatchError::PromptTooLong));
    let mut nobody = request(&stage.plan);
    nobody.plan.candidates.clear();
    let error = refused(nobody).await;
    assert!(matches!(error, DispatchError::NoProvider) && error.advice().contains("cyberine init"));
    assert_eq!(stage.store.unsettled().await.unwrap(), []);
    assert_eq!((held(&stage).await, a.asked()), (Usd::ZERO, 0));
}

#[tokio::test]
async fn the_daily_cap_lets_in_what_fits_and_refuses_the_rest() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let stage = Stage::new(&[&a], &[]);
    let launcher = in_process(&stage);
    let supervisor = supervisor(&stage, launcher.clone());
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(supervisor.dispatch(request(&stage.plan)).await);
    }
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 2);
    assert!(matches!(outcomes[2], Err(DispatchError::Store(StoreError::CapReached { .. }))));
    assert_eq!(held(&stage).await, Usd::from_dollars(2.0));
    soon(launcher.close()).await;
    assert_eq!(held(&stage).await, Usd::ZERO);
    assert_eq!(stage.store.unsettled().await.unwrap(), []);
    assert!(matches!(supervisor.dispatch(request(&stage.plan)).await, Err(DispatchError::Launch { .. })));
}

struct NoLauncher;

impl Launcher for NoLauncher {
    fn launch(&self, claim: Claim, _plan: Plan) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        drop(claim);
        Box::pin(std::future::ready(Err(LaunchError { detail: "no such program".into() })))
    }
}

#[tokio::test]
async fn a_run_whose_runner_does_not_start_is_settled_and_releases_what_it_held() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let error = supervisor(&stage, Arc::new(NoLauncher)).dispatch(request(&stage.plan)).await.unwrap_err();
    let DispatchError::Launch { run, .. } = error else { panic!("{error}") };
    let run = stage.run(run).await;
    assert_eq!((run.state, run.reason.as_deref()), (RunState::Error, Some("launch")));
    assert_eq!(run.detail, "the runner could not be started: no such program");
    assert_eq!(held(&stage).await, Usd::ZERO);
}

/// A run with one finished candidate and one that had begun, whose runner is gone.
async fn dead_run(stage: &Stage, billing: Billing) -> cyberine_types::RunId {
    let claim = stage.admit().await;
    let run = claim.run();
    let started = |candidate: &str| RunEvent::CandidateStarted {
        step: "dispatch".into(),
        candidate: candidate.into(),
        provider: candidate.into(),
        kind: "fake".into(),
        model: None,
        billing,
    };
    let done = RunEvent::CandidateDone {
        step: "dispatch".into(),
        candidate: "a".into(),
        output: "kept".into(),
        usage: cyberine_types::Usage::default(),
        duration_ms: 1,
    };
    let step = RunEvent::StepStarted { step: "dispatch".into(), name: "Dispatch".into() };
    let events = vec![RunEvent::Started { pid: 1 }, step, started("a"), started("b"), done];
    stage.store.append(&claim, events).await.unwrap();
    run
}

#[tokio::test]
async fn a_run_whose_runner_died_is_settled_once_and_keeps_what_was_answered() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let supervisor = supervisor(&stage, Arc::new(NoLauncher));
    let (one, two) = (dead_run(&stage, Billing::Metered).await, dead_run(&stage, Billing::Metered).await);
    assert!(supervisor.settle_if_dead(one).await.unwrap());
    assert!(!supervisor.settle_if_dead(one).await.unwrap());
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [two]);
    let run = stage.run(one).await;
    assert_eq!((run.state, run.reason.as_deref()), (RunState::Error, Some("interrupted")));
    let kept: Vec<_> = run.steps[0].candidates.iter().map(|one| (one.state, one.output.as_str())).collect();
    assert_eq!(kept, [(RunState::Done, "kept"), (RunState::Error, "")]);
    assert_eq!(run.steps[0].candidates[1].error.as_ref().unwrap().code, "interrupted");
    assert_eq!(held(&stage).await, Usd::ZERO);
}

#[tokio::test]
async fn a_living_run_is_left_alone_and_cancelled_on_request() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let stage = Stage::new(&[&a], &[]);
    let supervisor = supervisor(&stage, in_process(&stage));
    let run = supervisor.dispatch(request(&stage.plan)).await.unwrap().run;
    assert!(!supervisor.settle_if_dead(run).await.unwrap());
    assert_eq!(supervisor.cancel(run, "me@1".into(), None).await.unwrap(), CancelOutcome::Requested);
    stage.see(run, |run| run.state == RunState::Cancelled).await;
    let again = supervisor.cancel(run, "me@1".into(), None).await.unwrap();
    assert_eq!(again, CancelOutcome::AlreadyFinished(RunState::Cancelled));
    let nobody = cyberine_types::RunId::random();
    assert_eq!(supervisor.cancel(nobody, "me@1".into(), None).await.unwrap(), CancelOutcome::NotFound);
}

#[tokio::test]
async fn cancelling_a_dead_run_settles_it() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let supervisor = supervisor(&stage, Arc::new(NoLauncher));
    let run = dead_run(&stage, Billing::Metered).await;
    let outcome = supervisor.cancel(run, "me@1".into(), None).await.unwrap();
    assert_eq!(outcome, CancelOutcome::AlreadyFinished(RunState::Error));
}

#[tokio::test]
async fn a_dead_run_with_scripted_answers_keeps_its_label() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let supervisor = supervisor(&stage, Arc::new(NoLauncher));
    let run = dead_run(&stage, Billing::Scripted).await;
    assert!(supervisor.settle_if_dead(run).await.unwrap());
    assert!(stage.run(run).await.detail.ends_with("; scripted answers, no model was called"));
}
