//! Prompts, completion, the log, news of lists, and sessions for a single message.

use std::collections::BTreeMap;

use cyberine_protocol::model::{
    ClientCapabilities, Completion, CompletionRef, InputRequest, InputRequired, ListKind, LogLevel,
    SubscriptionFilter,
};
use cyberine_protocol::{
    Answer, Effect, InboundBody, Revision, ServerProfile, ServerSession, SharedProfile, ask_scope_of,
};
use serde_json::{Value, json};

use crate::support::{
    CAPABILITIES, answered, finish, finish_with, opened, parse, profile, request, session, session_of,
};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn body(revision: Revision, method: &str, params: Value) -> InboundBody {
    opened(&mut session_of(revision), &request(revision, json!(1), method, params)).body
}

fn error(session: &mut ServerSession, line: &Value) -> (i64, String) {
    let answer = answered(session, line.to_string().as_bytes());
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default().to_owned())
}

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn prompts_are_asked_for_by_name_with_arguments_of_text() {
    for revision in Revision::ALL {
        assert_eq!(body(revision, "prompts/list", json!({})), InboundBody::ListPrompts { cursor: None });
        let params = json!({ "name": "review", "arguments": { "runId": "5b \u{1f600}", "b": "" } });
        let InboundBody::GetPrompt { name, arguments, input_responses, request_state } =
            body(revision, "prompts/get", params)
        else {
            panic!("no prompt")
        };
        assert_eq!((&*name, arguments), ("review", texts([("runId", "5b \u{1f600}"), ("b", "")])));
        assert_eq!((input_responses, request_state), (BTreeMap::new(), None));
    }
}

#[test]
fn what_a_client_brings_back_counts_in_the_stateless_era_only() {
    let answers = json!({ "k": { "action": "accept" } });
    for (method, mut params) in [
        ("tools/call", json!({ "name": "a" })),
        ("prompts/get", json!({ "name": "a" })),
        ("resources/read", json!({ "uri": "a" })),
    ] {
        params["inputResponses"] = answers.clone();
        params["requestState"] = json!("s");
        for revision in [LEGACY, MODERN] {
            let (InboundBody::CallTool { input_responses, request_state, .. }
            | InboundBody::GetPrompt { input_responses, request_state, .. }
            | InboundBody::ReadResource { input_responses, request_state, .. }) =
                body(revision, method, params.clone())
            else {
                panic!("{method}")
            };
            let stateless = revision.is_stateless();
            assert_eq!(request_state.as_deref(), stateless.then_some("s"), "{method}");
            let expected = if stateless { answers.clone() } else { json!({}) };
            assert_eq!(json!(input_responses), expected, "{method}");
        }
    }
}

#[test]
fn completion_knows_its_context_from_2025_06_18() {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "review", "title": "x" },
        "argument": { "name": "runId", "value": "5b" },
        "context": { "arguments": { "project": "p" }, "more": 1 },
    });
    for revision in Revision::ALL {
        let InboundBody::Complete { reference, name, value, context } =
            body(revision, "completion/complete", params.clone())
        else {
            panic!("no completion")
        };
        assert_eq!(reference, CompletionRef::Prompt { name: "review".into() });
        assert_eq!((&*name, &*value), ("runId", "5b"));
        let known = revision >= Revision::V2025_06_18;
        assert_eq!(context, if known { texts([("project", "p")]) } else { BTreeMap::new() });
    }
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "a://{b}" },
        "argument": { "name": "b", "value": "" },
        "context": {},
    });
    let InboundBody::Complete { reference, .. } = body(MODERN, "completion/complete", params) else {
        panic!("no completion")
    };
    assert_eq!(reference, CompletionRef::Resource { uri: "a://{b}".into() });
}

#[test]
fn parameters_that_cannot_be_used_are_named() {
    let argument = json!({ "name": "a", "value": "" });
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    let many: Vec<String> = (0..1025).map(|id| id.to_string()).collect();
    for (method, params, named) in [
        ("prompts/get", json!({}), "name"),
        ("prompts/get", json!({ "name": 7 }), "name"),
        ("prompts/get", json!({ "name": "p", "arguments": [] }), "arguments"),
        ("prompts/get", json!({ "name": "p", "arguments": { "a": 1 } }), "arguments"),
        ("prompts/get", json!({ "name": "p", "inputResponses": { "a": "x" } }), "inputResponses"),
        ("prompts/list", json!({ "cursor": 1 }), "cursor"),
        ("resources/read", json!({ "uri": "x", "requestState": {} }), "requestState"),
        ("tools/call", json!({ "name": "p", "inputResponses": { "a": [] } }), "inputResponses"),
        ("completion/complete", json!({ "argument": argument }), "ref"),
        ("completion/complete", json!({ "ref": reference }), "argument"),
        ("completion/complete", json!({ "ref": "p", "argument": argument }), "ref"),
        ("completion/complete", json!({ "ref": { "type": "ref/tool" }, "argument": argument }), "ref.type"),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt" }, "argument": argument }), "ref.name"),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource" }, "argument": argument }),
            "ref.uri",
        ),
        ("completion/complete", json!({ "ref": reference, "argument": { "value": "" } }), "argument.name"),
        ("completion/complete", json!({ "ref": reference, "argument": { "name": "a" } }), "argument.value"),
        (
            "completion/complete",
            json!({ "ref": reference, "argument": argument, "context": { "arguments": { "a": null } } }),
            "context.arguments",
        ),
        ("completion/complete", json!({ "ref": reference, "argument": argument, "context": 1 }), "context"),
        ("tasks/get", json!({}), "taskId"),
        ("tasks/get", json!({ "taskId": 1 }), "taskId"),
        ("tasks/cancel", json!({ "taskId": null }), "taskId"),
        ("tasks/update", json!({ "taskId": "t" }), "inputResponses"),
        ("tasks/update", json!({ "taskId": "t", "inputResponses": { "a": 1 } }), "inputResponses"),
        ("tasks/update", json!({ "inputResponses": {} }), "taskId"),
        ("subscriptions/listen", json!({ "notifications": { "taskIds": many } }), "taskIds"),
        ("subscriptions/listen", json!({ "notifications": { "taskIds": [1] } }), "taskIds"),
    ] {
        let line = request(MODERN, json!(1), method, params);
        let (code, message) = error(&mut session(), &line);
        assert_eq!(code, -32602, "{line}: {message}");
        assert!(message.contains(named), "{line}: {message}");
    }
}

#[test]
fn a_completion_never_holds_more_than_the_protocol_allows() {
    let mut session = session_of(MODERN);
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" },
    });
    for (count, more) in [(0, false), (100, false), (101, true)] {
        let key = opened(&mut session, &request(MODERN, json!(1), "completion/complete", params.clone())).key;
        let values = (0..count).map(|at: i32| at.to_string()).collect();
        let completion = Completion { values, total: None, has_more: false };
        let line = finish_with(&mut session, key, Answer::Completion(completion));
        let told = &line["result"]["completion"];
        assert_eq!(told["values"].as_array().map(Vec::len), usize::try_from(count.min(100)).ok());
        assert_eq!(told["hasMore"], more);
    }
}

#[test]
fn the_log_is_told_from_the_level_that_was_asked_for() {
    let told = |session: &ServerSession, key| {
        [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Emergency]
            .map(|level| session.log(key, level, Some("bus"), &json!({ "n": 1 })).is_some())
    };
    let call = |meta: Value| json!({ "name": "a", "_meta": meta });
    // The stateless era: by the request, and until its answer.
    let mut session = session_of(MODERN);
    let silent = opened(&mut session, &request(MODERN, json!(1), "tools/call", call(json!({}))));
    assert_eq!((silent.log_level, told(&session, silent.key)), (None, [false; 4]));
    let wants = call(json!({ LEVEL: "warning" }));
    let wants = opened(&mut session, &request(MODERN, json!(2), "tools/call", wants));
    assert_eq!(wants.log_level, Some(LogLevel::Warning));
    assert_eq!(told(&session, wants.key), [false, false, true, true]);
    finish(&mut session, &wants).unwrap();
    assert_eq!(told(&session, wants.key), [false; 4]);
    // With `initialize`: by what was set last, for requests in flight too.
    let mut session = session_of(LEGACY);
    let call = request(LEGACY, json!(3), "tools/call", call(json!({ "progressToken": 1, LEVEL: "debug" })));
    let inbound = opened(&mut session, &call);
    assert_eq!(inbound.log_level, Some(LogLevel::Info));
    assert_eq!(told(&session, inbound.key), [false, true, true, true]);
    let set = request(LEGACY, json!(4), "logging/setLevel", json!({ "level": "emergency" }));
    assert_eq!(answered(&mut session, set.to_string().as_bytes())["result"], json!({}));
    assert_eq!(told(&session, inbound.key), [false, false, false, true]);
    let later = opened(&mut session, &request(LEGACY, json!(5), "tools/list", json!({})));
    assert_eq!(later.log_level, Some(LogLevel::Emergency));
    // What outlives its answer may still be told of.
    session.finish(inbound.key, Ok(Answer::Call(cyberine_protocol::model::CallToolResult::text("x", false))));
    assert_eq!(told(&session, inbound.key), [false, false, false, true]);
    session.end_progress(inbound.key);
    assert_eq!(told(&session, inbound.key), [false; 4]);
}

#[test]
fn a_level_is_set_where_there_is_a_log_and_a_session() {
    let set = |revision, level: Value| request(revision, json!(1), "logging/setLevel", level);
    for level in [json!({}), json!({ "level": "loud" }), json!({ "level": 3 }), json!({ "level": "INFO" })] {
        let (code, message) = error(&mut session_of(LEGACY), &set(LEGACY, level));
        assert!(code == -32602 && message.contains("level"), "{message}");
    }
    let level = json!({ "level": "info" });
    assert_eq!(error(&mut session(), &set(MODERN, level.clone())).0, -32601);
    let mut silent = ServerSession::new(ServerProfile { logging: false, ..profile() });
    answered(&mut silent, crate::support::initialize("2025-11-25").to_string().as_bytes());
    assert_eq!(error(&mut silent, &set(LEGACY, level.clone())).0, -32601);
    let call = opened(&mut silent, &request(LEGACY, json!(2), "tools/call", json!({ "name": "a" })));
    assert_eq!(call.log_level, None);
    assert_eq!(silent.log(call.key, LogLevel::Emergency, None, &json!("x")), None);
    let mut unopened = session();
    assert_eq!(error(&mut unopened, &set(LEGACY, level)).0, -32602, "no session is open");
}

#[test]
fn input_is_required_of_prompts_and_reads_too_and_only_of_what_is_declared() {
    let asks = |requests: &[InputRequest]| InputRequired {
        requests: requests.iter().cloned().enumerate().map(|(at, ask)| (at.to_string(), ask)).collect(),
        request_state: None,
    };
    let sampling = |tools: bool| {
        let params = if tools { json!({ "tools": [] }) } else { json!({}) };
        InputRequest::Sampling(params.as_object().cloned().unwrap_or_default())
    };
    for (method, params) in
        [("prompts/get", json!({ "name": "a" })), ("resources/read", json!({ "uri": "a" }))]
    {
        let ask = |declared: Value, requests: &[InputRequest]| {
            let mut params = params.clone();
            params["_meta"] = json!({ CAPABILITIES: declared });
            let mut session = session();
            let key = opened(&mut session, &request(MODERN, json!(1), method, params)).key;
            finish_with(&mut session, key, Answer::InputRequired(asks(requests)))
        };
        let line = ask(json!({ "roots": {}, "sampling": {} }), &[InputRequest::Roots, sampling(false)]);
        assert_eq!(line["result"]["resultType"], "input_required", "{line}");
        let methods = [&line["result"]["inputRequests"]["0"], &line["result"]["inputRequests"]["1"]];
        assert_eq!(
            methods.map(|asked| asked["method"].as_str()),
            [Some("roots/list"), Some("sampling/createMessage")]
        );
        let line = ask(json!({ "sampling": {} }), &[InputRequest::Roots, sampling(true)]);
        assert_eq!(line["error"]["code"], -32021);
        let required = json!({ "roots": {}, "sampling": { "tools": {} } });
        assert_eq!(line["error"]["data"]["requiredCapabilities"], required);
        let mut old = session_of(LEGACY);
        let key = opened(&mut old, &request(LEGACY, json!(1), method, params.clone())).key;
        let line = finish_with(&mut old, key, Answer::InputRequired(asks(&[InputRequest::Roots])));
        assert_eq!(line["error"]["code"], -32603);
    }
    let mut lists = session();
    let key = opened(&mut lists, &request(MODERN, json!(1), "prompts/list", json!({}))).key;
    let line = finish_with(&mut lists, key, Answer::InputRequired(asks(&[])));
    assert_eq!(line["error"]["code"], -32603, "a list asks nothing");
}

#[test]
fn lists_are_told_of_to_whoever_was_told_so() {
    let lists = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];
    let mut session = session_of(LEGACY);
    assert!(lists.iter().all(|list| session.list_changed_unsolicited(*list).is_some()));
    let filter = json!({ "notifications": {} });
    let listen = opened(&mut session, &request(MODERN, json!("l"), "subscriptions/listen", filter)).key;
    let heard = |session: &ServerSession| lists.map(|list| session.list_changed(list, listen).is_some());
    assert_eq!(heard(&session), [false; 3], "nothing comes before the acknowledgement");
    let served = SubscriptionFilter { prompts_list_changed: true, ..SubscriptionFilter::default() };
    session.acknowledge(listen, &served).unwrap();
    assert_eq!(heard(&session), [false, true, false]);
    let line = parse(&session.list_changed(ListKind::Prompts, listen).unwrap());
    assert_eq!(line["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
    session.finish(listen, Ok(Answer::ListenEnded)).unwrap();
    assert_eq!(heard(&session), [false; 3]);

    assert_eq!(crate::support::session().list_changed_unsolicited(ListKind::Tools), None, "nobody is there");
    let quiet = ServerProfile { tools_list_changed: false, prompts: false, ..profile() };
    let mut quiet = ServerSession::new(quiet);
    let hello = answered(&mut quiet, crate::support::initialize("2025-11-25").to_string().as_bytes());
    let told = lists.map(|list| quiet.list_changed_unsolicited(list).is_some());
    assert_eq!(told, [false, false, true]);
    assert_eq!(hello["result"]["capabilities"]["tools"], json!({}));
    assert_eq!(hello["result"]["capabilities"].get("prompts"), None);
}

#[test]
fn a_client_is_known_again_in_a_session_for_one_message() {
    let shared = SharedProfile::from(profile());
    let mut first = ServerSession::resumed(shared.clone(), None, 1);
    assert_eq!(first.legacy_client(), None);
    let list = request(LEGACY, json!(1), "tools/list", json!({}));
    assert_eq!(error(&mut first, &list).0, -32602);
    answered(&mut first, crate::support::initialize("2025-11-25").to_string().as_bytes());
    let set = request(LEGACY, json!(2), "logging/setLevel", json!({ "level": "error" }));
    answered(&mut first, set.to_string().as_bytes());
    let client = first.legacy_client().cloned().unwrap();
    assert_eq!(client.revision(), LEGACY);
    // Ids are those of one session, so both may use the same.
    let mut posts =
        [7, u64::MAX].map(|scope| ServerSession::resumed(shared.clone(), Some(client.clone()), scope));
    let call = request(LEGACY, json!(1), "tools/call", json!({ "name": "a" }));
    let questions = posts.each_mut().map(|session| {
        let inbound = opened(session, &call);
        assert_eq!(inbound.log_level, Some(LogLevel::Error));
        assert_eq!(
            inbound.capabilities,
            ClientCapabilities { elicitation_form: true, roots: true, ..Default::default() }
        );
        parse(&session.ask(inbound.key, &InputRequest::Roots).unwrap().1)
    });
    assert_ne!(questions[0]["id"], questions[1]["id"]);
    let answers = questions.map(|question| {
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } }).to_string()
    });
    assert_eq!(ask_scope_of(answers[0].as_bytes()), Some(7));
    assert_eq!(ask_scope_of(answers[1].as_bytes()), Some(u64::MAX));
    let effects = posts[0].receive(answers[1].as_bytes());
    assert!(matches!(&effects[..], [Effect::Ignored(_)]), "it is the other's: {effects:?}");
    let effects = posts[1].receive(answers[1].as_bytes());
    assert!(matches!(&effects[..], [Effect::Answered { answer: Ok(_), .. }]), "{effects:?}");
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1.0 } });
    assert!(posts.iter().all(|session| session.would_cancel(cancel.to_string().as_bytes())));
    finish(&mut posts[0], &opened(&mut session_of(LEGACY), &call));
    let other = cancel.to_string().replace("1.0", "2");
    assert!(!posts[0].would_cancel(other.as_bytes()));
    assert!(!posts[0].would_cancel(b"{") && !posts[0].would_cancel(call.to_string().as_bytes()));
}

#[test]
fn ids_that_this_server_did_not_make_have_no_scope() {
    let response = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    for id in [
        "7",
        "\"7\"",
        "\"cyberine-7\"",
        "\"cyberine--7\"",
        "\"cyberine-7-\"",
        "\"cyberine-+7-1\"",
        "\"cyberine-07-1\"",
        "\"cyberine-7-01\"",
        "\"cyberine-7-1-1\"",
        "\"cyberine-18446744073709551616-1\"",
        "\"Cyberine-7-1\"",
    ] {
        assert_eq!(ask_scope_of(response(id).as_bytes()), None, "{id}");
    }
    assert_eq!(ask_scope_of(response("\"cyberine-7-1\"").as_bytes()), Some(7));
    assert_eq!(ask_scope_of(response("\"c\\u0079berine-7-1\"").as_bytes()), Some(7), "it is the same text");
    let asks = r#"{"jsonrpc":"2.0","id":"cyberine-7-1","method":"ping"}"#;
    for other in [asks, "", "[]", r#"{"jsonrpc":"2.0","error":{}}"#] {
        assert_eq!(ask_scope_of(other.as_bytes()), None, "{other}");
    }
}
