//! Runs that outlive their hosts, and what becomes of runs that do not outlive their runner.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::host::{Host, Place, gated, held, is_over, kill_nine, marked, shell, wait_until};

/// How soon after the end of a run nothing of it is left.
const SOON: Duration = Duration::from_secs(5);
/// The configuration of runs that end with their server.
const CANCEL: &str = "[run]\non_host_exit = \"cancel\"\n";

/// A provider with a live tool that left its session, which then writes `ready`.
fn tool_at_work(ready: &Path) -> String {
    let script =
        "cat > /dev/null; setsid setsid sh -c 'echo $$ > READY; exec sleep 600' & setsid sleep 600; wait";
    shell("a", &script.replace("READY", &ready.display().to_string()))
}

/// Dispatches a run and returns once its tool is at work, with its runner's process id.
fn at_work(host: &mut Host, ready: &Path) -> (String, u64) {
    let run = host.orchestrate("x");
    wait_until("the tool is at work", || std::fs::read_to_string(ready).is_ok_and(|pid| pid.ends_with('\n')));
    let view = host.ok("inspect_run", &json!({ "runId": run }));
    assert!(marked(&run).len() >= 3, "{view}");
    (run, view["enginePid"].as_u64().unwrap())
}

/// Waits until no process of `run` is left, which must be soon.
fn nothing_is_left(run: &str) {
    let begun = Instant::now();
    wait_until("nothing is left of the run", || marked(run).is_empty());
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
}

/// As what programs of ours attend to `run`, and their process ids.
fn attending(run: &str) -> Vec<(String, u64)> {
    let mut found: Vec<_> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let line = String::from_utf8(std::fs::read(entry.path().join("cmdline")).ok()?).ok()?;
            let mut arguments = line.split('\0').skip(1);
            let (flag, of) = (arguments.next()?, arguments.next()?);
            let pid = entry.file_name().to_str()?.parse().ok()?;
            (of == run).then(|| (flag.to_owned(), pid))
        })
        .collect();
    found.sort_unstable();
    found
}

fn attendants(run: &str) -> Vec<String> {
    attending(run).into_iter().map(|(flag, _)| flag).collect()
}

fn attendant(run: &str, flag: &str) -> u64 {
    attending(run).into_iter().find(|(found, _)| found == flag).unwrap().1
}

/// The run's record, once it has settled, read while nobody looks who would settle it.
fn settled_by_itself(place: &Place, run: &str) -> Value {
    let record = place.run_dir(run).join("run.json");
    let mut view = Value::Null;
    wait_until("the run is settled", || {
        view = std::fs::read(&record)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        view["state"].is_string() && is_over(&view)
    });
    view
}

#[test]
fn a_run_outlives_the_server_that_was_killed_and_is_seen_by_the_next() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&[gated("a", &gate, "yes"), gated("b", &gate, "yes")].concat());
    let mut host = place.host();
    let run = host.orchestrate("x");
    host.inspect_until(&run, |view| view["state"] == "running");
    host.kill();
    let mut next = place.host();
    assert_eq!(next.ok("inspect_run", &json!({ "runId": run }))["state"], "running");
    std::fs::write(&gate, "").unwrap();
    let view = next.settled(&run);
    assert_eq!((&view["state"], &view["steps"][0]["verdict"]["winner"]), (&json!("done"), &json!("a")));
}

#[test]
fn a_host_that_hangs_up_ends_the_server_within_a_second_and_its_run_goes_on() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&gated("a", &gate, "yes"));
    let mut host = place.host();
    let run = host.orchestrate("x");
    let (status, took) = host.hang_up();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(place.host().settled(&run)["state"], "done");
}

#[test]
fn a_host_may_take_its_runs_with_it() {
    let place = Place::with(&format!("{CANCEL}{}", shell("a", "cat > /dev/null; sleep 600")));
    let mut host = place.host();
    let run = host.orchestrate("x");
    let (status, took) = host.hang_up();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
    assert_eq!(place.host().settled(&run)["state"], "cancelled");
    assert_eq!(marked(&run), Vec::<u32>::new());
}

#[test]
fn a_server_that_was_killed_takes_its_runs_with_it_where_it_is_to() {
    let place = Place::new();
    let ready = place.path("ready");
    place.configure(&format!("{CANCEL}{}", tool_at_work(&ready)));
    let mut host = place.host();
    let (run, _) = at_work(&mut host, &ready);
    host.kill();
    nothing_is_left(&run);
    let view = settled_by_itself(&place, &run);
    assert_eq!(
        (&view["state"], &view["cancelRequestedBy"]),
        (&json!("cancelled"), &json!("host-exit")),
        "{view}"
    );
    let events = std::fs::read_to_string(place.run_dir(&run).join("events.jsonl")).unwrap();
    assert!(events.contains("its host has gone"), "{events}");
}

#[test]
fn a_host_that_hangs_up_takes_a_run_with_it_whose_guardian_is_gone() {
    let place = Place::new();
    let ready = place.path("ready");
    place.configure(&format!("{CANCEL}{}", tool_at_work(&ready)));
    let mut host = place.host();
    let (run, _) = at_work(&mut host, &ready);
    kill_nine(attendant(&run, "--guard"));
    assert!(host.hang_up().0.success());
    nothing_is_left(&run);
    assert_eq!(settled_by_itself(&place, &run)["state"], "cancelled");
}

#[test]
fn what_holds_when_a_run_is_started_decides_whether_it_ends_with_its_server() {
    let place = Place::new();
    let gate = place.path("gate");
    let provider = gated("a", &gate, "yes");
    place.configure(&provider);
    let mut host = place.host();
    let goes_on = host.orchestrate("x");
    place.configure(&format!("{CANCEL}{provider}"));
    let ends = host.orchestrate("y");
    for run in [&goes_on, &ends] {
        host.inspect_until(run, |view| view["state"] == "running");
    }
    host.kill();
    assert_eq!(settled_by_itself(&place, &ends)["state"], "cancelled");
    assert_eq!(place.host().ok("inspect_run", &json!({ "runId": goes_on }))["state"], "running");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(settled_by_itself(&place, &goes_on)["state"], "done");
}

#[test]
fn a_runner_that_was_killed_is_seen_to_with_no_server_there() {
    let place = Place::new();
    let ready = place.path("ready");
    place.configure(&tool_at_work(&ready));
    let mut host = place.host();
    let (run, runner) = at_work(&mut host, &ready);
    host.kill();
    kill_nine(runner);
    nothing_is_left(&run);
    let view = settled_by_itself(&place, &run);
    assert_eq!((&view["state"], &view["reason"]), (&json!("error"), &json!("interrupted")), "{view}");
}

#[test]
fn a_runner_whose_home_was_removed_ends_with_all_it_started() {
    let place = Place::new();
    let ready = place.path("ready");
    place.configure(&tool_at_work(&ready));
    let mut host = place.host();
    let (run, _) = at_work(&mut host, &ready);
    host.kill();
    assert_eq!(attendants(&run), ["--guard", "--runner"]);
    // What is being written there meanwhile may keep a directory from being removed.
    wait_until("the home is removed", || std::fs::remove_dir_all(place.home()).is_ok());
    wait_until("runner and guardian end", || attendants(&run).is_empty());
    assert_eq!(marked(&run), Vec::<u32>::new());
}

#[test]
fn what_a_run_has_started_is_found_also_where_its_home_and_its_runner_are_gone() {
    for home_first in [true, false] {
        let place = Place::new();
        let ready = place.path("ready");
        place.configure(&tool_at_work(&ready));
        let mut host = place.host();
        let (run, runner) = at_work(&mut host, &ready);
        host.kill();
        let remove = || wait_until("the home is removed", || std::fs::remove_dir_all(place.home()).is_ok());
        if home_first {
            remove();
            kill_nine(runner);
        } else {
            kill_nine(runner);
            remove();
        }
        nothing_is_left(&run);
        wait_until("the guardian ends", || attendants(&run).is_empty());
    }
}

#[test]
fn a_runner_that_was_killed_leaves_an_interrupted_run_no_child_and_no_reservation() {
    let place = Place::new();
    let money = "[budget]\ndaily_usd = 1.0\nrun_usd = 1.0\n";
    place.configure(
        &[
            money.to_owned(),
            held("a", "cat > /dev/null; echo kept"),
            held("b", "cat > /dev/null; setsid sleep 600"),
        ]
        .concat(),
    );
    let mut host = place.host();
    let run = host.orchestrate("x");
    let view = host.inspect_until(&run, |view| view["steps"][0]["candidates"][0]["state"] == "done");
    wait_until("a child runs", || !marked(&run).is_empty());
    let full = host.refused("orchestrate", &json!({ "prompt": "no room" }));
    assert!(full.contains("daily cap"), "{full}");

    kill_nine(view["enginePid"].as_u64().unwrap());
    let view = host.settled(&run);
    assert_eq!((&view["state"], &view["reason"]), (&json!("error"), &json!("interrupted")), "{view}");
    assert_eq!(view["steps"][0]["candidates"][0]["outputPreview"], "kept");
    assert_eq!(marked(&run), Vec::<u32>::new());
    let second = host.orchestrate("there is room again");
    host.ok("cancel_run", &json!({ "runId": second }));
    assert_eq!(host.settled(&second)["state"], "cancelled");
}

#[test]
fn a_server_that_is_told_to_end_ends_and_leaves_its_run() {
    let place = Place::new();
    let gate = place.path("gate");
    place.configure(&gated("a", &gate, "yes"));
    let mut host = place.host();
    let run = host.orchestrate("x");
    let pid = rustix::process::Pid::from_raw(i32::try_from(host.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (status, _) = host.hang_up();
    assert!(status.success(), "{status}");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(place.host().settled(&run)["state"], "done");
}
