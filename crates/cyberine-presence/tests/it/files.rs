//! What lies on the disk, and what does not belong there.

use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use cyberine_presence::contract::chat;
use cyberine_presence::{
    Activity, Announcing, FilePresence, MAX_CAPABILITIES, Presence, PresenceError, State,
};
use cyberine_types::{InstanceId, SystemClock};

use crate::support::{Place, block_on, date, foreign, ids, own, until};

/// How many times each of eight announcers comes and goes.
const ROUNDS: usize = 20;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn who_only_looks_creates_nothing() {
    block_on(async {
        let place = Place::new();
        assert!(place.listed().await.is_empty());
        assert_eq!(place.fresh().check().await.unwrap(), cyberine_presence::Check::default());
        assert!(!place.home().exists());
    });
}

#[test]
fn a_record_is_its_users_alone() {
    block_on(async {
        let place = Place::new();
        let presence = place.fresh();
        let _announcement = presence.announce(chat("../../x")).await.unwrap();
        let [name] = &place.names()[..] else { panic!("{:?}", place.names()) };
        assert_eq!([mode(&place.files()), mode(&place.files().join(name))], [0o700, 0o600]);
        let text = std::fs::read_to_string(place.files().join(name)).unwrap();
        assert!(text.contains("\"ttlMs\":60000") && text.ends_with("}\n"), "{text}");
    });
}

#[test]
fn an_end_leaves_a_tombstone_and_it_is_swept_in_time() {
    block_on(async {
        let place = Place::new();
        let presence = place.fresh();
        presence.announce(chat("a")).await.unwrap().end().await;
        let check = presence.check().await.unwrap();
        assert_eq!((check.live, check.departed, place.names().len()), (0, 1, 1));

        let old = serde_json::json!({"format": 1, "ended": true, "record": foreign("b")}).to_string();
        let path = place.plant_text("old.json", &old);
        date(&path, -300);
        assert!(place.listed().await.is_empty() && path.exists());
        date(&path, -700);
        assert_eq!(place.fresh().check().await.unwrap().departed, 2);
        assert!(place.listed().await.is_empty() && !path.exists());
        assert_eq!(place.names().len(), 1);
    });
}

#[test]
fn files_of_the_long_dead_are_swept_and_others_are_kept() {
    block_on(async {
        let place = Place::new();
        let mut reused = own("reused");
        (reused.beat_uptime_ms, reused.host.pid_started) = (0, reused.host.pid_started + 1);
        let stopped = cyberine_presence::Record { beat_uptime_ms: 0, ..own("stopped") };
        let of = |name: &str, record, age: i64| {
            let path = place.plant(name, record);
            date(&path, -age);
            path
        };
        let away = foreign("away");
        let swept = [of("a.json", &reused, 700), of("b.json", &away, 90_000)];
        let kept = [
            of("c.json", &reused, 300),
            of("d.json", &away, 80_000),
            of("e.json", &stopped, 90_000),
            place.plant_text("f.json", "{"),
        ];
        date(&kept[3], -90_000);
        let check = place.fresh().check().await.unwrap();
        assert_eq!((check.dead, check.stale.len(), check.damaged.len()), (2, 3, 1));
        assert!(check.stale.iter().all(|member| member.state == State::Stale));

        assert!(place.listed().await.is_empty());
        assert!(swept.iter().all(|path| !path.exists()), "{:?}", place.names());
        assert!(kept.iter().all(|path| path.exists()), "{:?}", place.names());
    });
}

#[test]
fn a_file_that_is_no_record_is_counted_and_passed_over() {
    block_on(async {
        let place = Place::new();
        let good = place.plant("good.json", &foreign("good"));
        let text = std::fs::read_to_string(&good).unwrap();
        for (name, text) in [
            ("empty.json", ""),
            ("half.json", &text[..text.len() / 2]),
            ("newer.json", &text.replace("\"format\":1", "\"format\":2")),
            ("other.json", "{\"format\":1,\"ended\":false,\"record\":{}}"),
            ("list.json", "[]"),
            ("pid.json", &text.replace("\"pid\":1", "\"pid\":-1")),
            ("kind.json", &text.replace("\"alive\"", "\"asleep\"")),
            ("huge.json", &format!("{text}{}", " ".repeat(300 << 10))),
        ] {
            assert_ne!(text, std::fs::read_to_string(&good).unwrap(), "{name}");
            place.plant_text(name, text);
        }
        std::fs::write(place.files().join("bytes.json"), b"\xff\xfe").unwrap();
        symlink(&good, place.files().join("link.json")).unwrap();
        std::fs::create_dir(place.files().join("directory.json")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(place.files().join("fifo.json"))
                .status()
                .unwrap()
                .success()
        );
        // Names that are not ours are nobody's business.
        place.plant_text("README", "hello");

        assert_eq!(place.listed().await, ["good"]);
        let check = place.fresh().check().await.unwrap();
        assert_eq!((check.live, check.damaged.len()), (1, 12), "{check:?}");
        assert_eq!(place.names().len(), 14, "nothing of another's is removed");
    });
}

#[test]
fn a_foreign_record_is_clamped_and_escaped() {
    block_on(async {
        let place = Place::new();
        for (name, ttl) in [("a", "0"), ("b", "-1"), ("c", "1e12"), ("d", "0.5")] {
            let text = serde_json::json!({"format": 1, "ended": false, "record": foreign(name)}).to_string();
            place.plant_text(&format!("{name}.json"), &text.replace("60000", ttl));
        }
        let presence = place.fresh();
        let ttl: Vec<u64> = presence.roster().await.unwrap().iter().map(|it| it.record.ttl_ms).collect();
        assert_eq!(ttl, [500, 500, 600_000, 500]);
        // None of them is there for ever.
        for name in ["a", "b", "c", "d"] {
            date(&place.files().join(format!("{name}.json")), -601);
        }
        assert!(place.listed().await.is_empty());

        let mut record = foreign("\u{1b}[2J");
        record.name = Some("\u{202e}nimda".to_owned());
        record.team = Some("x".repeat(500));
        record.capabilities = vec!["a\nb".to_owned(); 500];
        place.plant("e.json", &record);
        let seen = &place.fresh().roster().await.unwrap()[0].record;
        assert_eq!(seen.addr.id, r"\u{1b}[2J");
        assert_eq!(seen.name.as_deref(), Some(r"\u{202e}nimda"));
        assert_eq!(seen.team.as_ref().unwrap().chars().count(), 129);
        assert_eq!((seen.capabilities.len(), seen.capabilities[0].as_str()), (MAX_CAPABILITIES, r"a\u{a}b"));
    });
}

#[test]
fn a_place_that_cannot_be_used_is_an_error_that_names_it() {
    block_on(async {
        let place = Place::new();
        std::fs::create_dir(place.home()).unwrap();
        std::fs::write(place.home().join("bus"), "").unwrap();
        let presence = place.fresh();
        let errors = [
            presence.announce(chat("a")).await.err().unwrap(),
            presence.roster().await.unwrap_err(),
            presence.check().await.unwrap_err(),
        ];
        for error in errors {
            let PresenceError::Files(source) = &error else { panic!("{error}") };
            assert_eq!(source.path(), place.home().join("bus"));
            assert_eq!(error.code(), "presence_files");
            assert!(error.advice().ends_with('.'));
        }
        // The address is free again.
        std::fs::remove_file(place.home().join("bus")).unwrap();
        let _announcement = presence.announce(chat("a")).await.unwrap();
        assert_eq!(place.listed().await, ["a"]);
    });
}

#[test]
fn a_directory_that_was_removed_is_made_again_and_a_home_is_not() {
    block_on(async {
        let place = Place::new();
        let interval = Duration::from_millis(170);
        let instance = InstanceId::random();
        let presence = FilePresence::with_interval(place.home(), Arc::new(SystemClock), instance, interval);
        let announcement = presence.announce(chat("a")).await.unwrap();
        std::fs::remove_dir_all(place.home().join("bus")).unwrap();
        assert!(place.listed().await.is_empty());
        until(|| place.listed(), vec!["a".to_owned()]).await;

        std::fs::remove_dir_all(place.home()).unwrap();
        for activity in [Activity::Progressing, Activity::Waiting] {
            announcement.set_activity(activity);
            tokio::time::sleep(interval * 2).await;
        }
        assert!(!place.home().exists());
        std::fs::create_dir(place.home()).unwrap();
        until(|| place.listed(), vec!["a".to_owned()]).await;
        std::fs::remove_dir_all(place.home()).unwrap();
        announcement.end().await;
        assert!(!place.home().exists());
    });
}

#[test]
fn an_announcement_that_was_given_up_is_withdrawn() {
    block_on(async {
        let place = Place::new();
        let presence = place.fresh();
        let mut announcing = presence.announce(chat("a"));
        // Begun, and dropped in the middle of it.
        let begun = tokio::select! {
            biased;
            _ = &mut announcing => false,
            () = std::future::ready(()) => true,
        };
        assert!(begun);
        drop(announcing);
        let _again = presence.announce(chat("a")).await.unwrap();
        assert_eq!(ids(&presence).await, ["a"]);
    });
}

#[test]
fn eight_who_come_look_and_go_lose_nobody() {
    let place = Place::new();
    for number in 0..300 {
        let path = place.plant(&format!("{number}.json"), &foreign("away"));
        date(&path, -90_000);
    }
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for announcer in 0..8 {
            let (place, start) = (&place, &start);
            scope.spawn(move || {
                block_on(async move {
                    let presence = place.fresh();
                    let _stays = presence.announce(chat(&format!("stays-{announcer}"))).await.unwrap();
                    start.wait();
                    for round in 0..ROUNDS {
                        let id = format!("{announcer}-{round}");
                        let announcing = Announcing { name: Some(id.clone()), ..chat(&id) };
                        let announcement = presence.announce(announcing).await.unwrap();
                        let listed = ids(&presence).await;
                        assert!(listed.contains(&id), "{id}: {listed:?}");
                        let staying = listed.iter().filter(|id| id.starts_with("stays-")).count();
                        assert_eq!(staying, 8, "{listed:?}");
                        announcement.end().await;
                        assert!(!ids(&presence).await.contains(&id), "{id}");
                    }
                    start.wait();
                });
            });
        }
    });
    block_on(async {
        let check = place.fresh().check().await.unwrap();
        assert_eq!((check.stale.len(), check.departed), (0, 8 * (ROUNDS + 1)));
        assert_eq!(place.names().len(), 8 * (ROUNDS + 1), "no file of today is removed");
    });
}
