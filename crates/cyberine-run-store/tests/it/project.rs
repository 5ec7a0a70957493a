//! What a project shows, takes and refuses.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

use cyberine_run_store::{
    Control, ControlReader, Event, Run, RunEvent, RunState, RunStore as _, StoreError, Tick, TickKind,
    TickReader, TickWriter, fold,
};
use cyberine_types::{Billing, RunId, Usage};

use crate::support::{Place, block_on, dollar, interrupted};

fn candidate() -> Vec<RunEvent> {
    vec![
        RunEvent::Started { pid: 1 },
        RunEvent::StepStarted { step: "dispatch".to_owned(), name: "Dispatch".to_owned() },
        RunEvent::CandidateStarted {
            step: "dispatch".to_owned(),
            candidate: "../a".to_owned(),
            provider: "../a".to_owned(),
            kind: "command".to_owned(),
            model: None,
            billing: Billing::Free,
        },
        RunEvent::CandidateDone {
            step: "dispatch".to_owned(),
            candidate: "../a".to_owned(),
            output: "Rhine".to_owned(),
            usage: Usage::default(),
            duration_ms: 3,
        },
    ]
}

#[test]
fn the_files_of_a_run_are_what_its_events_make_of_it() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("rivers"), dollar()).await.unwrap();
        let dir = place.run_dir(claim.run());
        for step in 0..3 {
            match step {
                0 => {}
                1 => drop(store.append(&claim, candidate()).await.unwrap()),
                _ => drop(store.append(&claim, vec![interrupted()]).await.unwrap()),
            }
            let shown: Run = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
            assert_eq!(Some(&shown), store.load(claim.run()).await.unwrap().as_ref());
            let lines = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
            let log: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(fold(claim.run(), &log), Ok(shown));
        }
        assert_eq!(std::fs::read_to_string(dir.join("outputs/01-01-___a.md")).unwrap(), "Rhine");
        assert_eq!(std::fs::read_to_string(place.project().join(".local/.gitignore")).unwrap(), "*\n");
        for path in [dir.clone(), place.home(), place.home().join("locks"), place.home().join("wake")] {
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o700,
                "{}",
                path.display()
            );
        }
        for path in [dir.join("run.json"), place.home().join("state.db"), place.home().join("state.db-wal")] {
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                path.display()
            );
        }
    });
}

#[test]
fn making_a_store_touches_nothing() {
    let place = Place::new();
    let store = place.store();
    assert!(!place.home().exists());
    block_on(store.unsettled()).unwrap();
    assert!(place.home().join("state.db").exists());
}

#[test]
fn a_project_that_cannot_hold_the_run_is_refused_and_nothing_is_held() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let mut gone = place.run("nowhere");
        gone.cwd = place.project().join("gone").to_str().unwrap().to_owned();
        let mut relative = place.run("relative");
        relative.cwd = "project".to_owned();
        let mut file = place.run("a file");
        std::fs::write(place.project().join("file"), "").unwrap();
        file.cwd = place.project().join("file").to_str().unwrap().to_owned();
        for run in [gone, relative, file] {
            let refused = store.admit(run, dollar()).await;
            assert!(matches!(refused, Err(StoreError::ProjectUnusable { .. })), "{refused:?}");
        }
        symlink(place.root.path(), place.project().join(".local")).unwrap();
        let refused = store.admit(place.run("linked"), dollar()).await;
        assert!(matches!(refused, Err(StoreError::ProjectUnusable { .. })), "{refused:?}");
        assert_eq!(store.unsettled().await.unwrap(), []);
        assert_eq!(std::fs::read_dir(place.home().join("locks")).unwrap().count(), 1, "only `state.lock`");
    });
}

#[test]
fn a_project_replaced_by_a_link_is_not_followed() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("moved"), dollar()).await.unwrap();
        let (old, trap) = (place.root.path().join("old"), place.root.path().join("trap"));
        #[expect(clippy::disallowed_methods, reason = "the attack is a rename")]
        std::fs::rename(place.project(), &old).unwrap();
        std::fs::create_dir(&trap).unwrap();
        symlink(&trap, place.project()).unwrap();
        store.append(&claim, candidate()).await.unwrap();
        let refused = store.run_dir(claim.run()).await;
        assert!(matches!(refused, Err(StoreError::ProjectUnusable { .. })), "{refused:?}");
        let id = claim.run();
        drop(claim);
        let adopted = place.store().adopt(id).await.unwrap().unwrap();
        place.store().append(&adopted, vec![interrupted()]).await.unwrap();
        assert_eq!(std::fs::read_dir(&trap).unwrap().count(), 0, "nothing is written through the link");
        let run = store.load(id).await.unwrap().unwrap();
        assert_eq!((run.state, run.next_seq), (RunState::Error, 7), "the run itself is whole");
    });
}

#[test]
fn links_and_pipes_in_the_place_of_the_database_are_refused() {
    for (name, plant) in
        [("state.db", "link"), ("state.db-wal", "link"), ("state.db", "fifo"), ("state.db", "hard")]
    {
        let place = Place::new();
        block_on(place.store().unsettled()).unwrap();
        let path = place.home().join(name);
        let _ = std::fs::remove_file(&path);
        let elsewhere = place.root.path().join("elsewhere");
        std::fs::write(&elsewhere, "").unwrap();
        match plant {
            "link" => symlink(&elsewhere, &path).unwrap(),
            "hard" => std::fs::hard_link(&elsewhere, &path).unwrap(),
            _ => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
        }
        let refused = block_on(place.store().unsettled());
        assert!(matches!(refused, Err(StoreError::HomeUnusable { .. })), "{name} {plant}: {refused:?}");
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"");
    }
}

#[test]
fn a_home_removed_while_it_is_open_is_said() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("lost"), dollar()).await.unwrap();
        std::fs::remove_dir_all(place.home()).unwrap();
        let refused = store.append(&claim, candidate()).await;
        assert!(
            matches!(&refused, Err(StoreError::HomeUnusable { path, .. }) if *path == place.home().join("state.db")),
            "{refused:?}"
        );
    });
}

#[test]
fn a_newer_or_foreign_database_is_refused_by_name() {
    let place = Place::new();
    block_on(place.store().unsettled()).unwrap();
    let path = place.home().join("state.db");
    let alter = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    alter("PRAGMA user_version = 99");
    let refused = block_on(place.store().unsettled());
    assert!(
        matches!(&refused, Err(StoreError::NewerDatabase { found: 99, path: named, .. }) if *named == path),
        "{refused:?}"
    );
    alter("PRAGMA application_id = 7");
    let refused = block_on(place.store().unsettled());
    assert!(matches!(refused, Err(StoreError::HomeUnusable { .. })), "{refused:?}");
    std::fs::write(&path, "no database at all".repeat(1_000)).unwrap();
    let refused = block_on(place.store().unsettled());
    assert!(
        matches!(&refused, Err(error @ StoreError::DatabaseDamaged { .. }) if error.advice().contains("--rebuild")),
        "{refused:?}"
    );
}

#[test]
fn a_damaged_run_does_not_hide_the_others() {
    let place = Place::new();
    block_on(async {
        use cyberine_run_store::Registry as _;
        let store = place.store();
        let mut ids = Vec::new();
        for name in ["one rib", "two rib", "three rib"] {
            let claim = store.admit(place.run(name), dollar()).await.unwrap();
            store.append(&claim, vec![interrupted()]).await.unwrap();
            ids.push(claim.run());
        }
        let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
        conn.execute_batch(
            "UPDATE events SET body = '{\"type\":\"dreamt\"' WHERE run = 2 AND seq < 3;
             UPDATE runs SET state = 'dreaming' WHERE n = 2; UPDATE runs SET id = 'nobody' WHERE n = 3;",
        )
        .unwrap();
        let store = place.store();
        let listed = store.query("rib".to_owned(), 9).await.unwrap();
        assert_eq!(listed.iter().map(|run| run.run_id).collect::<Vec<_>>(), [ids[1], ids[0]]);
        assert_eq!(listed[0].state, RunState::Error);
        assert!(listed[0].detail.contains("doctor"), "{}", listed[0].detail);
        assert_eq!(store.query("e".to_owned(), 9).await.unwrap().len(), 2, "a short text, too");
        assert!(matches!(store.load(ids[1]).await, Err(StoreError::Corrupt { .. })));
        assert_eq!(store.load(ids[0]).await.unwrap().unwrap().state, RunState::Error);
    });
}

#[test]
fn ticks_reach_another_process_and_end_with_the_run() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("ticking"), dollar()).await.unwrap();
        let mut writer = TickWriter::new(store.run_dir(claim.run()).await.unwrap());
        let mut reader = TickReader::new(place.store().run_dir(claim.run()).await.unwrap(), 0);
        assert_eq!(reader.read().unwrap(), []);
        let tick = |kind, text_bytes| Tick {
            candidate: "a".to_owned(),
            kind,
            text_bytes,
            usage: Usage::default(),
            note: String::new(),
        };
        let now = Instant::now();
        writer.offer(tick(TickKind::Started, 0), now).unwrap();
        writer.offer(tick(TickKind::Text, 5), now).unwrap();
        assert_eq!(reader.read().unwrap(), [tick(TickKind::Started, 0)]);
        writer.flush(now + Duration::from_secs(1)).unwrap();
        reader.changed(Duration::from_secs(20)).await;
        assert_eq!(reader.read().unwrap(), [tick(TickKind::Text, 5)]);
        let stream = place.run_dir(claim.run()).join("stream.jsonl");
        let whole = std::fs::read(&stream).unwrap();
        assert_eq!(reader.offset(), whole.len() as u64);
        // A torn line waits for its end, a damaged one is skipped, a shorter file is read anew.
        std::fs::write(&stream, [&whole[..], b"{\"candi"].concat()).unwrap();
        assert_eq!(reader.read().unwrap(), []);
        std::fs::write(&stream, [&whole[..], b"{\"candi\n", &whole[..]].concat()).unwrap();
        assert_eq!(reader.read().unwrap().len(), 2);
        std::fs::write(&stream, &whole).unwrap();
        assert_eq!(reader.read().unwrap().len(), 2);
        store.append(&claim, vec![interrupted()]).await.unwrap();
        writer.offer(tick(TickKind::Settled, 0), now).unwrap();
        TickWriter::new(store.run_dir(claim.run()).await.unwrap())
            .offer(tick(TickKind::Settled, 0), now)
            .unwrap();
        assert!(!stream.exists(), "the stream ends with the run");
        assert_eq!(reader.read().unwrap(), []);
    });
}

#[test]
fn a_control_file_is_obeyed_and_a_strange_one_reported_once() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("controlled"), dollar()).await.unwrap();
        let mut reader = ControlReader::new(store.run_dir(claim.run()).await.unwrap());
        let path = place.run_dir(claim.run()).join("control.json");
        let ignored = |control: Option<Control>| matches!(control, Some(Control::Ignored { .. }));
        assert_eq!(reader.look(), None);
        for strange in ["{\"action\":\"pause\",\"target\":{\"type\":\"run\"}}", "[]", &"x".repeat(10_000)] {
            std::fs::write(&path, strange).unwrap();
            assert!(ignored(reader.look()), "{strange:.40}");
            assert_eq!(reader.look(), None, "once: {strange:.40}");
        }
        std::fs::write(&path, "{\"action\":").unwrap();
        assert_eq!(reader.look(), None, "it may be half written");
        assert!(ignored(reader.look()), "it stays half written");
        for plant in ["link", "fifo"] {
            std::fs::remove_file(&path).unwrap();
            match plant {
                "link" => symlink("/etc/hostname", &path).unwrap(),
                _ => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            }
            assert!(ignored(reader.look()), "{plant}");
            assert_eq!(reader.look(), None, "{plant}");
        }
        std::fs::remove_file(&path).unwrap();
        reader.changed(Duration::ZERO).await;
        std::fs::write(&path, "{\"action\":\"stop\",\"target\":{\"type\":\"run\"}}").unwrap();
        reader.changed(Duration::from_secs(20)).await;
        assert_eq!(reader.look(), Some(Control::Stop));
        assert_eq!(reader.look(), None);
    });
}

#[test]
fn an_unknown_run_has_no_directory() {
    let place = Place::new();
    let refused = block_on(place.store().run_dir(RunId::random())).unwrap_err();
    assert!(matches!(refused, StoreError::NotFound { .. }), "{refused:?}");
}

#[test]
fn a_prompt_of_a_mebibyte_is_kept_and_found_by_its_last_words() {
    let place = Place::new();
    block_on(async {
        use cyberine_run_store::Registry as _;
        let store = place.store();
        let mut prompt = "Lorem ipsum dolor sit amet, ".repeat((1 << 20) / 28);
        prompt.push_str("and the last words");
        let claim = store.admit(place.run(&prompt), dollar()).await.unwrap();
        assert_eq!(store.load(claim.run()).await.unwrap().unwrap().task, prompt);
        let found = store.query("THE LAST WORDS".to_owned(), 9).await.unwrap();
        assert_eq!(found.iter().map(|run| run.run_id).collect::<Vec<_>>(), [claim.run()]);
        assert_eq!(found[0].task_preview.len(), 200);
    });
}
