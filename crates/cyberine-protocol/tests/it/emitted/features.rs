//! Prompts, completion, the log, questions, tasks, and news of lists.

use std::collections::BTreeMap;

use cyberine_protocol::model::{
    CallToolResult, Completion, ContentBlock, DetailedTask, ElicitUrl, GetPromptResult, InputRequest,
    InputRequired, ListKind, ListPromptsResult, LogLevel, Prompt, PromptMessage, Role, SubscriptionFilter,
    TaskState, TaskStatus,
};
use cyberine_protocol::{Answer, Revision, RpcError, ServerSession};
use serde_json::{Value, json};

use super::{Emitted, form};
use crate::support::{
    CAPABILITIES, answered, finish, finish_with, initialize, opened, own_meta, parse, prompt, request,
    session, task,
};

const LISTS: [ListKind; 3] = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];

/// A client that can be asked anything.
fn everything() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "tools": {} },
        "roots": {},
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    })
}

fn able_session(revision: Revision) -> ServerSession {
    let mut session = session();
    if !revision.is_stateless() {
        let mut hello = initialize(revision.as_str());
        hello["params"]["capabilities"] = everything();
        answered(&mut session, hello.to_string().as_bytes());
    }
    session
}

fn able(revision: Revision, id: Value, method: &str, mut params: Value) -> Value {
    if revision.is_stateless() {
        params["_meta"] = json!({ CAPABILITIES: everything(), "io.modelcontextprotocol/logLevel": "debug" });
    }
    request(revision, id, method, params)
}

fn questions() -> BTreeMap<String, InputRequest> {
    let page = ElicitUrl { message: "Sign in".into(), url: "https://example.com/in".into() };
    let sampling = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "Why \u{2028}?" } }],
        "maxTokens": 100,
    });
    let Value::Object(sampling) = sampling else { unreachable!() };
    BTreeMap::from([
        ("approve \"it\"".to_owned(), form()),
        ("page".to_owned(), InputRequest::Url(page)),
        ("why".to_owned(), InputRequest::Sampling(sampling)),
        ("where".to_owned(), InputRequest::Roots),
    ])
}

pub(super) fn features(revision: Revision) -> Vec<Emitted> {
    let mut all = results(revision);
    all.extend(log(revision));
    if revision.is_stateless() {
        all.extend(inputs(revision));
        all.extend(tasks(revision));
        all.extend(listening(revision));
    } else {
        all.extend(asks(revision));
        let level = json!({ "level": "error" });
        let set = answered(
            &mut able_session(revision),
            request(revision, json!(1), "logging/setLevel", level).to_string().as_bytes(),
        );
        all.push(Emitted { what: "EmptyResult", line: set });
    }
    all
}

fn results(revision: Revision) -> Vec<Emitted> {
    let mut session = able_session(revision);
    let argument = json!({ "name": "runId", "value": "5b" });
    let reference = json!({ "type": "ref/prompt", "name": "review" });
    let complete =
        json!({ "ref": reference, "argument": argument, "context": { "arguments": { "a": "b" } } });
    let mut all = Vec::new();
    for (what, method, params) in [
        ("ListPromptsResult", "prompts/list", json!({})),
        ("GetPromptResult", "prompts/get", json!({ "name": "review", "arguments": { "runId": "5b1e" } })),
        ("CompleteResult", "completion/complete", complete.clone()),
    ] {
        let inbound = opened(&mut session, &able(revision, json!(method), method, params));
        all.push(Emitted { what, line: parse(&finish(&mut session, &inbound).unwrap()) });
    }
    let more = Completion { values: vec!["5b1e".into()], has_more: true, ..Completion::default() };
    let plain = ListPromptsResult {
        prompts: vec![Prompt { name: "plain".into(), ..Prompt::default() }, prompt()],
        next_cursor: Some("next".into()),
        cache: cyberine_protocol::model::CacheHint::NONE,
    };
    let said = PromptMessage {
        role: Role::Assistant,
        content: ContentBlock::text("line \u{9b}\u{2029} \"quoted\""),
    };
    let bare = GetPromptResult { description: None, messages: vec![said] };
    for (what, method, params, answer) in [
        ("CompleteResult", "completion/complete", complete, Answer::Completion(more)),
        ("ListPromptsResult", "prompts/list", json!({ "cursor": "" }), Answer::Prompts(plain)),
        ("GetPromptResult", "prompts/get", json!({ "name": "bare" }), Answer::Prompt(bare)),
    ] {
        let key = opened(&mut session, &able(revision, json!(1.0), method, params)).key;
        all.push(Emitted { what, line: finish_with(&mut session, key, answer) });
    }
    all
}

fn log(revision: Revision) -> Vec<Emitted> {
    let mut session = able_session(revision);
    let key = opened(&mut session, &able(revision, json!(3), "tools/call", json!({ "name": "any" }))).key;
    let lines = [
        (LogLevel::Emergency, Some("bus \u{85}"), json!({ "event": "scan" })),
        (LogLevel::Info, None, Value::Null),
    ];
    let told = lines.into_iter().map(|(level, logger, data)| Emitted {
        what: "LoggingMessageNotification",
        line: parse(&session.log(key, level, logger, &data).unwrap()),
    });
    told.collect()
}

/// What a client of that revision can be asked, and what it is told of lists.
fn asks(revision: Revision) -> Vec<Emitted> {
    let mut session = able_session(revision);
    let key = opened(&mut session, &request(revision, json!(3), "tools/call", json!({ "name": "any" }))).key;
    let mut all = Vec::new();
    for question in questions().values() {
        let what = match question {
            InputRequest::Form(_) | InputRequest::Url(_) => "ElicitRequest",
            InputRequest::Sampling(_) => "CreateMessageRequest",
            InputRequest::Roots => "ListRootsRequest",
        };
        if let Ok((_, line)) = session.ask(key, question) {
            all.push(Emitted { what, line: parse(&line) });
        }
    }
    for list in LISTS {
        all.push(Emitted {
            what: changed(list),
            line: parse(&session.list_changed_unsolicited(list).unwrap()),
        });
    }
    all
}

const fn changed(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "ToolListChangedNotification",
        ListKind::Prompts => "PromptListChangedNotification",
        ListKind::Resources => "ResourceListChangedNotification",
    }
}

fn inputs(revision: Revision) -> Vec<Emitted> {
    let mut session = able_session(revision);
    let mut all = Vec::new();
    for (method, params) in [
        ("tools/call", json!({ "name": "any" })),
        ("prompts/get", json!({ "name": "any" })),
        ("resources/read", json!({ "uri": "x:y" })),
    ] {
        let key = opened(&mut session, &able(revision, json!(method), method, params)).key;
        let input = InputRequired { requests: questions(), request_state: None };
        let line = finish_with(&mut session, key, Answer::InputRequired(input));
        all.push(Emitted { what: "InputRequiredResult", line });
    }
    all
}

/// Every way a task can stand.
fn states() -> Vec<DetailedTask> {
    let failed = CallToolResult { meta: own_meta(), ..CallToolResult::structured(&json!({ "n": 1 }), true) };
    let states = [
        (TaskStatus::Working, TaskState::Open),
        (TaskStatus::Cancelled, TaskState::Open),
        (TaskStatus::Working, TaskState::Input(questions())),
        (TaskStatus::Completed, TaskState::Result(failed)),
        (TaskStatus::Working, TaskState::Error(RpcError::internal("worker crashed"))),
    ];
    states.into_iter().map(|(status, state)| DetailedTask { task: task(status), state }).collect()
}

fn tasks(revision: Revision) -> Vec<Emitted> {
    let mut session = able_session(revision);
    let mut all = Vec::new();
    for state in states() {
        let get = opened(&mut session, &able(revision, json!(21), "tasks/get", json!({ "taskId": "t" })));
        let line = finish_with(&mut session, get.key, Answer::TaskState(state));
        all.push(Emitted { what: "GetTaskResult", line });
    }
    for (what, method, params) in [
        ("UpdateTaskResult", "tasks/update", json!({ "taskId": "t", "inputResponses": {} })),
        ("CancelTaskResult", "tasks/cancel", json!({ "taskId": "t" })),
    ] {
        let inbound = opened(&mut session, &able(revision, json!(22), method, params));
        all.push(Emitted { what, line: parse(&finish(&mut session, &inbound).unwrap()) });
    }
    all
}

/// A client that listens to everything but resources.
fn listening(revision: Revision) -> Vec<Emitted> {
    let mut session = able_session(revision);
    let filter = json!({ "notifications": { "toolsListChanged": true, "taskIds": ["t"] } });
    let key = opened(&mut session, &able(revision, json!("sub-1"), "subscriptions/listen", filter)).key;
    let served = SubscriptionFilter {
        tools_list_changed: true,
        prompts_list_changed: true,
        resources_list_changed: true,
        resource_subscriptions: Vec::new(),
        task_ids: vec!["t".to_owned()],
    };
    let acknowledged = session.acknowledge(key, &served).unwrap();
    let mut all = vec![Emitted { what: "SubscriptionsAcknowledgedNotification", line: parse(&acknowledged) }];
    for list in LISTS {
        all.push(Emitted { what: changed(list), line: parse(&session.list_changed(list, key).unwrap()) });
    }
    for state in states() {
        let line = parse(&session.task_changed(key, &state).unwrap());
        all.push(Emitted { what: "TaskStatusNotification", line });
    }
    all
}
