//! `run.json` is what `docs/formats/run.schema.json` says, no less and no more.

use cyberine_run_store::{Choice, DeciderKind, Event, OperatorDecision, RunEvent, RunState, RunStore, fold};
use cyberine_types::{MessageId, RunId, Timestamp, Usd};
use serde_json::{Value, json};

use crate::stage::Stage;

const SCHEMA: &str = include_str!("../../../../docs/formats/run.schema.json");

const APPROVAL: &str = include_str!("../../../../docs/formats/approval.schema.json");

/// The schema with nothing allowed that it does not name.
fn closed(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") && object.contains_key("type") {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        object.values_mut().for_each(closed);
    }
}

#[tokio::test]
async fn a_run_has_exactly_the_members_that_are_published() {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    closed(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for answers in
        [vec![("a", "Paris"), ("b", "paris."), ("c", "Rome")], vec![("a", "x"), ("b", "")], vec![("a", "")]]
    {
        let stage = Stage::free(&answers);
        let id = stage.finished("capital of France?").await;
        let run = serde_json::to_value(stage.store.load(id).await.unwrap().unwrap()).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&run).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert_eq!(faults, Vec::<String>::new(), "{run:#}");
        let mut more = run.clone();
        more["steps"][0]["surprise"] = json!(1);
        assert!(!validator.is_valid(&more), "an unpublished member went unnoticed");
    }
}

#[test]
fn what_waits_is_decided_and_guides_has_exactly_the_members_that_are_published() {
    let [run_schema, approval_schema] = [SCHEMA, APPROVAL].map(|text| {
        let mut schema: Value = serde_json::from_str(text).unwrap();
        closed(&mut schema);
        jsonschema::validator_for(&schema).unwrap()
    });
    let (id, at) = (RunId::random(), Timestamp::from_unix_ms(1_796_040_000_000));
    let decided = |step: Option<&str>, comment: Option<&str>| RunEvent::Decided {
        decision: OperatorDecision {
            decision: Choice::Reject,
            run_id: id,
            step_id: step.map(str::to_owned),
            comment: comment.map(str::to_owned),
            decided_by: "client@1".to_owned(),
            decider_kind: DeciderKind::Mcp,
            decided_at: at,
        },
    };
    let text = "\u{1b}[2J".repeat(1_000);
    let bodies = vec![
        RunEvent::Admitted {
            workflow: "mcp-orchestrate".to_owned(),
            prompt: "rivers".to_owned(),
            cwd: "/p".to_owned(),
            requested_by: "client@1".to_owned(),
            spec: json!({}),
            reserved: Usd::ZERO,
            shares: Vec::new(),
        },
        RunEvent::StepStarted { step: "s".to_owned(), name: "S".to_owned() },
        RunEvent::Steered { message: MessageId::random(), from: "human u".to_owned(), text: text.clone() },
        RunEvent::ApprovalRequested { step: "s".to_owned(), expires_at: at, on_expiry: Choice::Reject },
        decided(Some("s"), Some(&text)),
        decided(None, None),
    ];
    let log: Vec<Event> = (1..).zip(bodies).map(|(seq, body)| Event { seq, at, epoch: 1, body }).collect();
    let run = fold(id, &log).unwrap();
    assert_eq!((run.state, run.decisions.len(), run.steers.len()), (RunState::Suspended, 2, 1));
    let (shown, approval) = (serde_json::to_value(&run).unwrap(), json!({ "decisions": run.decisions }));
    let rejected = RunEvent::Rejected { by: "mcp client@1".to_owned() };
    let log: Vec<Event> = log.into_iter().chain([Event { seq: 7, at, epoch: 1, body: rejected }]).collect();
    let ends = serde_json::to_value(fold(id, &log).unwrap()).unwrap();
    for (validator, document, places) in [
        (&run_schema, ends, ["/gate", "/decisions/0"].as_slice()),
        (&run_schema, shown, ["/awaiting", "/decisions/0", "/steers/0"].as_slice()),
        (&approval_schema, approval, ["", "/decisions/0"].as_slice()),
    ] {
        let faults: Vec<String> = validator
            .iter_errors(&document)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{document:#}");
        for place in places {
            let mut more = document.clone();
            more.pointer_mut(place).unwrap()["surprise"] = json!(1);
            assert!(!validator.is_valid(&more), "an unpublished member of {place:?} went unnoticed");
        }
    }
}
