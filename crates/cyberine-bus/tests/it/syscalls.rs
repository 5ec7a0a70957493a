//! Writers that die, or whose disk fails, at the nth system call of a kind: n = 1, 2, 3 and so on
//! until they are through.

use std::os::unix::process::ExitStatusExt as _;

use crate::child::{Said, assert_sound, traced};
use crate::support::Place;

/// Injects `fault` at the nth call of a kind until the child gets through, and returns how many
/// faults that took; `None` where nothing can be traced.
fn until_through(mode: &str, last: u64, call: &str, fault: &str, judge: impl Fn(&Said)) -> Option<usize> {
    for n in 1.. {
        let place = Place::new();
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{fault}:when={n}"));
        let out = traced(&place, mode, last, &["-e", &trace, "-e", &inject])?.output().unwrap();
        let said = Said::parse(&String::from_utf8(out.stdout).unwrap());
        judge(&said);
        assert_sound(&place, &said);
        // The tracer dies as its child did.
        let is_through = out.status.success() && out.status.signal().is_none();
        if is_through && said.refusals.is_empty() {
            return Some(n - 1);
        }
        assert!(n < 200, "`{call}` is called without end");
    }
    None
}

#[test]
fn a_kill_at_any_call_leaves_all_or_nothing() {
    // A message into a new mailbox, two more, and the marks of a reader.
    for (call, least) in [("write", 4), ("fdatasync", 4), ("fsync", 5), ("mkdirat", 4), ("renameat", 2)] {
        let kills = until_through("acknowledge", 2, call, "signal=KILL", |said| {
            assert_eq!(said.refusals, [""; 0]);
        });
        println!("{call}: {kills:?} kills");
        assert!(kills.is_none_or(|kills| kills >= least), "`{call}` was met: {kills:?}");
    }
}

#[test]
fn a_disk_that_fails_is_named_and_nothing_is_acknowledged_that_is_not_there() {
    for (call, error, code) in [
        ("write", "ENOSPC", "bus_full"),
        ("write", "EDQUOT", "bus_full"),
        ("write", "EIO", "bus_io"),
        ("write", "EROFS", "bus_not_writable"),
        ("fdatasync", "EIO", "bus_not_synced"),
        ("fsync", "EIO", "bus_not_synced"),
        ("mkdirat", "EROFS", "bus_not_writable"),
        ("flock", "ENOLCK", "no_locks"),
        ("flock", "EOPNOTSUPP", "no_locks"),
    ] {
        let fault = format!("error={error}");
        let faults = until_through("stubborn", 2, call, &fault, |said| {
            assert!(said.refusals.iter().all(|refused| refused == code), "{call} {error}: {said:?}");
            // No restart was needed.
            let numbers: Vec<u64> = said.acks.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, [1, 2], "{call} {error}");
        });
        assert!(faults.is_none_or(|faults| faults > 0), "`{call}` was made to fail");
    }
}

#[test]
fn a_file_system_without_locks_is_refused_by_name() {
    let place = Place::new();
    let inject = ["-e", "trace=flock", "-e", "inject=flock:error=ENOLCK"];
    let Some(mut command) = traced(&place, "write", 2, &inject) else { return };
    let said = Said::of(&mut command);
    assert_eq!((said.acks.len(), said.refusals.as_slice()), (0, ["no_locks".to_owned()].as_slice()));
    assert_sound(&place, &said);
}

/// The syncs between one acknowledgement and the next, as `(fdatasync, fsync)`.
fn syncs(place: &Place, mode: &str, last: u64) -> Option<Vec<(usize, usize)>> {
    let options = ["-e", "trace=fsync,fdatasync,writev"];
    let said = Said::of(&mut traced(place, mode, last, &options)?);
    assert_eq!(said.acks.len() as u64, last);
    let trace = std::fs::read_to_string(place.root.path().join("trace")).unwrap();
    let mut syncs = vec![(0, 0)];
    for line in trace.lines() {
        let count = syncs.last_mut().unwrap();
        if line.contains("writev(1, [{iov_base=\"ack") {
            syncs.push((0, 0));
        } else if line.contains(" fdatasync(") {
            count.0 += 1;
        } else if line.contains(" fsync(") {
            count.1 += 1;
        }
    }
    Some(syncs)
}

#[test]
fn a_message_takes_one_sync() {
    let place = Place::new();
    let Some(first) = syncs(&place, "write", 5) else { return };
    println!("syncs of a new mailbox's messages: {first:?}");
    assert_eq!(first[1..5], [(1, 0); 4]);
    assert_eq!(first[0].0, 1, "the file once, beside the names of what is new");
    let known = Place { clock: place.clock.clone(), root: place.root };
    assert_eq!(syncs(&known, "write", 5).unwrap()[1..5], [(1, 0); 4], "in a mailbox that is there");
}

#[test]
fn messages_that_wait_together_share_a_sync() {
    let place = Place::new();
    let Some(syncs) = syncs(&place, "crowd", 64) else { return };
    let all: usize = syncs.iter().map(|(data, _)| data).sum();
    println!("{all} syncs for one message and 63 that waited together");
    assert!((2..=4).contains(&all), "{syncs:?}");
}

#[test]
fn without_file_watches_a_message_is_seen_by_polling() {
    let place = Place::new();
    let inject = ["-e", "trace=inotify_init1", "-e", "inject=inotify_init1:error=EMFILE"];
    let Some(mut command) = traced(&place, "wait", 2, &inject) else { return };
    let said = Said::of(&mut command);
    let waited = said.acks.iter().find(|(number, _)| *number == 0).unwrap().1;
    assert!((100..3_000).contains(&waited), "by the poll of 500 ms: {waited} ms");
}

#[test]
fn without_descriptors_nothing_is_acknowledged_and_with_some_all_goes_on() {
    let place = Place::new();
    let said = Said::of(&mut crate::child::child(&place, "crowded", 0, 1, 3));
    assert_eq!(said.refusals, ["bus_io"; 3], "{said:?}");
    assert_eq!(said.acks.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_sound(&place, &said);
}
