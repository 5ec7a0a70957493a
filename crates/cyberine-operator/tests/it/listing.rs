use cyberine_run_store::{NewRun, Reserve, RunStore};
use cyberine_server::{ResourceError, ResourceSet};
use cyberine_types::{RunId, Usd};
use serde_json::json;

use crate::stage::{Stage, caller};

#[tokio::test]
async fn the_prompt_is_found_after_the_run_has_ended() {
    let stage = Stage::free(&[("a", "blue"), ("b", "blue")]);
    let first = stage.finished("the colour of the SKY?").await;
    let second = stage.finished("something else").await;
    let found = stage.call("query_runs", json!({ "query": "of the sky" })).await;
    assert_eq!(found["runs"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&found["runs"][0]["runId"], &found["runs"][0]["winnerPreview"]),
        (&json!(first), &json!("blue"))
    );
    let all = stage.call("query_runs", json!({})).await;
    let ids: Vec<_> = all["runs"].as_array().unwrap().iter().map(|run| run["runId"].clone()).collect();
    assert_eq!(ids, [json!(second), json!(first)]);
    let one = stage.call("query_runs", json!({ "limit": 1 })).await;
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    let none = stage.call("query_runs", json!({ "query": "%" })).await;
    assert_eq!(none, json!({ "runs": [] }));
}

async fn admit_many(stage: &Stage, count: usize) -> Vec<RunId> {
    let mut ids = Vec::new();
    for number in 0..count {
        let run = NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".into(),
            prompt: format!("number {number} {}", "p".repeat(300)),
            cwd: stage.cwd.clone(),
            requested_by: "cli".into(),
            spec: json!({}),
        };
        ids.push(run.id);
        let claim = stage.store.admit(run, Reserve::of(Usd::ZERO, None)).await.unwrap();
        let settled = cyberine_run_store::RunEvent::Settled {
            state: cyberine_run_store::RunState::Done,
            detail: "d".repeat(500),
            reason: None,
            processes: cyberine_run_store::ProcessCount::default(),
        };
        stage.store.append(&claim, vec![settled]).await.unwrap();
    }
    ids
}

#[tokio::test]
async fn two_hundred_runs_are_listed_in_four_pages_and_no_more() {
    let stage = Stage::free(&[]);
    let mut newest_first = admit_many(&stage, 230).await;
    newest_first.reverse();
    let (mut cursor, mut listed, mut pages) = (None, Vec::new(), 0);
    loop {
        let page = stage.resources.list(caller(), cursor).await.unwrap();
        assert_eq!(page.resources.len(), 50);
        listed.extend(page.resources);
        pages += 1;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((pages, listed.len()), (4, 200));
    let mut uris: Vec<_> = listed.iter().map(|resource| resource.uri.clone()).collect();
    uris.sort();
    uris.dedup();
    assert_eq!(uris.len(), 200, "no run is listed twice");
    let first = &listed[0];
    assert!(first.name.starts_with("number ") && first.description.starts_with("mcp-orchestrate, done, "));
    assert!(first.last_modified.is_some());

    let query = stage.call("query_runs", json!({ "limit": 200 })).await;
    let shown: Vec<_> = query["runs"].as_array().unwrap().iter().map(|run| run["runId"].clone()).collect();
    assert_eq!(query["truncated"], true);
    assert_eq!(shown, newest_first.iter().take(shown.len()).map(|id| json!(id)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_cursor_that_is_none_of_ours_is_refused() {
    let stage = Stage::free(&[("a", "x")]);
    let run = stage.finished("x").await;
    let stranger = RunId::random();
    let forged = [
        String::new(),
        "0".to_owned(),
        "recent-50".to_owned(),
        "recent-50-1".to_owned(),
        format!("recent-0-1-{run}"),
        format!("recent-51-1-{run}"),
        format!("recent-200-1-{run}"),
        format!("recent-4294967346-1-{run}"),
        format!("recent--50-1-{run}"),
        format!("recent-050-1-{run}"),
        format!("recent-50-01-{run}"),
        format!("recent-50-+1-{run}"),
        format!("recent-50-1-{run}-"),
        format!("recent-50-1-{}", run.to_string().to_uppercase()),
        format!("recent-50-99999999999999999999-{run}"),
        format!("recent-50-1-{stranger}"),
    ];
    for cursor in forged {
        let page = stage.resources.list(caller(), Some(cursor.clone())).await;
        assert_eq!(page, Err(ResourceError::BadCursor), "{cursor}");
    }
    let stage = Stage::free(&[]);
    let empty = stage.resources.list(caller(), None).await.unwrap();
    assert_eq!((empty.resources.len(), empty.next_cursor), (0, None));
}

#[tokio::test]
async fn runs_that_change_between_two_pages_move_no_other() {
    let stage = Stage::free(&[("a", "x")]);
    admit_many(&stage, 120).await;
    let first = stage.resources.list(caller(), None).await.unwrap();
    for prompt in ["new", "newer", "newest"] {
        stage.finished(prompt).await;
    }
    let second = stage.resources.list(caller(), first.next_cursor).await.unwrap();
    stage.finished("the last").await;
    let third = stage.resources.list(caller(), second.next_cursor).await.unwrap();
    assert_eq!((third.resources.len(), third.next_cursor), (20, None));
    let shown = [first.resources, second.resources, third.resources].concat();
    let numbers: Vec<usize> = shown
        .iter()
        .map(|resource| resource.name.split_whitespace().nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (0..120).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn no_resource_is_listed_as_running_whose_runner_is_dead() {
    let stage = Stage::free(&[]);
    let run = NewRun {
        id: RunId::random(),
        workflow: "mcp-orchestrate".into(),
        prompt: "dead".into(),
        cwd: stage.cwd.clone(),
        requested_by: "cli".into(),
        spec: json!({}),
    };
    drop(stage.store.admit(run, Reserve::of(Usd::ZERO, None)).await.unwrap());
    let page = stage.resources.list(caller(), None).await.unwrap();
    assert!(page.resources[0].description.starts_with("mcp-orchestrate, error, "), "{page:?}");
}
