//! Both implementations keep the contract.

use std::cell::RefCell;
use std::sync::Arc;

use cyberine_presence::contract::{Subject, every_check};
use cyberine_presence::{FilePresence, MemoryPresence};
use cyberine_types::{InstanceId, ManualClock, Timestamp};

use crate::support::{Place, block_on};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)))
}

#[test]
fn presence_in_memory_keeps_the_contract() {
    block_on(every_check(|| {
        let (one_is, other_is) = (InstanceId::random(), InstanceId::random());
        let one = MemoryPresence::new(clock(), one_is);
        Subject { other: one.another(other_is), one, one_is, other_is }
    }));
}

#[test]
fn presence_in_files_keeps_the_contract() {
    let places = RefCell::new(Vec::new());
    block_on(every_check(|| {
        let place = Place::new();
        let (one_is, other_is) = (InstanceId::random(), InstanceId::random());
        let [one, other] = [one_is, other_is].map(|it| FilePresence::new(place.home(), clock(), it));
        places.borrow_mut().push(place);
        Subject { one, one_is, other, other_is }
    }));
}
