//! What a client can ask, what it is asked, and what it is told.

use std::collections::BTreeMap;

use cyberine_protocol::model::{
    ClientCapabilities, CompletionRef, InputRequest, LogLevel, SubscriptionFilter,
};
use cyberine_protocol::{
    Answers, Ask, ClientEffect, ClientIgnored, ClientProfile, ClientSession, QuestionKey, Revision,
};
use serde_json::{Map, Value, json};

use crate::client::{Said, answer, opened, say};
use crate::official::Official;
use crate::support::parse;

/// A client that can be asked everything.
fn open(revision: Revision) -> ClientSession {
    let capabilities = ClientCapabilities {
        elicitation_form: true,
        elicitation_url: true,
        sampling: true,
        sampling_tools: false,
        roots: true,
        tasks: true,
    };
    let log_level = Some(LogLevel::Notice);
    opened(
        ClientSession::new(ClientProfile { capabilities, log_level, ..ClientProfile::default() }),
        revision,
    )
}

fn map(name: &str, value: Value) -> BTreeMap<String, Value> {
    BTreeMap::from([(name.to_owned(), value)])
}

/// Everything there is to ask, with the name of its definition in the schema.
fn asks() -> Vec<(&'static str, Ask)> {
    let (name, uri, task_id) = ("n".to_owned(), "x://y".to_owned(), "t".to_owned());
    let arguments = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let (value, context) = ("v".to_owned(), arguments.clone());
    let of_prompt = CompletionRef::Prompt { name: name.clone() };
    let of_resource = CompletionRef::Resource { uri: "x://{y}".to_owned() };
    let filter = SubscriptionFilter {
        tools_list_changed: true,
        resource_subscriptions: vec![uri.clone()],
        task_ids: vec![task_id.clone()],
        ..SubscriptionFilter::default()
    };
    let complete = |reference| Ask::Complete {
        reference,
        name: name.clone(),
        value: value.clone(),
        context: context.clone(),
    };
    vec![
        ("ListToolsRequest", Ask::ListTools { cursor: Some("c".into()) }),
        ("CallToolRequest", Ask::CallTool { name: name.clone(), arguments: Map::new() }),
        ("ListPromptsRequest", Ask::ListPrompts { cursor: None }),
        ("GetPromptRequest", Ask::GetPrompt { name: name.clone(), arguments }),
        ("ListResourcesRequest", Ask::ListResources { cursor: Some("c".into()) }),
        ("ListResourceTemplatesRequest", Ask::ListTemplates { cursor: None }),
        ("ReadResourceRequest", Ask::ReadResource { uri: uri.clone() }),
        ("CompleteRequest", complete(of_prompt)),
        ("CompleteRequest", complete(of_resource)),
        ("SetLevelRequest", Ask::SetLevel { level: LogLevel::Warning }),
        ("SubscribeRequest", Ask::Subscribe { uri: uri.clone() }),
        ("UnsubscribeRequest", Ask::Unsubscribe { uri }),
        ("SubscriptionsListenRequest", Ask::Listen { filter }),
        ("GetTaskRequest", Ask::GetTask { task_id: task_id.clone() }),
        (
            "UpdateTaskRequest",
            Ask::UpdateTask { task_id: task_id.clone(), responses: map("k", json!({ "action": "decline" })) },
        ),
        ("CancelTaskRequest", Ask::CancelTask { task_id }),
        ("PingRequest", Ask::Ping),
    ]
}

#[test]
fn whatever_is_asked_is_valid_by_the_schema_of_its_revision_or_not_asked_at_all() {
    let Some(mut tasks) = Official::load("ext-tasks-draft-2026-08-21") else { return };
    for revision in Revision::ALL {
        let Some(mut official) = Official::of(revision) else { return };
        let mut session = open(revision);
        for (definition, ask) in asks() {
            let Some((_, line)) = session.ask(&ask) else {
                assert!(!ask.exists_in(revision), "{ask:?}");
                continue;
            };
            let line = parse(&line);
            assert_eq!(line["method"], ask.method());
            let schema = if definition.contains("Task") { &mut tasks } else { &mut official };
            schema.assert(definition, &line);
            let level = &line["params"]["_meta"]["io.modelcontextprotocol/logLevel"];
            assert_eq!(level == "notice", revision.is_stateless(), "{line}");
        }
    }
}

#[test]
fn what_the_server_wants_to_know_is_asked_again_with_answers_and_state() {
    let Some(mut official) = Official::of(Revision::V2026_07_28) else { return };
    let mut session = open(Revision::V2026_07_28);
    for (definition, ask) in asks() {
        let may_ask = matches!(ask, Ask::CallTool { .. } | Ask::GetPrompt { .. } | Ask::ReadResource { .. });
        let Some((key, line)) = session.ask(&ask) else { continue };
        let id = parse(&line)["id"].clone();
        let needs = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
            "who": { "method": "elicitation/create", "params": { "message": "m", "requestedSchema": {} } },
            "where": { "method": "roots/list" } } });
        let said = say(&mut session, &answer(&id, needs));
        if !may_ask {
            assert!(matches!(&said[..], [Said::Failed(why)] if why.contains("`input_required`")), "{said:?}");
            continue;
        }
        assert_eq!(said, [Said::NeedsInput(vec!["where".into(), "who".into()], Some("s".into()))]);
        assert!(!session.is_open(key));
        for state in [Some("s".to_owned()), None] {
            let answers = Answers { responses: map("who", json!({ "action": "decline" })), state };
            let (_, again) = session.ask_again(&ask, &answers).unwrap();
            let again = parse(&again);
            official.assert(definition, &again);
            assert_ne!(again["id"], id);
            assert_eq!(again["params"]["inputResponses"], json!(answers.responses));
            assert_eq!(again["params"].get("requestState").and_then(Value::as_str), answers.state.as_deref());
        }
    }
}

/// A question of the server, and its key.
fn question(
    session: &mut ClientSession,
    id: &str,
    method: &str,
    params: Value,
) -> (QuestionKey, InputRequest) {
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
    let mut effects = Vec::new();
    session.receive_message(line.as_bytes(), &mut effects).unwrap();
    let [ClientEffect::Question { question, request }] = &effects[..] else { panic!("{effects:?}") };
    (*question, request.clone())
}

#[test]
fn a_question_is_answered_once_or_withdrawn() {
    let mut session = open(Revision::V2025_11_25);
    let url = json!({ "mode": "url", "message": "m", "url": "https://h/", "elicitationId": "e" });
    let (first, request) = question(&mut session, "a", "elicitation/create", url);
    assert!(matches!(request, InputRequest::Url(_)));
    let (second, _) = question(&mut session, "b", "roots/list", json!({}));
    let (third, _) =
        question(&mut session, "c", "sampling/createMessage", json!({ "messages": [], "maxTokens": 1 }));
    let line = session.answer(first, Ok(&json!({ "action": "accept" }))).unwrap();
    assert_eq!(parse(&line), json!({ "jsonrpc": "2.0", "id": "a", "result": { "action": "accept" } }));
    assert_eq!(session.answer(first, Err("again")), None);
    let line = parse(&session.answer(second, Err("no roots")).unwrap());
    assert_eq!((&line["id"], &line["error"]["code"]), (&json!("b"), &json!(-32603)));
    let cancel = |id: &str| {
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
            .to_string()
    };
    assert_eq!(say(&mut session, &cancel("c")), [Said::Withdrawn]);
    assert_eq!(say(&mut session, &cancel("c")), []);
    assert_eq!(session.answer(third, Ok(&json!({}))), None);
    // Beyond what can wait, questions are refused.
    for n in 0..64 {
        question(&mut session, &n.to_string(), "roots/list", json!({}));
    }
    let said = say(&mut session, r#"{"jsonrpc":"2.0","id":"z","method":"roots/list"}"#);
    let [Said::Sent(refused), Said::Ignored(ClientIgnored::Declined(_))] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(refused["error"]["code"], -32603);
}

#[test]
fn news_belong_to_a_listen_that_is_open() {
    let mut session = open(Revision::V2026_07_28);
    let filter = SubscriptionFilter { tools_list_changed: true, ..SubscriptionFilter::default() };
    let (_, line) = session.ask(&Ask::Listen { filter: filter.clone() }).unwrap();
    let id = parse(&line)["id"].clone();
    let told = |method: &str, listen: &Value, mut params: Value| {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": listen });
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    };
    let tools = |listen: &Value| told("notifications/tools/list_changed", listen, json!({}));
    let served = json!({ "notifications": { "toolsListChanged": true } });
    let acknowledged = told("notifications/subscriptions/acknowledged", &id, served);
    assert_eq!(say(&mut session, &acknowledged), [Said::News(format!("{filter:?}"))]);
    assert_eq!(say(&mut session, &tools(&id)), [Said::News("Tools true".into())]);
    let updated = told("notifications/resources/updated", &id, json!({ "uri": "x://y" }));
    assert_eq!(say(&mut session, &updated), [Said::News("x://y true".into())]);
    let task = told("notifications/tasks", &id, json!({ "taskId": "t" }));
    assert!(matches!(&say(&mut session, &task)[..], [Said::Result(task)] if task["taskId"] == "t"));
    let stray = [Said::Ignored(ClientIgnored::StrayNews)];
    assert_eq!(say(&mut session, &tools(&json!(99))), stray);
    assert_eq!(say(&mut session, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#), stray);
    let ended = say(&mut session, &answer(&id, json!({ "resultType": "complete" })));
    assert_eq!(ended, [Said::Result(json!({ "resultType": "complete" }))]);
    assert_eq!(say(&mut session, &tools(&id)), stray);

    let mut session = open(Revision::V2025_11_25);
    let unasked = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://y"}}"#;
    assert_eq!(say(&mut session, unasked), [Said::News("x://y false".into())]);
    let unasked = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
    assert_eq!(say(&mut session, unasked), [Said::News("Prompts false".into())]);
}

#[test]
fn a_message_that_came_alone_ends_nothing_but_itself() {
    let mut session = open(Revision::V2026_07_28);
    let (key, line) = session.ask(&Ask::ListPrompts { cursor: None }).unwrap();
    let id = parse(&line)["id"].clone();
    let mut effects = Vec::new();
    for bad in ["{", "[]", "nothing", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#] {
        assert!(session.receive_message(bad.as_bytes(), &mut effects).is_err(), "{bad}");
    }
    assert!(effects.is_empty() && session.is_open(key));
    let page = answer(&id, json!({ "prompts": [] }));
    session.receive_message(page.as_bytes(), &mut effects).unwrap();
    assert!(
        matches!(&effects[..], [ClientEffect::Result { result, .. }] if result.get() == r#"{"prompts":[]}"#)
    );
    assert!(!session.lose(key));
}
