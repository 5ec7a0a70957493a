use super::*;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Barrier, mpsc};

use cyberine_orchestrator::{OrchestrateConfig, RoleConfig, plan};
use cyberine_provider::{Limits, Message, Role, StopReason, Turn, TurnEvent};
use cyberine_testkit::{assert_played, played, rerun, role};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::team;

fn config(text: &str) -> ProviderConfig {
    serde_json::from_str(text).unwrap()
}

fn keyed(variable: &str) -> ProviderConfig {
    config(&format!(
        r#"{{"kind":"openai","base_url":"https://h/v1","model":"m","api_key_env":"{variable}"}}"#
    ))
}

async fn is_open(gate: &Arc<dyn AccountGate>) -> bool {
    gate.enter(9).await.unwrap() == Entry::Open
}

#[tokio::test]
async fn an_account_that_is_closed_is_closed_for_every_model_process_and_kind_that_pays_with_its_key() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::at(root.path());
    let (here, there) = (Gates::of(&home), Gates::of(&home));
    let minute = Duration::from_secs(60);
    here.gate(&keyed("ONE")).close(1, minute, "429".into()).await.unwrap();
    match there.gate(&keyed("ONE")).enter(2).await.unwrap() {
        Entry::Closed { left, reason, .. } => {
            assert!(left <= minute && left > minute / 2 && reason == "429", "{left:?} {reason}");
        }
        other => panic!("{other:?}"),
    }
    let mut other_model = keyed("ONE");
    if let ProviderConfig::Openai(config) = &mut other_model {
        config.model = "other".into();
        config.base_url = Some("https://h/v1/".into());
    }
    assert!(!is_open(&there.gate(&other_model)).await);
    assert!(is_open(&there.gate(&keyed("TWO"))).await, "another key is another account");
    assert!(is_open(&there.gate(&config(r#"{"kind":"claude-cli"}"#))).await);
}

#[tokio::test]
async fn no_file_tells_whose_account_it_is_and_a_broken_one_closes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let gates = Gates::of(&Home::at(root.path()));
    let gate = gates.gate(&keyed("SECRET_KEY"));
    gate.close(1, Duration::from_secs(60), "429".into()).await.unwrap();
    let directory = root.path().join("gates");
    let names: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let state = names.iter().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let told = format!("{names:?} {}", std::fs::read_to_string(state).unwrap());
    assert!(!told.contains("SECRET_KEY") && !told.contains("//h"), "{told}");
    std::fs::write(state, "{\"closed\":").unwrap();
    assert!(is_open(&gate).await);
    std::fs::write(state, " ".repeat(MAX_BYTES + 1)).unwrap();
    assert!(is_open(&gate).await);
    gate.close(1, Duration::from_secs(60), "429".into()).await.unwrap();
    assert!(!is_open(&gate).await, "it is replaced");
}

#[tokio::test]
async fn places_are_shared_by_all_processes_and_freed_by_the_end_of_a_turn() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::at(root.path());
    let two = config(r#"{"kind":"claude-cli","max_parallel":2}"#);
    let (here, there) = (Gates::of(&home), Gates::of(&home));
    let first = here.gate(&two).place().await.unwrap();
    let second = there.gate(&two).place().await.unwrap();
    assert!(first.is_some() && second.is_some());
    assert!(here.gate(&two).place().await.unwrap().is_none());
    drop(first);
    assert!(there.gate(&two).place().await.unwrap().is_some());
}

/// A line of the request, then whole request read.
fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

const REFUSAL: &str =
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// How many turns there are, in how many processes.
const TURNS: usize = 16;
const PROCESSES: usize = 4;

/// A service that refuses the first turns all at once and answers the rest after a while; it tells
/// when each request has come.
fn service() -> (String, mpsc::Receiver<Instant>, Arc<Mutex<Option<Instant>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, arrivals) = mpsc::sync_channel(1_000);
    let refused_at = Arc::new(Mutex::new(None));
    let told = Arc::clone(&refused_at);
    std::thread::spawn(move || {
        let all_there = Arc::new(Barrier::new(TURNS));
        for (number, stream) in listener.incoming().enumerate() {
            let (mut stream, sender) = (stream.unwrap(), sender.clone());
            let (all_there, told) = (Arc::clone(&all_there), Arc::clone(&told));
            std::thread::spawn(move || {
                read_request(&stream);
                sender.send(Instant::now()).unwrap();
                if number < TURNS {
                    all_there.wait();
                    told.lock().unwrap().get_or_insert_with(Instant::now);
                    stream.write_all(REFUSAL.as_bytes()).unwrap();
                } else {
                    std::thread::sleep(Duration::from_millis(300));
                    stream.write_all(ANSWER.as_bytes()).unwrap();
                }
            });
        }
    });
    (address, arrivals, refused_at)
}

/// Plays one process: takes its share of the turns, all at once.
fn take_turns(home: &str, address: &str) {
    let text = format!(r#"{{"kind":"openai","base_url":"{address}","model":"m"}}"#);
    let providers = BTreeMap::from([("a".to_owned(), config(&text))]);
    let samples = TURNS / PROCESSES;
    let roles = BTreeMap::from([("a".to_owned(), RoleConfig { samples, ..RoleConfig::default() })]);
    let plan = plan(&OrchestrateConfig { roles, ..OrchestrateConfig::default() }, &providers, 1).unwrap();
    let environment = Environment::of([], "/");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let team = team::team(&plan, &environment, &Gates::of(&Home::at(home)));
        let turns = team.candidates.iter().map(|provider| async {
            let turn = Turn {
                messages: vec![Message::new(Role::User, "q")],
                tools: Vec::new(),
                output_schema: None,
                limits: Limits::default(),
                cwd: "/".into(),
                mark: "m".into(),
            };
            let events: Vec<_> = provider.turn(turn, CancellationToken::new()).collect().await;
            assert!(matches!(events.last(), Some(Ok(TurnEvent::Stop(StopReason::EndTurn)))), "{events:?}");
            assert!(events.iter().any(|event| matches!(event, Ok(TurnEvent::Waiting { .. }))), "{events:?}");
        });
        assert_eq!(join_all(turns).await.len(), samples);
    });
    played();
}

#[test]
fn turns_of_many_processes_wait_together_and_come_back_one_by_one() {
    if let Some(role) = role() {
        let (home, address) = role.split_once(' ').unwrap();
        return take_turns(home, address);
    }
    let root = tempfile::tempdir().unwrap();
    let (address, arrivals, refused_at) = service();
    let role = format!("{} {address}", root.path().display());
    let start = |_| -> Child {
        let test = "gates::tests::turns_of_many_processes_wait_together_and_come_back_one_by_one";
        let mut command: Command = rerun(test, &role);
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..PROCESSES).map(start).collect();
    for child in children {
        assert_played(&child.wait_with_output().unwrap());
    }
    let arrivals: Vec<Instant> = arrivals.try_iter().collect();
    assert_eq!(arrivals.len(), 2 * TURNS, "each is refused once and answered once");
    let refused = refused_at.lock().unwrap().unwrap();
    let after: Vec<u128> = arrivals[TURNS..].iter().map(|at| (*at - refused).as_millis()).collect();
    assert!(after[0] >= 1_000, "nobody asks before the time is over: {after:?}");
    assert!(after[1] >= after[0] + 300, "one tries, and the rest wait how it fares: {after:?}");
    assert!(after[TURNS - 1] - after[1] >= 100, "they do not come at one moment: {after:?}");
}
