//! Requests in flight: who they are from, how they end, and what may still be said of them.

use std::collections::BTreeMap;

use cyberine_protocol::model::{
    CallToolResult, ClientCapabilities, ElicitForm, InputRequest, InputRequired, LogLevel,
};
use cyberine_protocol::{
    Answer, AskError, Effect, Ignored, Inbound, InboundBody, Revision, RpcError, ServerSession,
};
use cyberine_types::ClientInfo;
use serde_json::{Value, json};

use crate::support::{
    CAPABILITIES, CLIENT, VERSION, answered, finish, finish_with, initialize, opened, parse, request,
    session, session_of,
};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

fn call(revision: Revision, id: Value, token: Option<Value>) -> Value {
    let mut params = json!({ "name": "list_team", "arguments": { "joinRuns": true } });
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    request(revision, id, "tools/call", params)
}

fn cancel(session: &mut ServerSession, id: &Value) -> Vec<Effect> {
    let line =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    session.receive(line.to_string().as_bytes())
}

fn done(session: &mut ServerSession, inbound: &Inbound) -> Value {
    finish_with(session, inbound.key, Answer::Call(CallToolResult::text("ok", false)))
}

fn form() -> InputRequest {
    let requested_schema = json!({ "type": "object", "properties": {} });
    InputRequest::Form(ElicitForm { message: "Go?".into(), requested_schema })
}

#[test]
fn a_stateless_request_speaks_for_itself() {
    let mut session = session_of(LEGACY);
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "approve_run", "arguments": { "runId": "5b1e" },
        "inputResponses": { "approve": { "action": "accept", "content": { "ok": true } } },
        "requestState": "v1.x",
        "_meta": {
            VERSION: "2026-07-28", CAPABILITIES: { "elicitation": {} },
            CLIENT: { "name": "other", "version": "2" },
            "io.modelcontextprotocol/logLevel": "warning", "progressToken": 5,
        },
    }});
    let inbound = opened(&mut session, &line);
    let expected = Inbound {
        key: inbound.key,
        revision: MODERN,
        client: Some(ClientInfo { name: "other".into(), version: "2".into() }),
        capabilities: ClientCapabilities { elicitation_form: true, ..ClientCapabilities::default() },
        log_level: Some(LogLevel::Warning),
        progress: true,
        body: InboundBody::CallTool {
            name: "approve_run".into(),
            arguments: json!({ "runId": "5b1e" }).as_object().unwrap().clone(),
            input_responses: BTreeMap::from([(
                "approve".to_owned(),
                json!({ "action": "accept", "content": { "ok": true } }),
            )]),
            request_state: Some("v1.x".into()),
        },
    };
    assert_eq!(inbound, expected);
}

#[test]
fn a_stateless_request_borrows_nothing_from_the_session() {
    let mut session = session_of(LEGACY);
    let params = json!({ "_meta": { VERSION: "2026-07-28", CAPABILITIES: {} } });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let inbound = opened(&mut session, &line);
    assert_eq!((inbound.client, inbound.capabilities), (None, ClientCapabilities::default()));
}

#[test]
fn a_second_initialize_replaces_the_session_and_earlier_requests_keep_theirs() {
    let mut session = session_of(LEGACY);
    let early = opened(&mut session, &call(LEGACY, json!(1), None));
    let mut again = initialize("2024-11-05");
    again["params"]["clientInfo"] = json!({ "name": "other", "version": "1" });
    answered(&mut session, again.to_string().as_bytes());
    let late = opened(&mut session, &call(LEGACY, json!(2), None));
    let label = |inbound: &Inbound| (inbound.revision, inbound.client.as_ref().unwrap().label());
    assert_eq!(label(&early), (LEGACY, "host@3.1.0".to_owned()));
    assert_eq!(label(&late), (Revision::V2024_11_05, "other@1".to_owned()));
    let structured = Answer::Call(CallToolResult::structured(&json!({}), false));
    assert!(
        finish_with(&mut session, early.key, structured.clone())["result"].get("structuredContent").is_some()
    );
    assert!(finish_with(&mut session, late.key, structured)["result"].get("structuredContent").is_none());
}

#[test]
fn ids_come_back_as_they_were_written() {
    let mut session = session_of(LEGACY);
    for token in ["1.0", "1e2", "-0", "\"1\"", "\"\\u0061\\n\"", "12345678901234567890123", "\"\""] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"tools/list"}}"#);
        let effects = session.receive(line.as_bytes());
        let [Effect::Request(inbound)] = &effects[..] else { panic!("{token}: {effects:?}") };
        let answer = String::from_utf8(finish(&mut session, inbound).unwrap()).unwrap();
        assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{token},"result""#)), "{answer}");
    }
}

#[test]
fn an_id_in_flight_is_refused_without_an_answer_to_the_first() {
    for (first, second) in [(LEGACY, LEGACY), (MODERN, MODERN), (LEGACY, MODERN), (MODERN, LEGACY)] {
        let mut session = session_of(LEGACY);
        let inbound = opened(&mut session, &call(first, json!(1), None));
        let other = opened(&mut session, &call(second, json!("1"), None));
        let refused = answered(&mut session, call(second, json!(1.0), None).to_string().as_bytes());
        assert_eq!((&refused["error"]["code"], refused.get("id")), (&json!(-32600), None));
        let ping = answered(&mut session, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!((&ping["error"]["code"], ping.get("id")), (&json!(-32600), None));
        assert_eq!(done(&mut session, &inbound)["id"], json!(1));
        assert_eq!(done(&mut session, &other)["id"], json!("1"));
        opened(&mut session, &call(second, json!(1), None));
        assert_eq!(session.in_flight(), 1);
    }
}

#[test]
fn a_request_is_answered_once() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &call(LEGACY, json!(1), Some(json!("t"))));
    done(&mut session, &inbound);
    assert_eq!(session.finish(inbound.key, Err(RpcError::internal("again"))), None);
    assert_eq!(session.in_flight(), 0);
}

#[test]
fn a_cancelled_request_is_never_answered_in_either_era() {
    for revision in [LEGACY, MODERN] {
        let mut session = session_of(LEGACY);
        let inbound = opened(&mut session, &call(revision, json!(7), Some(json!("t"))));
        let effects = cancel(&mut session, &json!(7.0));
        assert!(matches!(&effects[..], [Effect::Cancel(key)] if *key == inbound.key), "{effects:?}");
        assert_eq!(session.progress(inbound.key, 1.0, None, ""), None);
        assert_eq!(session.finish(inbound.key, Err(RpcError::internal("x"))), None);
        for unknown in [json!(7), json!("7"), json!(null), json!("init")] {
            let effects = cancel(&mut session, &unknown);
            assert!(
                matches!(&effects[..], [Effect::Ignored(Ignored::StrayCancel)]),
                "{unknown}: {effects:?}"
            );
        }
    }
}

#[test]
fn progress_goes_on_after_the_reply_with_initialize_only() {
    for revision in Revision::ALL {
        let mut session = session_of(revision);
        let inbound = opened(&mut session, &call(revision, json!(1), Some(json!("t"))));
        let sent: Vec<bool> =
            [(1.0, 0), (1.0, 0), (0.5, 0), (f64::NAN, 0), (f64::INFINITY, 0), (2.0, 1), (3.0, 0)]
                .into_iter()
                .map(|(progress, reply)| {
                    if reply == 1 {
                        done(&mut session, &inbound);
                    }
                    session.progress(inbound.key, progress, Some(9.0), "news").is_some()
                })
                .collect();
        let after = !revision.is_stateless();
        assert_eq!(sent, [true, false, false, false, false, after, after], "{revision}");
        session.end_progress(inbound.key);
        assert_eq!(session.progress(inbound.key, 10.0, None, ""), None);
        let effects = cancel(&mut session, &json!(1));
        assert!(matches!(&effects[..], [Effect::Ignored(_)]), "{effects:?}");
    }
}

#[test]
fn a_cancel_after_the_reply_ends_what_still_reports() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &call(LEGACY, json!(1), Some(json!("t"))));
    done(&mut session, &inbound);
    let effects = cancel(&mut session, &json!(1));
    assert!(matches!(&effects[..], [Effect::Cancel(key)] if *key == inbound.key), "{effects:?}");
    assert_eq!(session.progress(inbound.key, 5.0, None, ""), None);
}

#[test]
fn what_cannot_go_on_is_forgotten_with_its_answer() {
    let mut session = session_of(LEGACY);
    let token = json!({ "_meta": { "progressToken": "t" } });
    let list = opened(&mut session, &request(LEGACY, json!(1), "tools/list", token));
    finish(&mut session, &list).unwrap();
    let failed = opened(&mut session, &call(LEGACY, json!(2), Some(json!("u"))));
    session.finish(failed.key, Err(RpcError::internal("x"))).unwrap();
    for (inbound, id) in [(list, 1), (failed, 2)] {
        assert_eq!(session.progress(inbound.key, 1.0, None, ""), None);
        let effects = cancel(&mut session, &json!(id));
        assert!(matches!(&effects[..], [Effect::Ignored(Ignored::StrayCancel)]), "{effects:?}");
    }
}

#[test]
fn a_token_belongs_to_one_request() {
    let mut session = session_of(LEGACY);
    let first = opened(&mut session, &call(LEGACY, json!(1), Some(json!("t"))));
    let refused = answered(&mut session, call(MODERN, json!(2), Some(json!("t"))).to_string().as_bytes());
    assert_eq!(refused["error"]["code"], json!(-32602));
    done(&mut session, &first);
    // The client uses the token anew, so its news would be taken for the new request's.
    let second = opened(&mut session, &call(LEGACY, json!(2), Some(json!("t"))));
    assert_eq!(session.progress(first.key, 1.0, None, ""), None);
    assert!(session.progress(second.key, 1.0, None, "").is_some());
    // What the first left running can still be cancelled.
    let effects = cancel(&mut session, &json!(1));
    assert!(matches!(&effects[..], [Effect::Cancel(key)] if *key == first.key), "{effects:?}");
}

#[test]
fn no_token_no_progress() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &call(LEGACY, json!(1), None));
    assert!(!inbound.progress);
    assert_eq!(session.progress(inbound.key, 1.0, None, ""), None);
    session.end_progress(inbound.key);
    done(&mut session, &inbound);
}

#[test]
fn a_question_reaches_the_client_and_its_answer_comes_back_once() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &call(LEGACY, json!(1), None));
    let mut ask = |result: Value| {
        let (ask, line) = session.ask(inbound.key, &form()).unwrap();
        let mut answer = json!({ "jsonrpc": "2.0", "id": parse(&line)["id"] });
        answer.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
        let effects = session.receive(answer.to_string().as_bytes());
        let [Effect::Answered { key, ask: asked, answer: value }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!((*key, *asked), (inbound.key, ask));
        let again = session.receive(answer.to_string().as_bytes());
        assert!(matches!(&again[..], [Effect::Ignored(Ignored::StrayResponse)]), "{again:?}");
        value.clone().map_err(|error| error.to_string())
    };
    let accepted = json!({ "action": "accept", "content": { "ok": true } });
    assert_eq!(ask(json!({ "result": accepted })), Ok(accepted.clone()));
    assert_eq!(ask(json!({ "result": { "action": "decline" } })), Ok(json!({ "action": "decline" })));
    assert!(ask(json!({ "result": { "action": "maybe" } })).is_err());
    assert!(ask(json!({ "result": null })).is_err());
    assert!(ask(json!({ "error": { "code": -1, "message": "no" } })).unwrap_err().contains("no"));
}

#[test]
fn who_cannot_be_asked_is_not_asked() {
    let mut old = session_of(Revision::V2025_03_26);
    let key = opened(&mut old, &call(LEGACY, json!(1), None)).key;
    assert_eq!(old.ask(key, &form()).unwrap_err(), AskError::Unsupported);

    let mut plain = session();
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({ "elicitation": { "url": {} } });
    answered(&mut plain, hello.to_string().as_bytes());
    let key = opened(&mut plain, &call(LEGACY, json!(1), None)).key;
    assert_eq!(plain.ask(key, &form()).unwrap_err(), AskError::Unsupported);
    let key = opened(&mut plain, &call(MODERN, json!(2), None)).key;
    assert_eq!(plain.ask(key, &form()).unwrap_err(), AskError::Stateless);

    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &call(LEGACY, json!(1), Some(json!("t"))));
    let (_, question) = session.ask(inbound.key, &form()).unwrap();
    done(&mut session, &inbound);
    assert_eq!(session.ask(inbound.key, &form()).unwrap_err(), AskError::Over);
    let late = json!({ "jsonrpc": "2.0", "id": parse(&question)["id"], "result": { "action": "accept" } });
    let effects = session.receive(late.to_string().as_bytes());
    assert!(matches!(&effects[..], [Effect::Ignored(Ignored::StrayResponse)]), "{effects:?}");
}

#[test]
fn what_a_client_did_not_declare_is_an_error_not_an_answer() {
    let mut session = session_of(LEGACY);
    let bare = |id: u64| {
        let params = json!({ "name": "x", "_meta": { VERSION: "2026-07-28", CAPABILITIES: {} } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let question = || {
        Answer::InputRequired(InputRequired {
            requests: BTreeMap::from([("k".to_owned(), form())]),
            request_state: None,
        })
    };
    let key = opened(&mut session, &bare(1)).key;
    let refused = finish_with(&mut session, key, question());
    assert_eq!(refused["error"]["code"], json!(-32021));
    assert_eq!(
        refused["error"]["data"],
        json!({ "requiredCapabilities": { "elicitation": { "form": {} } } })
    );

    let later = InputRequired { requests: BTreeMap::new(), request_state: Some("wait".into()) };
    let key = opened(&mut session, &bare(2)).key;
    assert_eq!(
        finish_with(&mut session, key, Answer::InputRequired(later))["result"]["requestState"],
        json!("wait")
    );

    let key = opened(&mut session, &call(MODERN, json!(3), None)).key;
    let nothing = finish_with(&mut session, key, Answer::InputRequired(InputRequired::default()));
    assert_eq!(nothing["error"]["code"], json!(-32603));
    let key = opened(&mut session, &call(LEGACY, json!(4), None)).key;
    assert_eq!(finish_with(&mut session, key, question())["error"]["code"], json!(-32603));
}

#[test]
fn an_answer_of_another_method_is_the_servers_fault() {
    let mut session = session_of(LEGACY);
    let key = opened(&mut session, &request(LEGACY, json!(1), "resources/list", json!({}))).key;
    let answer = Answer::Call(CallToolResult::text("x", false));
    assert_eq!(finish_with(&mut session, key, answer)["error"]["code"], json!(-32603));
}

#[test]
fn what_is_not_served_is_no_method() {
    let mut session = ServerSession::new(cyberine_protocol::ServerProfile::default());
    let hello = answered(&mut session, initialize("2025-11-25").to_string().as_bytes());
    assert_eq!(hello["result"]["capabilities"], json!({}));
    for method in [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "logging/setLevel",
        "server/discover",
        "Ping",
    ] {
        for revision in [LEGACY, MODERN] {
            if revision == MODERN && method == "server/discover" {
                continue;
            }
            let line = request(revision, json!(1), method, json!({}));
            assert_eq!(
                answered(&mut session, line.to_string().as_bytes())["error"]["code"],
                json!(-32601),
                "{line}"
            );
        }
    }
}

#[test]
fn a_batch_is_answered_as_one_array_when_its_last_request_is_over() {
    let mut session = session_of(Revision::V2025_03_26);
    let batch = json!([
        call(LEGACY, json!(1), None),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 2, "method": "ping" },
        call(LEGACY, json!(3), None),
    ]);
    let effects = session.receive(batch.to_string().as_bytes());
    let [Effect::Request(first), Effect::Request(second)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(finish(&mut session, second), None);
    let line = parse(&finish(&mut session, first).unwrap());
    let ids: Vec<&Value> = line.as_array().unwrap().iter().map(|part| &part["id"]).collect();
    assert_eq!(ids, [&json!(2), &json!(3), &json!(1)]);
}

#[test]
fn a_cancel_can_be_what_completes_a_batch() {
    let mut session = session_of(Revision::V2025_03_26);
    let batch = json!([call(LEGACY, json!(1), None), call(LEGACY, json!(2), None)]).to_string();
    let effects = session.receive(batch.as_bytes());
    let [Effect::Request(first), Effect::Request(second)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(finish(&mut session, first), None);
    let effects = cancel(&mut session, &json!(2));
    let [Effect::Cancel(key), Effect::Send(line)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((*key, parse(line).as_array().map(Vec::len)), (second.key, Some(1)));

    let effects = session.receive(batch.as_bytes());
    assert_eq!(effects.len(), 2);
    assert!(matches!(&cancel(&mut session, &json!(1))[..], [Effect::Cancel(_)]));
    assert!(
        matches!(&cancel(&mut session, &json!(2))[..], [Effect::Cancel(_)]),
        "an empty array is no message"
    );
}

#[test]
fn batches_hold_8_megabytes_of_answers_and_no_more() {
    let large = || Answer::Call(CallToolResult::text("x".repeat(3 * 1024 * 1024), false));
    let mut session = session_of(Revision::V2025_03_26);
    let batch = |ids: std::ops::Range<u64>| {
        Value::from(ids.map(|id| call(LEGACY, json!(id), None)).collect::<Vec<_>>())
    };
    let open = |session: &mut ServerSession, ids| -> Vec<Inbound> {
        let effects = session.receive(batch(ids).to_string().as_bytes());
        effects
            .into_iter()
            .map(|effect| match effect {
                Effect::Request(inbound) => inbound,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let (first, second) = (open(&mut session, 0..5), open(&mut session, 5..7));
    for inbound in &first[..4] {
        assert_eq!(session.finish(inbound.key, Ok(large())), None);
    }
    // What one batch holds, another cannot.
    assert_eq!(session.finish(second[0].key, Ok(large())), None);
    let small = Answer::Call(CallToolResult::text("x", false));
    let first = parse(&session.finish(first[4].key, Ok(small)).unwrap());
    let codes = |line: &Value| -> Vec<Value> {
        line.as_array().unwrap().iter().map(|part| part["error"]["code"].clone()).collect()
    };
    let (there, full) = (json!(null), json!(-32603));
    assert_eq!(codes(&first), [&there, &there, &full, &full, &there].map(Clone::clone));
    assert_eq!(first[2]["id"], json!(2));
    assert!(first[2]["error"]["message"].as_str().unwrap().contains("by itself"), "{}", first[2]);
    // A batch that is sent makes room.
    let second = parse(&session.finish(second[1].key, Ok(large())).unwrap());
    assert_eq!(codes(&second), [full, there]);
    if let Some(mut official) = crate::official::Official::of(Revision::V2025_03_26) {
        official.assert("JSONRPCBatchResponse", &second);
    }
}

#[test]
fn a_batch_of_notifications_has_no_answer() {
    let mut session = session_of(Revision::V2025_03_26);
    let line = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]).to_string();
    assert!(session.receive(line.as_bytes()).is_empty());
}
