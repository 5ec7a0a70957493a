//! Requests that are taken back, runners that die, and what is left of them.

use std::sync::{Arc, Mutex};

use cyberine_orchestrator::{
    DispatchRequest, InProcessLauncher, LaunchError, Launched, Launcher, NoProcesses, Plan, Reaper,
    Supervisor,
};
use cyberine_run_store::{
    CancelOutcome, Claim, Ledger, ProcessCount, Registry, Reserve, Run, RunEvent, RunState, RunStore,
    SqliteRunStore,
};
use cyberine_types::{Clock, ManualClock, RunId, SystemClock, Usd};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, oneshot};

use crate::fake::{Fake, Stage, soon};

const UNANSWERED: &str = "the request was cancelled before its reply had left";

fn request(plan: &Plan, cwd: &str) -> DispatchRequest {
    DispatchRequest {
        run: RunId::random(),
        prompt: "what is it?".into(),
        cwd: cwd.into(),
        requested_by: "test@1".into(),
        plan: plan.clone(),
        reserve: Reserve::of(Usd::from_dollars(1.0), Some(Usd::from_dollars(1.0))),
    }
}

fn supervisor(stage: &Stage, launcher: Arc<dyn Launcher>) -> Supervisor {
    Supervisor::new(Arc::new(stage.store.clone()), launcher, Arc::new(NoProcesses))
}

async fn runs(stage: &Stage) -> Vec<Run> {
    let mut runs = Vec::new();
    for summary in stage.store.query(String::new(), 200).await.unwrap() {
        runs.push(stage.run(summary.run_id).await);
    }
    runs
}

/// Starts runners that do nothing but hold their claim, once it is told to.
#[derive(Default)]
struct Held {
    asked: Notify,
    go: Notify,
    runners: Mutex<Vec<(Claim, oneshot::Sender<()>)>>,
}

impl Launcher for Held {
    fn launch(&self, claim: Claim, _plan: Plan) -> BoxFuture<'_, Result<Launched, LaunchError>> {
        Box::pin(async move {
            self.asked.notify_one();
            self.go.notified().await;
            let (end, ended) = oneshot::channel();
            self.runners.lock().unwrap().push((claim, end));
            Ok(Launched { pid: 1, ended: Box::pin(ended.map(drop)) })
        })
    }
}

#[tokio::test]
async fn money_that_a_dead_run_holds_is_there_for_the_next() {
    let a = Fake::says("a", "x");
    let stage = Stage::new(&[&a], &[]);
    let dead = stage.admit().await.run();
    let team = stage.team.clone();
    let supervisor = supervisor(&stage, InProcessLauncher::new(stage.engine(), move |_| team.clone()));
    let next = supervisor.dispatch(request(&stage.plan, "/project")).await.unwrap().run;
    stage.see(next, |run| run.state == RunState::Done).await;
    let dead = stage.run(dead).await;
    assert_eq!((dead.state, dead.reason.as_deref()), (RunState::Error, Some("interrupted")));
}

#[tokio::test]
async fn a_run_whose_runner_dies_is_settled_before_anybody_looks() {
    let a = Fake::says("a", "x");
    let (stage, launcher) = (Stage::new(&[&a], &[]), Arc::new(Held::default()));
    let supervisor = supervisor(&stage, launcher.clone());
    launcher.go.notify_one();
    let run = supervisor.dispatch(request(&stage.plan, "/project")).await.unwrap().run;
    assert_eq!(supervisor.launched(), [run]);
    launcher.runners.lock().unwrap().clear();
    let run = stage.see(run, |run| run.state.is_terminal()).await;
    assert_eq!((run.state, run.reason.as_deref()), (RunState::Error, Some("interrupted")));
    soon(supervisor.close()).await;
    assert_eq!(supervisor.launched(), []);
}

#[tokio::test]
async fn what_is_taken_back_before_it_begins_is_not_admitted() {
    let a = Fake::says("a", "x");
    let (stage, launcher) = (Stage::new(&[&a], &[]), Arc::new(Held::default()));
    let supervisor = supervisor(&stage, launcher);
    assert!(supervisor.dispatch(request(&stage.plan, "/project")).now_or_never().is_none());
    soon(supervisor.close()).await;
    assert_eq!(runs(&stage).await, []);
}

#[tokio::test]
async fn what_is_taken_back_while_its_runner_starts_is_cancelled() {
    let a = Fake::says("a", "x");
    let (stage, launcher) = (Stage::new(&[&a], &[]), Arc::new(Held::default()));
    let supervisor = supervisor(&stage, launcher.clone());
    soon(async {
        tokio::select! {
            _ = supervisor.dispatch(request(&stage.plan, "/project")) => unreachable!("no runner starts"),
            () = launcher.asked.notified() => {}
        }
    })
    .await;
    launcher.go.notify_one();
    let id = runs(&stage).await[0].run_id;
    let run = stage.see(id, |run| run.cancel_requested_by.is_some()).await;
    assert_eq!(run.cancel_requested_by.as_deref(), Some("test@1"));
    let reason = |event: &RunEvent| match event {
        RunEvent::CancelRequested { reason, .. } => reason.clone(),
        _ => None,
    };
    let log = stage.store.events(id, 0).await.unwrap();
    assert_eq!(log.iter().find_map(|event| reason(&event.body)).as_deref(), Some(UNANSWERED));
    assert_eq!(launcher.runners.lock().unwrap().len(), 1, "the runner itself settles it");
}

#[tokio::test]
async fn what_the_end_of_the_server_cuts_off_goes_on() {
    let a = Fake::says("a", "x");
    let (stage, launcher) = (Stage::new(&[&a], &[]), Arc::new(Held::default()));
    let supervisor = supervisor(&stage, launcher.clone());
    soon(async {
        tokio::select! {
            _ = supervisor.dispatch(request(&stage.plan, "/project")) => unreachable!("no runner starts"),
            () = launcher.asked.notified() => {}
        }
    })
    .await;
    launcher.go.notify_one();
    soon(supervisor.close()).await;
    let runs = runs(&stage).await;
    assert_eq!((runs.len(), runs[0].state, &runs[0].cancel_requested_by), (1, RunState::Queued, &None));
    assert_eq!(supervisor.launched(), [runs[0].run_id]);
}

#[tokio::test]
async fn a_run_of_which_nobody_is_told_is_cancelled() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let stage = Stage::new(&[&a], &[]);
    let team = stage.team.clone();
    let supervisor = supervisor(&stage, InProcessLauncher::new(stage.engine(), move |_| team.clone()));
    let run = supervisor.dispatch(request(&stage.plan, "/project")).await.unwrap().run;
    supervisor.unanswered(run, "test@1".into()).answered();
    drop(supervisor.unanswered(run, "test@1".into()));
    let run = stage.see(run, |run| run.state.is_terminal()).await;
    assert_eq!(run.state, RunState::Cancelled);
    assert!(run.detail.contains(UNANSWERED), "{}", run.detail);
    let again = supervisor.cancel(run.run_id, "test@1".into(), None).await.unwrap();
    assert_eq!(again, CancelOutcome::AlreadyFinished(RunState::Cancelled));
}

/// Over the database, whose work goes on in other threads: wherever the request is dropped, what
/// is left is nothing, or a cancelled run that holds no money.
#[tokio::test]
async fn a_request_can_be_taken_back_at_any_moment() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let (stage, home, project) =
        (Stage::new(&[&a], &[]), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cwd = project.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let store = Arc::new(SqliteRunStore::new(home.path(), Arc::new(SystemClock)));
    let (mut engine, team) = (stage.engine(), stage.team.clone());
    engine.store = store.clone();
    let launcher = InProcessLauncher::new(engine, move |_| team.clone());
    let supervisor = Supervisor::new(store.clone(), launcher, Arc::new(NoProcesses));
    for moment in 0..24 {
        let request = DispatchRequest {
            reserve: Reserve::of(Usd::from_dollars(1.0), None),
            ..request(&stage.plan, &cwd)
        };
        let dispatching = supervisor.dispatch(request);
        // Half of the moments are turns of this thread, half of them last longer.
        let waiting = async {
            for _ in 0..moment {
                tokio::task::yield_now().await;
            }
            if moment % 2 == 1 {
                let absent = RunId::random();
                store.load(absent).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            dispatched = dispatching => {
                // It was told of its run, which is its own to cancel.
                supervisor.cancel(dispatched.unwrap().run, "test@1".into(), None).await.unwrap();
            }
            () = waiting => {}
        }
    }
    // Whatever was dropped before this one is admitted before it, or not at all.
    let last = supervisor.dispatch(DispatchRequest {
        reserve: Reserve::of(Usd::from_dollars(1.0), None),
        ..request(&stage.plan, &cwd)
    });
    supervisor.cancel(soon(last).await.unwrap().run, "test@1".into(), None).await.unwrap();
    let settled = async {
        while !store.unsettled().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    soon(settled).await;
    soon(supervisor.close()).await;
    for summary in store.query(String::new(), 200).await.unwrap() {
        assert_eq!(summary.state, RunState::Cancelled, "{}", summary.detail);
        assert!(summary.detail.starts_with("cancelled by test@1"), "{}", summary.detail);
    }
    assert_eq!(store.day(SystemClock.now().day()).await.unwrap().reserved, Usd::ZERO);
}

/// Kills what it is told is a runner: here that is a claim.
struct Axe(Arc<Held>);

impl Reaper for Axe {
    fn reap(&self, _run: RunId) -> BoxFuture<'_, ProcessCount> {
        Box::pin(std::future::ready(ProcessCount { killed: 2, left: 0 }))
    }

    fn kill_runner(&self, run: RunId, pid: Option<u32>) -> BoxFuture<'_, bool> {
        let mut runners = self.0.runners.lock().unwrap();
        let found = runners
            .iter()
            .position(|(claim, _)| claim.run() == run)
            .filter(|_| pid.is_none_or(|pid| pid == 7));
        found.map(|place| runners.remove(place));
        Box::pin(std::future::ready(found.is_some()))
    }
}

#[tokio::test]
async fn a_runner_that_does_not_stop_its_run_is_killed_by_whoever_looks() {
    let a = Fake::says("a", "x");
    let (stage, launcher) = (Stage::new(&[&a], &[]), Arc::new(Held::default()));
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let store = Arc::new(stage.store.clone());
    let supervisor =
        Supervisor::new(store, launcher.clone(), Arc::new(Axe(launcher.clone()))).with_clock(clock.clone());
    let (stuck, well) = (stage.admit().await, stage.admit().await);
    let (run, other) = (stuck.run(), well.run());
    for claim in [stuck, well] {
        stage.store.append(&claim, vec![RunEvent::Started { pid: 7 }]).await.unwrap();
        let (end, _ended) = oneshot::channel();
        launcher.runners.lock().unwrap().push((claim, end));
    }
    assert_eq!(supervisor.cancel(run, "me@1".into(), None).await.unwrap(), CancelOutcome::Requested);
    clock.step(15_000);
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [], "a runner may take its time");
    clock.step(10_000);
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [run], "the other was never asked to stop");
    let settled = stage.run(run).await;
    assert_eq!((settled.state, settled.reason.as_deref()), (RunState::Cancelled, Some("unresponsive")));
    assert_eq!(settled.processes, Some(ProcessCount { killed: 2, left: 0 }));
    assert!(settled.detail.starts_with("cancelled by me@1; its runner did not react"), "{}", settled.detail);
    let again = supervisor.cancel(run, "me@1".into(), None).await.unwrap();
    assert_eq!(again, CancelOutcome::AlreadyFinished(RunState::Cancelled));
    assert!(!stage.run(other).await.state.is_terminal());

    // Whoever finds a runner dead that was asked to stop long ago settles its run the same way.
    clock.step(-25_000);
    assert_eq!(supervisor.cancel(other, "me@1".into(), None).await.unwrap(), CancelOutcome::Requested);
    clock.step(25_000);
    launcher.runners.lock().unwrap().clear();
    assert!(supervisor.settle_if_dead(other).await.unwrap());
    let settled = stage.run(other).await;
    assert_eq!((settled.state, settled.reason.as_deref()), (RunState::Cancelled, Some("unresponsive")));
}

#[tokio::test]
async fn a_runner_that_was_stopped_before_it_began_is_found_and_killed() {
    let a = Fake::says("a", "x");
    let (stage, launcher) = (Stage::new(&[&a], &[]), Arc::new(Held::default()));
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let store = Arc::new(stage.store.clone());
    let supervisor =
        Supervisor::new(store, launcher.clone(), Arc::new(Axe(launcher.clone()))).with_clock(clock.clone());
    let claim = stage.admit().await;
    let run = claim.run();
    let (end, _ended) = oneshot::channel();
    launcher.runners.lock().unwrap().push((claim, end));
    assert_eq!(supervisor.cancel(run, "me@1".into(), None).await.unwrap(), CancelOutcome::Requested);
    clock.step(15_000);
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [], "it may be about to begin");
    let queued = stage.run(run).await;
    assert_eq!((queued.state, queued.engine_pid), (RunState::Queued, None));
    assert_ne!(queued.reserved, Usd::ZERO);
    clock.step(10_000);
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [run]);
    let settled = stage.run(run).await;
    assert_eq!((settled.state, settled.reason.as_deref()), (RunState::Cancelled, Some("unresponsive")));
    assert_eq!(stage.store.day(SystemClock.now().day()).await.unwrap().reserved, Usd::ZERO);
}
