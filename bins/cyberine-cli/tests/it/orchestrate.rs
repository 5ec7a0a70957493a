//! Runs from the command line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::json;

use crate::place::{Place, Said, held, interrupt, shell, wait_until, write_private};

const ANSWER: &str = "cat > /dev/null; echo 'Final answer: 42'";

#[test]
fn a_run_is_told_line_by_line_and_shown_with_its_winner() {
    let place = Place::with(&[shell("a", ANSWER), shell("b", ANSWER), shell("c", "exit 3")].concat());
    let said = place.run(&["orchestrate", "six times seven?"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in ["run ", "a: done", "c: crashed", "consensus: majority", "Winner: a", "Final answer: 42"] {
        assert!(said.out.contains(line), "{line}: {said:?}");
    }
    assert!(!said.out.contains('\u{1b}'), "escapes off a terminal: {said:?}");
}

#[test]
fn one_run_has_one_view_whichever_command_shows_it() {
    let place = Place::with(&shell("a", ANSWER));
    let ended = place.run(&["orchestrate", "--json", "x"]).json();
    let id = ended["runId"].as_str().unwrap().to_owned();
    assert_eq!((&ended["state"], &ended["requestedBy"]), (&json!("done"), &json!("cli")));
    assert_eq!(place.run(&["inspect", &id, "--json"]).json(), ended);
    assert_eq!(place.run(&["inspect", &id[..8], "--json"]).json(), ended);
    let listed = place.run(&["runs", "--json", "--limit", "1"]).json();
    assert_eq!(listed["runs"][0]["runId"], ended["runId"]);
    assert!(place.run(&["runs"]).out.contains(&id));
}

#[test]
fn a_prompt_comes_from_stdin_too() {
    let place = Place::with(&shell("echo", "cat"));
    let mut child = place
        .command(&["orchestrate", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all("from\nstdin é".as_bytes()).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.json()["task"], "from\nstdin é");
}

#[test]
fn a_run_without_an_answer_ends_with_one() {
    let place = Place::with(&shell("a", "exit 3"));
    let said = place.run(&["orchestrate", "x", "--json"]);
    let state = said.json()["state"].clone();
    let want = if state == "done" { 0 } else { 1 };
    assert_eq!(said.code, Some(want), "{said:?}");
    assert!(said.json()["steps"][0]["verdict"].get("winner").is_none_or(serde_json::Value::is_null));
}

#[test]
fn a_run_left_alone_can_be_cancelled_by_the_beginning_of_its_id() {
    let place = Place::with(&shell("a", "cat > /dev/null; sleep 600"));
    let said = place.run(&["orchestrate", "x", "--no-wait", "--json"]);
    let dispatched = said.json();
    assert_eq!((said.code, &dispatched["status"]), (Some(0), &json!("dispatched")));
    let id = dispatched["runId"].as_str().unwrap();
    let cancelled = place.run(&["cancel", &id[..8], "--reason", "enough", "--json"]).json();
    assert_eq!(cancelled["outcome"], "requested");
    let waited = place.run(&["inspect", id, "--wait", "--json"]);
    assert_eq!((waited.code, &waited.json()["state"]), (Some(1), &json!("cancelled")));
    let again = place.run(&["cancel", id, "--json"]).json();
    assert_eq!((&again["outcome"], &again["state"]), (&json!("already_finished"), &json!("cancelled")));
}

#[test]
fn an_interrupt_asks_the_run_to_stop_and_shows_how_it_ended() {
    let begun = Place::new();
    let marker = begun.path("begun");
    let place =
        Place::with(&shell("a", &format!("cat > /dev/null; touch '{}'; sleep 600", marker.display())));
    let child = interruptible(&place);
    wait_until("the provider has begun", || marker.exists());
    interrupt(&child);
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("cancelled") && said.err.contains("asked the run to stop"), "{said:?}");
}

#[test]
fn a_second_interrupt_leaves_a_run_that_has_not_stopped_yet() {
    let place = Place::with(&shell("a", "cat > /dev/null; sleep 600"));
    let mut child = interruptible(&place);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    let run = first.trim().trim_start_matches("run ").to_owned();
    wait_until("the run has begun", || place.run(&["inspect", &run, "--json"]).json()["enginePid"].is_u64());
    // A runner that stands still cannot stop the run.
    let runner = place.run(&["inspect", &run, "--json"]).json()["enginePid"].as_i64().unwrap();
    let runner = rustix::process::Pid::from_raw(i32::try_from(runner).unwrap()).unwrap();
    rustix::process::kill_process(runner, rustix::process::Signal::STOP).unwrap();
    interrupt(&child);
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut asked = String::new();
    err.read_line(&mut asked).unwrap();
    assert!(asked.contains("asked the run to stop"), "{asked}");
    interrupt(&child);
    let mut left = String::new();
    err.read_line(&mut left).unwrap();
    assert!(left.contains("left run") && left.contains(&run), "{left}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    rustix::process::kill_process(runner, rustix::process::Signal::CONT).unwrap();
    let ended = place.run(&["inspect", &run, "--wait", "--json"]).json();
    assert_eq!(ended["state"], "cancelled");
}

#[test]
fn an_interrupt_of_whoever_only_watches_leaves_the_run_alone() {
    let place =
        Place::with(&shell("a", "cat > /dev/null; while [ ! -e gate ]; do sleep 0.02; done; echo yes"));
    let dispatched = place.run(&["orchestrate", "x", "--no-wait", "--json"]).json();
    let run = dispatched["runId"].as_str().unwrap();
    let mut watcher = place
        .command(&["inspect", run, "--wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(watcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("a: running"), "{line}");
    interrupt(&watcher);
    let said: Said = watcher.wait_with_output().unwrap().into();
    said.refused(130, &["left run", run]);
    std::fs::write(place.project().join("gate"), "").unwrap();
    assert_eq!(place.run(&["inspect", run, "--wait", "--json"]).json()["state"], "done");
}

fn interruptible(place: &Place) -> Child {
    place.command(&["orchestrate", "x"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn what_a_model_says_cannot_drive_the_terminal() {
    let place =
        Place::with(&shell("a", "cat > /dev/null; printf '\\033]0;owned\\007\\033[2Jred\\033[31m text\\n'"));
    let said = place.run(&["orchestrate", "x"]);
    assert!(!said.out.contains('\u{1b}') && !said.out.contains('\u{7}'), "{said:?}");
    assert!(said.out.contains("red text"), "{said:?}");
}

#[test]
fn a_cap_that_is_reached_is_worth_another_try() {
    let config =
        format!("[budget]\ndaily_usd = 1.0\nrun_usd = 1.0\n{}", held("a", "cat > /dev/null; sleep 600"));
    let place = Place::with(&config);
    let first = place.run(&["orchestrate", "x", "--no-wait", "--json"]).json();
    place.run(&["orchestrate", "y", "--no-wait"]).refused(75, &["daily cap"]);
    let id = first["runId"].as_str().unwrap();
    place.run(&["cancel", id]);
    assert_eq!(place.run(&["inspect", id, "--wait"]).code, Some(1));
    let second = place.run(&["orchestrate", "y", "--no-wait", "--json"]).json();
    place.run(&["cancel", second["runId"].as_str().unwrap()]);
    place.run(&["inspect", second["runId"].as_str().unwrap(), "--wait"]);
}

#[test]
fn what_costs_nothing_needs_no_room_under_a_cap_and_what_costs_needs_a_hold_that_counts() {
    let answer = "cat > /dev/null; echo yes";
    let place = Place::with(&format!("[budget]\ndaily_usd = 0\n{}", shell("a", answer)));
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));
    let configure = |text: String| write_private(&place.home().join("config.toml"), &text);

    configure(format!("[budget]\ndaily_usd = 0\n{}{}", shell("a", answer), held("b", answer)));
    place.run(&["orchestrate", "x"]).refused(75, &["daily cap"]);
    for run in ["0", "1e-7", "6"] {
        configure(format!("[budget]\ndaily_usd = 5\nrun_usd = {run}\n{}", held("b", answer)));
        place.run(&["orchestrate", "x"]).refused(78, &["run_usd", "daily_usd"]);
        assert_eq!(place.run(&["doctor"]).code, Some(78), "{run}");
    }
    configure(format!("[budget]\ndaily_usd = 5\nrun_usd = 0.01\n{}", held("b", answer)));
    assert_eq!(place.run(&["orchestrate", "x"]).code, Some(0));
}

#[test]
fn tokens_that_nobody_has_counted_are_a_dash() {
    let place = Place::with(&shell("a", "cat > /dev/null; echo yes"));
    let said = place.run(&["orchestrate", "x"]);
    assert!(said.out.contains("- tokens, free") && !said.out.contains(" 0 tokens"), "{said:?}");
}
