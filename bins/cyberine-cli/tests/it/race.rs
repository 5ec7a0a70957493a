//! Many processes at once, one cap.

use std::process::Stdio;

use crate::place::{Place, Said, held, wait_until, write_private};

const PROCESSES: usize = 64;
const FIT: usize = 10;

#[test]
fn of_many_processes_exactly_as_many_start_as_the_cap_fits_and_death_gives_everything_back() {
    let provider = held("a", "cat > /dev/null; sleep 600");
    let config = |run: usize| format!("[budget]\ndaily_usd = {FIT}.0\nrun_usd = {run}.0\n{provider}");
    let place = Place::with(&config(1));
    let dispatch = || {
        let mut command = place.command(&["orchestrate", "x", "--no-wait", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(|_| dispatch()).collect();
    let said: Vec<Said> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let (started, refused): (Vec<_>, Vec<_>) = said.iter().partition(|said| said.code == Some(0));
    refused.iter().for_each(|said| said.refused(75, &["daily cap"]));
    assert_eq!(started.len(), FIT);

    for said in started {
        kill_runner(&place, said.json()["runId"].as_str().unwrap());
    }
    // Each run's guardian settles it, or whoever looks first.
    wait_until("every run is settled", || {
        let runs = place.run(&["runs", "--json", "--limit", "200"]).json();
        let runs = runs["runs"].as_array().unwrap();
        runs.len() == FIT && runs.iter().all(|run| run["state"] == "error")
    });

    // The whole cap is free again: a run that needs all of it is admitted.
    write_private(&place.home().join("config.toml"), &config(FIT));
    let last = place.run(&["orchestrate", "x", "--no-wait", "--json"]).json();
    kill_runner(&place, last["runId"].as_str().unwrap());
    assert_eq!(place.run(&["doctor"]).code, Some(0));
}

fn kill_runner(place: &Place, run: &str) {
    let mut pid = None;
    wait_until("the runner is known", || {
        pid = place.run(&["inspect", run, "--json"]).json()["enginePid"].as_i64();
        pid.is_some()
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid.unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
