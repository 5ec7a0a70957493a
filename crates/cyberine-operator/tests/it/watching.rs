use std::time::Duration;

use cyberine_run_store::RunStore;
use cyberine_server::{ResourceError, ResourceSet, ResourceWatch};
use cyberine_types::RunId;
use serde_json::json;

use crate::stage::{Stage, caller, soon};

async fn watch(stage: &Stage, id: impl std::fmt::Display) -> Result<Box<dyn ResourceWatch>, ResourceError> {
    soon(stage.resources.watch(caller(), format!("cyberine://runs/{id}"))).await
}

/// Whether the watch has something to tell at once.
async fn has_news(watch: &mut Box<dyn ResourceWatch>) -> bool {
    tokio::time::timeout(Duration::from_millis(50), watch.changed()).await.is_ok()
}

#[tokio::test]
async fn every_change_of_a_run_reaches_who_follows_it_decisions_after_its_end_included() {
    let stage = Stage::free(&[("a", "x")]);
    let id = stage.start("x").await;
    let mut follower = watch(&stage, id.to_string().to_uppercase()).await.unwrap();
    assert_eq!(follower.uri(), format!("cyberine://runs/{id}"));
    stage.gate.send_replace(true);
    let ended = async {
        while !stage.store.load(id).await.unwrap().unwrap().state.is_terminal() {
            follower.changed().await;
        }
    };
    soon(ended).await;
    while has_news(&mut follower).await {}

    for (tool, step) in [("approve_run", None), ("reject_run", Some("dispatch"))] {
        let mut arguments = json!({ "runId": id });
        if let Some(step) = step {
            arguments["stepId"] = json!(step);
        }
        let (_, decided) = tokio::join!(soon(follower.changed()), stage.call(tool, arguments));
        assert!(decided.get("error").is_none(), "{decided}");
    }
    assert!(!has_news(&mut follower).await, "nothing is told twice");
}

#[tokio::test]
async fn what_happened_while_nobody_looked_is_told_once() {
    let stage = Stage::free(&[("a", "x")]);
    let id = stage.start("x").await;
    let mut follower = watch(&stage, id).await.unwrap();
    stage.gate.send_replace(true);
    stage.see(id, |run| run.state.is_terminal()).await;
    // Dropped before it resolves, no change is lost.
    drop(follower.changed());
    soon(follower.changed()).await;
    assert!(!has_news(&mut follower).await);
}

#[tokio::test]
async fn the_end_of_a_run_whose_runner_died_is_told() {
    let stage = Stage::free(&[]);
    let claim = stage.admitted("x", &stage.cwd).await;
    let id = claim.run();
    let mut follower = watch(&stage, id).await.unwrap();
    drop(claim);
    soon(follower.changed()).await;
    let run = stage.store.load(id).await.unwrap().unwrap();
    assert_eq!(run.reason.as_deref(), Some("interrupted"));
}

#[tokio::test]
async fn what_is_no_run_is_not_followed() {
    let stage = Stage::free(&[]);
    assert!(stage.resources.is_watchable());
    for id in [RunId::random().to_string(), "../../etc".to_owned(), String::new()] {
        let uri = format!("cyberine://runs/{id}");
        assert_eq!(watch(&stage, id).await.map(drop), Err(ResourceError::NotFound { uri }));
    }
    let id = RunId::random();
    let upper = format!("cyberine://runs/{}", id.to_string().to_uppercase());
    assert_eq!(stage.resources.plain_uri(&upper), format!("cyberine://runs/{id}"));
    assert_eq!(stage.resources.plain_uri("file:///X"), "file:///X");
}
