//! Both stores keep the contract.

use std::cell::RefCell;
use std::sync::Arc;

use cyberine_run_store::MemoryRunStore;
use cyberine_run_store::contract::{Subject, every_check};
use cyberine_types::{ManualClock, Timestamp};

use crate::support::{Place, block_on};

#[test]
fn the_memory_store_keeps_the_contract() {
    block_on(every_check(|| {
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        let store = MemoryRunStore::new(clock.clone());
        Subject { other: store.clone(), store, clock, project: "/".to_owned() }
    }));
}

#[test]
fn the_sqlite_store_keeps_the_contract() {
    let places = RefCell::new(Vec::new());
    block_on(every_check(|| {
        let place = Place::new();
        let (store, other) = (place.store(), place.store());
        let project = place.project().to_str().unwrap().to_owned();
        let subject = Subject { store, other, clock: Arc::clone(&place.clock), project };
        places.borrow_mut().push(place);
        subject
    }));
}
