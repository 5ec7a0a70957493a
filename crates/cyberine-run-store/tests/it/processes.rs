//! Many processes over one home.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use cyberine_run_store::{RunEvent, RunStore as _, StoreError};
use cyberine_types::Usd;

use crate::support::{Place, Said, assert_sound, block_on, child, child_program, dollar};

/// How often a run is read while others write.
const READS: u32 = 400;

#[test]
fn of_64_processes_the_cap_lets_exactly_ten_start() {
    let place = Place::new();
    let children: Vec<Child> =
        (0..64).map(|_| child(&place, "capped").stdin(Stdio::piped()).spawn().unwrap()).collect();
    // Each says one line; those admitted then hold their run until they are killed.
    let (mut acks, mut refusals, mut holding) = (Vec::new(), Vec::new(), Vec::new());
    for mut one in children {
        let mut line = String::new();
        BufReader::new(one.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "a child said {line:?} and ended with {:?}", one.wait());
        let mut said = Said::parse(&line);
        acks.append(&mut said.acks);
        refusals.append(&mut said.refusals);
        holding.push(one);
    }
    assert_eq!((acks.len(), refusals.len()), (10, 54));
    assert!(refusals.iter().all(|code| code == "cap_reached"), "{refusals:?}");
    block_on(async {
        let store = place.store();
        use cyberine_run_store::Ledger as _;
        use cyberine_types::Clock as _;
        let totals = store.day(place.clock.now().day()).await.unwrap();
        assert_eq!(totals.reserved, Usd::from_dollars(10.0));
        assert!(store.adopt(acks[0].0).await.unwrap().is_none(), "its holder lives");
    });
    for mut one in holding {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    assert_sound(&place, &acks);
}

#[test]
fn a_lock_passes_to_the_runner_without_a_gap() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("handed over"), dollar()).await.unwrap();
        let id = claim.run();
        let mut command = Command::new(child_program());
        command.arg("runner").arg(place.home()).arg(id.to_string()).stdout(Stdio::piped());
        let mut runner = command.stdin(claim.into_lock().unwrap()).spawn().unwrap();
        drop(command);
        assert!(place.store().adopt(id).await.unwrap().is_none(), "held before the runner has claimed it");
        let mut line = String::new();
        BufReader::new(runner.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(Said::parse(&line).acks, [(id, 2)], "the runner's claim has epoch 2");
        assert!(store.adopt(id).await.unwrap().is_none(), "held by the runner alone");
        let log = store.events(id, 1).await.unwrap();
        assert_eq!(log.len(), 1);
        assert_eq!((&log[0].body, log[0].epoch), (&RunEvent::Started { pid: runner.id() }, 2));
        runner.kill().unwrap();
        runner.wait().unwrap();
        assert_eq!(store.adopt(id).await.unwrap().unwrap().epoch(), 3);
    });
    assert_sound(&place, &[]);
}

#[test]
fn a_strangers_descriptor_is_not_taken_for_the_lock() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("guarded"), dollar()).await.unwrap();
        let id = claim.run();
        let stranger = tempfile::tempfile().unwrap();
        let refused = store.claim_handed_over(id, stranger.into(), 1).await;
        assert!(matches!(refused, Err(StoreError::ClaimRefused { .. })), "{refused:?}");
        // The right file, opened anew: it does not hold the lock, the claim does.
        let path = place.home().join("locks").join(format!("run-{id}.lock"));
        let other = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let refused = store.claim_handed_over(id, other.into(), 1).await;
        assert!(matches!(refused, Err(StoreError::ClaimRefused { .. })), "{refused:?}");
        store.append(&claim, vec![RunEvent::Started { pid: 1 }]).await.unwrap();
    });
}

#[test]
fn another_process_hears_of_a_change_at_once() {
    let place = Place::new();
    block_on(async {
        let (store, other) = (place.store(), place.store());
        let claim = store.admit(place.run("watched"), dollar()).await.unwrap();
        let mut waits = Vec::new();
        for seq in 1..6 {
            let wait = other.changed(claim.run(), seq, std::time::Duration::from_secs(20));
            let event = RunEvent::ControlIgnored { detail: seq.to_string() };
            let since = std::time::Instant::now();
            let ((), last) = tokio::join!(wait, store.append(&claim, vec![event]));
            assert_eq!(last.unwrap(), seq + 1);
            waits.push(since.elapsed());
        }
        waits.sort();
        assert!(waits[0] < std::time::Duration::from_millis(400), "faster than the poll: {waits:?}");
    });
}

#[test]
fn many_processes_make_a_new_home_together() {
    let place = Place::new();
    let children: Vec<Child> = (0..16).map(|_| child(&place, "once").spawn().unwrap()).collect();
    let mut acks = Vec::new();
    for mut one in children {
        let mut text = String::new();
        one.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let status = one.wait().unwrap();
        assert!(status.success(), "{status}: {text}");
        let said = Said::parse(&text);
        assert_eq!((said.acks.len(), said.refusals.len()), (6, 0));
        acks.extend(said.acks);
    }
    assert_sound(&place, &acks);
}

#[test]
fn of_eight_who_adopt_at_once_one_succeeds() {
    let place = Place::new();
    let id = block_on(async {
        let claim = place.store().admit(place.run("orphaned"), dollar()).await.unwrap();
        claim.run()
    });
    let barrier = std::sync::Barrier::new(8);
    let claims: Vec<_> = std::thread::scope(|scope| {
        let adopters: Vec<_> = (0..8)
            .map(|_| {
                let (place, barrier) = (&place, &barrier);
                scope.spawn(move || {
                    let store = place.store();
                    barrier.wait();
                    block_on(store.adopt(id)).unwrap()
                })
            })
            .collect();
        adopters.into_iter().filter_map(|adopter| adopter.join().unwrap()).collect()
    });
    assert_eq!(claims.iter().map(cyberine_run_store::Claim::epoch).collect::<Vec<_>>(), [2]);
}

#[test]
fn who_reads_while_others_write_sees_whole_runs() {
    let place = Place::new();
    let mut writer = child(&place, "forever").spawn().unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    // What nobody reads would stop the writer once the pipe is full.
    let draining = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    block_on(async {
        use cyberine_run_store::Registry as _;
        for _ in 0..READS {
            let newest = place.store().query(String::new(), 1).await.unwrap();
            // A store of its own remembers nothing: it reads the row and then every event.
            let run = place.store().load(newest[0].run_id).await.unwrap().unwrap();
            let log = place.store().events(run.run_id, 0).await.unwrap();
            assert!(log.len() as u64 >= run.next_seq - 1);
        }
    });
    writer.kill().unwrap();
    writer.wait().unwrap();
    draining.join().unwrap().unwrap();
    assert_sound(&place, &[]);
}
