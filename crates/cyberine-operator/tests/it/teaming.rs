use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{Address, AddressKind, Bus, BusError, Durability, MemoryBus, Outgoing, Page, ReadRequest};
use cyberine_bus::{Reader, Receipt};
use cyberine_presence::{Announcement, Announcing, MemoryPresence, Presence, RecordAddr};
use cyberine_types::{Billing, InstanceId, SystemClock};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::stage::{Setting, Stage};

/// A bus that one mailbox cannot be written to.
struct Partial(MemoryBus, Address);

impl Bus for Partial {
    fn publish(&self, message: Outgoing, durability: Durability) -> BoxFuture<'_, Result<Receipt, BusError>> {
        if message.to == self.1 {
            let error = BusError::Busy { mailbox: message.to, waited: Duration::from_secs(10) };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.0.publish(message, durability)
    }

    fn read(&self, mailbox: Address, request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>> {
        self.0.read(mailbox, request)
    }

    fn acknowledge(
        &self,
        mailbox: Address,
        reader: String,
        through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>> {
        self.0.acknowledge(mailbox, reader, through)
    }

    fn readers(&self, mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>> {
        self.0.readers(mailbox)
    }

    fn changed(&self, mailbox: Address, after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        self.0.changed(mailbox, after, timeout)
    }
}

/// Announces an address with a team, a role and a name; `-` for none.
async fn announce(presence: &MemoryPresence, kind: &str, id: &str, says: [&str; 3]) -> Arc<dyn Announcement> {
    let [team, role, name] = says.map(|text| (text != "-").then(|| text.to_owned()));
    let addr = RecordAddr { kind: kind.into(), id: id.into() };
    let announcing = Announcing {
        addr,
        repo_cwd: "/p".into(),
        capabilities: vec!["orchestrate".into()],
        team,
        role,
        name,
    };
    presence.announce(announcing).await.unwrap()
}

#[tokio::test]
async fn the_team_is_listed_with_the_caller_first_and_runs_joined_where_asked() {
    let stage = Stage::free(&[("a", "x")]);
    let run = stage.start("what is joined?").await;
    let other = stage.presence.another(InstanceId::random());
    let _others = [
        announce(&other, "chat", "review", ["red", "-", "-"]).await,
        announce(&other, "run", &run.to_string(), ["-", "-", "-"]).await,
    ];
    let own = stage.instance.to_string();
    let own_record = announce(&stage.presence, "mcp", &own, ["red", "lead", "ada"]).await;

    let listed = stage.call("list_team", json!({})).await;
    let members = listed["members"].as_array().unwrap();
    assert_eq!((members.len(), &listed["total"], listed.get("truncated")), (3, &json!(3), None));
    let me = &members[0];
    assert_eq!((&me["self"], &me["addr"]), (&json!(true), &json!({ "kind": "mcp", "id": own })));
    assert_eq!((&me["team"], &me["role"], &me["name"]), (&json!("red"), &json!("lead"), &json!("ada")));
    for key in ["repoCwd", "capabilities", "pid", "startedAt", "lastBeat", "ttlMs", "state"] {
        assert!(me.get(key).is_some(), "{key}: {me}");
    }
    assert!(members.iter().all(|member| member.get("run").is_none()));
    assert!(members[1..].iter().all(|member| member.get("self").is_none()));

    let joined = stage.call("list_team", json!({ "joinRuns": true })).await;
    let shown: Vec<&Value> =
        joined["members"].as_array().unwrap().iter().filter_map(|member| member.get("run")).collect();
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (&shown[0]["taskPreview"], &shown[0]["workflowName"]),
        (&json!("what is joined?"), &json!("mcp-orchestrate"))
    );
    own_record.end().await;
    assert_eq!(stage.call("list_team", json!({})).await["total"], 2);
}

#[tokio::test]
async fn a_thousand_members_are_listed_as_far_as_they_fit() {
    let stage = Stage::free(&[]);
    let mut held = Vec::new();
    for number in 0..1_000 {
        let other = stage.presence.another(InstanceId::random());
        held.push(announce(&other, "chat", &format!("c{number}"), [&"t".repeat(128), "-", "-"]).await);
    }
    held.push(announce(&stage.presence, "mcp", &stage.instance.to_string(), ["-", "-", "-"]).await);
    let listed = stage.call("list_team", json!({})).await;
    assert_eq!((&listed["total"], &listed["truncated"]), (&json!(1_001), &json!(true)));
    assert!(listed["members"].as_array().unwrap().len() > 20);
    assert_eq!(listed["members"][0]["self"], true, "the caller is never left out");
}

#[tokio::test]
async fn a_team_has_a_mailbox_of_its_own() {
    let stage = Stage::free(&[]);
    let alone = stage.call("send_to_team", json!({ "team": "red", "text": "anybody?" })).await;
    assert_eq!((&alone["ok"], &alone["seq"], &alone["delivered"]), (&json!(true), &json!(1), &json!(false)));
    let _member =
        announce(&stage.presence.another(InstanceId::random()), "chat", "c", ["red", "-", "-"]).await;
    let sent = stage.call("send_to_team", json!({ "team": "red", "text": "hello", "topic": "steer" })).await;
    assert_eq!((&sent["seq"], &sent["delivered"], sent.get("note")), (&json!(2), &json!(true), None));
    let polled = stage.call("poll_inbox", json!({ "kind": "broadcast", "id": "team-red" })).await;
    assert_eq!(
        (&polled["messages"][1]["text"], &polled["messages"][1]["topic"]),
        (&json!("hello"), &json!("steer"))
    );
    assert_eq!(polled["messages"][0]["id"], alone["messageId"]);
}

#[tokio::test]
async fn a_role_is_everybody_live_who_matches() {
    let stage = Stage::free(&[]);
    let other = |_| stage.presence.another(InstanceId::random());
    let [first, second, third] = [0, 1, 2].map(other);
    let _held = [
        announce(&first, "chat", "a", ["red", "reviewer", "ada"]).await,
        announce(&second, "chat", "a", ["red", "reviewer", "-"]).await,
        announce(&second, "chat", "b", ["blue", "reviewer", "-"]).await,
        announce(&third, "chat", "c", ["red", "writer", "-"]).await,
    ];
    let send = |filters: Value| {
        let mut arguments = filters;
        arguments["text"] = json!("hi");
        stage.call("send_to_role", arguments)
    };
    let both = send(json!({ "role": "reviewer" })).await;
    assert_eq!((&both["ok"], &both["matched"], &both["delivered"]), (&json!(true), &json!(2), &json!(true)));
    let to: Vec<_> = both["sends"].as_array().unwrap().iter().map(|send| send["to"]["id"].clone()).collect();
    assert_eq!(to, ["a", "b"], "an address two announce gets it once");
    let one = send(json!({ "team": "red", "role": "reviewer", "name": "ada" })).await;
    assert_eq!((&one["matched"], &one["seq"]), (&json!(1), &json!(2)));
    assert_eq!(send(json!({})).await["matched"], 3);
    let none = send(json!({ "team": "red", "role": "tester" })).await;
    assert_eq!(none["ok"], false);
    assert!(none["reason"].as_str().unwrap().contains("nobody live matches"), "{none}");
    let counts = [("a", 3), ("b", 2), ("c", 1)];
    for (id, count) in counts {
        assert_eq!(stage.mail(AddressKind::Chat, id).await.len(), count, "{id}");
    }
}

#[tokio::test]
async fn a_send_that_fails_among_others_is_told_and_nothing_is_claimed_for_it() {
    let broken = Address::new(AddressKind::Chat, "b").unwrap();
    let bus = Partial(MemoryBus::new(Arc::new(SystemClock)), broken);
    let stage = Stage::set(Setting::on(Arc::new(bus)), &[], Billing::Free);
    let other = stage.presence.another(InstanceId::random());
    let mut held = Vec::new();
    for id in ["a", "b", "c"] {
        held.push(announce(&other, "chat", id, ["red", "-", "-"]).await);
    }
    held.push(announce(&other, "shell", "d", ["red", "-", "-"]).await);
    let result = stage.call("send_to_role", json!({ "team": "red", "text": "hi" })).await;
    assert_eq!(
        (&result["ok"], &result["matched"], &result["delivered"]),
        (&json!(false), &json!(4), &json!(true))
    );
    assert!(result["reason"].as_str().unwrap().starts_with("2 of 4"), "{result}");
    let sends = result["sends"].as_array().unwrap();
    let failed: Vec<_> = sends.iter().filter(|send| send["ok"] == false).collect();
    assert_eq!((failed.len(), &failed[0]["to"]["id"], &failed[1]["to"]["id"]), (2, &json!("b"), &json!("d")));
    assert!(failed[0]["reason"].as_str().unwrap().contains("locked") && failed[0].get("messageId").is_none());
    assert!(failed[1]["reason"].as_str().unwrap().contains("`shell`"));
    let error = stage.refused("send_message", json!({ "to_kind": "chat", "to_id": "b", "text": "x" })).await;
    assert!(error.contains("not acknowledged"), "{error}");
}
