//! Processes that are killed, stopped, or begin where another one was.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cyberine_presence::contract::chat;
use cyberine_presence::{FilePresence, Presence, Record};
use cyberine_testkit::{assert_played, played, rerun, role, under_strace};
use cyberine_types::{InstanceId, SystemClock};

use crate::support::{Place, block_on, ids, own, until};

const TEST: &str = "processes::plays_a_process";
const HOME: &str = "CYBERINE_TEST_PRESENCE_HOME";
const SAID: &str = "announced";

#[test]
fn plays_a_process() {
    let Some(role) = role() else { return };
    let home = std::env::var(HOME).unwrap();
    let interval = Duration::from_millis(if role == "beats fast" { 170 } else { 20_000 });
    block_on(async {
        let instance = InstanceId::random();
        let presence = FilePresence::with_interval(home, Arc::new(SystemClock), instance, interval);
        if role == "cannot write" {
            let error = presence.announce(chat("child")).await.err().unwrap();
            assert!(matches!(error.code(), "presence_files"), "{error}");
            assert_eq!(ids(&presence).await, ["other"]);
            return played();
        }
        let _announcement = presence.announce(chat("child")).await.unwrap();
        println!("\n{SAID}");
        // Until the other side closes it.
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
        played();
    });
}

fn command(place: &Place, role: &str) -> Command {
    let mut command = rerun(TEST, role);
    command.env(HOME, place.home());
    command
}

/// A process that has announced itself; what it prints goes nowhere from then on.
fn announcer(place: &Place, role: &str) -> Child {
    let mut child = command(place, role).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == SAID), "the child did not announce itself");
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_process_that_was_killed_is_gone_at_once() {
    let place = Place::new();
    let mut child = announcer(&place, "announces");
    block_on(async {
        assert_eq!(place.listed().await, ["child"]);
        child.kill().unwrap();
        // Its parent has not looked after it yet: nobody is at home all the same.
        until(|| place.listed(), Vec::new()).await;
        child.wait().unwrap();
        assert!(place.listed().await.is_empty());
        let check = place.fresh().check().await.unwrap();
        assert_eq!((check.live, check.dead, check.stale.len()), (0, 1, 0));
    });
}

#[test]
fn a_process_that_ends_withdraws_its_record() {
    let place = Place::new();
    let mut child = announcer(&place, "announces");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let check = block_on(async { place.fresh().check().await.unwrap() });
    assert_eq!((check.departed, check.dead), (1, 0));
}

#[test]
fn a_stopped_process_is_stale_and_back_with_one_beat() {
    let place = Place::new();
    let mut child = announcer(&place, "beats fast");
    block_on(async {
        let reader = place.fresh();
        assert_eq!(ids(&reader).await, ["child"]);
        signal(&child, "-STOP");
        until(|| ids(&reader), Vec::new()).await;
        until(|| place.listed(), Vec::new()).await;
        let check = place.fresh().check().await.unwrap();
        assert_eq!((check.stale.len(), check.dead), (1, 0));
        signal(&child, "-CONT");
        until(|| ids(&reader), vec!["child".to_owned()]).await;
        until(|| place.listed(), vec!["child".to_owned()]).await;
    });
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_number_that_was_given_anew_is_not_the_process() {
    block_on(async {
        let place = Place::new();
        let mut record = own("a");
        place.plant("a.json", &record);
        assert_eq!(place.listed().await, ["a"]);
        record.host.pid_started -= 1;
        place.plant("a.json", &record);
        assert!(place.listed().await.is_empty());
        assert_eq!(place.fresh().check().await.unwrap().dead, 1);

        // In another namespace of processes the number is somebody else's, and says nothing.
        let mut elsewhere = Record { pid: 1 << 23, ..own("b") };
        elsewhere.host.boot_id.push('1');
        place.plant("b.json", &elsewhere);
        assert_eq!(place.listed().await, ["b"]);
    });
}

#[test]
fn a_disk_that_cannot_be_written_still_tells_who_is_there() {
    let place = Place::new();
    place.plant("other.json", &own("other"));
    for fault in ["rename,renameat,renameat2:error=EROFS", "rename,renameat,renameat2:error=ENOSPC"] {
        let Some(mut child) = under_strace(fault, &command(&place, "cannot write")) else { return };
        assert_played(&child.output().unwrap());
        assert_eq!(place.names(), ["other.json"], "{fault}");
    }
}
