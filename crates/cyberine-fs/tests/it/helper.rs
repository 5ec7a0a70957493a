//! This binary, run again as another process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, PrivateDir, Wake, Watcher};
use cyberine_testkit::{assert_played, played, rerun, role};

const PLACE: &str = "CYBERINE_FS_TEST_PLACE";

pub(crate) fn command(role: &str, place: &Path) -> Command {
    let mut command = rerun("helper::plays_its_role", role);
    command.env(PLACE, place);
    command
}

/// Runs a role to its end.
pub(crate) fn run(role: &str, place: &Path) {
    assert_played(&command(role, place).output().unwrap());
}

/// Starts a role and waits until it says `ready`.
pub(crate) fn start(role: &str, place: &Path) -> Child {
    let mut child = command(role, place).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.ends_with("ready")), "{role} ended too early");
    child
}

/// Does nothing in an ordinary test run.
#[test]
fn plays_its_role() {
    let (Some(role), Some(place)) = (role(), std::env::var_os(PLACE)) else { return };
    let place = Path::new(&place);
    match role.as_str() {
        "hold a lock" => {
            let _held = PrivateDir::open_or_create(place).unwrap().try_lock("lock").unwrap().unwrap();
            println!("ready");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "write under umask 000" => write_under(place, 0o000),
        "write under umask 777" => write_under(place, 0o777),
        "replace three times" => replace_three_times(place),
        "report what fails" => report_what_fails(place),
        "watch without descriptors" => watch_without_descriptors(place),
        _ => panic!("no such role: {role}"),
    }
    played();
}

fn write_under(place: &Path, umask: u32) {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    let home = PrivateDir::open_or_create(&place.join("deep/home")).unwrap();
    home.replace("replaced", b"x", Durability::Fast).unwrap();
    home.append("appended", b"x", Durability::Fast).unwrap();
    home.touch("touched").unwrap();
    drop(home.try_lock("lock").unwrap().unwrap());
    home.subdir("sub").unwrap().replace("replaced", b"x", Durability::Durable).unwrap();
}

/// With no descriptor left, the system makes no watcher: subscriptions poll.
fn watch_without_descriptors(place: &Path) {
    let home = PrivateDir::open_or_create(place).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut hoard = Vec::new();
    let limit = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(file);
    }
    let mut subscription = Watcher::new().watch(home.path());
    hoard.clear();
    let started = Instant::now();
    home.touch("news").unwrap();
    let wake = runtime.block_on(subscription.changed(Duration::from_secs(60)));
    let waited = started.elapsed();
    assert_eq!(wake, Wake::Elapsed);
    assert!(waited >= Duration::from_millis(450) && waited < Duration::from_secs(5), "{waited:?}");
}

/// Acknowledges each replacement once it is durable.
fn replace_three_times(place: &Path) {
    let home = PrivateDir::open_or_create(place).unwrap();
    for number in 1..=3_u8 {
        home.replace("state", &[b'0' + number; 5000], Durability::Durable).unwrap();
        println!("\nacknowledged {number}");
    }
}

/// Says what becomes of each kind of operation while the system is made to fail.
fn report_what_fails(place: &Path) {
    let home = PrivateDir::open_or_create(place).unwrap();
    let outcomes = [
        home.replace("state", b"new", Durability::Durable).err(),
        home.append("log", b"new\n", Durability::Durable).err(),
        home.try_lock("lock").err(),
        home.is_locked("lock").err(),
    ];
    for outcome in outcomes {
        println!("\noutcome {outcome:?}");
    }
}
