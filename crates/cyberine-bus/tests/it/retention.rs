//! Long mailboxes: rotation, removal of what everybody has read, and reading meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cyberine_bus::{Bus as _, Durability, FileBus, ReadRequest};
use futures_util::future::join_all;

use crate::support::{Place, block_on, chat, note, read, seqs};

const DAY_MS: i64 = 86_400_000;

/// Publishes `count` messages, many at a time, whose text is their number.
async fn publish(bus: &FileBus, from: u64, count: u64) {
    for start in (from..from + count).step_by(256) {
        let numbers = start..(start + 256).min(from + count);
        let sent = join_all(numbers.map(|number| bus.publish(note(&number.to_string()), Durability::Fast)));
        assert!(sent.await.iter().all(Result::is_ok));
    }
}

/// The first sequence numbers of the segments there are.
fn segments(place: &Place) -> Vec<u64> {
    let names = std::fs::read_dir(place.mailbox()).unwrap().map(|entry| entry.unwrap().file_name());
    let firsts = names.filter_map(|name| name.to_str()?.strip_suffix(".jsonl")?.parse().ok());
    let mut firsts: Vec<u64> = firsts.collect();
    firsts.sort_unstable();
    firsts
}

#[test]
fn a_long_mailbox_is_read_from_any_cursor_across_segments() {
    let place = Place::new();
    block_on(async {
        let bus = place.bus();
        publish(&bus, 1, 9_000).await;
        assert!(segments(&place).len() >= 3, "{:?}", segments(&place));
        for after in [0, 1, 2, 17, 999, 2_048, 4_000, 4_095, 4_096, 4_097, 8_191, 8_700, 8_998, 8_999, 9_000]
        {
            let request = ReadRequest { after, limit: 7, ..ReadRequest::default() };
            let page = bus.read(chat(), request).await.unwrap();
            let expected: Vec<u64> = (after + 1..=9_000).take(7).collect();
            assert_eq!(seqs(&page), expected, "after {after}");
            assert_eq!((page.skipped, page.last), (0, 9_000));
        }
        let newest = ReadRequest { newest: true, limit: 5_000, ..ReadRequest::default() };
        let page = bus.read(chat(), newest).await.unwrap();
        assert_eq!(seqs(&page), (4_001..=9_000).collect::<Vec<_>>());
        // The end is found without the beginning.
        let first = place.segment();
        std::fs::rename(&first, place.root.path().join("aside")).unwrap();
        let readers = bus.acknowledge(chat(), "reader".to_owned(), 8_990).await.unwrap();
        assert_eq!((readers.through, readers.unread), (8_990, 10));
    });
}

#[test]
fn unread_mail_stays_and_what_all_have_read_goes_once_it_is_old() {
    let place = Place::new();
    block_on(async {
        let bus = place.bus().with_retention(7);
        publish(&bus, 1, 5_000).await;
        place.clock.step(30 * DAY_MS);
        publish(&bus, 5_001, 5_000).await;
        let all = segments(&place);
        assert_eq!(all[0], 1, "nobody has read anything: {all:?}");
        bus.acknowledge(chat(), "fast".to_owned(), 10_000).await.unwrap();
        bus.acknowledge(chat(), "slow".to_owned(), 10).await.unwrap();
        place.clock.step(30 * DAY_MS);
        publish(&bus, 10_001, 5_000).await;
        assert_eq!(segments(&place)[0], 1, "one reader has not read it");
        bus.acknowledge(chat(), "slow".to_owned(), 10_000).await.unwrap();
        // Another process, which only finds that there is something to be removed. Its second
        // message waits until that is done.
        let other = place.bus().with_retention(7);
        publish(&other, 15_001, 1).await;
        publish(&other, 15_002, 1).await;
        let left = segments(&place);
        assert!(left[0] > 1 && left[0] <= 10_001, "{left:?}");
        let page = read(&bus, 10_000).await;
        assert_eq!(seqs(&page), (10_001..=15_002).collect::<Vec<_>>(), "what is unread is all there");
        // Young mail stays, though all have read it.
        bus.acknowledge(chat(), "slow".to_owned(), 15_002).await.unwrap();
        bus.acknowledge(chat(), "fast".to_owned(), 15_002).await.unwrap();
        let other = place.bus().with_retention(7);
        publish(&other, 15_003, 1).await;
        publish(&other, 15_004, 1).await;
        assert_eq!(segments(&place), left);
        // A cursor into what is gone goes on with what is left.
        let page = bus.read(chat(), ReadRequest { limit: 1, ..ReadRequest::default() }).await.unwrap();
        assert_eq!(seqs(&page), [left[0]]);
    });
}

#[test]
fn without_retention_everything_stays() {
    let place = Place::new();
    block_on(async {
        let bus = place.bus();
        publish(&bus, 1, 4_500).await;
        bus.acknowledge(chat(), "reader".to_owned(), 4_500).await.unwrap();
        place.clock.step(3_000 * DAY_MS);
        publish(&bus, 4_501, 4_500).await;
        assert_eq!(segments(&place)[0], 1);
    });
}

#[test]
fn removal_races_writers_and_a_reader_and_loses_nothing() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 4_096;
    let place = Place::new();
    let (is_over, read) = (AtomicBool::new(false), AtomicU64::new(0));
    let got = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            block_on(async {
                let bus = place.bus();
                let (mut after, mut got) = (0, Vec::new());
                loop {
                    let was_over = is_over.load(Ordering::Acquire);
                    let request = ReadRequest { after, limit: 300, ..ReadRequest::default() };
                    let page = bus.read(chat(), request).await.unwrap();
                    assert_eq!(page.skipped, 0);
                    got.extend(seqs(&page));
                    after = page.next;
                    bus.acknowledge(chat(), "reader".to_owned(), after).await.unwrap();
                    read.store(after, Ordering::Release);
                    place.clock.step(DAY_MS);
                    if was_over && !page.more {
                        return got;
                    }
                }
            })
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    let bus = place.bus().with_retention(1);
                    for from in (1..=EACH).step_by(64) {
                        block_on(publish(&bus, from, 64));
                        // No more than a segment ahead of the reader.
                        while from * WRITERS > read.load(Ordering::Acquire) + 4_000 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    assert_eq!(got, (1..=WRITERS * EACH).collect::<Vec<_>>(), "each once, in order");
    let left = segments(&place);
    assert!(left[0] > 1, "something was removed meanwhile: {left:?}");
}
