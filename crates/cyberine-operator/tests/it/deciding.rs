use cyberine_operator::{DirectoryProject, Project as _};
use cyberine_run_store::{Choice, RunEvent, RunState, RunStore};
use cyberine_types::{Billing, RunId};
use serde_json::{Value, json};

use crate::stage::{Setting, Stage, soon};

#[tokio::test]
async fn a_decision_is_recorded_once_and_stands() {
    let stage = Stage::free(&[("a", "x")]);
    let id = stage.finished("x").await;
    let approve = json!({ "runId": id, "comment": "good" });
    let first = stage.call("approve_run", approve.clone()).await;
    let shown = [&first["decision"], &first["runId"], &first["comment"], &first["decidedBy"]];
    assert_eq!(shown, [&json!("approve"), &json!(id), &json!("good"), &json!("host@1.2")]);
    assert_eq!((&first["deciderKind"], &first["effect"]), (&json!("mcp"), &json!("on_record")));
    assert!(first["detail"].as_str().unwrap().contains("the run was over (done)"), "{first}");
    assert!(first["decidedAt"].is_string() && first.get("stepId").is_none(), "{first}");
    assert_eq!(stage.call("approve_run", approve).await, first, "twice is once");
    let error = stage.refused("reject_run", json!({ "runId": id })).await;
    assert!(
        error.contains("was approved by mcp host@1.2 at ") && error.contains("first decision stands"),
        "{error}"
    );

    let step = stage.call("reject_run", json!({ "runId": id, "stepId": "dispatch" })).await;
    assert_eq!((&step["decision"], &step["stepId"]), (&json!("reject"), &json!("dispatch")));
    let error = stage.refused("approve_run", json!({ "runId": id, "stepId": "dispatch" })).await;
    assert!(error.contains("step `dispatch` of run") && error.contains("was rejected by"), "{error}");

    let view = stage.call("inspect_run", json!({ "runId": id })).await;
    assert_eq!((&view["state"], &view["decision"]), (&json!("done"), &recorded(&first)));
    assert_eq!(view["decisions"], json!([recorded(&first), recorded(&step)]));
}

/// The decision as it is kept, without what it did.
fn recorded(answer: &Value) -> Value {
    let mut decision = answer.clone();
    let members = decision.as_object_mut().unwrap();
    members.remove("effect");
    members.remove("detail");
    decision
}

/// A project is the directory it was, wherever that lies now.
#[tokio::test]
async fn a_run_belongs_to_the_directory_it_was_admitted_for() {
    let stage = Stage::free(&[("a", "x")]);
    let place = tempfile::tempdir().unwrap();
    let (path, moved) = (place.path().join("p"), place.path().join("moved"));
    std::fs::create_dir(&path).unwrap();
    let project = DirectoryProject::open(&path).unwrap();
    let claim = stage.admitted("theirs", path.to_str().unwrap()).await;
    #[expect(clippy::disallowed_methods, reason = "the project is moved")]
    std::fs::rename(&path, &moved).unwrap();
    std::fs::create_dir(&path).unwrap();
    let admitted_for = stage.store.project(claim.run()).await.unwrap();
    assert_eq!(admitted_for, Some(project.id()));
    assert_eq!(DirectoryProject::open(&moved).unwrap(), project);
    assert_ne!(DirectoryProject::open(&path).unwrap(), project, "another directory has its path");
    let other = stage.admitted("another", path.to_str().unwrap()).await;
    assert_ne!(stage.store.project(other.run()).await.unwrap(), admitted_for);
}

#[tokio::test]
async fn what_cannot_be_decided_on_says_why() {
    let stage = Stage::free(&[("a", "x")]);
    let theirs = tempfile::tempdir().unwrap();
    let foreign = stage.admitted("theirs", theirs.path().to_str().unwrap()).await;
    let id = stage.finished("x").await;
    let cases = [
        (json!({ "runId": RunId::random() }), "there is no run"),
        (json!({ "runId": foreign.run() }), "belongs to another project"),
        (json!({ "runId": id, "stepId": "synthesize" }), "`stepId`: run"),
        (json!({ "runId": id, "stepId": "synthesize" }), "its steps: `dispatch`"),
    ];
    for (arguments, part) in cases {
        for tool in ["approve_run", "reject_run"] {
            let error = stage.refused(tool, arguments.clone()).await;
            assert!(error.contains(part), "{tool} {arguments}: {error}");
        }
    }
    for run in [id, foreign.run()] {
        assert_eq!(stage.store.load(run).await.unwrap().unwrap().decisions, []);
    }
}

#[tokio::test]
async fn of_many_who_decide_at_once_one_decision_stands() {
    let stage = Stage::free(&[("a", "x")]);
    let id = stage.finished("x").await;
    let all = (0..16).map(|number| {
        let tool = if number % 2 == 0 { "approve_run" } else { "reject_run" };
        stage.call(tool, json!({ "runId": id }))
    });
    let results = futures_util::future::join_all(all).await;
    let run = stage.store.load(id).await.unwrap().unwrap();
    assert_eq!(run.decisions.len(), 1);
    let standing = json!(run.decisions[0]);
    let agreed = results.iter().filter(|result| recorded(result) == standing).count();
    let refused = results.iter().filter(|result| result.get("error").is_some()).count();
    assert_eq!((agreed, refused), (8, 8));
}

async fn waiting(stage: &Stage) -> (RunId, Value) {
    stage.gate.send_replace(true);
    let id = stage.start("x").await;
    // It returns soon after the run waits for somebody.
    let begun = std::time::Instant::now();
    let view = stage.call("inspect_run", json!({ "runId": id, "waitMs": 15_000 })).await;
    assert_eq!(view["state"], "suspended", "{view}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    (id, view)
}

#[tokio::test]
async fn a_run_that_waits_shows_how_to_decide_and_goes_on_as_decided() {
    for (with, decided, state) in
        [("approveWith", "approve", RunState::Done), ("rejectWith", "reject", RunState::Cancelled)]
    {
        let stage = Stage::set(Setting::approving(), &[("a", "42"), ("b", "42")], Billing::Free);
        let (id, view) = waiting(&stage).await;
        let awaiting = &view["awaiting"];
        assert_eq!((&awaiting["step"], &awaiting["onExpiry"]), (&json!("dispatch"), &json!("reject")));
        assert!(awaiting["expiresAt"].is_string());
        assert_eq!(view.get("decision"), None);
        let call = &awaiting[with];
        let decision = stage.call(call["tool"].as_str().unwrap(), call["arguments"].clone()).await;
        assert_eq!(decision["decision"], decided);
        let run = stage.see(id, |run| run.state.is_terminal()).await;
        assert_eq!(run.state, state, "{}", run.detail);
        let view = stage.call("inspect_run", json!({ "runId": id })).await;
        assert_eq!((&view["decision"], view.get("awaiting")), (&recorded(&decision), None));
        let (effect, said) = match state {
            RunState::Done => ("goes_on", "waited for this, and goes on"),
            _ => ("ends", "ends as cancelled"),
        };
        assert_eq!(decision["effect"], effect);
        assert!(decision["detail"].as_str().unwrap().contains(said), "{decision}");
    }
}

#[tokio::test]
async fn guidance_and_decisions_are_shown_and_bounded() {
    let stage = Stage::free(&[]);
    let claim = stage.admitted("x", &stage.cwd).await;
    let id = claim.run();
    stage.store.append(&claim, vec![RunEvent::Started { pid: 1 }]).await.unwrap();
    for number in 0..300 {
        let steer = RunEvent::Steered {
            message: cyberine_types::MessageId::random(),
            from: format!("mcp h@{number}"),
            text: "\u{1}".repeat(3_000),
        };
        stage.store.append(&claim, vec![steer]).await.unwrap();
    }
    stage.call("approve_run", json!({ "runId": id, "comment": "\u{1}".repeat(4_000) })).await;
    let view = stage.call("inspect_run", json!({ "runId": id })).await;
    assert_eq!((&view["truncated"], &view["steers"][0]["from"]), (&json!(true), &json!("mcp h@0")));
    assert_eq!(view["decision"]["decision"], json!(Choice::Approve));
    let contents = soon(cyberine_server::ResourceSet::read(
        &stage.resources,
        cyberine_server::ResourceRead::of(crate::stage::caller(), format!("cyberine://runs/{id}")),
    ));
    let whole: Value = serde_json::from_str(contents.await.unwrap().text().unwrap()).unwrap();
    assert_eq!(whole["steers"].as_array().unwrap().len(), 300);
    assert_eq!(whole["decisions"][0]["comment"].as_str().unwrap().len(), 4_000);
}
