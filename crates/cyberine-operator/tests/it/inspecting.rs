use std::sync::Arc;
use std::time::{Duration, Instant};

use cyberine_run_store::{NewRun, Reserve, RunStore};
use cyberine_server::{
    OutlivesReply, ReadOutcome, ResourceBody, ResourceContents, ResourceError, ResourceRead, ResourceSet,
};
use cyberine_types::{RunId, Usd};
use serde_json::{Value, json};

use crate::stage::{Client, Stage, caller, soon};

#[tokio::test]
async fn a_run_is_seen_running_and_then_done_with_its_verdict() {
    let stage = Stage::free(&[("a", "Paris"), ("b", "paris."), ("c", "Rome")]);
    let id = stage.start("capital of France?").await;
    stage.see(id, |run| run.steps.first().is_some_and(|step| step.candidates.len() == 3)).await;
    let view = stage.call("inspect_run", json!({ "runId": id })).await;
    assert_eq!((&view["state"], &view["workflowName"]), (&json!("running"), &json!("mcp-orchestrate")));
    assert_eq!(view["steps"][0]["candidates"][0]["state"], "running");
    assert_eq!(view["steps"][0].get("verdict"), None);

    stage.gate.send_replace(true);
    let view = stage.call("inspect_run", json!({ "runId": id, "waitMs": 45_000 })).await;
    let step = &view["steps"][0];
    assert_eq!(
        (&view["state"], &step["verdict"]["outcome"], &step["verdict"]["winner"]),
        (&json!("done"), &json!("majority"), &json!("a"))
    );
    assert!(step["verdict"]["rationale"].as_str().unwrap().starts_with("2 of 3"));
    assert_eq!((&step["winnerPreview"], &step["winnerOutput"]), (&json!("Paris"), &json!("Paris")));
    assert_eq!(view["resource"], format!("cyberine://runs/{id}"));
    assert_eq!(view["task"], "capital of France?");
}

#[tokio::test]
async fn a_wait_ends_with_the_run_or_with_any_change_after_the_last_look() {
    let stage = Arc::new(Stage::free(&[("a", "x")]));
    let id = stage.start("x").await;
    let run = stage.see(id, |run| run.steps.first().is_some_and(|step| !step.candidates.is_empty())).await;

    let begun = Instant::now();
    let view = stage.call("inspect_run", json!({ "runId": id, "waitMs": 100 })).await;
    assert_eq!(view["state"], "running");
    assert!(begun.elapsed() >= Duration::from_millis(100));

    let old = stage
        .call("inspect_run", json!({ "runId": id, "waitMs": 45_000, "sinceSeq": run.next_seq - 1 }))
        .await;
    assert_eq!(old["nextSeq"], run.next_seq, "news that is there already is not waited for");

    let opener = {
        let stage = Arc::clone(&stage);
        async move {
            stage.gate.send_replace(true);
        }
    };
    let look = stage.call("inspect_run", json!({ "runId": id, "waitMs": 45_000, "sinceSeq": run.next_seq }));
    let (view, ()) = tokio::join!(look, opener);
    assert!(view["nextSeq"].as_u64().unwrap() > run.next_seq);
}

#[tokio::test]
async fn a_wait_with_a_token_tells_what_happens() {
    let stage = Stage::free(&[("a", "x"), ("b", "x")]);
    let id = stage.start("x").await;
    stage.see(id, |run| run.steps.first().is_some_and(|step| step.candidates.len() == 2)).await;
    let client = Client::default();
    let look = stage.call_with(
        "inspect_run",
        json!({ "runId": id, "waitMs": 45_000 }),
        client.progress(OutlivesReply::No),
    );
    let opening = async { stage.gate.send_replace(true) };
    let (view, _) = tokio::join!(look, opening);
    assert_eq!(view.structured["state"], "done");
    let heard = client.heard();
    assert!(
        heard.iter().any(|news| news.starts_with("a done"))
            && heard.iter().any(|news| news.starts_with("b done")),
        "{heard:?}"
    );
    assert!(heard.last().unwrap().starts_with("settled: done"), "{heard:?}");
    assert!(
        !heard.iter().any(|news| news.contains("started")),
        "what was known is not told again: {heard:?}"
    );
}

#[tokio::test]
async fn a_run_whose_runner_is_dead_is_not_shown_as_running() {
    let stage = Stage::free(&[("a", "x")]);
    let dead = |prompt: &str| NewRun {
        id: RunId::random(),
        workflow: "mcp-orchestrate".into(),
        prompt: prompt.into(),
        cwd: stage.cwd.clone(),
        requested_by: "cli".into(),
        spec: json!({}),
    };
    let reserve = Reserve::of(Usd::from_dollars(1.0), None);
    let (one, two) = (dead("one"), dead("two"));
    let (first, second) = (one.id, two.id);
    drop(stage.store.admit(one, reserve.clone()).await.unwrap());
    drop(stage.store.admit(two, reserve).await.unwrap());
    let view = stage.call("inspect_run", json!({ "runId": first })).await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("error"), &json!("interrupted")));
    let runs = stage.call("query_runs", json!({ "query": "two" })).await;
    assert_eq!((&runs["runs"][0]["runId"], &runs["runs"][0]["state"]), (&json!(second), &json!("error")));
}

#[tokio::test]
async fn long_answers_are_bounded_in_the_tool_and_whole_in_the_resource() {
    let long = "ö".repeat(300_000);
    let stage = Stage::free(&[("a", &long), ("b", &long), ("c", &long)]);
    let id = stage.finished(&"p".repeat(100_000)).await;
    let view = stage.call("inspect_run", json!({ "runId": id })).await;
    assert_eq!(view["truncated"], true);
    assert!(view["steps"][0]["candidates"][0]["outputPreview"].as_str().unwrap().chars().count() <= 2_000);

    let read = ResourceRead::of(caller(), view["resource"].as_str().unwrap());
    let ReadOutcome::Contents(parts) = stage.resources.read(read).await.unwrap() else { panic!("asked") };
    let [ResourceContents { uri, mime_type, body: ResourceBody::Text(text) }] = &parts[..] else {
        panic!("{parts:?}")
    };
    let whole: Value = serde_json::from_str(text).unwrap();
    assert_eq!((mime_type.as_str(), uri), ("application/json", &format!("cyberine://runs/{id}")));
    assert_eq!(whole["steps"][0]["candidates"][2]["output"], json!(long));
    assert_eq!((&whole["state"], &whole["nextSeq"]), (&view["state"], &view["nextSeq"]));
    assert_eq!(whole["task"].as_str().unwrap().len(), 100_000);
}

#[tokio::test]
async fn what_is_no_run_is_not_found() {
    let stage = Stage::free(&[]);
    let absent = format!("cyberine://runs/{}", RunId::random());
    for uri in [
        absent.as_str(),
        "cyberine://runs/",
        "cyberine://runs/../../etc/passwd",
        "file:///etc/passwd",
        "",
        "cyberine://runs",
    ] {
        let read = soon(stage.resources.read(ResourceRead::of(caller(), uri))).await;
        assert_eq!(read, Err(ResourceError::NotFound { uri: uri.to_owned() }));
    }
}
