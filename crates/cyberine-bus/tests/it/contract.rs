//! Every bus keeps the contract; the one that is none says so.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::contract::{Subject, every_check};
use cyberine_bus::{Bus as _, BusError, Durability, MemoryBus, NoBus, ReadRequest};
use cyberine_types::{ManualClock, Timestamp};

use crate::support::{Place, block_on, chat, note};

#[test]
fn the_memory_bus_keeps_the_contract() {
    block_on(every_check(|| {
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        let bus = MemoryBus::new(clock.clone());
        Subject { other: bus.clone(), bus, clock }
    }));
}

#[test]
fn the_file_bus_keeps_the_contract() {
    let places = RefCell::new(Vec::new());
    block_on(every_check(|| {
        let place = Place::new();
        let (bus, other) = (place.bus(), place.bus());
        let subject = Subject { bus, other, clock: Arc::clone(&place.clock) };
        places.borrow_mut().push(place);
        subject
    }));
}

#[test]
fn clones_of_a_file_bus_keep_the_contract() {
    let places = RefCell::new(Vec::new());
    block_on(every_check(|| {
        let place = Place::new();
        let bus = place.bus();
        let subject = Subject { other: bus.clone(), bus, clock: Arc::clone(&place.clock) };
        places.borrow_mut().push(place);
        subject
    }));
}

#[test]
fn no_bus_says_that_there_is_none() {
    block_on(async {
        let sent = NoBus.publish(note("text"), Durability::Durable).await;
        let read = NoBus.read(chat(), ReadRequest::default()).await;
        let known = NoBus.readers(chat()).await;
        let mark = NoBus.acknowledge(chat(), "reader".to_owned(), 1).await;
        assert!(matches!(sent, Err(BusError::Off)) && matches!(read, Err(BusError::Off)));
        assert!(matches!(known, Err(BusError::Off)) && matches!(mark, Err(BusError::Off)));
        let started = tokio::time::Instant::now();
        NoBus.changed(chat(), 0, Duration::from_millis(40)).await;
        assert!(started.elapsed() >= Duration::from_millis(40));
    });
}
