//! A home, processes in it, and foreign records.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use cyberine_presence::contract::chat;
use cyberine_presence::{Activity, FilePresence, Host, Presence, Record};
use cyberine_types::{InstanceId, SystemClock, Timestamp};
use tempfile::TempDir;

pub(crate) struct Place {
    scratch: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { scratch: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.home().join("bus/presence")
    }

    /// Presence of a process of its own: one that remembers nothing.
    pub(crate) fn fresh(&self) -> FilePresence {
        FilePresence::new(self.home(), Arc::new(SystemClock), InstanceId::random())
    }

    /// The names of the record files.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.files())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    /// Puts a record there that another process has written, so long ago by the file system.
    pub(crate) fn plant(&self, name: &str, record: &Record) -> PathBuf {
        let text = serde_json::json!({"format": 1, "ended": false, "record": record}).to_string();
        self.plant_text(name, &text)
    }

    pub(crate) fn plant_text(&self, name: &str, text: &str) -> PathBuf {
        self.make();
        let path = self.files().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Makes the directory as an announcement would.
    pub(crate) fn make(&self) {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.files()).unwrap();
    }

    /// Who is listed to a reader that remembers nothing.
    pub(crate) async fn listed(&self) -> Vec<String> {
        ids(&self.fresh()).await
    }
}

/// A record of the chat `id` of a process on another machine.
pub(crate) fn foreign(id: &str) -> Record {
    let at = Timestamp::from_unix_ms(1_796_040_000_000);
    Record {
        addr: chat(id).addr,
        instance_id: InstanceId::random(),
        repo_cwd: "/elsewhere".to_owned(),
        capabilities: Vec::new(),
        pid: 1,
        host: Host { boot_id: "another/1/2".to_owned(), pid_started: 7 },
        started_at: at,
        last_beat: at,
        beat_uptime_ms: 5_000,
        ttl_ms: 60_000,
        activity: Activity::Alive,
        team: None,
        role: None,
        name: None,
    }
}

/// A record of the chat `id` of this very process, with a beat of just now.
pub(crate) fn own(id: &str) -> Record {
    Record { pid: std::process::id(), host: Host::here(), beat_uptime_ms: uptime_ms(), ..foreign(id) }
}

pub(crate) fn uptime_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
    (seconds * 1000.0) as u64
}

/// Dates a file so many seconds from now: what is left of a beat after the clock was set.
pub(crate) fn date(path: &Path, seconds: i64) {
    let now = SystemTime::now();
    let span = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { now.checked_sub(span).unwrap_or(SystemTime::UNIX_EPOCH) } else { now + span };
    std::fs::File::open(path).unwrap().set_modified(at).unwrap();
}

pub(crate) async fn ids(presence: &FilePresence) -> Vec<String> {
    presence.roster().await.unwrap().into_iter().map(|member| member.record.addr.id).collect()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Looks until what is found is as wanted; gives up after five seconds.
pub(crate) async fn until<T: std::fmt::Debug + PartialEq, F: Future<Output = T>>(
    mut look: impl FnMut() -> F,
    wanted: T,
) {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let found = look().await;
        if found == wanted {
            return;
        }
        assert!(Instant::now() < end, "{found:?}, and not {wanted:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
