//! Every message the machine can emit: valid by the schema of its revision, and nothing in it
//! that the revision does not know.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use cyberine_protocol::model::{
    CacheHint, CallToolResult, ContentBlock, ElicitForm, InputRequest, InputRequired, SubscriptionFilter,
    TaskStatus, Tool,
};
use cyberine_protocol::{Answer, Effect, Revision, RpcError, ServerSession, ToolListing};
use serde_json::{Value, json};

use crate::official::Official;
use crate::support::{
    answered, every_block, finish, finish_with, initialize, opened, own_meta, parse, request, session,
    session_of, task, tool,
};

mod features;

/// One message with the name of its definition in the schema.
struct Emitted {
    what: &'static str,
    line: Value,
}

fn form() -> InputRequest {
    InputRequest::Form(ElicitForm {
        message: "Approve run 5b1e?".into(),
        requested_schema: json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] }),
    })
}

fn results(revision: Revision) -> Vec<Emitted> {
    let mut session = session_of(revision);
    let ask = |session: &mut ServerSession, what, method, params| {
        let inbound = opened(session, &request(revision, json!(method), method, params));
        Emitted { what, line: parse(&finish(session, &inbound).unwrap()) }
    };
    let mut all = vec![
        ask(&mut session, "ListToolsResult", "tools/list", json!({})),
        ask(&mut session, "ListResourcesResult", "resources/list", json!({})),
        ask(&mut session, "ListResourceTemplatesResult", "resources/templates/list", json!({})),
        ask(&mut session, "ReadResourceResult", "resources/read", json!({ "uri": "cyberine://runs/5b1e" })),
        ask(&mut session, "CallToolResult", "tools/call", json!({ "name": "list_team", "arguments": {} })),
    ];
    let blocks =
        CallToolResult { content: every_block(), structured: None, is_error: true, meta: own_meta() };
    let array = CallToolResult {
        content: vec![ContentBlock::text("[]")],
        ..CallToolResult::structured(&json!([1]), false)
    };
    for result in [blocks, array] {
        let call = request(revision, json!(1.0), "tools/call", json!({ "name": "any" }));
        let inbound = opened(&mut session, &call);
        all.push(Emitted {
            what: "CallToolResult",
            line: finish_with(&mut session, inbound.key, Answer::Call(result)),
        });
    }
    let any_schema = Tool { output_schema: Some(json!({ "type": "array" })), ..tool() };
    let listing = Answer::Tools(Arc::new(ToolListing::new(vec![any_schema], CacheHint::NONE)));
    let inbound = opened(&mut session, &request(revision, json!(7), "tools/list", json!({})));
    all.push(Emitted { what: "ListToolsResult", line: finish_with(&mut session, inbound.key, listing) });
    all
}

fn greetings(revision: Revision) -> Vec<Emitted> {
    if revision.is_stateless() {
        let discover = request(revision, json!("d"), "server/discover", json!({}));
        let line = answered(&mut session(), discover.to_string().as_bytes());
        return vec![Emitted { what: "DiscoverResult", line }];
    }
    let line = answered(&mut session(), initialize(revision.as_str()).to_string().as_bytes());
    let ping = answered(&mut session_of(revision), br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    vec![Emitted { what: "InitializeResult", line }, Emitted { what: "EmptyResult", line: ping }]
}

fn outcomes(revision: Revision) -> Vec<Emitted> {
    let mut session = session_of(revision);
    let mut call = || {
        opened(&mut session, &request(revision, json!("call"), "tools/call", json!({ "name": "any" }))).key
    };
    let (key, input) = (
        call(),
        InputRequired {
            requests: BTreeMap::from([("approve \"it\"".to_owned(), form())]),
            request_state: Some("v1.eyJydW4".into()),
        },
    );
    let input = Emitted {
        what: "InputRequiredResult",
        line: finish_with(&mut session, key, Answer::InputRequired(input)),
    };
    let key =
        opened(&mut session, &request(revision, json!("task"), "tools/call", json!({ "name": "any" }))).key;
    let task = task(TaskStatus::Working);
    vec![
        input,
        Emitted { what: "CreateTaskResult", line: finish_with(&mut session, key, Answer::Task(task)) },
    ]
}

fn notifications(revision: Revision) -> Vec<Emitted> {
    let mut session = session_of(revision);
    let call = request(
        revision,
        json!(3),
        "tools/call",
        json!({ "name": "any", "_meta": { "progressToken": "p-3" } }),
    );
    let key = opened(&mut session, &call).key;
    let mut all = Vec::new();
    for (progress, total) in [(1.0, None), (2.5, Some(7.0))] {
        let line = session.progress(key, progress, total, "agent \u{85}2 done").unwrap();
        all.push(Emitted { what: "ProgressNotification", line: parse(&line) });
    }
    if let Ok((_, line)) = session.ask(key, &form()) {
        all.push(Emitted { what: "ElicitRequest", line: parse(&line) });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
        let effects = session.receive(cancel.to_string().as_bytes());
        let [Effect::Cancel(_), Effect::Send(line)] = &effects[..] else { panic!("{effects:?}") };
        all.push(Emitted { what: "CancelledNotification", line: parse(line) });
    }
    all
}

/// What goes out of a subscription, from its beginning to its end.
fn subscriptions(revision: Revision) -> Vec<Emitted> {
    let mut session = session_of(revision);
    let emitted = |what, line: Vec<u8>| Emitted { what, line: parse(&line) };
    if !revision.is_stateless() {
        let uri = json!({ "uri": "cyberine://runs/5b1e" });
        let subscribe =
            opened(&mut session, &request(revision, json!(8), "resources/subscribe", uri.clone()));
        let begun = finish(&mut session, &subscribe).unwrap();
        let news = session.updated(subscribe.key, "cyberine://runs/5b1e").unwrap();
        let end = opened(&mut session, &request(revision, json!(9), "resources/unsubscribe", uri));
        return vec![
            emitted("EmptyResult", begun),
            emitted("ResourceUpdatedNotification", news),
            emitted("EmptyResult", finish(&mut session, &end).unwrap()),
        ];
    }
    let filter = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["cyberine://runs/5b1e"] } });
    let mut all = Vec::new();
    for (id, served) in [
        (
            json!("sub-1"),
            SubscriptionFilter {
                tools_list_changed: true,
                prompts_list_changed: true,
                resources_list_changed: true,
                resource_subscriptions: vec!["cyberine://runs/5b1e".to_owned()],
                task_ids: Vec::new(),
            },
        ),
        (json!(7.0), SubscriptionFilter::default()),
    ] {
        let listen = opened(&mut session, &request(revision, id, "subscriptions/listen", filter.clone()));
        let acknowledged = session.acknowledge(listen.key, &served).unwrap();
        all.push(emitted("SubscriptionsAcknowledgedNotification", acknowledged));
        let news = session.updated(listen.key, "cyberine://runs/5b1e/\u{9b}x").unwrap();
        all.push(emitted("ResourceUpdatedNotification", news));
        all.push(emitted("SubscriptionsListenResult", finish(&mut session, &listen).unwrap()));
    }
    all
}

fn errors(revision: Revision) -> Vec<Emitted> {
    let capabilities =
        cyberine_protocol::model::ClientCapabilities { elicitation_form: true, ..Default::default() };
    let page =
        json!({ "mode": "url", "elicitationId": "e", "url": "https://example.com/", "message": "open it" });
    let mut session = session_of(revision);
    let all = [
        RpcError::parse("x"),
        RpcError::invalid_request("x"),
        RpcError::method_not_found("x"),
        RpcError::unknown_tool("x"),
        RpcError::invalid_cursor(),
        RpcError::internal("x"),
        RpcError::header_mismatch("x"),
        RpcError::missing_capability(capabilities),
        RpcError::resource_not_found("cyberine://runs/x"),
        RpcError::url_elicitation_required("x", vec![page.as_object().unwrap().clone()]),
        RpcError::own(-33001, "unauthorized").with_data(json!({ "reason": "unauthorized" })),
    ];
    all.into_iter()
        .map(|error| {
            let key =
                opened(&mut session, &request(revision, json!(1), "tools/call", json!({ "name": "any" })))
                    .key;
            Emitted { what: "Error", line: parse(&session.finish(key, Err(error)).unwrap()) }
        })
        .collect()
}

fn everything(revision: Revision) -> Vec<Emitted> {
    let mut all = greetings(revision);
    all.extend(results(revision));
    if revision.is_stateless() {
        all.extend(outcomes(revision));
    }
    all.extend(notifications(revision));
    all.extend(subscriptions(revision));
    all.extend(errors(revision));
    all.extend(features::features(revision));
    all
}

fn check(official: &mut Official, revision: Revision, emitted: &Emitted) {
    let Emitted { what, line } = emitted;
    if official.has("JSONRPCMessage") {
        official.assert("JSONRPCMessage", line);
    }
    match *what {
        "Error" => {
            let named = match line["error"]["code"].as_i64().unwrap() {
                -32042 => Some("URLElicitationRequiredError"),
                -32022 => Some("UnsupportedProtocolVersionError"),
                -32021 => Some("MissingRequiredClientCapabilityError"),
                -32020 => Some("HeaderMismatchError"),
                _ => None,
            };
            let response =
                if revision < Revision::V2025_11_25 { "JSONRPCError" } else { "JSONRPCErrorResponse" };
            for definition in named.into_iter().chain([response]) {
                official.assert(definition, line);
            }
        }
        task if task.contains("Task") => {
            if let Some(mut tasks) = Official::load("ext-tasks-draft-2026-08-21") {
                tasks.assert(what, if task.ends_with("Result") { &line["result"] } else { line });
            }
        }
        result if result.ends_with("Result") => official.assert(result, &line["result"]),
        message => official.assert(message, line),
    }
}

#[test]
fn every_message_satisfies_the_schema_of_its_revision() {
    for revision in Revision::ALL {
        let Some(mut official) = Official::of(revision) else { continue };
        for emitted in everything(revision) {
            check(&mut official, revision, &emitted);
        }
    }
}

#[test]
fn errors_without_an_id_satisfy_the_schemas_that_know_them() {
    let parse_error = answered(&mut session(), b"{bad");
    let null_id = answered(&mut session(), br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#);
    let too_long = parse(&session().oversized(b"", b""));
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let Some(mut official) = Official::of(revision) else { continue };
        for line in [&parse_error, &null_id, &too_long] {
            official.assert("JSONRPCErrorResponse", line);
        }
    }
    let version = request(Revision::V2026_07_28, json!(1), "tools/list", json!({}));
    let version = version.to_string().replace("2026-07-28", "2099-01-01");
    let refused = answered(&mut session(), version.as_bytes());
    if let Some(mut official) = Official::of(Revision::V2026_07_28) {
        official.assert("UnsupportedProtocolVersionError", &refused);
    }
}

#[test]
fn a_batch_of_answers_satisfies_the_one_schema_that_has_batches() {
    let mut session = session_of(Revision::V2025_03_26);
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "id": 2, "method": "nope" },
        { "jsonrpc": "2.0", "id": "3", "method": "tools/list" },
    ]);
    let effects = session.receive(batch.to_string().as_bytes());
    let [Effect::Request(inbound)] = &effects[..] else { panic!("{effects:?}") };
    let line = parse(&finish(&mut session, inbound).unwrap());
    assert_eq!(line.as_array().map(Vec::len), Some(3));
    if let Some(mut official) = Official::of(Revision::V2025_03_26) {
        official.assert("JSONRPCBatchResponse", &line);
    }
}

/// Schemas allow members they do not know, so what is left out shows only here.
#[test]
fn each_revision_gets_what_it_knows() {
    for revision in Revision::ALL {
        let mut text = String::new();
        for Emitted { what, line } in everything(revision) {
            writeln!(text, "{what}\n{line:#}").unwrap();
        }
        insta::assert_snapshot!(format!("emitted_{revision}"), text);
    }
}
