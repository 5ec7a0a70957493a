//! Clocks that step, and beats that stop.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cyberine_presence::contract::chat;
use cyberine_presence::{FilePresence, Presence, Record};
use cyberine_types::{Clock, InstanceId, ManualClock, Timestamp};

use crate::support::{Place, block_on, date, foreign, ids, own, until, uptime_ms};

const MINUTE: i64 = 60;
const YEAR: i64 = 365 * 24 * 60 * MINUTE;

#[test]
fn no_step_of_the_readers_clock_changes_who_is_there() {
    block_on(async {
        let place = Place::new();
        let path = place.plant("stale.json", &foreign("stale"));
        date(&path, -2 * MINUTE);
        place.plant("live.json", &foreign("live"));
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        let of = || FilePresence::new(place.home(), clock.clone(), InstanceId::random());
        let stays = of();
        let _announcement = stays.announce(chat("own")).await.unwrap();
        let to_1970 = -clock.now().unix_ms();
        for step in [0, -600_000, 1_200_000, to_1970, 2_147_483_647_000] {
            clock.step(step);
            for reader in [&stays, &of()] {
                assert_eq!(ids(reader).await, ["live", "own"], "{}", clock.now());
            }
        }
    });
}

#[test]
fn a_beat_of_this_boot_is_dated_by_the_uptime() {
    block_on(async {
        let place = Place::new();
        let path = place.plant("a.json", &own("a"));
        // What a step of the machine's clock makes of a file of just now.
        for seconds in [0, -10 * MINUTE, 10 * MINUTE, -60 * YEAR, 12 * YEAR] {
            date(&path, seconds);
            assert_eq!(place.listed().await, ["a"], "{seconds}");
        }
        let silent = Record { beat_uptime_ms: uptime_ms() - 1_500, ttl_ms: 500, ..own("a") };
        let path = place.plant("a.json", &silent);
        for seconds in [0, 10 * MINUTE, 12 * YEAR] {
            date(&path, seconds);
            assert!(place.listed().await.is_empty(), "{seconds}");
        }
    });
}

#[test]
fn another_boots_beat_is_dated_by_its_file() {
    block_on(async {
        let place = Place::new();
        // Its process number is in use here, and its uptime would be fresh: both mean nothing.
        let mut record = own("a");
        record.host.boot_id = record.host.boot_id.replace(|c: char| c.is_ascii_hexdigit(), "0");
        let path = place.plant("a.json", &record);
        assert_eq!(place.listed().await, ["a"]);
        date(&path, -55);
        assert_eq!(place.listed().await, ["a"]);
        date(&path, -65);
        assert!(place.listed().await.is_empty());
        // A process that is not here is not gone, either.
        let path = place.plant("a.json", &Record { pid: 1 << 23, ..record.clone() });
        assert_eq!(place.listed().await, ["a"]);
        date(&path, -65);
        let check = place.fresh().check().await.unwrap();
        assert_eq!((check.stale.len(), check.dead), (1, 0));
        // An uptime that has yet to come is another machine's.
        let ahead = Record { beat_uptime_ms: uptime_ms() + 60_000, ..own("b") };
        let path = place.plant("b.json", &ahead);
        assert_eq!(place.listed().await, ["b"]);
        date(&path, -65);
        assert!(place.listed().await.is_empty());
    });
}

#[test]
fn a_file_from_the_future_is_not_there_for_ever() {
    block_on(async {
        let place = Place::new();
        for seconds in [10 * MINUTE, 12 * YEAR] {
            let path = place.plant("a.json", &foreign("a"));
            date(&path, seconds);
            assert_eq!(place.listed().await, ["a"], "{seconds}: its process may well be there");
            let written = std::fs::metadata(&path).unwrap().modified().unwrap();
            assert!(written <= SystemTime::now() + Duration::from_secs(2), "{seconds}: it is dated anew");
            date(&path, -65);
            assert!(place.listed().await.is_empty(), "{seconds}");
        }
    });
}

#[test]
fn who_looks_on_sees_a_silent_one_run_out_whatever_its_date() {
    block_on(async {
        let place = Place::new();
        let presence = place.fresh();
        for seconds in [0, 10 * MINUTE] {
            let path = place.plant("a.json", &Record { ttl_ms: 500, ..foreign("a") });
            date(&path, seconds);
            assert_eq!(ids(&presence).await, ["a"], "{seconds}");
            until(|| ids(&presence), Vec::new()).await;
        }
        // A new beat, from a time long past: it came since the last look.
        let path = place.plant("a.json", &foreign("a"));
        date(&path, -10 * MINUTE);
        assert_eq!(ids(&presence).await, ["a"]);
    });
}

#[test]
fn beats_go_on_and_carry_what_is_new() {
    block_on(async {
        let place = Place::new();
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        let interval = Duration::from_millis(170);
        let instance = InstanceId::random();
        let presence = FilePresence::with_interval(place.home(), clock.clone(), instance, interval);
        let _a = presence.announce(chat("a")).await.unwrap();
        let _b = presence.announce(chat("b")).await.unwrap();
        let reader = place.fresh();
        let beats = async || -> Vec<i64> {
            let members = reader.roster().await.unwrap();
            members.iter().map(|member| member.record.last_beat.unix_ms()).collect()
        };
        for _ in 0..3 {
            clock.step(1_000);
            let now = clock.now().unix_ms();
            until(&beats, vec![now, now]).await;
        }
    });
}
