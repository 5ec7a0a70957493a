//! Decisions on runs, by a person.

use serde_json::{Value, json};

use crate::place::{Place, shell, wait_until};

const ANSWER: &str = "cat > /dev/null; echo 'Final answer: 42'";

/// A place whose runs wait for an approval.
fn careful() -> Place {
    Place::with(&format!(
        "{}{}[orchestrate]\napproval = \"required\"\n",
        shell("a", ANSWER),
        shell("b", ANSWER)
    ))
}

/// A run that waits.
fn waiting(place: &Place) -> String {
    let dispatched = place.run(&["orchestrate", "x", "--no-wait", "--json"]).json();
    let run = dispatched["runId"].as_str().unwrap().to_owned();
    wait_until("the run waits", || view(place, &run)["state"] == "suspended");
    run
}

fn view(place: &Place, run: &str) -> Value {
    place.run(&["inspect", run, "--json"]).json()
}

#[test]
fn who_started_a_run_is_told_that_it_waits_and_what_to_do() {
    for json in [false, true] {
        let place = careful();
        let arguments: &[&str] = if json { &["orchestrate", "x", "--json"] } else { &["orchestrate", "x"] };
        let mut started = place.start(arguments);
        let told = if json {
            started.remark()
        } else {
            started.line_with(&["waits for you until", "cyberine reject"])
        };
        let (_, command) = told.split_once("`cyberine approve ").unwrap();
        let (run, _) = command.split_once('`').unwrap();
        assert_eq!(place.run(&["approve", run]).code, Some(0));
        assert_eq!(started.end().code, Some(0));
    }
}

#[test]
fn a_run_that_waits_is_shown_with_the_commands_and_goes_on_when_approved() {
    let place = careful();
    let run = waiting(&place);
    let commands = format!("`cyberine approve {0}` or `cyberine reject {0}`", &run[..8]);
    assert!(place.run(&["inspect", &run]).out.contains(&commands));
    assert!(place.run(&["doctor"]).out.contains(&commands));
    let listed = place.run(&["runs"]).out;
    assert!(listed.contains("suspended") && listed.contains(&commands), "{listed}");

    let said = place.run(&["approve", &run[..8], "--comment", "looks\nright"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("goes on"), "{said:?}");
    let ended = place.run(&["inspect", &run, "--wait", "--json"]);
    assert_eq!((ended.code, &ended.json()["state"]), (Some(0), &json!("done")), "{ended:?}");
    let decision = &ended.json()["decision"];
    assert_eq!(
        (&decision["decision"], &decision["decidedBy"], &decision["comment"]),
        (&json!("approve"), &json!("human tester"), &json!("looks\nright"))
    );
    assert!(place.run(&["inspect", &run]).out.contains("decided approved by human tester"));

    let again = place.run(&["approve", &run, "--json"]);
    assert_eq!((again.code, &again.json()["outcome"]), (Some(0), &json!("standing")), "{again:?}");
    let other = place.run(&["reject", &run]);
    other.refused(1, &["already approved by human tester", "the first decision stands"]);
    let other = place.run(&["reject", &run, "--json"]);
    assert_eq!((other.code, &other.json()["decision"]["decision"]), (Some(1), &json!("approve")));
    let step = place.run(&["reject", &run, "--step", "step-99"]);
    step.refused(2, &["no step `step-99`", "nothing was decided"]);
}

#[test]
fn a_run_that_waits_ends_as_cancelled_when_rejected_from_any_project() {
    let place = careful();
    let run = waiting(&place);
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let said = place.run(&["reject", &run, "--project", "../elsewhere", "--json"]);
    assert_eq!((said.code, &said.json()["outcome"]), (Some(0), &json!("recorded")), "{said:?}");
    let ended = place.run(&["inspect", &run, "--wait", "--json"]);
    assert_eq!((ended.code, &ended.json()["state"]), (Some(1), &json!("cancelled")), "{ended:?}");
    place.run(&["approve", &run]).refused(1, &["already rejected by human tester"]);
}

#[test]
fn a_decision_on_a_run_that_does_not_wait_is_recorded_only() {
    let place = Place::with(&shell("a", ANSWER));
    let run = place.run(&["orchestrate", "x", "--json"]).json()["runId"].as_str().unwrap().to_owned();
    let said = place.run(&["reject", &run, "--comment", "wrong"]);
    assert!(
        said.code == Some(0) && said.out.contains("changes nothing: the run was over (done)"),
        "{said:?}"
    );
    assert_eq!(view(&place, &run)["state"], "done");
    place.run(&["approve", "5b1e7c0a-8f0b-4a55-9d1b-2a4b7b7d0c11"]).refused(69, &["there is no run"]);
    place.run(&["approve", &run, "--comment", &"x".repeat(4001)]).refused(2, &["4000"]);
}
