//! Servers that are killed in the midst of dispatching.

use serde_json::json;

use crate::host::{Place, marked, shell, wait_until};

/// The runs that the project knows of.
fn runs(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.project().join(".local/runs")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The programs of ours that attend to one of `runs`.
fn attendants(runs: &[String]) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    let ours = |line: &String| line.split('\0').nth(2).is_some_and(|of| runs.iter().any(|run| run == of));
    lines.filter(ours).collect()
}

#[test]
fn a_server_that_is_killed_while_it_dispatches_leaves_no_runner_whose_run_is_to_end_with_it() {
    let slow = shell("a", "cat > /dev/null; sleep 600");
    let place = Place::with(&format!("[run]\non_host_exit = \"cancel\"\n{slow}"));
    let mut host = place.host();
    for number in 0..8 {
        host.post("orchestrate", &json!({ "prompt": format!("number {number}") }));
    }
    wait_until("a run is being started", || !attendants(&runs(&place)).is_empty());
    host.kill();
    wait_until("nobody is left", || {
        let runs = runs(&place);
        attendants(&runs).is_empty() && runs.iter().all(|run| marked(run).is_empty())
    });
}
