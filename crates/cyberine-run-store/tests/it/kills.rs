//! Processes that die at random moments.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{Dice, Place, Said, assert_kept, assert_sound, child};

/// How many writers are killed, unless `CYBERINE_FAULTS` says otherwise.
const KILLS: u32 = 200;
/// How many of them write at the same time.
const WRITERS: u32 = 8;

fn kills() -> u32 {
    std::env::var("CYBERINE_FAULTS").map_or(KILLS, |text| text.parse().unwrap())
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let (place, said) = killed_writers("forever");
    assert_sound(&place, &said.acks);
}

#[test]
fn a_kill_at_any_moment_loses_no_decision_and_no_key() {
    let (place, said) = killed_writers("decided-forever");
    let counts = (said.decided.len(), said.began.len(), said.finished.len());
    eprintln!("{counts:?} decisions, keys and results acknowledged");
    assert!(counts.0.min(counts.1).min(counts.2) > 0, "each kind was met: {counts:?}");
    assert_kept(&place, &said);
    assert_sound(&place, &said.acks);
}

/// Lets writers work and kills them, one after the other, some at the same time.
fn killed_writers(mode: &str) -> (Place, Said) {
    let place = Place::new();
    let left = AtomicU32::new(kills());
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let mut all = Said::default();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (place, take) = (&place, &take);
                scope.spawn(move || {
                    let mut dice = Dice(0x9e37_79b9 + u64::from(writer));
                    let mut said = Said::default();
                    while take() {
                        let moment = Duration::from_micros(dice.roll(4_000));
                        said.join(killed_after(place, mode, dice.roll(8), moment));
                    }
                    said
                })
            })
            .collect();
        for writer in writers {
            all.join(writer.join().unwrap());
        }
    });
    assert!(all.count() > kills() as usize, "the writers got somewhere: {} acknowledged", all.count());
    eprintln!("{} kills, {} acknowledged", kills(), all.count());
    (place, all)
}

/// Lets a writer work until it has said some lines and a moment longer, kills it, and returns
/// what it was told.
fn killed_after(place: &Place, mode: &str, lines: u64, moment: Duration) -> Said {
    let mut writer: Child = child(place, mode).spawn().unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..lines {
        let read = said.read_line(&mut text).unwrap();
        assert!(read > 0, "a writer said {text:?} and ended with {:?}", writer.wait());
    }
    // The moment of death is the point of the test: nothing is waited for here.
    std::thread::sleep(moment);
    writer.kill().unwrap();
    said.read_to_string(&mut text).unwrap();
    writer.wait().unwrap();
    let said = Said::parse(&text);
    assert_eq!(said.refusals, [""; 0], "no writer is refused");
    said
}
