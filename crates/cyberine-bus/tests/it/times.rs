//! Reading a long mailbox by time: what is found, and what is not looked at for it.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use cyberine_bus::{Bus as _, Durability, Envelope, FileBus, ReadRequest};
use cyberine_types::Timestamp;
use futures_util::future::join_all;

use crate::support::{Dice, Place, block_on, chat, note, read, send, seqs};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Publishes `count` messages, a second between each hundred.
async fn fill(place: &Place, bus: &FileBus, count: usize) {
    for _ in 0..count / 100 {
        place.clock.step(1_000);
        let sent = join_all((0..100).map(|_| bus.publish(note("x"), Durability::Fast)));
        assert!(sent.await.iter().all(Result::is_ok));
    }
}

/// What a page holds, by the words of the port.
fn expected(all: &[Envelope], request: &ReadRequest) -> Vec<u64> {
    let since = request.since.unwrap();
    let wanted = all.iter().filter(|one| one.seq > request.after && one.sent_at > since);
    let mut wanted: Vec<u64> = wanted.map(|one| one.seq).collect();
    if request.newest {
        wanted.drain(..wanted.len().saturating_sub(request.limit));
    }
    wanted.truncate(request.limit);
    wanted
}

async fn compare(bus: &FileBus, dice: &mut Dice, rounds: usize) {
    let all = read(bus, 0).await.messages;
    let (first, last) = (all.iter().map(|one| one.sent_at).min(), all.iter().map(|one| one.sent_at).max());
    let (first, last) = (first.unwrap().unix_ms(), last.unwrap().unix_ms());
    let count = all.len() as u64;
    for _ in 0..rounds {
        let span = u64::try_from(last - first + 20).unwrap();
        let since = first - 10 + i64::try_from(dice.roll(span)).unwrap();
        let after = [0, dice.roll(count + 5)][usize::try_from(dice.roll(2)).unwrap()];
        let limit = usize::try_from([1, 7, 100, count][usize::try_from(dice.roll(4)).unwrap()]).unwrap();
        let request = ReadRequest {
            after,
            since: Some(Timestamp::from_unix_ms(since)),
            newest: dice.roll(2) == 1,
            limit,
            max_bytes: usize::MAX,
        };
        let page = bus.read(chat(), request).await.unwrap();
        let expected = expected(&all, &request);
        assert_eq!(seqs(&page), expected, "{request:?}");
        assert_eq!((page.last, page.skipped), (count, 0), "{request:?}");
        let end = if expected.len() < limit || request.newest { count } else { *expected.last().unwrap() };
        assert_eq!(page.next, end, "{request:?}");
    }
}

#[test]
fn what_is_later_is_found_in_any_mailbox() {
    let (place, mut dice) = (Place::new(), Dice(0x5eed_0042));
    block_on(async {
        let bus = place.bus();
        fill(&place, &bus, 9_000).await;
        compare(&bus, &mut dice, 60).await;
        assert!(!place.mailbox().join("unordered").exists());
        // A clock that goes back a little is not followed, one that was wrong is.
        place.clock.step(-HOUR_MS / 2);
        fill(&place, &bus, 100).await;
        assert!(!place.mailbox().join("unordered").exists());
        compare(&bus, &mut dice, 20).await;
        place.clock.step(-3 * HOUR_MS);
        fill(&place, &bus, 900).await;
        assert!(place.mailbox().join("unordered").exists());
        compare(&bus, &mut dice, 60).await;
    });
}

/// A reader that knows the last segment sees what comes in later ones, from any process.
#[test]
fn the_newest_are_the_newest_after_every_message() {
    let place = Place::new();
    block_on(async {
        let (reader, writers) = (place.bus(), [place.bus(), place.bus()]);
        // A segment takes four of them.
        let long = "x".repeat(300 << 10);
        for seq in 1..=40_u64 {
            send(&writers[usize::from(seq % 7 < 3)], &long).await;
            for limit in [0, 1, 3, 150] {
                let max_bytes = usize::MAX;
                let newest = ReadRequest { newest: true, limit, max_bytes, ..ReadRequest::default() };
                let page = reader.read(chat(), newest).await.unwrap();
                let first = (seq + 1).saturating_sub(limit as u64).max(1);
                assert_eq!((seqs(&page), page.last), ((first..=seq).collect(), seq), "{limit}");
            }
        }
        assert!(std::fs::read_dir(place.mailbox()).unwrap().count() > 8);
    });
}

/// A writer that comes to a segment without a record, as one that died behind its birth leaves it,
/// knows when the message before was sent.
#[test]
fn an_empty_segment_does_not_hide_when_the_last_message_was_sent() {
    for back in [HOUR_MS / 2, 3 * HOUR_MS] {
        let place = Place::new();
        block_on(async {
            fill(&place, &place.bus(), 200).await;
            let before = read(&place.bus(), 199).await.messages[0].sent_at;
            std::fs::File::create(place.mailbox().join(format!("{:020}.jsonl", 201))).unwrap();
            place.clock.step(-back);
            let receipt = send(&place.bus(), "x").await;
            assert_eq!(receipt.seq, 201);
            let is_followed = back > HOUR_MS;
            assert_eq!(receipt.sent_at <= before, is_followed);
            assert_eq!(place.mailbox().join("unordered").exists(), is_followed);
            compare(&place.bus(), &mut Dice(7), 20).await;
        });
    }
}

/// Breaks every tenth record of a segment but its first: who reads them counts them.
fn break_inside(place: &Place, first: u64) {
    let path = place.mailbox().join(format!("{first:020}.jsonl"));
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    for end in ends.iter().skip(9).step_by(10) {
        file.seek(SeekFrom::Start(*end as u64 - 3)).unwrap();
        file.write_all(b"!").unwrap();
    }
}

#[test]
fn what_is_earlier_is_not_looked_at() {
    let place = Place::new();
    block_on(async {
        let bus = place.bus();
        fill(&place, &bus, 10_000).await;
        let since = read(&bus, 9_999).await.messages[0].sent_at;
        place.clock.step(1_000);
        for _ in 0..5 {
            send(&bus, "new").await;
        }
        let firsts = std::fs::read_dir(place.mailbox())
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl")?.parse().ok());
        let mut firsts: Vec<u64> = firsts.collect();
        firsts.sort_unstable();
        firsts.iter().for_each(|first| break_inside(&place, *first));
        let later = ReadRequest { since: Some(since), ..ReadRequest::default() };
        for newest in [false, true] {
            let page = bus.read(chat(), ReadRequest { newest, ..later }).await.unwrap();
            // The last of the old ones may be met, and the new ones are read.
            assert!(page.skipped <= 2 && page.messages.len() >= 4, "{newest}: {}", page.skipped);
        }
        let whole = bus.read(chat(), ReadRequest { limit: usize::MAX, ..ReadRequest::default() }).await;
        assert!(whole.unwrap().skipped > 900, "or nothing was broken");
        // An attempt that may have been published before is looked for in what is new only.
        let message = note("x");
        let attempt = cyberine_bus::Outgoing { again: Some(10_000), ..message };
        let first = bus.publish(attempt.clone(), Durability::Durable).await.unwrap();
        assert_eq!(bus.publish(attempt, Durability::Durable).await.unwrap(), first);
    });
}

#[test]
fn the_first_message_of_a_segment_is_not_earlier_than_the_last_of_the_one_before() {
    let place = Place::new();
    block_on(async {
        let before = send(&place.bus(), "before").await;
        // As a writer that died between ending a segment and its first message leaves it.
        let ended = [std::fs::read(place.segment()).unwrap(), b"\n".to_vec()].concat();
        std::fs::write(place.segment(), ended).unwrap();
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let next = place.mailbox().join(format!("{:020}.jsonl", 2));
        options.create_new(true).write(true).open(next).unwrap();
        place.clock.step(-10 * 60 * 1_000);
        let after = send(&place.bus(), "after").await;
        assert!(after.seq == 2 && after.sent_at > before.sent_at, "{before:?} {after:?}");
    });
}
