//! How long a roster takes, against reading and parsing the same files and nothing else. Prints
//! one JSON object a size, with the best of several rounds in milliseconds and their ratio.
//!
//! `cargo run --release -p cyberine-presence --example roster_bench [-- SIZE…]`
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use cyberine_fs::{Durability, PrivateDir};
use cyberine_presence::{Activity, FilePresence, Host, Presence, Record, RecordAddr};
use cyberine_types::{Clock, InstanceId, SystemClock};
use serde_json::{Value, json};

const ROUNDS: usize = 7;

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "what is parsed is what counts")]
struct Stored {
    format: u32,
    ended: bool,
    record: Record,
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let given: Vec<usize> = std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    for size in if given.is_empty() { vec![1_000, 10_000] } else { given } {
        let line = runtime.block_on(measure(size))?;
        println!("{line}");
    }
    Ok(())
}

/// A home with `size` records, every second one of them stale.
async fn measure(size: usize) -> Result<Value, Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let home = scratch.path().join("home");
    let dir = PrivateDir::open_or_create(&home)?.subdir("bus")?.subdir("presence")?;
    for number in 0..size {
        fill(&dir, number)?;
    }
    let mut plain = Duration::MAX;
    let (mut first, mut again) = (Duration::MAX, Duration::MAX);
    let mut live = 0;
    for _ in 0..ROUNDS {
        plain = plain.min(timed(|| read_all(dir.path()))?);
        let presence = FilePresence::new(&home, Arc::new(SystemClock), InstanceId::random());
        let begun = Instant::now();
        live = presence.roster().await?.len();
        first = first.min(begun.elapsed());
        let begun = Instant::now();
        presence.roster().await?;
        again = again.min(begun.elapsed());
    }
    let ms = |time: Duration| (time.as_secs_f64() * 1e5).round() / 100.0;
    let ratio = |time: Duration| (time.as_secs_f64() / plain.as_secs_f64() * 100.0).round() / 100.0;
    Ok(json!({
        "records": size,
        "live": live,
        "plainMs": ms(plain),
        "rosterMs": ms(first),
        "rosterAgainMs": ms(again),
        "ratio": ratio(first),
        "ratioAgain": ratio(again),
    }))
}

fn fill(dir: &PrivateDir, number: usize) -> Result<(), Box<dyn Error>> {
    let is_stale = number % 2 == 1;
    let here = Host::here();
    let now = SystemClock.now();
    let record = Record {
        addr: RecordAddr { kind: "chat".to_owned(), id: format!("chat-{number}") },
        instance_id: InstanceId::random(),
        repo_cwd: "/home/somebody/projects/something".to_owned(),
        capabilities: vec!["orchestrate".to_owned(), "send_message".to_owned()],
        pid: std::process::id(),
        host: if is_stale { Host { boot_id: "another/1/2".to_owned(), ..here } } else { here },
        started_at: now,
        last_beat: now,
        beat_uptime_ms: 0,
        ttl_ms: 60_000,
        activity: Activity::Alive,
        team: Some("owls".to_owned()),
        role: Some("reviewer".to_owned()),
        name: Some(format!("reviewer {number}")),
    };
    let name = format!("{}-0.json", record.instance_id);
    let bytes = serde_json::to_vec(&json!({"format": 1, "ended": false, "record": record}))?;
    dir.replace(&name, &bytes, Durability::Fast)?;
    if is_stale {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.unix_ms())? - 3_600_000);
        std::fs::File::open(dir.path().join(name))?.set_modified(at)?;
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<usize, Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    std::hint::black_box(work()?);
    Ok(begun.elapsed())
}

fn read_all(path: &Path) -> Result<usize, Box<dyn Error>> {
    let mut found = 0;
    for entry in std::fs::read_dir(path)? {
        let bytes = std::fs::read(entry?.path())?;
        std::hint::black_box(serde_json::from_slice::<Stored>(&bytes)?);
        found += 1;
    }
    Ok(found)
}
