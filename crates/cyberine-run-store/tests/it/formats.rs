//! Databases of older formats.

use cyberine_run_store::{Begun, Idempotency as _, IdempotencyKey, Registry as _, RunState, RunStore as _};
use cyberine_types::Usd;
use serde_json::json;

use crate::support::{OLD_RUN, Place, block_on};

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
    assert_eq!(place.format(), 2);
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
