//! The same over the database, with its projections in a project.

use std::sync::Arc;

use cyberine_orchestrator::{NoControls, NoProcesses, Supervisor};
use cyberine_run_store::{NewRun, Reserve, RunState, RunStore, SqliteRunStore};
use cyberine_types::{SystemClock, Usd};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fake::{Fake, Stage, new_run, soon};

struct Place {
    store: Arc<SqliteRunStore>,
    project: tempfile::TempDir,
    _home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Arc::new(SqliteRunStore::new(home.path(), Arc::new(SystemClock)));
        Self { store, project, _home: home }
    }

    fn run(&self, stage: &Stage) -> NewRun {
        let cwd = self.project.path().canonicalize().unwrap();
        NewRun { cwd: cwd.to_str().unwrap().to_owned(), ..new_run(&stage.plan) }
    }
}

const HOLD: Reserve = Reserve::of(Usd::from_micros(1_000_000), None);

#[tokio::test]
async fn a_run_is_judged_and_kept_in_the_database() {
    let (a, b) = (Fake::says("a", "up"), Fake::says("b", "down"));
    let judge = Fake::judge_for("judge", "down");
    let (stage, place) = (Stage::new(&[&a, &b], &[&judge]), Place::new());
    let claim = place.store.admit(place.run(&stage), HOLD).await.unwrap();
    let id = claim.run();
    let mut engine = stage.engine();
    engine.store = place.store.clone();
    let (controls, cancel) = (Box::new(NoControls), CancellationToken::new());
    let state = soon(engine.run(claim, &stage.plan, stage.team.clone(), controls, cancel)).await.unwrap();
    let run = place.store.load(id).await.unwrap().unwrap();
    assert_eq!(
        (state, run.state, run.steps[0].winner().unwrap().id.as_str()),
        (RunState::Done, RunState::Done, "b")
    );
    let projected = place.project.path().join(format!(".local/runs/{id}/run.json"));
    assert!(std::fs::read_to_string(projected).unwrap().contains("\"winner\": \"b\""));
}

#[tokio::test]
async fn a_request_of_another_holder_of_the_database_stops_the_run() {
    let gate = Arc::new(Notify::new());
    let a = Fake::holds("a", &gate);
    let (stage, place) = (Stage::new(&[&a], &[]), Place::new());
    let claim = place.store.admit(place.run(&stage), HOLD).await.unwrap();
    let id = claim.run();
    let mut engine = stage.engine();
    engine.store = place.store.clone();
    let (controls, cancel) = (Box::new(NoControls), CancellationToken::new());
    let running = engine.run(claim, &stage.plan, stage.team.clone(), controls, cancel);
    let stopping = async {
        while a.asked() == 0 {
            place.store.changed(id, 0, std::time::Duration::from_millis(20)).await;
            tokio::task::yield_now().await;
        }
        place.store.request_cancel(id, "me@1".into(), None).await.unwrap();
    };
    let (state, ()) = soon(async { tokio::join!(running, stopping) }).await;
    assert_eq!(state.unwrap(), RunState::Cancelled);
}

#[tokio::test]
async fn a_claim_that_was_dropped_lets_the_run_be_settled_with_its_answers() {
    let gate = Arc::new(Notify::new());
    let (a, b) = (Fake::says("a", "kept"), Fake::holds("b", &gate));
    let (stage, place) = (Stage::new(&[&a, &b], &[]), Place::new());
    let claim = place.store.admit(place.run(&stage), HOLD).await.unwrap();
    let id = claim.run();
    let mut engine = stage.engine();
    engine.store = place.store.clone();
    let (controls, cancel) = (Box::new(NoControls), CancellationToken::new());
    let running = engine.run(claim, &stage.plan, stage.team.clone(), controls, cancel);
    let answered = async {
        loop {
            let run = place.store.load(id).await.unwrap().unwrap();
            if run.steps.iter().any(|step| step.candidates.iter().any(|one| one.state == RunState::Done)) {
                return;
            }
            place.store.changed(id, run.next_seq - 1, std::time::Duration::from_millis(20)).await;
        }
    };
    // The future is dropped half way, as a killed process would.
    soon(async {
        tokio::select! {
            ended = running => panic!("{ended:?}"),
            () = answered => {}
        }
    })
    .await;
    let launcher = cyberine_orchestrator::InProcessLauncher::new(stage.engine(), |_| unreachable!());
    let supervisor = Supervisor::new(place.store.clone(), launcher, Arc::new(NoProcesses));
    assert_eq!(supervisor.settle_dead_runs().await.unwrap(), [id]);
    let run = place.store.load(id).await.unwrap().unwrap();
    assert_eq!((run.state, run.reason.as_deref()), (RunState::Error, Some("interrupted")));
    assert_eq!(run.steps[0].candidates[0].output, "kept");
}
