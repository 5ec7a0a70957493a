//! What the system does to others once in a year, done to us at every chance: strace makes chosen
//! system calls fail, or kills the process as it enters them.

use std::path::Path;
use std::time::Duration;

use cyberine_fs::{Durability, PrivateDir};
use cyberine_testkit::{assert_played, under_strace};

use crate::{helper, home};

/// Runs "report what fails" under a fault and gives its four outcomes: replace, append, lock, ask.
fn outcomes(inject: &str, home: &PrivateDir) -> Option<Vec<String>> {
    let output = under_strace(inject, &helper::command("report what fails", home.path()))?.output().unwrap();
    let text = assert_played(&output);
    Some(text.lines().filter_map(|line| line.strip_prefix("outcome ")).map(variant).collect())
}

/// `Some(NotSynced { … })` is `NotSynced`.
fn variant(outcome: &str) -> String {
    let inner = outcome.strip_prefix("Some(").unwrap_or(outcome);
    inner.split([' ', ')']).next().unwrap_or_default().to_owned()
}

fn check(inject: &str, expected: [&str; 4], state: &[u8]) {
    let (_scratch, home) = home();
    home.replace("state", b"old", Durability::Durable).unwrap();
    home.append("log", b"old\n", Durability::Durable).unwrap();
    home.touch("lock").unwrap();
    let Some(outcomes) = outcomes(inject, &home) else { return };
    assert_eq!(outcomes, expected, "{inject}");
    assert_eq!(home.read("state", 64).unwrap().as_deref(), Some(state), "{inject}");
    assert_eq!(home.list(9).unwrap().names.len(), 3, "{inject}");
    assert_eq!(home.sweep_temporary(Duration::ZERO).unwrap(), 0, "{inject}");
    let log = home.read("log", 64).unwrap().unwrap();
    assert!(log == b"old\n" || log == b"old\nnew\n", "{inject}: {log:?}");
}

#[test]
fn without_faults_everything_succeeds() {
    check("fdatasync:error=EIO:when=99", ["None"; 4], b"new");
}

#[test]
fn a_file_system_without_locks_is_named_as_such() {
    for error in ["ENOLCK", "EOPNOTSUPP"] {
        check(&format!("flock:error={error}"), ["None", "None", "NoLocks", "NoLocks"], b"new");
    }
}

#[test]
fn a_sync_that_fails_is_not_acknowledged() {
    check("fdatasync:error=EIO", ["NotSynced", "NotSynced", "None", "None"], b"old");
    // The name was replaced, but nobody can say whether a power cut would undo that.
    check("fsync:error=EIO", ["NotSynced", "None", "None", "None"], b"new");
}

#[test]
fn a_replacement_that_fails_leaves_the_old_content() {
    check("renameat:error=EIO", ["Io", "None", "None", "None"], b"old");
    check("renameat:error=EROFS", ["NotWritable", "None", "None", "None"], b"old");
    check("fchmod:error=EIO", ["Io", "None", "None", "None"], b"old");
}

#[test]
fn killed_at_any_system_call_a_replacement_is_whole_and_what_was_acknowledged_is_there() {
    for call in ["fchmod", "fdatasync", "renameat", "fsync"] {
        let mut completed = false;
        for nth in 1..=8 {
            let (_scratch, home) = home();
            home.replace("state", &[b'0'; 5000], Durability::Durable).unwrap();
            match killed_at(call, nth, home.path()) {
                None => return,
                Some((acknowledged, done)) => {
                    let state = home.read("state", 5000).unwrap().unwrap();
                    let number = state[0] - b'0';
                    assert!(state == [state[0]; 5000], "{call} {nth}: a mixture");
                    assert!(number == acknowledged || number == acknowledged + 1, "{call} {nth}: {number}");
                    completed = done;
                }
            }
            if completed {
                assert_eq!(nth, 4, "{call}: each replacement calls it once");
                break;
            }
        }
        assert!(completed, "{call}");
    }
}

/// The last number that was acknowledged, and whether the role came to its end.
fn killed_at(call: &str, nth: u32, place: &Path) -> Option<(u8, bool)> {
    let fault = format!("{call}:signal=KILL:when={nth}");
    let output = under_strace(&fault, &helper::command("replace three times", place))?.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok()).next_back();
    Some((last.unwrap_or(0), output.status.success()))
}
