//! Tasks: for whom they are, and how they stand.

use std::collections::BTreeMap;

use cyberine_protocol::model::{DetailedTask, InputRequest, SubscriptionFilter, TaskState, TaskStatus};
use cyberine_protocol::{Answer, Revision, RpcError, ServerProfile, ServerSession};
use serde_json::{Value, json};

use crate::support::{
    CAPABILITIES, answered, finish_with, opened, parse, profile, request, session, session_of, task,
};

const MODERN: Revision = Revision::V2026_07_28;

fn code(session: &mut ServerSession, line: &Value) -> Value {
    answered(session, line.to_string().as_bytes())["error"]["code"].clone()
}

#[test]
fn tasks_are_of_the_stateless_era_and_for_clients_that_declare_them() {
    let methods = ["tasks/get", "tasks/update", "tasks/cancel"];
    let params = json!({ "taskId": "t", "inputResponses": {} });
    for method in methods {
        for revision in Revision::ALL {
            let line = request(revision, json!(1), method, params.clone());
            if revision.is_stateless() {
                opened(&mut session_of(revision), &line);
            } else {
                assert_eq!(code(&mut session_of(revision), &line), -32601, "{revision}");
            }
        }
        let mut undeclared = params.clone();
        undeclared["_meta"] = json!({ CAPABILITIES: { "elicitation": {} } });
        let line = request(MODERN, json!(1), method, undeclared);
        let answer = answered(&mut session(), line.to_string().as_bytes());
        assert_eq!(answer["error"]["code"], -32021);
        let required = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        assert_eq!(answer["error"]["data"]["requiredCapabilities"], required);
        let mut without = ServerSession::new(ServerProfile { tasks: false, ..profile() });
        assert_eq!(code(&mut without, &request(MODERN, json!(1), method, params.clone())), -32601);
    }
    for gone in ["tasks/list", "tasks/result"] {
        assert_eq!(code(&mut session(), &request(MODERN, json!(1), gone, params.clone())), -32601);
    }
    let mut listen = json!({ "notifications": { "taskIds": ["t"] } });
    listen["_meta"] = json!({ CAPABILITIES: {} });
    let line = request(MODERN, json!(1), "subscriptions/listen", listen);
    assert_eq!(code(&mut session(), &line), -32021);
}

#[test]
fn a_task_stands_as_what_came_of_it_and_asks_only_what_its_reader_declared() {
    let mut session = session_of(MODERN);
    let get = |session: &mut ServerSession, state| {
        let line = request(MODERN, json!(1), "tasks/get", json!({ "taskId": "t" }));
        let key = opened(session, &line).key;
        let detailed = DetailedTask { task: task(TaskStatus::Failed), state };
        finish_with(session, key, Answer::TaskState(detailed))
    };
    let status = |line: Value| line["result"]["status"].as_str().unwrap_or_default().to_owned();
    assert_eq!(status(get(&mut session, TaskState::Open)), "working");
    let failed = TaskState::Error(RpcError::resource_not_found("x"));
    let line = get(&mut session, failed);
    assert_eq!(line["result"]["error"]["code"], -32602, "the code is that of the era");
    assert_eq!(status(line), "failed");
    let asks = TaskState::Input(BTreeMap::from([("k".to_owned(), InputRequest::Roots)]));
    let line = get(&mut session, asks.clone());
    assert_eq!((&line["result"]["status"], line["result"].get("inputRequests")), (&json!("working"), None));
    let message = line["result"]["statusMessage"].as_str().unwrap();
    assert!(message.ends_with("this client cannot be asked for"), "{message}");
    let filter = json!({ "notifications": { "taskIds": ["t"] } });
    let listen = opened(&mut session, &request(MODERN, json!(2), "subscriptions/listen", filter)).key;
    session.acknowledge(listen, &SubscriptionFilter { task_ids: vec!["t".into()], ..Default::default() });
    let detailed = DetailedTask { task: task(TaskStatus::Working), state: asks };
    let told = parse(&session.task_changed(listen, &detailed).unwrap());
    assert_eq!((&told["params"]["status"], told["params"].get("inputRequests")), (&json!("working"), None));
}
