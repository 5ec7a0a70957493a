//! What reading promises.

use std::time::Duration;

use cyberine_types::Timestamp;
use tokio::time::Instant;

use super::{Subject, chat, fill, note, read, send, seqs};
use crate::envelope::Outgoing;
use crate::port::{Bus, Page, ReadRequest};

pub(super) async fn a_mailbox_nobody_wrote_to_is_empty<B: Bus>(subject: &Subject<B>) {
    for request in [
        ReadRequest::default(),
        ReadRequest { newest: true, ..ReadRequest::default() },
        ReadRequest { after: 9, ..ReadRequest::default() },
    ] {
        assert_eq!(read(&subject.bus, &chat("nobody"), request).await, Page::default());
    }
}

pub(super) async fn reading_takes_nothing_away<B: Bus>(subject: &Subject<B>) {
    let place = chat("kept");
    fill(&subject.bus, &place, 3).await;
    let first = read(&subject.bus, &place, ReadRequest::default()).await;
    assert_eq!(first, read(&subject.other, &place, ReadRequest::default()).await);
    assert_eq!(first, read(&subject.bus, &place, ReadRequest::default()).await);
}

pub(super) async fn a_cursor_gives_each_message_once<B: Bus>(subject: &Subject<B>) {
    let place = chat("cursor");
    let (mut after, mut got) = (0, Vec::new());
    for round in 0..4 {
        fill(&subject.bus, &place, round * 5).await;
        loop {
            let request = ReadRequest { after, limit: 4, ..ReadRequest::default() };
            let page = read(&subject.other, &place, request).await;
            assert!(page.messages.len() <= 4 && page.more == (page.next < page.last), "{page:?}");
            got.extend(seqs(&page));
            after = page.next;
            if !page.more {
                break;
            }
        }
    }
    assert_eq!(got, (1..=30).collect::<Vec<_>>());
    let none = read(&subject.bus, &place, ReadRequest { limit: 0, after: 5, ..ReadRequest::default() }).await;
    assert_eq!((none.messages.len(), none.next, none.more), (0, 5, true));
}

/// Long records, so that a search by halves lands within them.
pub(super) async fn every_cursor_finds_its_place_among_long_messages<B: Bus>(subject: &Subject<B>) {
    for (name, length, count) in [("long", 4_000, 20_u64), ("longer", 20_000, 10), ("mixed", 65_536, 6)] {
        let place = chat(name);
        for at in 0..count {
            let text = if name == "mixed" && at % 2 == 0 { "x".to_owned() } else { "\"".repeat(length) };
            send(&subject.bus, Outgoing { text, ..note(&place, "") }).await;
        }
        for after in 0..=count {
            let page = read(&subject.other, &place, ReadRequest { after, ..ReadRequest::default() }).await;
            assert_eq!(seqs(&page), (after + 1..=count).collect::<Vec<_>>(), "{name} after {after}");
        }
    }
}

pub(super) async fn a_cursor_beyond_the_end_goes_on_at_the_end<B: Bus>(subject: &Subject<B>) {
    let place = chat("beyond");
    fill(&subject.bus, &place, 2).await;
    for after in [3, 1000, u64::MAX] {
        let page = read(&subject.bus, &place, ReadRequest { after, ..ReadRequest::default() }).await;
        assert_eq!((page.messages.len(), page.next, page.last, page.more), (0, 2, 2, false), "{after}");
    }
}

pub(super) async fn the_newest_come_in_order<B: Bus>(subject: &Subject<B>) {
    let place = chat("newest");
    fill(&subject.bus, &place, 10).await;
    let newest = ReadRequest { newest: true, limit: 3, ..ReadRequest::default() };
    let page = read(&subject.other, &place, newest).await;
    assert_eq!(seqs(&page), [8, 9, 10]);
    assert_eq!((page.next, page.last, page.more), (10, 10, false));
    let page = read(&subject.bus, &place, ReadRequest { after: 9, ..newest }).await;
    assert_eq!(seqs(&page), [10]);
    let page = read(&subject.bus, &place, ReadRequest { limit: 100, ..newest }).await;
    assert_eq!(seqs(&page), (1..=10).collect::<Vec<_>>());
}

pub(super) async fn since_means_later<B: Bus>(subject: &Subject<B>) {
    let place = chat("since");
    let mut times = Vec::new();
    for number in 0..6 {
        times.push(send(&subject.bus, note(&place, &number.to_string())).await.sent_at);
        subject.clock.step(1000);
    }
    for newest in [false, true] {
        let since = |since| ReadRequest { since: Some(since), newest, ..ReadRequest::default() };
        let page = read(&subject.bus, &place, since(times[3])).await;
        assert_eq!((seqs(&page), page.next), (vec![5, 6], 6));
        let before = Timestamp::from_unix_ms(times[3].unix_ms() - 1);
        assert_eq!(seqs(&read(&subject.bus, &place, since(before)).await), [4, 5, 6]);
        // What was left out is not looked at again.
        let page = read(&subject.bus, &place, since(times[5])).await;
        assert_eq!((page.messages.len(), page.next, page.more), (0, 6, false));
    }
    let request = ReadRequest { since: Some(times[1]), limit: 2, ..ReadRequest::default() };
    let page = read(&subject.bus, &place, request).await;
    assert_eq!((seqs(&page), page.next, page.more), (vec![3, 4], 4, true));
}

pub(super) async fn since_holds_where_the_clock_was_followed_back<B: Bus>(subject: &Subject<B>) {
    let place = chat("corrected");
    let mut times = Vec::new();
    for step in [1_000, 1_000, -3 * 60 * 60 * 1_000, 1_000, 1_000] {
        subject.clock.step(step);
        times.push(send(&subject.bus, note(&place, "text")).await.sent_at);
    }
    assert!(times[2] < times[0], "the clock is followed: {times:?}");
    // By their own times, whatever their order.
    for (since, later) in [(0, vec![2]), (1, vec![]), (2, vec![1, 2, 4, 5]), (3, vec![1, 2, 5])] {
        for newest in [false, true] {
            let request = ReadRequest { since: Some(times[since]), newest, ..ReadRequest::default() };
            let page = read(&subject.other, &place, request).await;
            assert_eq!((seqs(&page), page.next, page.more), (later.clone(), 5, false), "{since} {newest}");
        }
    }
}

pub(super) async fn a_page_has_room_for_so_many_bytes<B: Bus>(subject: &Subject<B>) {
    let place = chat("bytes");
    for length in [10, 2000, 10, 10] {
        send(&subject.bus, Outgoing { text: "x".repeat(length), ..note(&place, "") }).await;
    }
    let request = ReadRequest { max_bytes: 30, ..ReadRequest::default() };
    let page = read(&subject.bus, &place, request).await;
    assert_eq!((seqs(&page), page.next, page.more), (vec![1], 1, true));
    let page = read(&subject.bus, &place, ReadRequest { after: 1, ..request }).await;
    assert_eq!((seqs(&page), page.next, page.more), (vec![2], 2, true), "one is given, however long");
    let page = read(&subject.bus, &place, ReadRequest { after: 2, ..request }).await;
    assert_eq!((seqs(&page), page.next, page.more), (vec![3, 4], 4, false));
    let page = read(&subject.bus, &place, ReadRequest { newest: true, ..request }).await;
    assert_eq!((seqs(&page), page.next, page.more), (vec![3, 4], 4, false));
}

pub(super) async fn a_change_ends_the_wait_for_it<B: Bus>(subject: &Subject<B>) {
    const LONG: Duration = Duration::from_secs(60);
    let place = chat("wait");
    let started = Instant::now();
    for after in 0..5 {
        let wait = subject.other.changed(place.clone(), after, LONG);
        let ((), receipt) = tokio::join!(wait, send(&subject.bus, note(&place, "news")));
        assert_eq!(receipt.seq, after + 1);
    }
    // What is there already is not waited for.
    subject.bus.changed(place, 4, LONG).await;
    assert!(started.elapsed() < LONG / 2, "{:?}", started.elapsed());
}

pub(super) async fn a_wait_without_a_change_ends_in_time<B: Bus>(subject: &Subject<B>) {
    let place = chat("quiet");
    for after in [0, 1] {
        let started = Instant::now();
        subject.bus.changed(place.clone(), after, Duration::from_millis(60)).await;
        let waited = started.elapsed();
        assert!(waited >= Duration::from_millis(60) && waited < Duration::from_secs(10), "{waited:?}");
        fill(&subject.bus, &place, 1).await;
    }
}
