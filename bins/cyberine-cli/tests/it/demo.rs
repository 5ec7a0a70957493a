//! The demo and the guide.

use std::path::Path;

use cyberine_scripted_llm::{Script, ScriptedServer};
use serde_json::json;

use crate::place::{Place, Said};

#[test]
fn the_demo_says_first_who_answers_and_ends_with_a_winner() {
    if !scripted_is_there() {
        return;
    }
    let place = Place::new();
    let said = place.run(&["demo"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out.lines().next(), Some("provider: scripted (no model was called)"), "{said:?}");
    for shown in [
        "openai",
        "anthropic",
        "command",
        "Verdict: majority",
        "Winner: ",
        "cyberine init",
        "came from a script",
    ] {
        assert!(said.out.contains(shown), "{shown}: {said:?}");
    }
    assert!(!place.home().exists(), "the demo used the user's home");
}

#[test]
fn the_demo_is_one_document_for_programs() {
    if !scripted_is_there() {
        return;
    }
    let shown = Place::new().run(&["demo", "--json"]).json();
    assert_eq!(shown["provider"], "scripted (no model was called)");
    assert_eq!(shown["run"]["state"], "done");
    for candidate in shown["run"]["steps"][0]["candidates"].as_array().unwrap() {
        assert_eq!(
            candidate["billing"], "scripted",
            "an answer from a script without its label: {candidate}"
        );
    }
    let detail = shown["run"]["detail"].as_str().unwrap();
    assert!(detail.contains("scripted answers, no model was called"), "{detail}");
}

#[test]
fn a_scripted_program_that_is_not_there_is_told() {
    let place = Place::new();
    place.run(&["demo", "--scripted", "/nonexistent/program"]).refused(69, &["/nonexistent/program"]);
    place.run(&["demo", "--label", "x"]).refused(2, &["--base-url"]);
}

#[test]
fn a_given_server_that_is_not_there_ends_in_a_run_without_a_winner() {
    let said = Place::new().run(&["demo", "--base-url", "http://127.0.0.1:9", "--label", "nobody"]);
    assert!(said.out.starts_with("provider: nobody on 127.0.0.1:9\n"), "{said:?}");
    assert!(said.out.contains("unreachable") && !said.out.contains("Winner"), "{said:?}");
}

#[test]
fn the_guide_is_there_for_people_and_programs() {
    let place = Place::new();
    assert!(place.run(&["guide"]).out.contains("cyberine demo"));
    let names = place.run(&["guide", "--json"]).json();
    assert_eq!(names["commands"][0]["name"], "guide");
    assert!(place.run(&["--help"]).out.contains("78  the configuration is wrong"));
}

#[test]
fn without_configuration_a_model_server_on_loopback_is_found_and_asked() {
    let place = Place::new();
    let server = ScriptedServer::start(Script::demo()).unwrap();
    let address = server.base_url().trim_start_matches("http://").to_owned();
    let run = |arguments: &[&str]| -> Said {
        place.command(arguments).env("CYBERINE_DISCOVERY", &address).output().unwrap().into()
    };
    let doctor = run(&["doctor", "--json"]).json();
    assert_eq!(doctor["found"]["servers"][0]["baseUrl"], format!("http://{}/v1", address));
    let ended = run(&["orchestrate", "x", "--json"]);
    let view = ended.json();
    assert_eq!((ended.code, &view["state"]), (Some(0), &json!("done")), "{ended:?}");
    assert_eq!(view["steps"][0]["candidates"].as_array().unwrap().len(), 3);
    let demo = run(&["demo"]);
    assert!(demo.out.starts_with("provider: Ollama scripted/"), "it answers as Ollama does: {demo:?}");
    let wrong =
        place.command(&["orchestrate", "x"]).env("CYBERINE_DISCOVERY", "8.8.8.8:80").output().unwrap();
    Said::from(wrong).refused(78, &["CYBERINE_DISCOVERY", "8.8.8.8:80"]);
}

/// Whether the scripted provider is installed beside the program under test. Cargo puts it there
/// when the whole workspace is built.
fn scripted_is_there() -> bool {
    let there = Path::new(env!("CARGO_BIN_EXE_cyberine")).with_file_name("cyberine-scripted-llm").is_file();
    if !there {
        eprintln!("skipped: build the package cyberine-scripted-llm first");
    }
    there
}
