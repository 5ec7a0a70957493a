//! What acknowledging promises.

use super::{Subject, chat, fill};
use crate::address::MAX_ID_BYTES;
use crate::error::BusError;
use crate::port::{Bus, Reader};

async fn acknowledge<B: Bus>(bus: &B, place: &str, reader: &str, through: u64) -> (u64, u64) {
    let reader = bus.acknowledge(chat(place), reader.to_owned(), through).await;
    let reader = reader.unwrap_or_else(|error| unreachable!("a mark is set: {error}"));
    (reader.through, reader.unread)
}

async fn readers<B: Bus>(bus: &B, place: &str) -> Vec<Reader> {
    bus.readers(chat(place)).await.unwrap_or_else(|error| unreachable!("readers are listed: {error}"))
}

pub(super) async fn a_mark_moves_forward_only<B: Bus>(subject: &Subject<B>) {
    let (bus, other) = (&subject.bus, &subject.other);
    assert_eq!(acknowledge(bus, "marks", "one", 5).await, (0, 0), "nothing is there to be read");
    fill(bus, &chat("marks"), 5).await;
    assert_eq!(acknowledge(bus, "marks", "one", 3).await, (3, 2));
    assert_eq!(acknowledge(other, "marks", "one", 2).await, (3, 2), "never backwards");
    assert_eq!(acknowledge(other, "marks", "one", 900).await, (5, 0), "not beyond what is there");
    fill(bus, &chat("marks"), 4).await;
    assert_eq!(acknowledge(bus, "marks", "one", 0).await, (5, 4));
    assert_eq!(readers(other, "marks").await, [Reader { reader: "one".to_owned(), through: 5, unread: 4 }]);
}

pub(super) async fn each_reader_has_a_mark_of_its_own<B: Bus>(subject: &Subject<B>) {
    let bus = &subject.bus;
    assert_eq!(readers(bus, "readers").await, []);
    fill(bus, &chat("readers"), 9).await;
    let mut names = ["a", "A", "../a", "lock", "", "é"].map(str::to_owned);
    names[4] = "x".repeat(MAX_ID_BYTES);
    names.sort();
    for (index, name) in names.iter().enumerate() {
        acknowledge(bus, "readers", name, index as u64 + 1).await;
    }
    let known = readers(&subject.other, "readers").await;
    let marks: Vec<_> = known.iter().map(|reader| (reader.reader.clone(), reader.through)).collect();
    let expected: Vec<_> = names.into_iter().zip(1..).collect();
    assert_eq!(marks, expected, "in the order of their names");
    assert_eq!(readers(bus, "elsewhere").await, []);
}

pub(super) async fn what_cannot_name_a_reader_is_refused<B: Bus>(subject: &Subject<B>) {
    fill(&subject.bus, &chat("nameless"), 1).await;
    for name in ["", "  "] {
        let refused = subject.bus.acknowledge(chat("nameless"), name.to_owned(), 1).await;
        assert!(matches!(refused, Err(BusError::NamelessReader)), "{refused:?}");
    }
    let long = "x".repeat(MAX_ID_BYTES + 1);
    let refused = subject.bus.acknowledge(chat("nameless"), long, 1).await;
    assert!(matches!(refused, Err(BusError::LabelTooLong { .. })), "{refused:?}");
    assert_eq!(readers(&subject.bus, "nameless").await, []);
}
