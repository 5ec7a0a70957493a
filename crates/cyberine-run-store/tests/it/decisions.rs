//! What is decided on runs, by whatever process, and what their projects show of it.

use std::process::{Child, Stdio};

use cyberine_run_store::doctor::{FindingKind, check, rebuild};
use cyberine_run_store::{
    Choice, Claim, DecideOutcome, DeciderKind, Event, OperatorDecision, Run, RunEvent, RunState,
    RunStore as _, SqliteRunStore, StoreError, Wish, fold,
};
use cyberine_types::RunId;
use serde_json::Value;

use crate::support::{Place, Said, assert_sound, block_on, child_about, dollar, interrupted};

fn wish(choice: Choice, step: Option<&str>) -> Wish {
    let comment = Some("because \u{1b}[31m\0 of it\n".to_owned());
    Wish { choice, step: step.map(str::to_owned), comment, by: "test@1".to_owned(), kind: DeciderKind::Mcp }
}

fn started() -> Vec<RunEvent> {
    let (step, name) = ("dispatch".to_owned(), "Dispatch".to_owned());
    vec![RunEvent::Started { pid: 1 }, RunEvent::StepStarted { step, name }]
}

async fn recorded(store: &SqliteRunStore, id: RunId, wish: Wish) -> OperatorDecision {
    match store.decide(id, wish).await.unwrap() {
        DecideOutcome::Recorded(decision) => decision,
        other => unreachable!("{other:?}"),
    }
}

/// What the project shows, after a check that its files agree with each other.
fn shown(place: &Place, id: RunId) -> Run {
    let dir = place.run_dir(id);
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let run: Run = serde_json::from_slice(&read("run.json")).unwrap();
    let log: Vec<Event> = String::from_utf8(read("events.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(fold(id, &log).as_ref(), Ok(&run));
    if run.decisions.is_empty() {
        assert!(!dir.join("approval.json").exists());
    } else {
        let mut approval: Value = serde_json::from_slice(&read("approval.json")).unwrap();
        let decisions: Vec<OperatorDecision> = serde_json::from_value(approval["decisions"].take()).unwrap();
        assert_eq!(decisions, run.decisions);
    }
    run
}

#[test]
fn a_decision_is_shown_at_once_while_a_runner_lives_and_after_it_is_gone() {
    let place = Place::new();
    block_on(async {
        let (store, other) = (place.store(), place.store());
        let claim = store.admit(place.run("decided"), dollar()).await.unwrap();
        let id = claim.run();
        store.append(&claim, started()).await.unwrap();
        assert_eq!(shown(&place, id).decisions, []);
        let first = recorded(&other, id, wish(Choice::Approve, Some("dispatch"))).await;
        assert_eq!(shown(&place, id).decisions, std::slice::from_ref(&first));
        let text = std::fs::read_to_string(place.run_dir(id).join("approval.json")).unwrap();
        for member in [
            "\"decision\": \"approve\"",
            "\"runId\"",
            "\"stepId\": \"dispatch\"",
            "\"comment\": \"because \\u001b[31m\\u0000 of it\\n\"",
            "\"decidedBy\": \"test@1\"",
            "\"deciderKind\": \"mcp\"",
            "\"decidedAt\"",
        ] {
            assert!(text.contains(member), "{member} in {text}");
        }
        // The holder does not know of it, and its next events follow all the same.
        store.append(&claim, vec![RunEvent::ControlIgnored { detail: "x".to_owned() }]).await.unwrap();
        store.append(&claim, vec![RunEvent::ControlIgnored { detail: "y".to_owned() }]).await.unwrap();
        assert_eq!((shown(&place, id).next_seq, shown(&place, id).decisions.len()), (7, 1));
        store.append(&claim, vec![interrupted()]).await.unwrap();
        drop(claim);
        let second = recorded(&other, id, wish(Choice::Reject, None)).await;
        let run = shown(&place, id);
        assert_eq!((run.state, run.decisions.as_slice()), (RunState::Error, [first, second].as_slice()));
        assert_eq!(store.load(id).await.unwrap(), Some(run));
        assert_eq!(check(&store).await.unwrap().findings, [], "and nothing is left over");
    });
}

#[test]
fn a_decision_stands_where_the_project_cannot_show_it_and_the_doctor_shows_it_later() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("hidden"), dollar()).await.unwrap();
        let id = claim.run();
        store.append(&claim, vec![interrupted()]).await.unwrap();
        drop(claim);
        let aside = place.root.path().join("aside");
        #[expect(clippy::disallowed_methods, reason = "the project is away for a while")]
        std::fs::rename(place.project(), &aside).unwrap();
        let decision = recorded(&store, id, wish(Choice::Approve, None)).await;
        #[expect(clippy::disallowed_methods, reason = "the project comes back")]
        std::fs::rename(&aside, place.project()).unwrap();
        assert_eq!(shown(&place, id).decisions, []);
        let findings = check(&place.store()).await.unwrap().findings;
        assert_eq!(
            findings.iter().map(|found| (found.kind, found.repaired)).collect::<Vec<_>>(),
            [(FindingKind::Projection, true)]
        );
        assert_eq!(shown(&place, id).decisions, std::slice::from_ref(&decision));
        std::fs::remove_file(place.run_dir(id).join("approval.json")).unwrap();
        assert_eq!(check(&place.store()).await.unwrap().findings.len(), 1);
        assert_eq!(shown(&place, id).decisions, [decision]);
        assert_eq!(check(&place.store()).await.unwrap().findings, []);
    });
}

#[test]
fn a_decision_made_up_in_the_project_is_removed_by_the_doctor() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("forged"), dollar()).await.unwrap();
        store.append(&claim, vec![interrupted()]).await.unwrap();
        let path = place.run_dir(claim.run()).join("approval.json");
        std::fs::write(&path, "{\"decisions\":[]}").unwrap();
        drop(claim);
        assert_eq!(check(&store).await.unwrap().findings[0].kind, FindingKind::Projection);
        assert!(!path.exists());
    });
}

#[test]
fn decisions_come_back_with_a_rebuilt_database() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("rebuilt"), dollar()).await.unwrap();
        let id = claim.run();
        store.append(&claim, started()).await.unwrap();
        recorded(&store, id, wish(Choice::Approve, Some("dispatch"))).await;
        store.append(&claim, vec![interrupted()]).await.unwrap();
        recorded(&store, id, wish(Choice::Reject, None)).await;
        let before = store.load(id).await.unwrap();
        drop((claim, store));
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = std::fs::remove_file(place.home().join(name));
        }
        let store = place.store();
        assert_eq!(rebuild(&store, Vec::new()).await.unwrap().skipped, [""; 0]);
        assert_eq!(store.load(id).await.unwrap(), before);
        let again = store.decide(id, wish(Choice::Approve, None)).await.unwrap();
        assert!(matches!(again, DecideOutcome::Standing(OperatorDecision { decision: Choice::Reject, .. })));
        assert_eq!(check(&store).await.unwrap().findings, []);
    });
}

#[test]
fn of_processes_that_approve_and_reject_at_once_one_decides() {
    let place = Place::new();
    let id = block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("contested"), dollar()).await.unwrap();
        store.append(&claim, vec![interrupted()]).await.unwrap();
        claim.run()
    });
    let deciders: Vec<Child> = (0..8)
        .map(|n| {
            let choice = if n % 2 == 0 { "approve" } else { "reject" };
            let mut command = child_about(&place, "decide", &format!("{id} {choice}"));
            command.stdin(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let said = at_once(deciders);
    assert_eq!((said.decided.len(), said.stood.len(), said.refusals.len()), (1, 7, 0));
    let winner = &said.decided[0].2;
    assert!(said.stood.iter().all(|stood| stood == winner), "{said:?}");
    let run = shown(&place, id);
    assert_eq!((run.decisions.len(), run.decisions[0].decision.name()), (1, winner.as_str()));
    assert_sound(&place, &said.acks);
}

#[test]
fn of_16_processes_that_open_one_key_at_once_one_finds_it_new() {
    let place = Place::new();
    let openers: Vec<Child> =
        (0..16).map(|_| child_about(&place, "key", "same").stdin(Stdio::piped()).spawn().unwrap()).collect();
    let said = at_once(openers);
    assert_eq!((said.began.len(), said.stood.len(), said.refusals.len()), (1, 15, 0));
    assert!(said.stood.iter().all(|draft| *draft == said.began[0].1), "{said:?}");
}

/// Lets all of them go at the same time, and collects what they say.
fn at_once(mut children: Vec<Child>) -> Said {
    // What they wait for is the end of their standard input.
    let inputs: Vec<_> = children.iter_mut().map(|child| child.stdin.take()).collect();
    drop(inputs);
    let mut said = Said::default();
    for child in children {
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", out.status);
        said.join(Said::parse(&String::from_utf8(out.stdout).unwrap()));
    }
    said
}

#[test]
fn who_decides_and_who_carries_the_run_out_never_tear_its_files() {
    const EVENTS: u64 = 60;
    let place = Place::new();
    let id = block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("busy"), dollar()).await.unwrap();
        append_steps(&store, &claim, EVENTS).await;
        claim.run()
    });
    let barrier = std::sync::Barrier::new(3);
    let claim = block_on(place.store().adopt(id)).unwrap().unwrap();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (place, barrier) = (&place, &barrier);
            scope.spawn(move || {
                let store = place.store();
                barrier.wait();
                block_on(async {
                    for n in (half..EVENTS).step_by(2) {
                        recorded(&store, id, wish(Choice::Approve, Some(&n.to_string()))).await;
                    }
                });
            });
        }
        barrier.wait();
        block_on(append_steps(&place.store(), &claim, EVENTS));
    });
    let run = shown(&place, id);
    assert_eq!(run.next_seq - 1, 1 + 3 * EVENTS, "the files hold everything without another write");
    assert_eq!(Some(run), block_on(place.store().load(id)).unwrap());
}

#[test]
fn who_holds_the_files_and_is_stopped_delays_a_run_once() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let claim = store.admit(place.run("held up"), dollar()).await.unwrap();
        let id = claim.run();
        let locks = cyberine_fs::PrivateDir::open_existing(&place.home().join("locks")).unwrap();
        let stopped = locks.try_lock(&format!("files-{id}.lock")).unwrap().unwrap();
        let note = || vec![RunEvent::ControlIgnored { detail: "x".to_owned() }];
        store.append(&claim, note()).await.unwrap();
        let since = std::time::Instant::now();
        for _ in 0..20 {
            store.append(&claim, note()).await.unwrap();
        }
        assert!(since.elapsed() < std::time::Duration::from_secs(2), "{:?}", since.elapsed());
        assert_eq!(shown(&place, id).next_seq, 2, "the files are left to whoever holds them");
        stopped.release().unwrap();
        store.append(&claim, note()).await.unwrap();
        assert_eq!(Some(shown(&place, id)), store.load(id).await.unwrap());
    });
}

/// Steps on the first call, notes on the second.
async fn append_steps(store: &SqliteRunStore, claim: &Claim, count: u64) {
    for n in 0..count {
        let (step, name) = (n.to_string(), "Step".to_owned());
        let event = match claim.epoch() {
            1 => RunEvent::StepStarted { step, name },
            _ => RunEvent::ControlIgnored { detail: step },
        };
        store.append(claim, vec![event]).await.unwrap();
    }
}

#[test]
fn an_admission_that_was_cut_short_does_not_keep_its_id() {
    let place = Place::new();
    block_on(async {
        let store = place.store();
        let new = place.run("cut short");
        let id = new.id;
        store.admit(place.run("another"), dollar()).await.unwrap();
        // What a process that dies before its commit leaves: the directory, or all of its files.
        for files in [0, 1, 2] {
            let dir = place.run_dir(id);
            std::fs::create_dir(&dir).unwrap();
            std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            let template = place.store();
            let whole = template.admit(place.run("template"), dollar()).await.unwrap();
            for name in ["events.jsonl", "run.json"].into_iter().take(files) {
                std::fs::copy(place.run_dir(whole.run()).join(name), dir.join(name)).unwrap();
            }
            let claim = store.admit(new.clone(), dollar()).await.unwrap();
            assert_eq!(shown(&place, id).task, "cut short");
            let again = place.store().admit(new.clone(), dollar()).await;
            assert!(matches!(again, Err(StoreError::AlreadyAdmitted { run }) if run == id), "{again:?}");
            drop(claim);
            let conn = rusqlite::Connection::open(place.home().join("state.db")).unwrap();
            let n: i64 = conn
                .query_row("SELECT n FROM runs WHERE id = ?1", [id.to_string()], |row| row.get(0))
                .unwrap();
            for table in ["events WHERE run", "reservations WHERE run", "runs WHERE n"] {
                conn.execute(&format!("DELETE FROM {table} = ?1"), [n]).unwrap();
            }
            std::fs::remove_dir_all(&dir).unwrap();
        }
        // The files of a run that went further are somebody's.
        let dir = place.run_dir(id);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("run.json"), "{}").unwrap();
        let refused = store.admit(new, dollar()).await;
        assert!(matches!(refused, Err(StoreError::AlreadyAdmitted { .. })), "{refused:?}");
        assert!(dir.join("run.json").exists());
    });
}

#[test]
fn who_wants_a_run_that_another_process_is_just_admitting_waits_for_it() {
    let place = Place::new();
    let new = place.run("twice");
    let barrier = std::sync::Barrier::new(8);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (place, barrier, new) = (&place, &barrier, new.clone());
                scope.spawn(move || {
                    let store = place.store();
                    barrier.wait();
                    block_on(async {
                        let admitted = store.admit(new.clone(), dollar()).await;
                        assert!(
                            store.load(new.id).await.unwrap().is_some(),
                            "whoever is refused finds the run"
                        );
                        admitted
                    })
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let refused =
        |outcome: &&Result<Claim, StoreError>| matches!(outcome, Err(StoreError::AlreadyAdmitted { .. }));
    assert_eq!(outcomes.iter().filter(refused).count(), 7, "{outcomes:?}");
}
