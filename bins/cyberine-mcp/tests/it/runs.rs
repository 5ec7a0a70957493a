//! Runs from dispatch to verdict.

use serde_json::{Value, json};

use crate::host::{Place, gated, marked, shell, wait_until};

const ANSWER: &str = "cat > /dev/null; echo 'Final answer: 42'";

fn states(view: &Value) -> Vec<(&str, &str)> {
    let candidates = view["steps"][0]["candidates"].as_array().unwrap();
    candidates.iter().map(|one| (one["provider"].as_str().unwrap(), one["state"].as_str().unwrap())).collect()
}

#[test]
fn a_prompt_is_answered_judged_stored_and_found_again() {
    let place = Place::with(
        &[shell("a", ANSWER), shell("b", ANSWER), shell("c", "exit 3"), shell("d", "cat > /dev/null")]
            .concat(),
    );
    let mut host = place.host();
    let run = host.orchestrate("what is six times seven?");
    let view = host.settled(&run);
    assert_eq!((&view["state"], &view["task"]), (&json!("done"), &json!("what is six times seven?")));
    assert_eq!(states(&view), [("a", "done"), ("b", "done"), ("c", "error"), ("d", "error")]);
    assert_eq!(view["steps"][0]["candidates"][3]["error"]["code"], "empty");
    let verdict = &view["steps"][0]["verdict"];
    assert_eq!((&verdict["kind"], &verdict["winner"]), (&json!("consensus"), &json!("a")));
    assert_eq!(view["steps"][0]["winnerOutput"], "Final answer: 42");
    assert_eq!(view["requestedBy"], "test-host@1");

    let found = host.ok("query_runs", &json!({ "query": "SIX TIMES" }));
    assert_eq!(found["runs"][0]["runId"], *run);
    let read = host.request("resources/read", &json!({ "uri": format!("cyberine://runs/{run}") }));
    let whole: Value = serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&whole["state"], &whole["steps"][0]["verdict"]), (&view["state"], verdict));

    let record: Value =
        serde_json::from_slice(&std::fs::read(place.run_dir(&run).join("run.json")).unwrap()).unwrap();
    assert_eq!((&record["runId"], &record["state"]), (&json!(run), &json!("done")));
    wait_until("the silent log is gone", || {
        std::fs::read_dir(place.home().join("logs")).unwrap().next().is_none()
    });
    assert_eq!(std::fs::read_to_string(place.project().join(".local/.gitignore")).unwrap(), "*\n");
    assert_eq!(marked(&run), Vec::<u32>::new());
}

#[test]
fn the_reply_comes_before_any_answer() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&[gated("a", &gate, "one"), gated("b", &gate, "one")].concat());
    let mut host = place.host();
    let params =
        json!({ "name": "orchestrate", "arguments": { "prompt": "x" }, "_meta": { "progressToken": "p" } });
    let reply = host.request("tools/call", &params);
    let run = reply["result"]["structuredContent"]["runId"].as_str().unwrap().to_owned();
    let view = host.inspect_until(&run, |view| !view["steps"].as_array().unwrap().is_empty());
    assert_eq!(view["state"], "running");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(host.settled(&run)["state"], "done");
    wait_until("the last news is there", || {
        host.request("ping", &json!({}));
        host.notes.iter().any(|note| message(note).starts_with("settled"))
    });
    let settled = host.notes.iter().filter(|note| message(note).starts_with("settled")).count();
    assert_eq!(settled, 1);
}

fn message(note: &Value) -> &str {
    note["params"]["message"].as_str().unwrap_or_default()
}

#[test]
fn a_cancelled_run_leaves_no_process_also_when_a_tool_fled_into_a_session_of_its_own() {
    let place = Place::new();
    let fled = place.path("fled");
    let script = format!(
        "cat > /dev/null; setsid setsid sh -c 'echo $$ > {0}; exec sleep 600' & setsid sleep 600; wait",
        fled.display()
    );
    place.configure(&[shell("a", &script), shell("b", "cat > /dev/null; sleep 600")].concat());
    let mut host = place.host();
    let run = host.orchestrate("x");
    wait_until("the tool has fled", || std::fs::read_to_string(&fled).is_ok_and(|pid| pid.ends_with('\n')));
    let cancelled = host.ok("cancel_run", &json!({ "runId": run, "reason": "enough" }));
    assert_eq!(cancelled["outcome"], "requested");
    let view = host.settled(&run);
    assert_eq!(view["state"], "cancelled", "{view}");
    assert_eq!(view["processes"]["left"], 0);
    assert_eq!(marked(&run), Vec::<u32>::new());
    let again = host.ok("cancel_run", &json!({ "runId": run }));
    assert_eq!(again["outcome"], "already_finished");
}

#[test]
fn a_control_file_cancels_a_run_and_an_unknown_one_is_recorded() {
    let place = Place::with(&shell("a", "cat > /dev/null; sleep 600"));
    let mut host = place.host();
    let run = host.orchestrate("x");
    host.inspect_until(&run, |view| view["state"] == "running");
    let control = place.run_dir(&run).join("control.json");
    std::fs::write(&control, r#"{"action":"dance","target":{"type":"run"}}"#).unwrap();
    let events = place.run_dir(&run).join("events.jsonl");
    wait_until("the control is recorded", || {
        std::fs::read_to_string(&events).is_ok_and(|text| text.contains("controlIgnored"))
    });
    std::fs::write(&control, r#"{"action":"stop","target":{"type":"run"}}"#).unwrap();
    assert_eq!(host.settled(&run)["state"], "cancelled");
    assert_eq!(marked(&run), Vec::<u32>::new());
}

#[test]
fn a_run_of_another_project_is_seen_and_not_cancelled() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let other = place.path("other");
    std::fs::create_dir(&other).unwrap();
    let mut command = place.command();
    command.arg("--project").arg(&other);
    let mut elsewhere = crate::host::Host::start(command);
    let run = elsewhere.orchestrate("x");
    let mut host = place.host();
    assert_eq!(host.settled(&run)["cwd"], other.to_str().unwrap());
    let error = host.refused("cancel_run", &json!({ "runId": run }));
    assert!(error.contains("project"), "{error}");
}
