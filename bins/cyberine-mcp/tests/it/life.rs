//! Runs that outlive their hosts, and what becomes of runs that do not outlive their runner.

use std::time::Duration;

use serde_json::json;

use crate::host::{Place, gated, held, kill_nine, marked, shell, wait_until};

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
    let place = Place::with(&format!(
        "[run]\non_host_exit = \"cancel\"\n{}",
        shell("a", "cat > /dev/null; sleep 600")
    ));
    let mut host = place.host();
    let run = host.orchestrate("x");
    let (status, took) = host.hang_up();
    assert!(status.success() && took < Duration::from_secs(1), "{status} after {took:?}");
    assert_eq!(place.host().settled(&run)["state"], "cancelled");
    assert_eq!(marked(&run), Vec::<u32>::new());
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
