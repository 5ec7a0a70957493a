//! Real children: they flood, hang, hide and leave others behind. Some tests run this binary again
//! as a process of its own: as a runner, to be killed, or as a subreaper, which a whole process is.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests start their own helpers, may panic, and read the real environment"
)]

mod children;
mod detached;
mod helper;
mod pumps;
mod trees;

use std::time::{Duration, Instant};

use cyberine_process::{ChildEnvironment, Running, Spawn, spawn};

/// As long as a slow machine may need for what takes an instant elsewhere.
const PATIENCE: Duration = Duration::from_secs(20);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(3 * PATIENCE, future).await.expect("the test hangs") })
}

fn environment() -> ChildEnvironment {
    ChildEnvironment::allowed(std::env::vars_os())
}

/// A shell script, ready to be started.
fn script(text: &str) -> Spawn {
    Spawn { args: vec!["-c".into(), text.into()], ..Spawn::new("sh", environment(), "/") }
}

fn python(text: &str) -> Spawn {
    Spawn { args: vec!["-c".into(), text.into()], ..Spawn::new("python3", environment(), "/") }
}

/// Everything a child writes.
async fn read_all(child: &mut Running) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = child.next_chunk().await.unwrap() {
        all.extend_from_slice(&chunk);
    }
    all
}

/// Reads until the child has written a whole line.
async fn read_line(child: &mut Running) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.extend_from_slice(&child.next_chunk().await.unwrap().expect("the child ended too early"));
    }
    String::from_utf8(line).unwrap().trim().to_owned()
}

fn start(what: Spawn) -> Running {
    spawn(what).unwrap()
}

/// Looks until `condition` holds.
async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
