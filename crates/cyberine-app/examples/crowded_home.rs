//! Fills a home with so many settled runs, and a mailbox of as many messages: what a server must not
//! look through when it starts. `cargo xtask bench start` runs it.
#![expect(clippy::unwrap_used, reason = "a measurement stops where it fails")]

use std::path::Path;
use std::sync::Arc;

use cyberine_bus::{
    Address, AddressKind, Bus as _, Channel, Durability, FileBus, From, FromKind, Outgoing, Sender,
};
use cyberine_run_store::{Idempotency as _, IdempotencyKey, SqliteRunStore};
use cyberine_types::{InstanceId, Principal, SystemClock};
use futures_util::future::join_all;

/// Messages that are written together.
const TOGETHER: u32 = 250;

const RUNS: &str = "
WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < ?1)
INSERT INTO runs(id, project, workflow, task_preview, cwd, state, settled, detail, admitted_at, updated_at,
    epoch, last_seq)
SELECT printf('%08x-0000-4000-8000-000000000000', n), 1, 'orchestrate', 'task ' || n, '/p', 'done', 1, '',
    n, n, 1, 1 FROM k";

const SEARCH: &str = "
WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < ?1)
INSERT INTO search(rowid, prompt, workflow, cwd, id) SELECT n, 'task ' || n, 'orchestrate', '/p', '' FROM k";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (home, count) = (arguments.next().unwrap(), arguments.next().unwrap().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        mail(Path::new(&home), count).await;
        runs(Path::new(&home), count).await;
    });
}

async fn mail(home: &Path, count: u32) {
    let bus = FileBus::new(home, Arc::new(SystemClock));
    let to = Address::new(AddressKind::Chat, "crowded").unwrap();
    let sender = Sender::new(&Principal::local("bench"), Channel::Mcp, InstanceId::random());
    let note = || {
        let from = From { kind: FromKind::Mcp, id: "bench@1".to_owned() };
        bus.publish(Outgoing::note(to.clone(), from, sender.clone(), "x".repeat(150)), Durability::Fast)
    };
    for _ in 0..count / TOGETHER {
        let published = join_all((0..TOGETHER).map(|_| note())).await;
        assert!(published.iter().all(Result::is_ok));
    }
}

async fn runs(home: &Path, count: u32) {
    // The first write makes the database.
    let store = SqliteRunStore::new(home, Arc::new(SystemClock));
    let key = IdempotencyKey { scope: "bench".into(), key: "k".into(), fingerprint: "f".into() };
    store.begin(key, "d".to_owned()).await.unwrap();
    drop(store);
    let mut database = rusqlite::Connection::open(home.join("state.db")).unwrap();
    let rows = database.transaction().unwrap();
    rows.execute("INSERT INTO projects(path, dev, ino) VALUES ('/p', 1, 1)", []).unwrap();
    rows.execute(RUNS, [count]).unwrap();
    rows.execute(SEARCH, [count]).unwrap();
    rows.commit().unwrap();
}
