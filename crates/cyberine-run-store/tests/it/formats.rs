//! Databases of older formats.

use cyberine_run_store::{
    Begun, Cap, DayTotals, Idempotency as _, IdempotencyKey, Ledger as _, Registry as _, RunEvent, RunState,
    RunStore as _, StoreError,
};
use cyberine_types::{Billing, Clock as _, CostBasis, Usage, Usd};
use serde_json::json;

use crate::support::{OLD_RUN, Place, assert_sound, block_on, dollar, interrupted};

#[test]
fn a_database_of_format_1_is_brought_up_and_keeps_its_runs() {
    let place = Place::of_format_1();
    assert_eq!(place.format(), 1);
    block_on(async {
        let store = place.store();
        let run = store.load(OLD_RUN.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!((run.state, run.next_seq, run.reserved), (RunState::Done, 8, Usd::from_dollars(1.0)));
        assert_eq!((run.decisions.len(), run.awaiting), (0, None));
        let found = store.query("three rivers".to_owned(), 9).await.unwrap();
        assert_eq!(found.iter().map(|run| run.run_id.to_string()).collect::<Vec<_>>(), [OLD_RUN]);
        let (scope, fingerprint) = ("p".to_owned(), "f".to_owned());
        let key = IdempotencyKey { scope, key: "k".to_owned(), fingerprint };
        assert_eq!(store.begin(key.clone(), "d".to_owned()).await.unwrap(), Begun::Fresh);
        store.finish(key.clone(), json!(1)).await.unwrap();
        assert_eq!(place.store().begin(key, "e".to_owned()).await.unwrap(), Begun::Finished(json!(1)));
    });
    assert_eq!(place.format(), 3);
}

#[test]
fn a_database_of_format_2_tells_its_runs_apart_by_provider_and_caller() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("settled"), dollar()).await.unwrap();
        store.append(&claim, asked("a")).await.unwrap();
        let usage = Usage {
            usd: Some(Usd::from_dollars(0.3)),
            basis: CostBasis::Reported,
            output: 7,
            ..Usage::default()
        };
        store.append(&claim, vec![answered("a", usage), interrupted()]).await.unwrap();
        let claim = store.admit(place.run("open"), dollar()).await.unwrap();
        store.append(&claim, asked("b")).await.unwrap();
    });
    // What the version before had: no charges, and nobody who asked.
    let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
    let back = "DROP TABLE charges; DROP INDEX reservations_by_caller;
                ALTER TABLE reservations DROP COLUMN caller; PRAGMA user_version = 2;";
    conn.execute_batch(back).unwrap();
    drop(conn);
    assert_eq!(place.format(), 2);
    block_on(async {
        let (store, day) = (place.store(), place.clock.now().day());
        let told = store.spending(day, day).await.unwrap();
        let spent = DayTotals { reserved: Usd::ZERO, spent: Usd::from_dollars(0.3) };
        let lines: Vec<_> = told[0].providers.iter().map(|one| (one.provider.as_str(), one.totals)).collect();
        assert_eq!(lines, [("a", spent)]);
        assert_eq!((told[0].providers[0].used.turns, told[0].providers[0].used.output), (1, 7));
        let both = DayTotals { reserved: Usd::from_dollars(1.0), ..spent };
        assert_eq!((told[0].callers[0].caller.as_str(), told[0].callers[0].totals), ("test@1", both));
        assert_eq!(store.under(day, Cap::Caller("test".to_owned())).await.unwrap(), both);
    });
    assert_eq!(place.format(), 3);
    assert_sound(&place, &[]);
}

#[test]
fn a_newer_program_s_database_takes_no_new_run_from_a_store_that_was_open_before_and_lets_runs_end() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("before"), dollar()).await.unwrap();
        let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
        conn.execute_batch("PRAGMA user_version = 99").unwrap();
        let refused = store.admit(place.run("after"), dollar()).await.unwrap_err();
        assert!(matches!(refused, StoreError::NewerDatabase { found: 99, known: 3, .. }), "{refused:?}");
        store.append(&claim, vec![interrupted()]).await.unwrap();
    });
}

fn asked(provider: &str) -> Vec<RunEvent> {
    vec![
        RunEvent::StepStarted { step: "s".to_owned(), name: "S".to_owned() },
        RunEvent::CandidateStarted {
            step: "s".to_owned(),
            candidate: provider.to_owned(),
            provider: provider.to_owned(),
            kind: "openai".to_owned(),
            model: None,
            billing: Billing::Metered,
        },
    ]
}

fn answered(candidate: &str, usage: Usage) -> RunEvent {
    let (step, output) = ("s".to_owned(), "x".to_owned());
    RunEvent::CandidateDone { step, candidate: candidate.to_owned(), output, usage, duration_ms: 1 }
}

#[test]
fn keys_that_are_too_old_leave_the_database() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let key = |n: u32| {
            let (scope, fingerprint) = ("p".to_owned(), "f".to_owned());
            IdempotencyKey { scope, key: n.to_string(), fingerprint }
        };
        let count = || {
            let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
            conn.query_row("SELECT count(*) FROM keys", [], |row| row.get::<_, u32>(0)).unwrap()
        };
        for n in 0..70 {
            store.begin(key(n), String::new()).await.unwrap();
        }
        place.clock.step(30 * 86_400_000 + 1);
        store.begin(key(100), String::new()).await.unwrap();
        assert_eq!(count(), 7, "so many go at once");
        store.begin(key(100), String::new()).await.unwrap();
        assert_eq!(count(), 7, "a key that is known changes nothing");
        store.begin(key(101), String::new()).await.unwrap();
        assert_eq!(count(), 2);
    });
}
