//! Runs and messages, followed live.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::place::{Place, interrupt, shell, wait_until};
use cyberine_testkit::gated;

fn dispatch(place: &Place) -> String {
    let dispatched = place.run(&["orchestrate", "six times seven?", "--no-wait", "--json"]).json();
    dispatched["runId"].as_str().unwrap().to_owned()
}

#[test]
fn every_change_of_every_run_of_the_project_and_every_message_is_a_line() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&[gated("a", &gate, "yes"), gated("b", &gate, "yes")].concat());
    let mut watch = place.start(&["watch", "--chat", "desk", "--team", "core", "--json"]);
    assert!(watch.remark().contains("--all watches every project"));
    let mut next = |kind: &str| -> Value {
        let line = watch.line_with(&[&format!("\"{kind}\"")]);
        serde_json::from_str(&line).unwrap()
    };
    let run = dispatch(&place);
    assert_eq!(next("admitted")["runId"], run);
    assert_eq!(next("started")["state"], "running");
    next("candidateStarted");

    place.run(&["send", &run, "be short"]);
    let mail = next("be short");
    assert_eq!(
        (&mail["type"], &mail["message"]["from"]["kind"]),
        (&json!("message"), &json!("human")),
        "{mail}"
    );
    place.run(&["send", "chat:desk", "for me"]);
    assert_eq!(next("for me")["mailbox"], json!({ "kind": "chat", "id": "desk" }));
    place.run(&["send", "team:core", "for us"]);
    next("for us");

    std::fs::write(&gate, "").unwrap();
    next("candidateDone");
    next("candidateDone");
    next("judged");
    let settled = next("settled");
    assert_eq!((&settled["runId"], &settled["state"]), (&json!(run), &json!("done")));
    assert_eq!(watch.interrupt().code, Some(130));
}

#[test]
fn a_watched_run_is_told_until_it_is_over_and_ends_the_command_with_its_code() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&format!(
        "{}{}[orchestrate]\napproval = \"required\"\n",
        gated("a", &gate, "yes"),
        gated("b", &gate, "yes")
    ));
    let run = dispatch(&place);
    let mut watch = place.start(&["watch", &run]);
    assert!(watch.line().contains(&run[..8]));
    std::fs::write(&gate, "").unwrap();
    let waits = watch.line_with(&["waits for you"]);
    assert!(waits.contains(&format!("`cyberine approve {}`", &run[..8])), "{waits}");
    assert!(!waits.contains('\u{1b}'), "{waits:?}");
    place.run(&["reject", &run]);
    watch.line_with(&["rejected by human tester"]);
    watch.line_with(&["cancelled: "]);
    let said = watch.end();
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
}

#[test]
fn whoever_watches_a_run_leaves_it_alone_when_interrupted() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&gated("a", &gate, "yes"));
    let run = dispatch(&place);
    let mut watch = place.start(&["watch", &run]);
    watch.line();
    watch.interrupt().refused(130, &["left run", &run]);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(place.run(&["inspect", &run, "--wait", "--json"]).json()["state"], "done");
}

#[test]
fn runs_of_other_projects_are_told_where_that_is_asked_for() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let mut all = place.start(&["watch", "--all"]);
    let mut own = place.start(&["watch"]);
    assert!(all.remark().starts_with("watching") && own.remark().starts_with("watching"));
    let elsewhere = ["--project", "../elsewhere", "orchestrate", "there", "--json"];
    let there = place.run(&elsewhere).json()["runId"].as_str().unwrap().to_owned();
    all.line_with(&[&there[..8], "done: "]);
    let here = place.run(&["orchestrate", "here", "--json"]).json()["runId"].as_str().unwrap().to_owned();
    let first = own.line();
    assert!(first.contains(&here[..8]), "{first}");
    for watch in [all, own] {
        assert_eq!(watch.interrupt().code, Some(130));
    }
}

#[test]
fn a_dead_runner_is_noticed_while_watching() {
    let place = Place::with(&shell("a", "cat > /dev/null; sleep 600"));
    let run = dispatch(&place);
    let mut watch = place.start(&["watch", &run]);
    let mut pid = None;
    wait_until("the runner is known", || {
        pid = place.run(&["inspect", &run, "--json"]).json()["enginePid"].as_i64();
        pid.is_some()
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid.unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    watch.line_with(&["error: "]);
    assert_eq!(watch.end().code, Some(1));
}

#[test]
fn an_interrupt_before_there_is_anything_to_follow_kills_nothing_halfway() {
    let place = Place::new();
    // A server that takes the connection and says nothing: the demo waits for its list of models.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let demo = place.start(&["demo", "--base-url", &address]);
    let asked = silent.accept().unwrap();
    let said = demo.interrupt();
    assert_eq!(said.code, Some(130), "{said:?}");
    drop(asked);

    // The same while an orchestration is being planned: it is not cut off, and says how it ended.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = place.command(&["orchestrate", "x"]);
    command.env("CYBERINE_DISCOVERY", silent.local_addr().unwrap().to_string());
    let child =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let asked = silent.accept().unwrap();
    interrupt(&child);
    drop(asked);
    drop(silent);
    let said: crate::place::Said = child.wait_with_output().unwrap().into();
    said.refused(69, &["no provider is configured"]);
}

#[test]
fn guidance_reaches_a_running_run_and_the_run_is_seen_on_the_team() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&[gated("a", &gate, "yes"), gated("b", &gate, "yes")].concat());
    let run = dispatch(&place);
    let mut watch = place.start(&["watch", &run]);
    let member = || {
        let members = place.run(&["team", "--runs", "--json"]).json()["members"].clone();
        members.as_array().unwrap().iter().find(|member| member["addr"]["id"] == run.as_str()).cloned()
    };
    wait_until("the run is on the team", || member().is_some());
    let member = member().unwrap();
    assert_eq!(
        (&member["addr"]["kind"], &member["run"]["taskPreview"], &member["run"]["state"]),
        (&json!("run"), &json!("six times seven?"), &json!("running")),
        "{member}"
    );
    assert!(place.run(&["team", "--runs"]).out.contains("asked six times seven?"));

    let sent = place.run(&["send", &run, "--steer", "prefer\u{1b}[2J brevity"]);
    assert!(sent.out.contains("put before the judges"), "{sent:?}");
    watch.line_with(&["steered by human tester", "brevity"]);
    std::fs::write(&gate, "").unwrap();
    watch.line_with(&["done: "]);
    assert_eq!(watch.end().code, Some(0));
    let shown = place.run(&["inspect", &run]).out;
    assert!(shown.contains("steer   human tester") && !shown.contains('\u{1b}'), "{shown}");
}
