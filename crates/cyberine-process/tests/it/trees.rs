use std::process::Command;
use std::time::{Duration, Instant};

use cyberine_process::{KillReport, Spawn, find_marked, kill_marked};
use cyberine_testkit::{assert_played, is_gone, is_reaped, rerun, under_strace};

use crate::{block_on, environment, eventually, helper, read_line, script, start};

#[test]
fn a_polite_child_ends_within_its_grace_and_is_asked_once() {
    let polite = "trap 'echo asked; exec sleep 0.2' TERM; echo ready; while :; do sleep 0.01; done";
    block_on(async {
        let mut child = start(Spawn { grace: Duration::from_secs(20), ..script(polite) });
        assert_eq!(read_line(&mut child).await, "ready");
        let started = Instant::now();
        let report = child.kill_tree().await;
        assert!(report.killed >= 1 && report.left == 0, "{report:?}");
        assert!(started.elapsed() < Duration::from_secs(15), "the grace is not waited out");
        assert_eq!(read_line(&mut child).await, "asked");
        let exit = child.finish().await.unwrap();
        assert!(exit.status.success(), "a second signal would have ended its sleep: {}", exit.status);
    });
}

#[test]
fn a_child_that_ignores_the_signal_is_killed_after_its_grace() {
    block_on(async {
        let deaf = "trap '' TERM; echo ready; sleep 1000 & wait; wait";
        let mut child = start(Spawn { grace: Duration::from_millis(200), ..script(deaf) });
        assert_eq!(read_line(&mut child).await, "ready");
        let started = Instant::now();
        assert_eq!(child.kill_tree().await, KillReport { killed: 2, left: 0 });
        assert!(started.elapsed() >= Duration::from_millis(200));
        assert!(is_reaped(child.pid().unwrap()));
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&child.finish().await.unwrap().status),
            Some(9)
        );
        assert_eq!(child.kill_tree().await, KillReport::default(), "killing again finds nothing");
    });
}

#[test]
fn a_stopped_tree_is_killed_too() {
    block_on(async {
        let mut child =
            start(Spawn { grace: Duration::from_millis(50), ..script("echo ready; kill -STOP $$") });
        assert_eq!(read_line(&mut child).await, "ready");
        assert_eq!(child.kill_tree().await, KillReport { killed: 1, left: 0 });
    });
}

#[test]
fn a_dropped_child_takes_its_group_and_its_sessions_with_it() {
    block_on(async {
        let mut child = start(script("sleep 1000 & setsid sleep 1000 & echo $! $$; wait"));
        let line = read_line(&mut child).await;
        let pids: Vec<u32> = line.split(' ').map(|pid| pid.parse().unwrap()).collect();
        drop(child);
        eventually("all are gone", || pids.iter().all(|pid| is_gone(*pid))).await;
    });
}

#[test]
fn killing_one_child_of_a_run_spares_the_others() {
    let sleeper = || {
        let environment = environment().marked(&format!("siblings-{}", std::process::id()));
        Spawn { args: vec!["1000".into()], ..Spawn::new("sleep", environment, "/") }
    };
    block_on(async {
        let (mut one, other) = (start(sleeper()), start(sleeper()));
        assert_eq!(one.kill_tree().await.killed, 1);
        assert!(!is_gone(other.pid().unwrap()));
    });
}

#[test]
fn a_tree_that_hid_itself_twice_is_found_counted_and_reaped() {
    helper::run("subreaper", &[]);
}

#[test]
fn leftovers_are_found_by_their_mark_and_by_nothing_less() {
    let run = format!("leftover-{}", std::process::id());
    let marked = |mark: &str| Command::new("sleep").arg("1000").env("CYBERINE_RUN", mark).spawn().unwrap();
    let (mut one, mut two) = (marked(&run), marked(&run));
    let mut others = [marked(&format!("{run}1")), marked(&run[1..]), marked("")];
    let mut found: Vec<u32> = find_marked(&run).iter().map(|process| process.pid()).collect();
    found.sort_unstable();
    let mut expected = vec![one.id(), two.id()];
    expected.sort_unstable();
    assert_eq!(found, expected);

    assert_eq!(kill_marked(&run, Duration::from_secs(5)), KillReport { killed: 2, left: 0 });
    assert!(is_gone(one.id()) && is_gone(two.id()));
    assert!(others.iter().all(|other| !is_gone(other.id())));
    assert_eq!(kill_marked(&run, Duration::from_secs(5)), KillReport::default());
    for child in others.iter_mut().chain([&mut one, &mut two]) {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_kernel_without_process_descriptors_is_served_too() {
    let mut command = rerun(helper::TEST, "kill its own mark");
    command.env("CYBERINE_RUN", "no-descriptors-test");
    let Some(mut traced) = under_strace("pidfd_open:error=ENOSYS", &command) else { return };
    assert_played(&traced.output().unwrap());
}

#[test]
fn who_kills_by_its_own_mark_survives() {
    let mark = format!("own-mark-{}", std::process::id());
    helper::run("kill its own mark", &[("CYBERINE_RUN", &mark)]);
}
