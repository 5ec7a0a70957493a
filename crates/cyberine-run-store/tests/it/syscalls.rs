//! Processes that die, or whose disk fails, at the nth system call of a kind: n = 1, 2, 3 and so
//! on until the run is through.

use std::os::unix::process::ExitStatusExt as _;
use std::rc::Rc;

use cyberine_run_store::RunStore as _;

use crate::support::{Place, Said, assert_kept, assert_sound, block_on, child, traced};

/// What a whole run of a child acknowledges: admission, start, a request to stop, adoption, an
/// answer and the end.
const ACKS: usize = 6;
/// What a decided run of a child acknowledges: admission, a key, the wait, a decision, the end,
/// another decision, and the key's result.
const DECIDED: usize = 7;

/// A home whose database exists and whose project has had a run.
fn used_place() -> Rc<Place> {
    let place = Rc::new(Place::new());
    let out = child(&place, "once").output().unwrap();
    assert_eq!(Said::parse(&String::from_utf8(out.stdout).unwrap()).acks.len(), ACKS);
    place
}

/// Injects `fault` at the nth call of each kind until a whole run gets through, and returns how
/// many faults that took; `None` where nothing can be traced.
fn until_through(
    make: impl Fn() -> Rc<Place>,
    mode: &str,
    calls: &[&str],
    fault: &str,
    stride: usize,
    judge: impl Fn(&Place, &Said),
) -> Option<usize> {
    let mut faults = 0;
    for call in calls {
        for n in (1..).step_by(stride) {
            let place = make();
            let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{fault}:when={n}"));
            let out = traced(&place, mode, &["-e", &trace, "-e", &inject])?.output().unwrap();
            let said = Said::parse(&String::from_utf8(out.stdout).unwrap());
            judge(&place, &said);
            // The tracer dies as its child did.
            let wanted = if mode == "decided" { DECIDED } else { ACKS };
            if said.count() == wanted
                && said.refusals.is_empty()
                && out.status.signal().is_none()
                && out.status.success()
            {
                break;
            }
            faults += 1;
            assert!(n < 2_000, "`{call}` is called without end");
        }
    }
    Some(faults)
}

#[test]
fn a_kill_at_any_call_of_a_run_leaves_all_or_nothing() {
    let calls = ["pwrite64", "fdatasync", "fsync", "renameat", "write", "ftruncate", "unlinkat", "mkdirat"];
    let place = used_place();
    let kills = until_through(
        || Rc::clone(&place),
        "once",
        &calls,
        "signal=KILL",
        1,
        |place, said| {
            assert_eq!(said.refusals, [""; 0]);
            assert_sound(place, &said.acks);
        },
    );
    if let Some(kills) = kills {
        eprintln!("{kills} kills at successive calls");
        assert!(kills > 20, "the calls of a run were met: {kills}");
    }
}

#[test]
fn a_kill_at_any_call_of_a_decision_or_a_key_leaves_all_or_nothing() {
    let place = used_place();
    let calls = ["pwrite64", "fdatasync", "renameat", "unlinkat"];
    let kills = until_through(
        || Rc::clone(&place),
        "decided",
        &calls,
        "signal=KILL",
        1,
        |place, said| {
            assert_eq!(said.refusals, [""; 0]);
            assert_kept(place, said);
            assert_sound(place, &said.acks);
        },
    );
    if let Some(kills) = kills {
        eprintln!("{kills} kills at successive calls");
        assert!(kills > 20, "the calls of decisions and keys were met: {kills}");
    }
}

#[test]
fn a_kill_while_an_older_database_is_brought_up_leaves_one_format_or_the_other() {
    let kills = until_through(
        || Rc::new(Place::of_format_1()),
        "decided",
        &["pwrite64", "fdatasync", "write"],
        "signal=KILL",
        4,
        |place, said| {
            assert_eq!(said.refusals, [""; 0]);
            assert!([1, 2, 3].contains(&place.format()), "{}", place.format());
            assert_kept(place, said);
            assert_sound(place, &said.acks);
            assert_eq!(place.format(), 3);
        },
    );
    assert!(kills.is_none_or(|kills| kills > 5));
}

#[test]
fn a_kill_while_the_database_is_made_leaves_one_that_can_be_used() {
    let kills = until_through(
        || Rc::new(Place::new()),
        "once",
        &["pwrite64", "fsync", "write"],
        "signal=KILL",
        3,
        |place, said| {
            assert_eq!(said.refusals, [""; 0]);
            assert_sound(place, &said.acks);
        },
    );
    assert!(kills.is_none_or(|kills| kills > 5));
}

#[test]
fn a_full_disk_is_said_and_nothing_is_acknowledged_that_is_not_there() {
    for (call, error) in [("pwrite64", "ENOSPC"), ("pwrite64", "EIO"), ("fsync", "EIO")] {
        let fault = format!("error={error}");
        let place = used_place();
        let faults = until_through(
            || Rc::clone(&place),
            "twice",
            &[call],
            &fault,
            3,
            |place, said| {
                for refusal in &said.refusals {
                    assert!(
                        ["database", "project_unusable", "home_unusable"].contains(&refusal.as_str()),
                        "{refusal}"
                    );
                }
                assert_sound(place, &said.acks);
            },
        );
        assert!(faults.is_none_or(|faults| faults > 0), "`{call}` was made to fail");
    }
}

#[test]
fn a_full_project_is_refused_before_anything_is_recorded() {
    let place = used_place();
    let inject = ["-e", "trace=renameat", "-e", "inject=renameat:error=ENOSPC:when=1"];
    let Some(mut command) = traced(&place, "once", &inject) else { return };
    let said = Said::parse(&String::from_utf8(command.output().unwrap().stdout).unwrap());
    assert_eq!((said.acks.len(), said.refusals.as_slice()), (0, ["project_unusable".to_owned()].as_slice()));
    block_on(async { assert_eq!(place.store().unsettled().await.unwrap(), []) });
    assert_sound(&place, &[]);
}

#[test]
fn a_dispatch_takes_four_syncs_at_most_and_a_transition_one() {
    let place = used_place();
    let Some(mut command) = traced(&place, "once", &["-e", "trace=fsync,fdatasync,writev"]) else { return };
    assert_eq!(Said::parse(&String::from_utf8(command.output().unwrap().stdout).unwrap()).acks.len(), ACKS);
    let syncs = syncs(&place);
    eprintln!("syncs of a dispatch and five transitions: {:?}", &syncs[..ACKS]);
    assert!(syncs[0] <= 4 && syncs[1..ACKS].iter().all(|count| *count <= 1), "{syncs:?}");
}

#[test]
fn a_decision_takes_one_sync_and_so_do_a_key_and_its_result() {
    let place = used_place();
    let Some(mut command) = traced(&place, "decided", &["-e", "trace=fsync,fdatasync,writev"]) else {
        return;
    };
    let said = Said::parse(&String::from_utf8(command.output().unwrap().stdout).unwrap());
    assert_eq!(said.count(), DECIDED);
    let syncs = syncs(&place);
    eprintln!("syncs of a dispatch, a key, a wait, a decision, an end, a decision, a result: {syncs:?}");
    assert!(syncs[0] <= 4, "{syncs:?}");
    assert_eq!(syncs[1..DECIDED], [1; DECIDED - 1], "{syncs:?}");
}

/// How many syncs there were before each line that a child has said.
fn syncs(place: &Place) -> Vec<usize> {
    let trace = std::fs::read_to_string(place.root.path().join("trace")).unwrap();
    let mut syncs = vec![0];
    for line in trace.lines() {
        if line.contains("writev(1, [{iov_base=\"") {
            syncs.push(0);
        } else if line.contains(" fsync(") || line.contains(" fdatasync(") {
            *syncs.last_mut().unwrap() += 1;
        }
    }
    syncs
}

#[test]
fn a_file_system_without_locks_is_refused_by_name() {
    let place = Place::new();
    let inject = ["-e", "trace=flock", "-e", "inject=flock:error=ENOLCK"];
    let Some(mut command) = traced(&place, "once", &inject) else { return };
    let said = Said::parse(&String::from_utf8(command.output().unwrap().stdout).unwrap());
    assert_eq!((said.acks.len(), said.refusals.as_slice()), (0, ["no_locks".to_owned()].as_slice()));
}
