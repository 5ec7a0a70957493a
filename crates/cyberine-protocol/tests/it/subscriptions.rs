//! Following resources in both eras: what begins it, what ends it, and that nothing is said outside.

use cyberine_protocol::model::SubscriptionFilter;
use cyberine_protocol::{Answer, Effect, InboundBody, Revision, RpcError, ServerProfile, ServerSession};
use serde_json::{Value, json};

use crate::support::{
    answered, finish, finish_with, initialize, opened, parse, profile, request, session_of,
};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const URI: &str = "cyberine://runs/5b1e";
const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn subscribe(id: Value) -> Value {
    request(LEGACY, id, "resources/subscribe", json!({ "uri": URI }))
}

fn listen(id: Value) -> Value {
    let wanted =
        json!({ "promptsListChanged": false, "resourceSubscriptions": [URI, "b"], "taskIds": ["t"] });
    request(MODERN, id, "subscriptions/listen", json!({ "notifications": wanted }))
}

fn served() -> SubscriptionFilter {
    SubscriptionFilter { resource_subscriptions: vec![URI.to_owned()], ..SubscriptionFilter::default() }
}

fn cancel(session: &mut ServerSession, id: &Value) -> Vec<Effect> {
    let line =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    session.receive(line.to_string().as_bytes())
}

#[test]
fn changes_are_told_between_the_answer_to_subscribe_and_its_end() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &subscribe(json!(1)));
    assert_eq!(inbound.body, InboundBody::Subscribe { uri: URI.to_owned() });
    assert_eq!(session.updated(inbound.key, URI), None);
    assert_eq!(finish_with(&mut session, inbound.key, Answer::Empty)["result"], json!({}));
    assert!(session.is_followed(inbound.key));
    assert_eq!(session.in_flight(), 0);
    for _ in 0..2 {
        let news = parse(&session.updated(inbound.key, URI).unwrap());
        let params = json!({ "uri": URI });
        assert_eq!(
            news,
            json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params })
        );
    }
    session.end_subscription(inbound.key);
    assert_eq!(session.updated(inbound.key, URI), None);
    assert!(!session.is_followed(inbound.key));
}

#[test]
fn a_refused_subscription_follows_nothing() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &subscribe(json!(1)));
    session.finish(inbound.key, Err(RpcError::resource_not_found(URI))).unwrap();
    assert!(!session.is_followed(inbound.key));
    assert_eq!(session.updated(inbound.key, URI), None);
}

#[test]
fn a_new_session_ends_the_subscriptions_of_the_old_one() {
    let mut session = session_of(LEGACY);
    let keys: Vec<_> = [1, 2]
        .into_iter()
        .map(|id| {
            let inbound = opened(&mut session, &subscribe(json!(id)));
            finish(&mut session, &inbound).unwrap();
            inbound.key
        })
        .collect();
    let late = opened(&mut session, &subscribe(json!(3)));
    let listening = opened(&mut session, &listen(json!(4)));
    session.acknowledge(listening.key, &served()).unwrap();
    let effects = session.receive(initialize("2025-06-18").to_string().as_bytes());
    let [Effect::Cancel(first), Effect::Cancel(second), Effect::Send(_)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(vec![*first, *second], keys);
    for key in keys {
        assert_eq!(session.updated(key, URI), None);
    }
    // It was asked before, so it is answered, and begins nothing.
    assert_eq!(finish_with(&mut session, late.key, Answer::Empty)["result"], json!({}));
    assert!(!session.is_followed(late.key));
    // A stateless request knows no session.
    assert!(session.updated(listening.key, URI).is_some());
}

#[test]
fn a_cancellation_that_crossed_the_answer_ends_the_subscription() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &subscribe(json!("s")));
    finish(&mut session, &inbound).unwrap();
    let effects = cancel(&mut session, &json!("s"));
    assert!(matches!(&effects[..], [Effect::Cancel(key)] if *key == inbound.key), "{effects:?}");
    assert_eq!(session.updated(inbound.key, URI), None);
}

#[test]
fn a_listening_client_hears_nothing_before_it_is_told_what_it_will_hear_of() {
    let mut session = session_of(LEGACY);
    let inbound = opened(&mut session, &listen(json!("sub-1")));
    let wanted = SubscriptionFilter {
        resource_subscriptions: vec![URI.to_owned(), "b".to_owned()],
        task_ids: vec!["t".to_owned()],
        ..SubscriptionFilter::default()
    };
    assert_eq!(inbound.body, InboundBody::Listen { filter: wanted });
    assert_eq!(session.updated(inbound.key, URI), None);
    let told = parse(&session.acknowledge(inbound.key, &served()).unwrap());
    assert_eq!(told["params"]["notifications"], json!({ "resourceSubscriptions": [URI] }));
    assert_eq!(told["params"]["_meta"][TAG], "sub-1");
    assert_eq!(session.acknowledge(inbound.key, &served()), None);
    let news = parse(&session.updated(inbound.key, URI).unwrap());
    assert_eq!(news["params"], json!({ "uri": URI, "_meta": { TAG: "sub-1" } }));
    assert_eq!(session.in_flight(), 1);
    let end = finish_with(&mut session, inbound.key, Answer::ListenEnded);
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("sub-1"), &json!("complete")));
    assert_eq!(end["result"]["_meta"][TAG], "sub-1");
    assert_eq!(session.updated(inbound.key, URI), None);
}

#[test]
fn the_tag_is_the_id_as_it_was_written() {
    for id in ["1.0", "7", "\"7\"", "\"\\u0061\""] {
        let mut session = session_of(MODERN);
        let line = listen(json!("the-id")).to_string().replace("\"the-id\"", id);
        let effects = session.receive(line.as_bytes());
        let [Effect::Request(inbound)] = &effects[..] else { panic!("{effects:?}") };
        for line in [
            session.acknowledge(inbound.key, &served()).unwrap(),
            session.updated(inbound.key, URI).unwrap(),
            session.finish(inbound.key, Ok(Answer::ListenEnded)).unwrap(),
        ] {
            let line = String::from_utf8(line).unwrap();
            assert!(line.contains(&format!("\"{TAG}\":{id}}}")), "{line}");
        }
    }
}

#[test]
fn after_a_cancellation_a_listening_client_hears_nothing_also_no_end() {
    for acknowledged in [false, true] {
        let mut session = session_of(MODERN);
        let inbound = opened(&mut session, &listen(json!(1)));
        if acknowledged {
            session.acknowledge(inbound.key, &served()).unwrap();
        }
        let effects = cancel(&mut session, &json!(1));
        assert!(matches!(&effects[..], [Effect::Cancel(key)] if *key == inbound.key), "{effects:?}");
        assert_eq!(session.acknowledge(inbound.key, &served()), None);
        assert_eq!(session.updated(inbound.key, URI), None);
        assert_eq!(session.finish(inbound.key, Ok(Answer::ListenEnded)), None);
    }
}

#[test]
fn each_era_has_its_own_methods_and_none_without_the_capability() {
    let refused = |session: &mut ServerSession, line: &Value| {
        assert_eq!(answered(session, line.to_string().as_bytes())["error"]["code"], -32601, "{line}");
    };
    let uri = json!({ "uri": URI });
    let filter = json!({ "notifications": {} });
    for revision in Revision::ALL {
        let mut session = session_of(revision);
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let line = request(revision, json!(method), method, uri.clone());
            if revision.is_stateless() {
                refused(&mut session, &line);
            } else {
                opened(&mut session, &line);
            }
        }
        let line = request(revision, json!("l"), "subscriptions/listen", filter.clone());
        if revision.is_stateless() {
            opened(&mut session, &line);
        } else {
            refused(&mut session, &line);
        }
    }
    let silent = ServerProfile {
        subscriptions: false,
        tasks: false,
        tools_list_changed: false,
        prompts_list_changed: false,
        resources_list_changed: false,
        ..profile()
    };
    let mut session = ServerSession::new(silent);
    let greeting = answered(&mut session, initialize("2025-11-25").to_string().as_bytes());
    assert_eq!(greeting["result"]["capabilities"]["resources"], json!({}));
    refused(&mut session, &subscribe(json!(1)));
    refused(&mut session, &request(LEGACY, json!(2), "resources/unsubscribe", uri));
    refused(&mut session, &listen(json!(3)));
}

#[test]
fn a_filter_that_cannot_be_used_is_named() {
    let mut session = session_of(MODERN);
    let many: Vec<String> = (0..1025).map(|id| id.to_string()).collect();
    for (params, named) in [
        (json!({}), "notifications"),
        (json!({ "notifications": [] }), "notifications"),
        (json!({ "notifications": { "toolsListChanged": 1 } }), "toolsListChanged"),
        (json!({ "notifications": { "resourceSubscriptions": "x" } }), "resourceSubscriptions"),
        (json!({ "notifications": { "resourceSubscriptions": [7] } }), "resourceSubscriptions"),
        (json!({ "notifications": { "resourceSubscriptions": many } }), "resourceSubscriptions"),
    ] {
        let line = request(MODERN, json!(1), "subscriptions/listen", params);
        let answer = answered(&mut session, line.to_string().as_bytes());
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(named), "{answer}");
    }
}
