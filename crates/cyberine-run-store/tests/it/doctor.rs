//! The doctor finds what is out of order, repairs what follows from the events, and rebuilds.

use cyberine_run_store::doctor::{FindingKind, check, rebuild};
use cyberine_run_store::{Ledger as _, Registry as _, RunEvent, RunStore as _, StoreError, StoreErrorKind};
use cyberine_types::{Clock as _, RunId, Usd};

use crate::support::{Place, block_on, dollar, interrupted};

async fn ended(place: &Place, prompt: &str) -> RunId {
    let store = place.store();
    let claim = store.admit(place.run(prompt), dollar()).await.unwrap();
    store.append(&claim, vec![interrupted()]).await.unwrap();
    claim.run()
}

async fn kinds(place: &Place) -> Vec<(FindingKind, bool)> {
    let report = check(&place.store()).await.unwrap();
    report.findings.into_iter().map(|finding| (finding.kind, finding.repaired)).collect()
}

#[test]
fn what_follows_from_the_events_is_repaired() {
    let place = Place::new();
    block_on(async {
        let id = ended(&place, "checked").await;
        assert_eq!(kinds(&place).await, []);
        let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
        let dir = place.run_dir(id);
        let faults: [(&dyn Fn(), FindingKind); 8] = [
            (&|| conn.execute_batch("UPDATE runs SET detail = 'fine'").unwrap(), FindingKind::Row),
            (&|| conn.execute_batch("UPDATE runs SET settled = 0, cwd = '/'").unwrap(), FindingKind::Row),
            (
                &|| conn.execute_batch("UPDATE reservations SET spent = NULL").unwrap(),
                FindingKind::Reservation,
            ),
            (&|| conn.execute_batch("DELETE FROM reservations").unwrap(), FindingKind::Reservation),
            (&|| std::fs::write(dir.join("run.json"), "{}").unwrap(), FindingKind::Projection),
            (&|| std::fs::remove_dir_all(&dir).unwrap(), FindingKind::Projection),
            (&|| std::fs::remove_file(place.home().join("projects.jsonl")).unwrap(), FindingKind::Unlisted),
            (
                &|| std::fs::write(place.home().join(format!("locks/run-{id}.lock")), "").unwrap(),
                FindingKind::Leftover,
            ),
        ];
        for (fault, kind) in faults {
            fault();
            let found = kinds(&place).await;
            if kind == FindingKind::Leftover {
                // The run's own check takes and removes the lock file already.
                assert!(!place.home().join(format!("locks/run-{id}.lock")).exists());
            } else {
                assert_eq!(found, [(kind, true)]);
            }
            assert_eq!(kinds(&place).await, [], "after the repair of {kind:?}");
        }
    });
}

#[test]
fn a_hole_in_a_log_is_found_and_left() {
    let place = Place::new();
    block_on(async {
        let (first, second) = (ended(&place, "holed").await, ended(&place, "whole").await);
        let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
        conn.execute_batch("DELETE FROM events WHERE run = 1 AND seq = 1").unwrap();
        let report = check(&place.store()).await.unwrap();
        assert_eq!(report.runs, 2);
        assert_eq!(report.findings.len(), 1);
        assert_eq!(
            (report.findings[0].kind, &report.findings[0].subject),
            (FindingKind::Log, &first.to_string())
        );
        assert!(!report.is_clean());
        assert!(place.store().load(second).await.unwrap().is_some());
    });
}

#[test]
fn a_live_run_is_left_to_its_holder() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("live"), dollar()).await.unwrap();
        std::fs::write(place.run_dir(claim.run()).join("run.json"), "{}").unwrap();
        std::fs::write(place.run_dir(claim.run()).join(".tmp-1-1"), "").unwrap();
        assert_eq!(kinds(&place).await, []);
        drop(claim);
        assert_eq!(
            kinds(&place).await,
            [(FindingKind::Abandoned, false), (FindingKind::Leftover, true), (FindingKind::Projection, true)]
        );
        let report = check(&place.store()).await.unwrap();
        assert_eq!(report.findings.len(), 1);
        assert!(!report.is_clean(), "a run that nobody carries out is not in order");
    });
}

fn lose_database(place: &Place) {
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(place.home().join(name));
    }
}

#[test]
fn a_lost_database_is_never_replaced_by_an_empty_one() {
    let place = Place::new();
    block_on(async {
        let id = ended(&place, "spent").await;
        let empty = || std::fs::write(place.home().join("state.db"), "").unwrap();
        let nothing = || {};
        for leave in [&nothing as &dyn Fn(), &empty] {
            lose_database(&place);
            leave();
            let store = place.store();
            for refused in [
                store.load(id).await.err(),
                store.admit(place.run("another"), dollar()).await.err(),
                check(&store).await.err(),
            ] {
                let error = refused.expect("nothing is done without the database");
                assert_eq!(error.code(), "database_lost", "{error}");
                assert!(error.advice().contains("cyberine doctor --rebuild"));
            }
            assert_eq!(rebuild(&store, Vec::new()).await.unwrap().runs, 1);
            assert!(place.store().load(id).await.unwrap().is_some(), "it is there for everybody again");
        }
    });
}

#[test]
fn a_lost_database_is_built_again_from_the_projects() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let done = ended(&place, "over and done").await;
        let claim = store.admit(place.run("still open"), dollar()).await.unwrap();
        let (open, before) =
            (claim.run(), (store.load(done).await.unwrap(), store.load(claim.run()).await.unwrap()));
        assert!(matches!(rebuild(&store, Vec::new()).await, Err(StoreError::DatabaseExists { .. })));
        drop((claim, store));
        lose_database(&place);
        // A torn last line, and a directory that holds no run.
        let events = place.run_dir(open).join("events.jsonl");
        let torn = [std::fs::read(&events).unwrap(), b"{\"seq\":2,\"at\"".to_vec()].concat();
        std::fs::write(&events, torn).unwrap();
        std::fs::create_dir(place.run_dir(RunId::random())).unwrap();
        let store = place.store();
        let rebuilt = rebuild(&store, Vec::new()).await.unwrap();
        assert_eq!((rebuilt.runs, rebuilt.skipped.len()), (2, 1), "{rebuilt:?}");
        assert_eq!((store.load(done).await.unwrap(), store.load(open).await.unwrap()), before);
        assert_eq!(store.unsettled().await.unwrap(), [open]);
        let totals = store.day(place.clock.now().day()).await.unwrap();
        assert_eq!((totals.reserved, totals.spent), (Usd::from_dollars(1.0), Usd::ZERO));
        let found = store.query("over and".to_owned(), 9).await.unwrap();
        assert_eq!(found.iter().map(|run| run.run_id).collect::<Vec<_>>(), [done]);
        let adopted = store.adopt(open).await.unwrap().unwrap();
        store.append(&adopted, vec![interrupted()]).await.unwrap();
        check(&store).await.unwrap();
        assert_eq!(check(&store).await.unwrap().findings, []);
    });
}

#[test]
fn one_entry_that_is_no_run_is_named_and_the_runs_beside_it_are_rebuilt() {
    let place = Place::new();
    block_on(async {
        let (first, second) = (ended(&place, "first").await, ended(&place, "second").await);
        let (garbled, empty) = (ended(&place, "garbled").await, ended(&place, "empty").await);
        let piped = ended(&place, "piped").await;
        lose_database(&place);
        let events = |id: RunId| place.run_dir(id).join("events.jsonl");
        std::fs::write(events(garbled), "no event\n").unwrap();
        std::fs::write(events(empty), "").unwrap();
        std::fs::remove_file(events(piped)).unwrap();
        std::os::unix::fs::symlink(events(first), events(piped)).unwrap();
        let (file, link) = (RunId::random(), RunId::random());
        std::fs::write(place.run_dir(file), "").unwrap();
        std::os::unix::fs::symlink(place.run_dir(first), place.run_dir(link)).unwrap();
        let store = place.store();
        let rebuilt = rebuild(&store, Vec::new()).await.unwrap();
        assert_eq!((rebuilt.runs, rebuilt.skipped.len()), (2, 5), "{rebuilt:?}");
        for id in [garbled, empty, piped, file, link] {
            let named = rebuilt.skipped.iter().filter(|line| line.contains(&id.to_string())).count();
            assert_eq!(named, 1, "{id}: {rebuilt:?}");
        }
        for id in [first, second] {
            assert!(store.load(id).await.unwrap().is_some());
        }
        check(&store).await.unwrap();
        for id in [garbled, empty] {
            assert!(events(id).exists(), "what may be all that is left of a run is not removed");
        }
    });
}

#[test]
fn a_log_that_breaks_off_in_the_middle_is_named_with_what_was_left_out() {
    let place = Place::new();
    block_on(async {
        let (cut, torn) = (ended(&place, "cut").await, ended(&place, "torn").await);
        let store = place.store();
        let claim = store.admit(place.run("long"), dollar()).await.unwrap();
        let long = claim.run();
        for n in 0..4 {
            store.append(&claim, vec![RunEvent::ControlIgnored { detail: n.to_string() }]).await.unwrap();
        }
        drop((claim, store));
        lose_database(&place);
        let edit = |id: RunId, edit: &dyn Fn(&mut Vec<String>)| {
            let path = place.run_dir(id).join("events.jsonl");
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            edit(&mut lines);
            std::fs::write(path, lines.concat()).unwrap();
        };
        edit(long, &|lines| lines[2] = "{\"seq\":3\n".to_owned());
        edit(cut, &|lines| lines[1] = lines[1].replace("\"seq\":2", "\"seq\":3"));
        edit(torn, &|lines| lines[1] = lines[1].trim_end().to_owned());
        let store = place.store();
        let mut skipped = rebuild(&store, Vec::new()).await.unwrap().skipped;
        skipped.sort_by_key(|line| line.contains(&long.to_string()));
        assert_eq!(skipped.len(), 2, "a torn end is what a kill leaves: {skipped:?}");
        let parts = [
            (&skipped[0], cut, ["line 2 of", "and it was left out", "up to event 1"]),
            (
                &skipped[1],
                long,
                ["line 3 of", "and it and the 2 lines after it were left out", "up to event 2"],
            ),
        ];
        for (line, id, parts) in parts {
            assert!(line.contains(&id.to_string()), "{line}");
            for part in parts {
                assert!(line.contains(part), "{part:?} in {line}");
            }
        }
        assert_eq!(store.load(long).await.unwrap().unwrap().next_seq, 3);
        assert_eq!(store.unsettled().await.unwrap().len(), 3);
    });
}

#[test]
fn a_damaged_database_is_told_from_a_wrong_home() {
    let place = Place::new();
    block_on(async {
        for n in 0..40 {
            ended(&place, &format!("{n} {}", "filler ".repeat(300))).await;
        }
        let path = place.home().join("state.db");
        rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 4096 / 4 * 4096;
        let end = bytes.len() - 4096;
        bytes[middle..end].fill(0x5a);
        std::fs::write(&path, bytes).unwrap();
        let store = place.store();
        let searches =
            [store.query("filler".to_owned(), 200).await.err(), store.query("x".to_owned(), 9).await.err()];
        let refused: Vec<_> = searches.into_iter().flatten().collect();
        assert!(!refused.is_empty(), "the damage was met");
        for error in refused {
            assert_eq!(
                (error.code(), error.kind()),
                ("database_damaged", StoreErrorKind::Damaged),
                "{error}"
            );
        }
        match check(&place.store()).await {
            Ok(report) => {
                let found = report.findings.iter().any(|finding| finding.kind == FindingKind::Database);
                assert!(found && !report.is_clean(), "{report:?}");
            }
            Err(error) => assert_eq!(error.code(), "database_damaged", "{error}"),
        }
        let refused = rebuild(&place.store(), Vec::new()).await.unwrap_err();
        assert!(["database_damaged", "database_exists"].contains(&refused.code()), "{refused}");
        lose_database(&place);
        assert_eq!(rebuild(&place.store(), Vec::new()).await.unwrap().runs, 40);
    });
}

#[test]
fn a_known_project_that_shows_no_run_is_named_and_one_that_had_none_is_not() {
    let place = Place::new();
    block_on(async {
        let id = ended(&place, "gone").await;
        lose_database(&place);
        std::fs::remove_dir_all(place.run_dir(id)).unwrap();
        let unused = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let rebuilt = rebuild(&place.store(), vec![unused.path().to_owned()]).await.unwrap();
            assert_eq!((rebuilt.runs, rebuilt.skipped.len()), (0, 1), "{rebuilt:?}");
            assert!(rebuilt.skipped[0].contains("shows none"), "{rebuilt:?}");
        }
    });
}
