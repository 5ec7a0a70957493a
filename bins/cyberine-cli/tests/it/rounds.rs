//! Candidates that are asked again where they do not agree.

use std::time::Duration;

use cyberine_scripted_llm::{Script, ScriptedServer};
use serde_json::{Value, json};

use crate::place::Place;

/// What only a prompt of a later round holds.
const AGAIN: &str = "begin your previous answer]";
const PATIENCE: Duration = Duration::from_secs(20);

/// A rule for `model`: `does` in later rounds, and `text` in the first.
fn turns(model: &str, text: &str, does: &str) -> String {
    format!(
        "[[rule]]\nname = \"{model} again\"\nwhen = {{ model = \"{model}\", user_contains = \"{AGAIN}\" }}\n{does}\n\
         [[rule]]\nname = \"{model}\"\nwhen = {{ model = \"{model}\" }}\ntext = \"{text}\"\n"
    )
}

fn start(script: &str) -> ScriptedServer {
    ScriptedServer::start(Script::parse(script).unwrap()).unwrap()
}

/// `a` and `b`, each with `more`, asked at most so many times.
fn config(server: &ScriptedServer, rounds: usize, more: &str) -> String {
    let provider = |name: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"scripted/{name}\"\n{more}",
            server.base_url()
        )
    };
    let orchestrate = format!("[orchestrate]\njudges = [\"consensus\"]\nretries = 0\nrounds = {rounds}\n");
    [provider("a"), provider("b"), orchestrate].concat()
}

fn place(server: &ScriptedServer, rounds: usize) -> Place {
    Place::with(&config(server, rounds, ""))
}

fn outcomes(run: &Value) -> Vec<(&str, &str)> {
    let steps = run["steps"].as_array().unwrap().iter();
    steps
        .map(|step| (step["id"].as_str().unwrap(), step["verdict"]["outcome"].as_str().unwrap_or("none")))
        .collect()
}

#[test]
fn who_sees_the_others_answer_comes_round_and_the_run_has_the_winner_of_its_last_round() {
    let server = start(&[turns("a", "41", "text = \"42\""), turns("b", "42", "text = \"42\"")].concat());
    let place = place(&server, 3);
    let run = place.run(&["orchestrate", "six times seven?", "--json"]).json();
    assert_eq!(run["state"], "done", "{run}");
    assert_eq!(outcomes(&run), [("dispatch", "tie"), ("round-2", "majority")]);
    assert_eq!(
        (&run["steps"][1]["winnerOutput"], &run["steps"][0]["candidates"][0]["outputPreview"]),
        (&json!("42"), &json!("41"))
    );

    let state = server.state();
    assert_eq!(state.seen, 4, "no third round");
    let again = |model: &str| state.requests.iter().find(|one| one.rule == format!("{model} again")).unwrap();
    let (shown, system) = (&again("a").user, &again("a").system);
    assert!(system.starts_with("You have answered the task below before"), "{system}");
    let token = shown.lines().next().unwrap().rsplit(' ').next().unwrap().trim_end_matches('.');
    for block in ["task]\nsix times seven?", "your previous answer]\n41", "answer A]\n42"] {
        assert!(shown.contains(&format!("[{token} begin {block}\n[{token} end ")), "{block}: {shown}");
    }
    assert!(!again("b").user.contains(token), "every call has a token of its own");

    let id = run["runId"].as_str().unwrap();
    let shown = place.run(&["inspect", id]);
    assert!(shown.out.contains("Candidates, Round 2") && shown.out.contains("Winner: a"), "{shown:?}");
    let found = place.run(&["runs", "--json", "six times"]).json();
    assert_eq!(found["runs"][0]["winnerPreview"], "42", "{found}");
    let dir = place.project().join(format!(".local/runs/{id}"));
    let written: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    assert_eq!(written["steps"][1]["verdict"]["winner"], "a");
    for (name, text) in [("01-01-a.md", "41"), ("02-01-a.md", "42")] {
        assert_eq!(std::fs::read_to_string(dir.join("outputs").join(name)).unwrap(), text);
    }
}

#[test]
fn who_never_agrees_is_asked_up_to_the_cap_and_lines_tell_each_round() {
    let server = start(&[turns("a", "41", "text = \"41\""), turns("b", "42", "text = \"42\"")].concat());
    let said = place(&server, 2).run(&["orchestrate", "six times seven?"]);
    assert_eq!(server.state().seen, 4);
    for words in ["consensus: tie", "Round 2: a: done", "Round 2: consensus: tie"] {
        assert!(said.err.contains(words) || said.out.contains(words), "{words}: {said:?}");
    }
    assert!(said.out.contains("a tie, no winner, after 2 rounds"), "{said:?}");
}

#[test]
fn who_fails_in_a_later_round_keeps_its_answer_in_every_file_and_view() {
    let broken = "fault = { status = { code = 500 } }";
    let server = start(&[turns("a", "42", broken), turns("b", "41", "text = \"42\"")].concat());
    let place = place(&server, 2);
    let run = place.run(&["orchestrate", "six times seven?", "--json"]).json();
    assert_eq!(outcomes(&run), [("dispatch", "tie"), ("round-2", "majority")], "{run}");
    let kept = &run["steps"][1]["candidates"][0];
    assert_eq!(
        (&kept["state"], &kept["outputPreview"], &kept["keptFrom"]),
        (&json!("done"), &json!("42"), &json!("dispatch"))
    );
    assert_eq!(kept["tokens"], 0);
    assert!(kept["error"]["code"].is_string(), "{kept}");
    let id = run["runId"].as_str().unwrap();
    let shown = place.run(&["inspect", id]);
    assert!(shown.out.contains("keeps its answer of before, after "), "{shown:?}");
    let output = place.project().join(format!(".local/runs/{id}/outputs/02-01-a.md"));
    assert_eq!(std::fs::read_to_string(output).unwrap(), "42");
    let doctor = place.run(&["doctor"]);
    assert!(!doctor.out.contains("behind or damaged"), "{doctor:?}");
}

#[test]
fn a_run_is_cancelled_in_its_second_round_and_its_requests_are_dropped() {
    let held = "hold = \"never\"\ntext = \"42\"";
    let server = start(&[turns("a", "41", held), turns("b", "42", held)].concat());
    let place = place(&server, 3);
    let running = place.start(&["orchestrate", "six times seven?", "--json"]);
    server.wait(PATIENCE, |state| state.held.len() == 2).unwrap();
    let id = place.run(&["runs", "--json"]).json()["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["cancel", &id]).code, Some(0));
    let run = running.end().json();
    assert_eq!(
        (&run["state"], outcomes(&run)),
        (&json!("cancelled"), vec![("dispatch", "tie"), ("round-2", "none")])
    );
    assert!(
        run["detail"].as_str().unwrap().contains("2 of 2 candidates had answered, and it was in round 2"),
        "{run}"
    );
    server.wait(PATIENCE, |state| state.disconnected == 2).unwrap();
}

#[test]
fn an_estimate_counts_every_round_and_money_that_runs_out_ends_with_the_verdict_there_is() {
    let server = start(&[turns("a", "41", "text = \"41\""), turns("b", "42", "text = \"42\"")].concat());
    // An answer of ten tokens costs a dime at most, and the prompt nothing.
    let metered = "billing = \"metered\"\nmax_tokens = 10\nprices = { input_usd_per_mtok = 0, output_usd_per_mtok = 10000 }\n";
    let config = config(&server, 3, metered);
    let place = Place::with(&config);
    let forecast = place.run(&["orchestrate", "--dry-run", "--json", "x"]).json();
    assert_eq!(
        (&forecast["providers"][0]["candidateTurns"], &forecast["atMostUsd"]),
        (&json!(3), &json!(0.6)),
        "{forecast}"
    );
    place.configure(&(config + "[budget]\nrun_usd = 0.21\n"));
    let run = place.run(&["orchestrate", "x", "--json"]).json();
    assert_eq!((&run["state"], outcomes(&run)), (&json!("done"), vec![("dispatch", "tie")]), "{run}");
    assert!(run["detail"].as_str().unwrap().contains("a tie, no winner; there was no round 2: "), "{run}");
    assert_eq!(server.state().seen, 2);
}
