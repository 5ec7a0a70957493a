use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use cyberine_process::{Detach, Detached, KillReport, SpawnError, detach, kill_marked};
use cyberine_testkit::{ROLE, is_gone, is_reaped, rerun_args};

use crate::helper::TEST;
use crate::{block_on, environment, eventually};

fn runner(role: &str, place: &Path, run: &str) -> Detached {
    runner_with(role, place, run, None)
}

fn runner_with(role: &str, place: &Path, run: &str, channel: Option<OwnedFd>) -> Detached {
    let lock = File::create(place.join("lock")).unwrap();
    lock.try_lock().unwrap();
    detach(Detach {
        program: std::env::current_exe().unwrap().into(),
        args: rerun_args(TEST),
        environment: environment().set(ROLE, role).set("TEST_RUN", run),
        cwd: place.to_owned(),
        stdin: lock.into(),
        log: File::create(place.join("log")).unwrap(),
        channel,
    })
    .unwrap()
}

fn is_locked(place: &Path) -> bool {
    let file = File::open(place.join("lock")).unwrap();
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// What the runner says of itself once it is ready.
fn said(place: &Path) -> Option<String> {
    let log = std::fs::read_to_string(place.join("log")).unwrap();
    log.lines().find(|line| line.starts_with("runner ") && line.contains("child=")).map(str::to_owned)
}

#[test]
fn a_runner_holds_the_lock_it_was_given_until_it_dies_and_its_child_does_not() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let run = format!("detached-{}", std::process::id());
    block_on(async {
        let mut runner = runner("runner", place, &run);
        assert!(is_locked(place), "there is no gap between our copy and the runner's");
        let pid = runner.pid().unwrap();
        eventually("the runner is ready", || said(place).is_some()).await;
        let line = said(place).unwrap();
        assert!(line.starts_with(&format!("runner {pid} leads=true child=")), "{line}");
        let child: u32 = line.rsplit('=').next().unwrap().parse().unwrap();
        assert!(is_locked(place) && !is_gone(child));
        let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap();
        assert_eq!(input, Path::new("/dev/null"));

        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        assert!(!runner.exited().await.unwrap().success());
        assert!(!is_gone(child), "kill -9 leaves the runner's children behind");
        eventually("the lock is free, since none of them holds it", || !is_locked(place)).await;
        assert!(!is_gone(child));
        assert_eq!(kill_marked(&run, Duration::from_secs(5)), KillReport { killed: 1, left: 0 });
        assert!(is_gone(child));
    });
}

#[test]
fn a_runner_whose_handle_was_dropped_does_not_stay_a_zombie() {
    let scratch = tempfile::tempdir().unwrap();
    block_on(async {
        let pid = runner("short runner", scratch.path(), "").pid().unwrap();
        eventually("it is reaped", || is_reaped(pid)).await;
        // A child another test is starting holds a copy of every descriptor for an instant.
        eventually("the lock is free", || !is_locked(scratch.path())).await;
    });
}

#[test]
fn a_missing_runner_frees_the_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let lock = File::create(scratch.path().join("lock")).unwrap();
    lock.try_lock().unwrap();
    block_on(async {
        let error = detach(Detach {
            program: "/no/such/runner".into(),
            args: Vec::new(),
            environment: environment(),
            cwd: scratch.path().to_owned(),
            stdin: lock.into(),
            log: File::create(scratch.path().join("log")).unwrap(),
            channel: None,
        })
        .unwrap_err();
        assert!(matches!(error, SpawnError::NotFound { .. }), "{error}");
        eventually("the lock is free", || !is_locked(scratch.path())).await;
    });
}

#[test]
fn what_comes_through_the_channel_is_not_in_the_environment_and_the_process_is_concealed() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"a-secret").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    block_on(async {
        let mut child = runner_with("concealed", scratch.path(), "", Some(theirs.into()));
        assert!(child.exited().await.unwrap().success());
    });
    let log = std::fs::read_to_string(scratch.path().join("log")).unwrap();
    let told = if cfg!(target_os = "linux") { "NotDumpable" } else { "unknown" };
    assert!(log.contains(&format!("heard a-secret, known=false, {told}")), "{log}");
}

#[test]
fn a_standard_output_that_is_no_channel_is_not_taken() {
    let scratch = tempfile::tempdir().unwrap();
    block_on(async {
        let mut child = runner("no channel", scratch.path(), "");
        assert!(child.exited().await.unwrap().success());
    });
    assert!(std::fs::read_to_string(scratch.path().join("log")).unwrap().contains("no channel: true"));
}
