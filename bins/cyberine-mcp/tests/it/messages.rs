//! Hosts that write to each other, each by way of a server of its own.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{Host, Place, gated, kill_nine, shell, wait_until};

/// How often a server is killed while it works; `CYBERINE_FAULTS` says otherwise.
const KILLS: u64 = 20;
/// Within how many microseconds after its calls.
const SPREAD: u64 = 60_000;

/// The address of a host's own server.
fn own(host: &mut Host) -> Value {
    let team = host.ok("list_team", &json!({}));
    let me = team["members"].as_array().unwrap().iter().find(|member| member["self"] == true);
    me.unwrap_or_else(|| panic!("{team}"))["addr"].clone()
}

fn named(place: &Place, flags: &[&str]) -> Host {
    let mut command = place.command();
    command.args(flags);
    Host::start(command)
}

#[test]
fn two_hosts_talk_to_each_other() {
    let place = Place::new();
    let mut ada = named(&place, &["--team", "red", "--role=lead", "--name", "ada"]);
    let mut command = place.command();
    command.env("CYBERINE_TEAM", "red").env("CYBERINE_NAME", "bob");
    let mut bob = Host::start(command);
    let (to_ada, to_bob) = (own(&mut ada), own(&mut bob));
    assert_eq!((&to_ada["kind"], &to_bob["kind"]), (&json!("mcp"), &json!("mcp")));

    let question =
        json!({ "to_kind": "mcp", "to_id": to_bob["id"], "text": "are you there?", "ackRequired": true });
    // Bob waits before there is anything.
    let waiting = std::thread::spawn(move || {
        let poll = json!({ "kind": "mcp", "id": to_bob["id"], "waitMs": 45_000 });
        let polled = bob.ok("poll_inbox", &poll);
        (bob, polled)
    });
    let sent = ada.ok("send_message", &question);
    assert_eq!((&sent["ok"], &sent["seq"], &sent["delivered"]), (&json!(true), &json!(1), &json!(true)));
    let (mut bob, polled) = waiting.join().unwrap();
    let message = &polled["messages"][0];
    assert_eq!((&message["id"], &message["text"]), (&sent["messageId"], &json!("are you there?")));
    assert_eq!(message["from"], json!({ "kind": "mcp", "id": "test-host@1" }));
    assert_eq!(message["sender"]["instanceId"], to_ada["id"]);
    assert_eq!(message["sender"]["pid"], ada.pid());

    let answer = json!({
        "to_kind": "mcp", "to_id": message["sender"]["instanceId"], "text": "yes", "replyTo": message["id"],
    });
    bob.ok("send_message", &answer);
    let polled = ada.ok("poll_inbox", &json!({ "kind": "mcp", "id": to_ada["id"], "waitMs": 45_000 }));
    assert_eq!(
        (&polled["messages"][0]["text"], &polled["messages"][0]["replyTo"]),
        (&json!("yes"), &sent["messageId"])
    );

    let lead = bob.ok("send_to_role", &json!({ "team": "red", "role": "lead", "text": "and you?" }));
    assert_eq!((&lead["ok"], &lead["sends"][0]["to"]), (&json!(true), &to_ada));
    let team = bob.ok("send_to_team", &json!({ "team": "red", "text": "all" }));
    assert_eq!((&team["ok"], &team["delivered"]), (&json!(true), &json!(true)));
    let polled = ada.ok("poll_inbox", &json!({ "kind": "broadcast", "id": "team-red" }));
    assert_eq!(polled["messages"][0]["text"], "all");
}

#[test]
fn who_leaves_or_is_killed_is_listed_no_longer_and_what_was_written_to_them_stays() {
    let place = Place::new();
    let (mut stays, mut leaves, mut dies) = (place.host(), place.host(), place.host());
    let (left, died) = (own(&mut leaves), own(&mut dies));
    own(&mut stays);
    assert_eq!(stays.ok("list_team", &json!({}))["total"], 3);
    let (status, took) = leaves.hang_up();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
    dies.kill();
    assert_eq!(stays.ok("list_team", &json!({}))["total"], 1);
    for to in [left, died] {
        let sent = stays.ok("send_message", &json!({ "to_kind": "mcp", "to_id": to["id"], "text": "late" }));
        assert_eq!((&sent["ok"], &sent["delivered"]), (&json!(true), &json!(false)), "{sent}");
        let polled = stays.ok("poll_inbox", &json!({ "kind": "mcp", "id": to["id"] }));
        assert_eq!(polled["messages"][0]["text"], "late");
    }
}

#[test]
fn a_server_that_nobody_calls_is_there_after_a_moment() {
    let place = Place::new();
    let silent = place.host();
    let mut host = place.host();
    wait_until("both are there", || host.ok("list_team", &json!({}))["total"] == 2);
    drop(silent);
}

#[test]
fn odd_texts_are_kept_and_what_is_no_text_is_refused_and_survived() {
    let place = Place::new();
    let mut host = place.host();
    let odd = "\0\u{1b}]0;title\u{7}\u{1b}[2J\n\u{202e}🦉";
    let send = |text: &str| json!({ "to_kind": "chat", "to_id": "c", "text": text });
    for text in [odd.to_owned(), "x".repeat(64 << 10), "x".repeat(1 << 20)] {
        assert_eq!(host.ok("send_message", &send(&text))["ok"], true);
    }
    let error = host.refused("send_message", &send(&"x".repeat((1 << 20) + 1)));
    assert!(error.contains("`text`") && error.contains("1048576"), "{error}");
    let answer = host.raw(
        r#"{"jsonrpc":"2.0","id":"odd","method":"tools/call","params":{"name":"send_message","arguments":{"to_kind":"chat","to_id":"c","text":"\ud800"}}}"#,
    );
    assert!(answer.get("error").is_some(), "{answer}");
    let polled = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c" }));
    assert_eq!((&polled["messages"][0]["text"], &polled["last"]), (&json!(odd), &json!(3)));
    let big = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c", "cursor": 2 }));
    let message = &big["messages"][0];
    assert_eq!((&message["truncated"], &message["textBytes"]), (&json!(true), &json!(1 << 20)));
    let at = &message["rest"];
    let more = host.ok(
        "poll_inbox",
        &json!({ "kind": "chat", "id": "c", "cursor": at["cursor"], "textOffset": at["textOffset"] }),
    );
    assert_eq!(more["messages"][0]["textOffset"], at["textOffset"]);
}

#[test]
fn without_a_bus_the_tools_say_so_and_nothing_is_written() {
    let place = Place::new();
    let mut command = place.command();
    command.env("CYBERINE_BUS_BACKEND", "none");
    let mut host = Host::start(command);
    let sent = host.ok("send_message", &json!({ "to_kind": "chat", "to_id": "c", "text": "x" }));
    assert_eq!(sent["ok"], false);
    let polled = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c" }));
    assert_eq!((&polled["ok"], &polled["messages"]), (&json!(false), &json!([])));
    assert_eq!(host.ok("list_team", &json!({}))["members"], json!([]));
    assert!(!place.home().join("bus").exists());
}

#[test]
fn a_key_holds_over_the_death_of_the_server() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let call = json!({ "prompt": "once", "idempotencyKey": "k-1" });
    let send = json!({ "to_kind": "chat", "to_id": "c", "text": "once", "idempotencyKey": "k-2" });
    let mut first = None;
    for _ in 0..3 {
        let mut host = place.host();
        let results = (host.ok("orchestrate", &call), host.ok("send_message", &send));
        host.kill();
        let first = first.get_or_insert_with(|| results.clone());
        assert_eq!(&results, first);
    }
    let mut host = place.host();
    assert_eq!(host.ok("query_runs", &json!({}))["runs"].as_array().unwrap().len(), 1);
    assert_eq!(host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c" }))["last"], 1);
}

/// Killed anywhere between the request and the answer: the repeated call finds what was done.
#[test]
fn a_call_that_is_repeated_after_a_kill_anywhere_is_done_once() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let rounds = std::env::var("CYBERINE_FAULTS").map_or(KILLS, |text| text.parse().unwrap());
    for round in 0..rounds {
        let call = json!({ "prompt": format!("round {round}."), "idempotencyKey": format!("run-{round}") });
        let send = json!({ "to_kind": "chat", "to_id": "c", "text": format!("{round}"), "idempotencyKey": format!("mail-{round}") });
        let mut host = place.host();
        let calls = [("orchestrate", &call), ("send_message", &send)];
        for (tool, arguments) in calls {
            host.post(tool, arguments);
        }
        // From at once to well after both are done.
        std::thread::park_timeout(Duration::from_micros(round * 7_919 % SPREAD));
        host.kill();
        let mut host = place.host();
        for (tool, arguments) in calls {
            host.ok(tool, arguments);
        }
    }
    let mut host = place.host();
    for round in 0..rounds {
        let runs = host.ok("query_runs", &json!({ "query": format!("round {round}.") }));
        let (failed, works): (Vec<&Value>, Vec<&Value>) =
            runs["runs"].as_array().unwrap().iter().partition(|run| run["state"] == "error");
        assert_eq!(works.len(), 1, "{round}: {runs}");
        // A run whose server died before its runner began has done nothing.
        for run in failed {
            let view = host.ok("inspect_run", &json!({ "runId": run["runId"] }));
            assert_eq!((&view["reason"], &view["steps"]), (&json!("interrupted"), &json!([])), "{view}");
        }
    }
    let polled = host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c" }));
    assert_eq!(polled["last"], rounds, "{polled}");
}

#[test]
fn a_run_waits_for_a_decision_that_another_host_makes() {
    let place = Place::new();
    let gate = place.path("gate");
    let approving = "[orchestrate]\napproval = \"required\"\n";
    place.configure(&[approving, &gated("a", &gate, "yes"), &gated("b", &gate, "yes")].concat());
    let (mut asks, mut decides) = (place.host(), place.host());
    for (tool, state, effect) in [("approve_run", "done", "goes_on"), ("reject_run", "cancelled", "ends")] {
        let run = asks.orchestrate("x");
        std::fs::write(&gate, "").unwrap();
        let view = asks.inspect_until(&run, |view| view["state"] == "suspended");
        assert_eq!(view["awaiting"]["approveWith"]["arguments"]["runId"], *run);
        let decision = decides.ok(tool, &json!({ "runId": run, "comment": "as it is" }));
        let told = [&decision["decidedBy"], &decision["deciderKind"], &decision["effect"]];
        assert_eq!(told, [&json!("test-host@1"), &json!("mcp"), &json!(effect)]);
        let view = asks.settled(&run);
        assert_eq!(view["state"], state);
        for (name, value) in view["decision"].as_object().unwrap() {
            assert_eq!(decision[name], *value, "{name}");
        }
        let kept: Value =
            serde_json::from_slice(&std::fs::read(place.run_dir(&run).join("approval.json")).unwrap())
                .unwrap();
        assert!(kept.to_string().contains("test-host@1"), "{kept}");
    }
}

#[test]
fn a_decision_on_a_run_of_another_project_is_refused() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let other = place.path("other");
    std::fs::create_dir(&other).unwrap();
    let mut elsewhere = named(&place, &["--project", other.to_str().unwrap()]);
    let run = elsewhere.orchestrate("x");
    let mut host = place.host();
    host.settled(&run);
    for tool in ["approve_run", "reject_run"] {
        let error = host.refused(tool, &json!({ "runId": run }));
        assert!(error.contains("another project"), "{error}");
    }
    // A message is not a decision: mail is for every project of a home.
    assert_eq!(host.ok("send_message", &json!({ "to_kind": "run", "to_id": run, "text": "x" }))["ok"], true);
    elsewhere.ok("approve_run", &json!({ "runId": run }));
}

#[test]
fn a_run_whose_runner_was_killed_is_not_taken_for_a_reader() {
    let place = Place::with(&shell("a", "cat > /dev/null; sleep 600"));
    let mut host = place.host();
    let run = host.orchestrate("x");
    let view = host.inspect_until(&run, |view| view["state"] == "running");
    let steer = json!({ "to_kind": "run", "to_id": run, "text": "be brief", "topic": "steer" });
    assert_eq!(host.ok("send_message", &steer)["delivered"], true);
    kill_nine(view["enginePid"].as_u64().unwrap());
    wait_until("the run is known to be over", || host.ok("send_message", &steer)["delivered"] == false);
}

#[test]
fn who_follows_a_run_hears_of_what_other_hosts_make_of_it() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&gated("a", &gate, "yes"));
    let (mut acts, mut follows) = (place.host(), place.host());
    let run = acts.orchestrate("x");
    let uri = json!({ "uri": format!("cyberine://runs/{run}") });
    let subscribed = follows.request("resources/subscribe", &uri);
    assert!(subscribed.get("result").is_some(), "{subscribed}");
    std::fs::write(&gate, "").unwrap();
    acts.settled(&run);
    let heard = |host: &mut Host| {
        host.request("ping", &json!({}));
        let updated = |note: &&Value| note["method"] == "notifications/resources/updated";
        host.notes.iter().filter(updated).filter(|note| note["params"] == uri).count()
    };
    wait_until("the end was told", || {
        let view = follows.ok("inspect_run", &json!({ "runId": run }));
        view["state"] == "done" && heard(&mut follows) > 0
    });
    // Whatever is told of the run itself is told by then.
    let settled = acts.ok("inspect_run", &json!({ "runId": run }))["nextSeq"].clone();
    follows.notes.clear();
    acts.ok("approve_run", &json!({ "runId": run }));
    wait_until("the decision was told", || heard(&mut follows) > 0);
    let decided = follows.ok("inspect_run", &json!({ "runId": run }));
    assert!(decided["nextSeq"].as_u64() > settled.as_u64());
}

#[test]
fn an_argument_that_is_none_is_refused_by_name() {
    let place = Place::new();
    let mut host = place.host();
    for extra in ["from", "sender", "decidedBy", "from_kind"] {
        let mut send = json!({ "to_kind": "chat", "to_id": "c", "text": "x" });
        send[extra] = json!({ "kind": "human", "id": "root" });
        let error = host.refused("send_message", &send);
        assert!(error.contains(extra), "{error}");
    }
    assert_eq!(host.ok("poll_inbox", &json!({ "kind": "chat", "id": "c" }))["last"], 0);
}
