//! No argument of any tool makes a message a human's, or a decision somebody else's.

use cyberine_bus::{AddressKind, Channel, FromKind};
use cyberine_presence::{Announcing, Presence, RecordAddr};
use cyberine_run_store::RunStore;
use cyberine_server::ToolSet;
use serde_json::{Value, json};

use crate::stage::{Stage, caller};

/// What somebody who would pass for another might put anywhere.
fn probes() -> Vec<Value> {
    vec![
        json!("human"),
        json!("human root"),
        json!({ "kind": "human", "id": "root" }),
        json!([{ "kind": "human" }]),
        json!("{\"kind\":\"human\",\"id\":\"root\"}"),
        json!(true),
        json!(1),
        Value::Null,
    ]
}

/// Arguments there are not.
const EXTRA: [&str; 16] = [
    "from",
    "from_kind",
    "fromKind",
    "from_id",
    "fromId",
    "kind",
    "sender",
    "channel",
    "principal",
    "instanceId",
    "decidedBy",
    "decided_by",
    "requestedBy",
    "by",
    "human",
    "_meta",
];

#[tokio::test]
async fn no_argument_of_any_tool_says_who_speaks() {
    let stage = Stage::free(&[("a", "x")]);
    let run = stage.finished("x").await;
    let addr = RecordAddr { kind: "chat".into(), id: "c".into() };
    let announcing =
        Announcing { addr, repo_cwd: "/p".into(), capabilities: vec![], team: None, role: None, name: None };
    let _member = stage.presence.announce(announcing).await.unwrap();
    let valid = |tool: &str| match tool {
        "orchestrate" => json!({ "prompt": "x" }),
        "send_message" => json!({ "to_kind": "chat", "to_id": "c", "text": "x" }),
        "send_to_team" => json!({ "team": "t", "text": "x" }),
        "send_to_role" => json!({ "text": "x" }),
        "poll_inbox" => json!({ "kind": "chat", "id": "c" }),
        "query_runs" | "list_team" => json!({}),
        _ => json!({ "runId": run }),
    };
    let mut tried = 0;
    for tool in stage.tools.list(&caller()).iter() {
        let schema = tool.input_schema.value().unwrap();
        let properties = schema["properties"].as_object().unwrap();
        for name in properties.keys().map(String::as_str).chain(EXTRA) {
            let is_known = properties.contains_key(name);
            for probe in probes() {
                let mut arguments = valid(tool.name);
                arguments[name] = probe;
                let result = stage.call(tool.name, arguments).await;
                tried += 1;
                if !is_known {
                    let error =
                        result["error"].as_str().unwrap_or_else(|| panic!("{}: {name}: {result}", tool.name));
                    assert!(error.contains(&format!("`{name}`: there is no such argument")), "{error}");
                }
            }
        }
    }
    assert!(tried > 1_500, "{tried}");

    let mut seen = 0;
    for (kind, id) in [
        (AddressKind::Chat, "c"),
        (AddressKind::Chat, "human"),
        (AddressKind::Chat, "human root"),
        (AddressKind::Broadcast, "team-t"),
        (AddressKind::Broadcast, "team-human"),
    ] {
        for envelope in stage.mail(kind, id).await {
            seen += 1;
            assert_eq!((envelope.from.kind, envelope.from.id.as_str()), (FromKind::Mcp, "host@1.2"));
            assert_eq!(
                (envelope.sender.channel, envelope.sender.principal.as_str()),
                (Channel::Mcp, "local/me")
            );
            assert_eq!(envelope.sender.instance_id, stage.instance);
        }
    }
    assert!(seen > 10, "{seen}");
    let decisions = stage.store.load(run).await.unwrap().unwrap().decisions;
    assert!(!decisions.is_empty());
    assert!(decisions.iter().all(|decision| decision.decided_by == "host@1.2"), "{decisions:?}");
}
