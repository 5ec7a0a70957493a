//! Several samples of one provider, of which the first answers suffice.

use std::time::Duration;

use cyberine_scripted_llm::{Script, ScriptedServer};
use cyberine_testkit::is_gone;
use serde_json::Value;

use crate::place::{Place, shell, wait_until};

/// Three samples of `a`, the first two answers of which are judged.
const THREE: &str =
    "[orchestrate]\njudges = [\"consensus\"]\nfirst = 2\n[orchestrate.roles.a]\nsamples = 3\n";

/// The candidates of a run that ended well, as `id: state code`.
fn candidates(run: &Value) -> Vec<String> {
    assert_eq!(run["state"], "done", "{run}");
    let told = run["steps"][0]["candidates"].as_array().unwrap().iter().map(|one| {
        let code = one["error"]["code"].as_str().unwrap_or_default();
        format!("{}: {} {code}", one["id"].as_str().unwrap(), one["state"].as_str().unwrap())
    });
    told.collect()
}

fn stopped(run: &Value) -> usize {
    let told = candidates(run);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told.iter().filter(|one| one.ends_with(": done ")).count(), 2, "{told:?}");
    assert!(run["detail"].as_str().unwrap().starts_with("the first 2 of 3 candidates answered; "), "{run}");
    told.iter().filter(|one| one.ends_with(": cancelled superseded")).count()
}

#[test]
fn the_request_of_the_one_too_many_is_dropped() {
    let script = "[[rule]]\nname = \"late\"\nwhen = { call = 3 }\nhold = \"never\"\ntext = \"7\"\n\
        [[rule]]\nname = \"early\"\nhold = \"go\"\ntext = \"42\"\n";
    let server = ScriptedServer::start(Script::parse(script).unwrap()).unwrap();
    let place = Place::with(&format!(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"scripted/m\"\n{THREE}",
        server.base_url()
    ));
    let running = place.start(&["orchestrate", "six times seven?", "--json"]);
    let patience = Duration::from_secs(20);
    server.wait(patience, |state| state.held.len() == 3).unwrap();
    server.release("go");
    let run = running.end().json();
    assert_eq!(stopped(&run), 1);
    let state = server.wait(patience, |state| state.disconnected == 1).unwrap();
    assert_eq!((state.seen, state.done, state.held.len()), (3, 2, 0));
}

#[test]
fn the_program_of_the_one_too_many_and_what_it_started_are_dead() {
    let place = Place::new();
    let (turn, tool) = (place.path("turn"), place.path("tool"));
    // Whoever cannot make either directory comes too late, and starts a tool in its own session. The
    // two others answer once it is there.
    let script = format!(
        "cat > /dev/null; if mkdir '{turn}-1' 2> /dev/null || mkdir '{turn}-2' 2> /dev/null; then \
         while [ ! -s '{tool}' ]; do sleep 0.02; done; echo yes; else \
         setsid sleep 1000 & echo $! > '{tool}.draft'; mv '{tool}.draft' '{tool}'; wait; fi",
        turn = turn.display(),
        tool = tool.display()
    );
    place.configure(&(shell("a", &script) + THREE));
    let run = place.run(&["orchestrate", "yes?", "--json"]).json();
    assert_eq!(stopped(&run), 1);
    let pid = std::fs::read_to_string(&tool).unwrap().trim().parse().unwrap();
    wait_until("the tool is dead", || is_gone(pid));
    assert_eq!(run["processes"]["left"], 0, "{run}");
    let shown = place.run(&["inspect", run["runId"].as_str().unwrap()]);
    assert!(shown.out.contains("a#2") && shown.out.contains("superseded"), "{shown:?}");
}

#[test]
fn a_sample_has_a_mailbox_of_its_own() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&(cyberine_testkit::gated("a", &gate, "yes") + THREE));
    let dispatched = place.run(&["orchestrate", "yes?", "--no-wait", "--json"]).json();
    let run = dispatched["runId"].as_str().unwrap();
    let sent = place.run(&["send", "--steer", &format!("worker:{run}/a#2"), "be short", "--json"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    wait_until("the run has heard it", || {
        let events = std::fs::read_to_string(place.run_dir(run).join("events.jsonl")).unwrap_or_default();
        events.contains("\"steered\"") && events.contains("be short")
    });
    std::fs::write(&gate, "").unwrap();
}

#[test]
fn a_fallback_model_answers_where_the_first_does_not_and_the_run_shows_it() {
    let script = "[[rule]]\nwhen = { model = \"big\" }\nfault = { status = { code = 503 } }\n\
        [[rule]]\ntext = \"42\"\n";
    let server = ScriptedServer::start(Script::parse(script).unwrap()).unwrap();
    let place = Place::with(&format!(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"scripted/big\"\n\
         [orchestrate]\nretries = 0\n[orchestrate.roles.a]\nfallback_model = \"scripted/small\"\n",
        server.base_url()
    ));
    let said = place.run(&["orchestrate", "six times seven?", "--json"]).json();
    let candidate = &said["steps"][0]["candidates"][0];
    assert_eq!(
        (&candidate["state"], &candidate["model"]),
        (&"done".into(), &"scripted/small".into()),
        "{said}"
    );
    assert_eq!(candidate["fellBack"]["code"], "overloaded", "{said}");
    assert_eq!(candidate["fellBack"]["model"], "scripted/big");
    let shown = place.run(&["inspect", said["runId"].as_str().unwrap()]);
    assert!(shown.out.contains("in place of scripted/big: overloaded"), "{shown:?}");
}
