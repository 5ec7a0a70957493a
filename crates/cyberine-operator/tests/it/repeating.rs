//! Calls that carry a key, repeated, at once, and cut off between the work and the answer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyberine_bus::{
    Address, AddressKind, Bus, BusError, Durability, MemoryBus, Outgoing, Page, ReadRequest, Reader, Receipt,
};
use cyberine_presence::{Announcing, Presence, RecordAddr};
use cyberine_run_store::RunStore;
use cyberine_server::ToolSet as _;
use cyberine_types::{Billing, RunId, SystemClock};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::stage::{Launching, Setting, Stage};

fn keyed(mut arguments: Value, key: &str) -> Value {
    arguments["idempotencyKey"] = json!(key);
    arguments
}

async fn member(stage: &Stage, id: &str) {
    let addr = RecordAddr { kind: "chat".into(), id: id.into() };
    let announcing =
        Announcing { addr, repo_cwd: "/p".into(), capabilities: vec![], team: None, role: None, name: None };
    // Kept by the stage's own presence until it is dropped.
    std::mem::forget(stage.presence.announce(announcing).await.unwrap());
}

/// Every tool that changes something, with arguments that succeed.
async fn changes(stage: &Stage) -> Vec<(&'static str, Value)> {
    let [decided, rejected, cancelled] =
        [stage.start("a").await, stage.start("b").await, stage.start("c").await];
    member(stage, "m").await;
    vec![
        ("orchestrate", json!({ "prompt": "once" })),
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "x" })),
        ("send_to_team", json!({ "team": "t", "text": "x" })),
        ("send_to_role", json!({ "text": "x" })),
        ("approve_run", json!({ "runId": decided })),
        ("reject_run", json!({ "runId": rejected })),
        ("cancel_run", json!({ "runId": cancelled })),
    ]
}

/// How many of each there are: runs, mail.
async fn world(stage: &Stage) -> (usize, [usize; 3]) {
    let runs = stage.call("query_runs", json!({ "limit": 200 })).await["runs"].as_array().unwrap().len();
    let mut mail = [0; 3];
    let boxes = [(AddressKind::Chat, "c"), (AddressKind::Broadcast, "team-t"), (AddressKind::Chat, "m")];
    for (at, (kind, id)) in boxes.into_iter().enumerate() {
        mail[at] = stage.mail(kind, id).await.len();
    }
    (runs, mail)
}

#[tokio::test]
async fn the_second_call_of_a_key_gets_the_first_result() {
    let stage = Stage::free(&[("a", "x")]);
    for (at, (tool, arguments)) in changes(&stage).await.into_iter().enumerate() {
        let call = keyed(arguments.clone(), &format!("k{at}"));
        let first = stage.call(tool, call.clone()).await;
        assert!(first.get("error").is_none(), "{tool}: {first}");
        for _ in 0..2 {
            assert_eq!(stage.call(tool, call.clone()).await, first, "{tool}");
        }
        if tool == "cancel_run" {
            stage
                .see(arguments["runId"].as_str().unwrap().parse().unwrap(), |run| run.state.is_terminal())
                .await;
            assert_eq!(
                stage.call(tool, call).await["outcome"],
                "requested",
                "the first result, not a new one"
            );
        }
    }
    assert_eq!(world(&stage).await, (4, [1, 1, 1]));
}

#[tokio::test]
async fn a_key_belongs_to_one_call() {
    let stage = Stage::free(&[("a", "x")]);
    let send = json!({ "to_kind": "chat", "to_id": "c", "text": "x" });
    stage.call("send_message", keyed(send.clone(), "k")).await;
    let others = [
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "y" })),
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "x", "topic": "note" })),
        ("orchestrate", json!({ "prompt": "x" })),
    ];
    for (tool, arguments) in others {
        let error = stage.refused(tool, keyed(arguments, "k")).await;
        assert!(error.contains("`idempotencyKey`: it was used for another call"), "{error}");
    }
    stage.call("send_message", keyed(send, "l")).await;
    assert_eq!(stage.mail(AddressKind::Chat, "c").await.len(), 2);
    for key in [json!(""), json!("k".repeat(201)), json!(7), Value::Null] {
        let mut arguments = json!({ "prompt": "x" });
        arguments["idempotencyKey"] = key;
        let error = stage.refused("orchestrate", arguments).await;
        assert!(error.contains("`idempotencyKey`: it must be a string of 1 to 200"), "{error}");
    }
    let reads = stage.refused("query_runs", keyed(json!({}), "k")).await;
    assert!(reads.contains("there is no such argument"), "{reads}");
}

#[tokio::test]
async fn a_call_that_was_put_right_may_keep_its_key() {
    let stage = Stage::free(&[("a", "x")]);
    stage.refused("send_message", keyed(json!({ "to_kind": "chat", "to_id": "", "text": "x" }), "k")).await;
    let sent =
        stage.call("send_message", keyed(json!({ "to_kind": "chat", "to_id": "c", "text": "x" }), "k")).await;
    assert_eq!(sent["ok"], true);

    // What did not succeed is not kept.
    let steer = keyed(json!({ "text": "x", "role": "none" }), "l");
    assert_eq!(stage.call("send_to_role", steer.clone()).await["ok"], false);
    let addr = RecordAddr { kind: "chat".into(), id: "m".into() };
    let role = Some("none".to_owned());
    let announcing =
        Announcing { addr, repo_cwd: "/p".into(), capabilities: vec![], team: None, role, name: None };
    let _member = stage.presence.announce(announcing).await.unwrap();
    assert_eq!(stage.call("send_to_role", steer).await["ok"], true);
}

/// The result is lost on its way to the key, as when the process dies just before.
#[tokio::test]
async fn a_call_that_was_cut_off_after_its_work_is_not_done_again() {
    let stage = Stage::free(&[("a", "x")]);
    for (at, (tool, arguments)) in changes(&stage).await.into_iter().enumerate() {
        let call = keyed(arguments, &format!("k{at}"));
        stage.forgets.store(true, Ordering::SeqCst);
        let first = stage.call(tool, call.clone()).await;
        assert!(first.get("error").is_none(), "{tool}: {first}");
        assert_eq!(stage.call(tool, call.clone()).await, first, "{tool}: still without a result");
        stage.forgets.store(false, Ordering::SeqCst);
        let again = stage.call(tool, call.clone()).await;
        assert_eq!(again, first, "{tool}");
        assert_eq!(stage.call(tool, call).await, again, "{tool}: kept now");
    }
    assert_eq!(world(&stage).await, (4, [1, 1, 1]));
}

#[tokio::test]
async fn calls_with_one_key_at_once_do_the_work_once() {
    let stage = Stage::free(&[("a", "x")]);
    stage.turns.store(3, Ordering::SeqCst);
    for (at, (tool, arguments)) in changes(&stage).await.into_iter().enumerate() {
        let call = keyed(arguments, &format!("k{at}"));
        let results = futures_util::future::join_all((0..8).map(|_| stage.call(tool, call.clone()))).await;
        for result in &results {
            assert_eq!(result, &results[0], "{tool}");
            assert!(result.get("error").is_none(), "{tool}: {result}");
        }
    }
    assert_eq!(world(&stage).await, (4, [1, 1, 1]));
}

/// A bus that notes how far back each message is looked for.
struct Witness {
    bus: MemoryBus,
    agains: Arc<Mutex<Vec<Option<u64>>>>,
}

impl Bus for Witness {
    fn publish(&self, message: Outgoing, durability: Durability) -> BoxFuture<'_, Result<Receipt, BusError>> {
        self.agains.lock().unwrap().push(message.again);
        self.bus.publish(message, durability)
    }

    fn read(&self, mailbox: Address, request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>> {
        self.bus.read(mailbox, request)
    }

    fn acknowledge(
        &self,
        mailbox: Address,
        reader: String,
        through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>> {
        self.bus.acknowledge(mailbox, reader, through)
    }

    fn readers(&self, mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>> {
        self.bus.readers(mailbox)
    }

    fn changed(&self, mailbox: Address, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        self.bus.changed(mailbox, after, timeout)
    }
}

#[tokio::test]
async fn a_message_is_looked_for_in_what_came_after_its_key_was_opened() {
    let (bus, agains) = (MemoryBus::new(Arc::new(SystemClock)), Arc::default());
    let witness = Witness { bus, agains: Arc::clone(&agains) };
    let stage = Stage::set(Setting::on(Arc::new(witness)), &[], Billing::Free);
    let seen = || std::mem::take(&mut *agains.lock().unwrap());
    member(&stage, "m").await;
    let sends = [
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "x" })),
        ("send_to_team", json!({ "team": "t", "text": "x" })),
        ("send_to_role", json!({ "text": "x" })),
    ];
    for (tool, arguments) in sends {
        for _ in 0..3 {
            stage.call(tool, arguments.clone()).await;
        }
        assert_eq!(seen(), [None; 3], "{tool}: without a key nothing is looked for");
        let call = keyed(arguments.clone(), tool);
        stage.forgets.store(true, Ordering::SeqCst);
        let first = stage.call(tool, call.clone()).await;
        // What comes later does not move the place.
        stage.call(tool, arguments).await;
        assert_eq!(stage.call(tool, call).await, first, "{tool}");
        stage.forgets.store(false, Ordering::SeqCst);
        assert_eq!(seen(), [Some(3), None, Some(3)], "{tool}");
    }
}

#[tokio::test]
async fn a_run_that_could_not_be_started_is_not_taken_for_one_that_was() {
    let stage = Stage::free(&[]);
    let call = keyed(json!({ "prompt": "x" }), "k");
    for _ in 0..2 {
        let error = stage.refused("orchestrate", call.clone()).await;
        assert!(error.contains("no provider"), "{error}");
    }
    assert_eq!(stage.store.unsettled().await.unwrap(), Vec::<RunId>::new());
}

/// Nobody was answered, and then it was cancelled: who repeats the call is not told that it is
/// under way.
#[tokio::test]
async fn a_run_that_was_cancelled_is_not_taken_for_one_that_goes_on() {
    let stage = Stage::free(&[("a", "x")]);
    let call = keyed(json!({ "prompt": "x" }), "k");
    stage.forgets.store(true, Ordering::SeqCst);
    let reply = stage.call("orchestrate", call.clone()).await;
    stage.forgets.store(false, Ordering::SeqCst);
    stage.call("cancel_run", json!({ "runId": reply["runId"] })).await;
    let run = reply["runId"].as_str().unwrap();
    stage.see(run.parse().unwrap(), |run| run.state.is_terminal()).await;
    let error = stage.refused("orchestrate", call).await;
    assert!(error.contains(run) && error.contains("was cancelled"), "{error}");
    assert_eq!(world(&stage).await.0, 1);
}

/// The client takes its request back, at any moment, and repeats it: the run is there, goes on and
/// is one.
#[tokio::test(start_paused = true)]
async fn a_request_with_a_key_that_is_taken_back_does_not_take_its_run_back() {
    let stage = Stage::free(&[("a", "x")]);
    stage.turns.store(3, Ordering::SeqCst);
    let mut runs = Vec::new();
    for moment in 0..40 {
        let call = keyed(json!({ "prompt": format!("p{moment}") }), &format!("k{moment}"));
        let request = stage.call_of("orchestrate", call.clone(), cyberine_server::Progress::none());
        let cancel = request.cancel.clone();
        {
            let mut asking = stage.tools.call(request);
            for _ in 0..moment {
                if futures_util::poll!(&mut asking).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        }
        let again = stage.call("orchestrate", call.clone()).await;
        assert_eq!(again["status"], "dispatched", "{moment}: {again}");
        assert_eq!(stage.call("orchestrate", call).await, again, "{moment}");
        runs.push(again["runId"].as_str().unwrap().parse::<RunId>().unwrap());
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    for (moment, run) in runs.iter().enumerate() {
        let run = stage.store.load(*run).await.unwrap().unwrap();
        assert_eq!((run.cancel_requested_by, run.state.is_terminal()), (None, false), "{moment}");
    }
    assert_eq!(world(&stage).await.0, 40);
}

#[tokio::test]
async fn a_run_that_ended_before_anybody_was_asked_is_started_anew_by_the_same_call() {
    let stage = Stage::free(&[("a", "x")]);
    let call = keyed(json!({ "prompt": "x" }), "k");
    *stage.launching.lock().unwrap() = Launching::Fails;
    let error = stage.refused("orchestrate", call.clone()).await;
    assert!(error.contains("no room"), "{error}");
    // A runner that dies before it begins, and a server that dies before it answers.
    *stage.launching.lock().unwrap() = Launching::Dies;
    stage.forgets.store(true, Ordering::SeqCst);
    let died = stage.call("orchestrate", call.clone()).await["runId"].clone();
    stage.forgets.store(false, Ordering::SeqCst);
    *stage.launching.lock().unwrap() = Launching::Starts;
    let results =
        futures_util::future::join_all((0..8).map(|_| stage.call("orchestrate", call.clone()))).await;
    let run = &results[0]["runId"];
    assert_ne!(*run, died, "{:?}", results[0]);
    for result in &results {
        assert_eq!((&result["runId"], &result["status"]), (run, &json!("dispatched")), "{result}");
    }
    let views = stage.call("query_runs", json!({})).await;
    let states: Vec<&str> =
        views["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["running", "error", "error"]);
}
