//! Processes that die at random moments.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cyberine_types::RunId;

use crate::support::{Dice, Place, Said, assert_sound, child};

/// How many writers are killed, unless `CYBERINE_FAULTS` says otherwise.
const KILLS: u32 = 200;
/// How many of them write at the same time.
const WRITERS: u32 = 8;

fn kills() -> u32 {
    std::env::var("CYBERINE_FAULTS").map_or(KILLS, |text| text.parse().unwrap())
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let place = Place::new();
    let left = AtomicU32::new(kills());
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let mut acks = Vec::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (place, take) = (&place, &take);
                scope.spawn(move || {
                    let mut dice = Dice(0x9e37_79b9 + u64::from(writer));
                    let mut acks = Vec::new();
                    while take() {
                        let moment = Duration::from_micros(dice.roll(4_000));
                        acks.extend(killed_after(place, dice.roll(8), moment));
                    }
                    acks
                })
            })
            .collect();
        for writer in writers {
            acks.extend(writer.join().unwrap());
        }
    });
    assert!(acks.len() > kills() as usize, "the writers got somewhere: {} acknowledged", acks.len());
    eprintln!("{} kills, {} acknowledged", kills(), acks.len());
    assert_sound(&place, &acks);
}

/// Lets a writer work until it has said some lines and a moment longer, kills it, and returns
/// what it was told.
fn killed_after(place: &Place, lines: u64, moment: Duration) -> Vec<(RunId, u64)> {
    let mut writer: Child = child(place, "forever").spawn().unwrap();
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
    said.acks
}
