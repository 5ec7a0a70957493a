//! Many writers of one mailbox who die at random moments.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use cyberine_bus::{Bus as _, ReadRequest};

use crate::child::{Said, child, number};
use crate::support::{Dice, Place, block_on, chat};

/// How many write at the same time.
const WRITERS: u32 = 64;
/// How many messages each has to publish, unless `CYBERINE_FAULTS` says otherwise.
const MESSAGES: u64 = 12;

fn messages() -> u64 {
    std::env::var("CYBERINE_FAULTS").map_or(MESSAGES, |text| text.parse().unwrap())
}

#[test]
fn killed_at_random_writers_lose_nothing_acknowledged_and_repeat_nothing() {
    let place = Place::new();
    let mut acks = HashMap::new();
    let mut kills = 0;
    std::thread::scope(|scope| {
        let place = &place;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| (writer, scope.spawn(move || publish_all(place, writer)))).collect();
        for (writer, thread) in writers {
            let (acked, killed) = thread.join().unwrap();
            kills += killed;
            acks.extend(acked.into_iter().map(|(number, seq)| ((writer, number), seq)));
        }
    });
    println!("{WRITERS} writers, {} messages each, {kills} killed", messages());
    assert!(kills > WRITERS / 2, "some died: {kills}");
    assert_eq!(acks.len() as u64, u64::from(WRITERS) * messages(), "each was acknowledged in the end");
    let read = read_by_cursor(&place);
    let expected: Vec<u64> = (1..=u64::from(WRITERS) * messages()).collect();
    assert_eq!(read.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), expected, "without holes, in order");
    let mut next = HashMap::new();
    for (seq, (writer, number)) in read {
        assert_eq!(acks.get(&(writer, number)), Some(&seq), "message {number} of writer {writer}");
        let next = next.entry(writer).or_insert(1);
        assert_eq!(number, *next, "the messages of writer {writer} stand in their order");
        *next += 1;
    }
    let reports = block_on(place.bus().check()).unwrap();
    assert_eq!(reports.iter().map(|report| report.bad_lines).sum::<u64>(), 0, "{reports:?}");
}

/// Starts one process after the other until all messages of a writer are acknowledged, each going
/// on behind the last acknowledgement. Says what was acknowledged, and how many processes died.
fn publish_all(place: &Place, writer: u32) -> (Vec<(u64, u64)>, u32) {
    let mut dice = Dice(0x9e37_79b9 + u64::from(writer));
    let (mut acks, mut killed) = (Vec::new(), 0);
    while (acks.len() as u64) < messages() {
        let first = acks.len() as u64 + 1;
        let mut process = child(place, "write", writer, first, messages()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut text = String::new();
        for _ in 0..dice.roll(2 + messages().min(80) / 2) {
            said.read_line(&mut text).unwrap();
        }
        // The moment of death is the point of the test: nothing is waited for here.
        std::thread::sleep(Duration::from_micros(dice.roll(3_000)));
        process.kill().unwrap();
        said.read_to_string(&mut text).unwrap();
        killed += u32::from(!process.wait().unwrap().success());
        let said = Said::parse(&text);
        assert_eq!(said.refusals, [""; 0], "no writer is refused");
        acks.extend(said.acks);
    }
    (acks, killed)
}

/// Everything in the mailbox, page by page: sequence number, writer and number.
fn read_by_cursor(place: &Place) -> Vec<(u64, (u32, u64))> {
    let bus = place.bus();
    let (mut after, mut all) = (0, Vec::new());
    loop {
        let request = ReadRequest { after, limit: 97, ..ReadRequest::default() };
        let page = block_on(bus.read(chat(), request)).unwrap();
        all.extend(page.messages.iter().map(|envelope| (envelope.seq, number(&envelope.text))));
        after = page.next;
        if !page.more {
            return all;
        }
    }
}
