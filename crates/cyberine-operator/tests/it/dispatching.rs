use std::sync::atomic::Ordering;

use cyberine_run_store::{RunState, RunStore};
use cyberine_server::{OutlivesReply, Progress, ToolSet};
use cyberine_types::Billing;
use serde_json::json;

use crate::stage::{Client, Stage, soon};

#[tokio::test]
async fn the_reply_comes_before_any_answer_and_says_how_to_go_on() {
    let stage = Stage::free(&[("a", "42"), ("b", "42"), ("c", "7")]);
    let reply = stage.call("orchestrate", json!({ "prompt": "what is it?" })).await;
    let id = reply["runId"].as_str().unwrap().to_owned();
    let expected = json!({
        "runId": id,
        "status": "dispatched",
        "detail": format!("dispatched to 3 providers (a, b, c); poll inspect_run(runId=\"{id}\") or query_runs() for the outcome"),
        "pollWith": { "tool": "inspect_run", "arguments": { "runId": id } },
        "cancelWith": {
            "tool": "cancel_run",
            "arguments": { "runId": id },
            "description": "call the tool, or write `body` to `controlFile` in the project's directory",
            "controlFile": format!(".local/runs/{id}/control.json"),
            "body": { "action": "stop", "target": { "type": "run" } },
        },
    });
    assert_eq!(reply, expected);
    let run = stage.store.load(id.parse().unwrap()).await.unwrap().unwrap();
    assert!(!run.state.is_terminal());
    assert_eq!((run.requested_by.as_str(), run.cwd.as_str()), ("host@1.2", stage.cwd.as_str()));

    stage.gate.send_replace(true);
    let poll = &reply["pollWith"];
    let mut arguments = poll["arguments"].clone();
    arguments["waitMs"] = json!(45_000);
    let view = stage.call(poll["tool"].as_str().unwrap(), arguments).await;
    assert_eq!(
        (view["state"].as_str(), view["steps"][0]["winnerOutput"].as_str()),
        (Some("done"), Some("42"))
    );
}

#[tokio::test]
async fn without_a_provider_nothing_starts_and_the_advice_is_given() {
    let stage = Stage::free(&[]);
    let error = stage.refused("orchestrate", json!({ "prompt": "x" })).await;
    assert!(error.contains("no provider") && error.contains("cyberine init"), "{error}");
    assert_eq!(stage.store.unsettled().await.unwrap(), []);
}

#[tokio::test]
async fn where_the_era_allows_it_news_goes_on_after_the_reply_until_one_settled() {
    let stage = Stage::free(&[("a", "42"), ("b", "42"), ("c", "7")]);
    let client = Client::default();
    stage.call_with("orchestrate", json!({ "prompt": "x" }), client.progress(OutlivesReply::Yes)).await;
    stage.gate.send_replace(true);
    stage.tasks.close();
    soon(stage.tasks.wait()).await;
    let heard = client.heard();
    for name in ["a", "b", "c"] {
        for kind in ["started", "done"] {
            let told = heard.iter().filter(|news| news.starts_with(&format!("{name} {kind}"))).count();
            assert_eq!(told, 1, "{name} {kind}: {heard:?}");
        }
    }
    assert_eq!(heard.iter().filter(|news| news.starts_with("settled")).count(), 1);
    assert!(heard.last().unwrap().starts_with("settled: done: 3 of 3"), "{heard:?}");
}

#[tokio::test]
async fn where_it_does_not_nothing_follows_the_reply() {
    let stage = Stage::free(&[("a", "42")]);
    let client = Client::default();
    stage.call_with("orchestrate", json!({ "prompt": "x" }), client.progress(OutlivesReply::No)).await;
    stage.tasks.close();
    soon(stage.tasks.wait()).await;
    assert_eq!(client.heard(), Vec::<String>::new());
}

#[tokio::test]
async fn scripted_answers_are_labelled_wherever_the_run_shows_itself() {
    let stage = Stage::new(&[("a", "42"), ("b", "42")], Billing::Scripted);
    let reply = stage.call("orchestrate", json!({ "prompt": "x" })).await;
    let label = "scripted answers, no model was called";
    assert!(reply["detail"].as_str().unwrap().ends_with(label));
    stage.gate.send_replace(true);
    let view = stage.call("inspect_run", json!({ "runId": reply["runId"], "waitMs": 45_000 })).await;
    assert_eq!(view["label"], label);
    assert!(view["detail"].as_str().unwrap().ends_with(label));
    let runs = stage.call("query_runs", json!({})).await;
    assert!(runs["runs"][0]["detail"].as_str().unwrap().ends_with(label));
}

#[tokio::test]
async fn a_run_is_cancelled_once_and_asking_again_is_no_error() {
    let stage = Stage::free(&[("a", "42"), ("b", "7")]);
    let id = stage.start("x").await;
    let first = stage.call("cancel_run", json!({ "runId": id, "reason": "enough" })).await;
    assert_eq!((&first["outcome"], &first["runId"]), (&json!("requested"), &json!(id)));
    let run = stage.see(id, |run| run.state.is_terminal()).await;
    assert_eq!((run.state, run.cancel_requested_by.as_deref()), (RunState::Cancelled, Some("host@1.2")));
    let again = stage.call("cancel_run", json!({ "runId": id })).await;
    assert_eq!(again, json!({ "runId": id, "state": "cancelled", "outcome": "already_finished" }));
}

#[tokio::test]
async fn a_run_of_another_project_can_be_seen_and_not_cancelled() {
    let (ours, theirs) = (Stage::free(&[("a", "42")]), tempfile::tempdir().unwrap());
    let run = cyberine_run_store::NewRun {
        id: cyberine_types::RunId::random(),
        workflow: "mcp-orchestrate".into(),
        prompt: "theirs".into(),
        cwd: theirs.path().to_str().unwrap().into(),
        requested_by: "cli".into(),
        spec: json!({}),
    };
    let reserve = cyberine_run_store::Reserve::of(cyberine_types::Usd::ZERO, None);
    let claim = ours.store.admit(run, reserve).await.unwrap();
    let id = claim.run();
    let error = ours.refused("cancel_run", json!({ "runId": id })).await;
    assert!(error.contains("another project"), "{error}");
    let view = ours.call("inspect_run", json!({ "runId": id })).await;
    assert_eq!((&view["task"], &view["state"]), (&json!("theirs"), &json!("queued")));
}

#[tokio::test]
async fn a_configuration_that_was_not_used_is_told_with_the_reply() {
    let stage = Stage::free(&[("a", "42")]);
    *stage.note.lock().unwrap() = Some("`/p/cyberine.toml` is not trusted".to_owned());
    let reply = stage.call("orchestrate", json!({ "prompt": "x" })).await;
    let detail = reply["detail"].as_str().unwrap();
    assert!(detail.starts_with("dispatched to 1 providers (a); poll inspect_run("), "{detail}");
    assert!(detail.ends_with("for the outcome; `/p/cyberine.toml` is not trusted"), "{detail}");
}

/// However far the call has come: nothing is left, or a run that was cancelled.
#[tokio::test]
async fn a_call_that_is_taken_back_leaves_no_run_that_goes_on() {
    let stage = Stage::free(&[("a", "42")]);
    stage.turns.store(3, Ordering::SeqCst);
    let (mut answered, mut taken_back) = (false, 0);
    while !answered {
        let call = stage.call_of("orchestrate", json!({ "prompt": "x" }), Progress::none());
        let waiting = async {
            for _ in 0..taken_back {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            outcome = stage.tools.call(call) => answered = outcome.is_ok(),
            () = waiting => taken_back += 1,
        }
    }
    assert!(taken_back > 6, "a call takes some turns");
    let going_on = async {
        loop {
            let open = stage.store.unsettled().await.unwrap();
            if open.len() == 1 {
                return open[0];
            }
            stage.store.changed(open[0], 1_000, std::time::Duration::from_millis(20)).await;
        }
    };
    let told = soon(going_on).await;
    let runs = stage.call("query_runs", json!({ "limit": 200 })).await;
    for run in runs["runs"].as_array().unwrap().iter().filter(|run| run["runId"] != json!(told)) {
        let run = stage.store.load(run["runId"].as_str().unwrap().parse().unwrap()).await.unwrap().unwrap();
        let by = run.cancel_requested_by.as_deref();
        assert_eq!((run.state, by), (RunState::Cancelled, Some("host@1.2")), "{}", run.detail);
    }
    assert!(stage.store.load(told).await.unwrap().unwrap().cancel_requested_by.is_none());
}

#[tokio::test]
async fn a_call_that_is_taken_back_while_its_reply_leaves_is_cancelled() {
    let stage = Stage::free(&[("a", "42")]);
    let call = stage.call_of("orchestrate", json!({ "prompt": "x" }), Progress::none());
    let cancel = call.cancel.clone();
    soon(stage.tools.call(call)).await.unwrap();
    assert!(!stage.tasks.is_empty(), "the client can take it back");
    cancel.cancel();
    let id = stage.store.unsettled().await.unwrap()[0];
    let run = stage.see(id, |run| run.state.is_terminal()).await;
    assert_eq!((run.state, run.cancel_requested_by.as_deref()), (RunState::Cancelled, Some("host@1.2")));
    let kept = stage.start("y").await;
    stage.tasks.close();
    soon(stage.tasks.wait()).await;
    assert!(!stage.store.load(kept).await.unwrap().unwrap().state.is_terminal());
}

#[tokio::test]
async fn a_dry_run_tells_what_it_would_cost_and_changes_nothing() {
    let stage = Stage::new(&[("a", "42"), ("b", "7")], Billing::Metered);
    let arguments = json!({ "prompt": "what is it?", "dryRun": true, "idempotencyKey": "k" });
    let reply = stage.call("orchestrate", arguments).await;
    let forecast = &reply["forecast"];
    assert_eq!(
        (&forecast["candidates"], &forecast["judges"]),
        (&json!(["a", "b"]), &json!(["consensus", "llm-judge"]))
    );
    assert_eq!((&forecast["complete"], &forecast["holdsUsd"]), (&json!(false), &json!(1.0)));
    let cap = json!({ "on": "day", "capUsd": 2.0, "heldUsd": 0.0, "spentUsd": 0.0, "leftUsd": 2.0, "holdsUsd": 1.0 });
    assert_eq!(forecast["caps"], json!([cap]));
    let detail = reply["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("nothing was dispatched; it would cost")
            && detail.contains("nobody knows the most for a, b"),
        "{detail}"
    );
    assert_eq!(stage.store.unsettled().await.unwrap(), []);
    // Its key is as new as before.
    let reply = stage.call("orchestrate", json!({ "prompt": "what is it?", "idempotencyKey": "k" })).await;
    assert_eq!(reply["status"], "dispatched");
    let error = stage.refused("orchestrate", json!({ "prompt": " ", "dryRun": true })).await;
    assert!(error.contains("the prompt is empty"), "{error}");
}
