//! What publishing promises.

use cyberine_types::{Clock as _, MessageId};
use futures_util::future::join_all;

use super::{Subject, chat, note, read, send, seqs};
use crate::address::{Address, AddressKind};
use crate::envelope::{Importance, MAX_LABEL_BYTES, MAX_TEXT_BYTES, Outgoing, Topic};
use crate::error::BusError;
use crate::port::{Bus, Durability, ReadRequest};

pub(super) async fn messages_are_numbered_from_one_without_holes<B: Bus>(subject: &Subject<B>) {
    let place = chat("numbers");
    for number in 1..=5 {
        let bus = if number % 2 == 0 { &subject.bus } else { &subject.other };
        let message = note(&place, "text");
        let id = message.id;
        let receipt = send(bus, message).await;
        assert_eq!((receipt.seq, receipt.id), (number, id));
        assert!(receipt.sent_at >= subject.clock.now());
    }
    let page = read(&subject.bus, &place, ReadRequest::default()).await;
    assert_eq!(seqs(&page), [1, 2, 3, 4, 5]);
    assert_eq!((page.next, page.last, page.more, page.skipped), (5, 5, false, 0));
}

pub(super) async fn a_message_is_read_as_it_was_sent<B: Bus>(subject: &Subject<B>) {
    let place = Address::new(AddressKind::Worker, "run/1");
    let place = place.unwrap_or_else(|error| unreachable!("{error}"));
    let first = send(&subject.bus, note(&place, "question")).await;
    let message = Outgoing {
        topic: Topic::Steer,
        thread: Some("thread".to_owned()),
        reply_to: Some(first.id),
        importance: Importance::High,
        ack_required: true,
        ..note(&place, "answer")
    };
    let receipt = send(&subject.bus, message.clone()).await;
    let page = read(&subject.other, &place, ReadRequest { after: 1, ..ReadRequest::default() }).await;
    let [envelope] = page.messages.as_slice() else { unreachable!("one message: {page:?}") };
    assert_eq!((envelope.seq, envelope.id, envelope.sent_at), (2, message.id, receipt.sent_at));
    assert_eq!((&envelope.to, &envelope.from, &envelope.sender), (&place, &message.from, &message.sender));
    assert_eq!((envelope.topic, envelope.text.as_str()), (Topic::Steer, "answer"));
    assert_eq!((envelope.thread.as_deref(), envelope.reply_to), (Some("thread"), Some(first.id)));
    assert_eq!((envelope.importance, envelope.ack_required), (Importance::High, true));
}

pub(super) async fn any_text_comes_back_byte_for_byte<B: Bus>(subject: &Subject<B>) {
    let place = chat("texts");
    let texts = [
        String::new(),
        "a\nb\r\nc\rd\u{85}e\u{2028}f\u{2029}g".to_owned(),
        "nul \0 and \u{1b}[31mred\u{1b}[0m \u{7} \u{9b}2J \u{18}\n".to_owned(),
        "\"}\n{\"seq\":1,\"id\":\"forged\",\"crc\":\"00000000\"}\n".to_owned(),
        "cafe\u{301} caf\u{e9} \u{202e}\u{200b}\u{e0041} \u{1f980}".to_owned(),
        "\\u0000 \\\\ \\\" %00".to_owned(),
        "\u{1}".repeat(65_536),
        "é".repeat(MAX_TEXT_BYTES / 2),
        "x".repeat(MAX_TEXT_BYTES),
    ];
    for text in &texts {
        send(&subject.bus, note(&place, text)).await;
    }
    let request = ReadRequest { max_bytes: usize::MAX, ..ReadRequest::default() };
    let page = read(&subject.other, &place, request).await;
    assert_eq!((page.messages.len(), page.skipped), (texts.len(), 0));
    for (envelope, text) in page.messages.iter().zip(&texts) {
        assert!(envelope.text == *text, "message {} came back changed", envelope.seq);
    }
}

pub(super) async fn what_is_too_long_is_refused_and_leaves_nothing<B: Bus>(subject: &Subject<B>) {
    let place = chat("long");
    let long = note(&place, &"x".repeat(MAX_TEXT_BYTES + 1));
    let refused = subject.bus.publish(long, Durability::Durable).await;
    assert!(matches!(refused, Err(BusError::TooLong { length }) if length == MAX_TEXT_BYTES + 1));
    let long = Outgoing { thread: Some("x".repeat(MAX_LABEL_BYTES + 1)), ..note(&place, "text") };
    let refused = subject.bus.publish(long, Durability::Durable).await;
    assert!(matches!(refused, Err(BusError::LabelTooLong { what: "thread", .. })));
    assert_eq!(read(&subject.bus, &place, ReadRequest::default()).await.last, 0);
    assert_eq!(send(&subject.bus, note(&place, "text")).await.seq, 1);
}

pub(super) async fn an_attempt_repeated_is_published_once<B: Bus>(subject: &Subject<B>) {
    let place = chat("again");
    let message = Outgoing { again: Some(0), ..note(&place, "once") };
    let first = send(&subject.bus, message.clone()).await;
    send(&subject.bus, note(&place, "between")).await;
    for bus in [&subject.bus, &subject.other] {
        assert_eq!(send(bus, message.clone()).await, first);
        let fast = bus.publish(message.clone(), Durability::Fast).await;
        assert_eq!(fast.unwrap_or_else(|error| unreachable!("{error}")), first);
    }
    let at_once = join_all((0..8).map(|number| {
        let bus = if number % 2 == 0 { &subject.bus } else { &subject.other };
        send(bus, Outgoing { id: message.id, to: chat("again too"), ..message.clone() })
    }));
    assert!(at_once.await.iter().all(|receipt| receipt.seq == 1), "another mailbox, and once in there");
    assert_eq!(read(&subject.bus, &place, ReadRequest::default()).await.last, 2);
    assert_eq!(read(&subject.bus, &chat("again too"), ReadRequest::default()).await.last, 1);
}

pub(super) async fn an_attempt_is_looked_for_beyond_what_was_there_before<B: Bus>(subject: &Subject<B>) {
    let place = chat("attempts");
    let message = note(&place, "attempt");
    for text in ["one", "two"] {
        send(&subject.bus, note(&place, text)).await;
    }
    assert_eq!(send(&subject.bus, message.clone()).await.seq, 3);
    send(&subject.bus, note(&place, "after")).await;
    for again in [0, 1, 2] {
        let attempt = Outgoing { again: Some(again), ..message.clone() };
        assert_eq!(send(&subject.other, attempt).await.seq, 3, "beyond {again}");
    }
    // Of a mailbox that is not the one it was, all is looked through.
    let attempt = Outgoing { again: Some(1_000), ..message.clone() };
    assert_eq!(send(&subject.other, attempt).await.seq, 3);
    // Nothing that was there before is looked at.
    for (again, seq) in [(3, 5), (4, 5), (5, 6)] {
        let attempt = Outgoing { again: Some(again), ..message.clone() };
        assert_eq!(send(&subject.bus, attempt).await.seq, seq, "beyond {again}");
    }
}

pub(super) async fn many_who_publish_at_once_lose_nothing<B: Bus>(subject: &Subject<B>) {
    let place = chat("crowd");
    let receipts = join_all((0..64).map(|number| {
        let bus = if number % 2 == 0 { &subject.bus } else { &subject.other };
        let durability = if number % 3 == 0 { Durability::Fast } else { Durability::Durable };
        bus.publish(note(&place, &number.to_string()), durability)
    }))
    .await;
    let mut acknowledged: Vec<(u64, MessageId)> = receipts
        .into_iter()
        .map(|receipt| receipt.map(|receipt| (receipt.seq, receipt.id)))
        .map(|receipt| receipt.unwrap_or_else(|error| unreachable!("a message is published: {error}")))
        .collect();
    acknowledged.sort();
    let page = read(&subject.bus, &place, ReadRequest::default()).await;
    let found: Vec<_> = page.messages.iter().map(|envelope| (envelope.seq, envelope.id)).collect();
    assert_eq!(found, acknowledged);
    assert_eq!(seqs(&page), (1..=64).collect::<Vec<_>>());
}

pub(super) async fn each_id_has_a_mailbox_of_its_own<B: Bus>(subject: &Subject<B>) {
    let long = "x".repeat(300);
    let mut places: Vec<Address> = [
        "team",
        "Team",
        "TEAM",
        ".",
        "..",
        "../../x",
        "/etc/passwd",
        "a/b",
        "a%2fb",
        "lock",
        "readers",
        "caf\u{e9}",
        "cafe\u{301}",
        "~",
        " x",
        "con",
    ]
    .map(chat)
    .to_vec();
    places.extend([chat(&format!("{long}a")), chat(&format!("{long}b")), chat(&"y".repeat(1024))]);
    for kind in AddressKind::ALL.into_iter().filter(|kind| *kind != AddressKind::Chat) {
        places.push(Address::new(kind, "team").unwrap_or_else(|error| unreachable!("{error}")));
    }
    for place in &places {
        assert_eq!(send(&subject.bus, note(place, place.id())).await.seq, 1, "{place}");
    }
    for place in &places {
        let page = read(&subject.other, place, ReadRequest::default()).await;
        let [envelope] = page.messages.as_slice() else { unreachable!("one message in {place}") };
        assert_eq!((&envelope.to, envelope.text.as_str()), (place, place.id()));
    }
}

pub(super) async fn a_clock_that_goes_back_moves_no_message<B: Bus>(subject: &Subject<B>) {
    let place = chat("clock");
    let first = send(&subject.bus, note(&place, "before")).await;
    subject.clock.step(-10 * 60 * 1000);
    let second = send(&subject.other, note(&place, "after")).await;
    subject.clock.step(20 * 60 * 1000);
    let third = send(&subject.bus, note(&place, "later")).await;
    assert_eq!((first.seq, second.seq, third.seq), (1, 2, 3));
    // Whoever reads by time misses nothing: the time of a mailbox does not go back with the clock.
    assert!(second.sent_at > first.sent_at && third.sent_at > second.sent_at);
    let request = ReadRequest { since: Some(first.sent_at), ..ReadRequest::default() };
    assert_eq!(seqs(&read(&subject.bus, &place, request).await), [2, 3]);
    // One that was wrong by more than an hour is followed.
    subject.clock.step(-2 * 60 * 60 * 1000);
    let fourth = send(&subject.bus, note(&place, "corrected")).await;
    assert_eq!((fourth.seq, fourth.sent_at), (4, subject.clock.now()));
    let request = ReadRequest { after: 3, ..ReadRequest::default() };
    assert_eq!(seqs(&read(&subject.bus, &place, request).await), [4]);
}
