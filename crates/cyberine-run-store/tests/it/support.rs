//! Homes, projects and runs for tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cyberine_run_store::doctor::{Finding, FindingKind, check};
use cyberine_run_store::{
    Ledger as _, NewRun, ProcessCount, Reserve, RunEvent, RunState, RunStore as _, SqliteRunStore,
};
use cyberine_types::{Clock, ManualClock, RunId, Timestamp, Usd};
use serde_json::json;
use tempfile::TempDir;

/// A home and a project of one test, removed with it.
pub(crate) struct Place {
    /// Removes the rest when it is dropped.
    pub(crate) root: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        // Noon, so that no test meets midnight unless it wants to.
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_796_040_000_000)));
        Self { root, clock }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn store(&self) -> SqliteRunStore {
        SqliteRunStore::new(self.home(), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    pub(crate) fn run(&self, prompt: &str) -> NewRun {
        NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".to_owned(),
            prompt: prompt.to_owned(),
            cwd: self.project().to_str().unwrap().to_owned(),
            requested_by: "test@1".to_owned(),
            spec: json!({}),
        }
    }

    pub(crate) fn run_dir(&self, id: RunId) -> PathBuf {
        self.project().join(".local/runs").join(id.to_string())
    }
}

/// A dollar held, without a cap.
pub(crate) fn dollar() -> Reserve {
    Reserve { amount: Usd::from_dollars(1.0), daily_cap: None }
}

/// Runs a future on a runtime like the server's.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// What a run of a child came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Run and sequence number of everything acknowledged.
    pub(crate) acks: Vec<(RunId, u64)>,
    /// The codes of what was refused.
    pub(crate) refusals: Vec<String>,
}

impl Said {
    pub(crate) fn parse(text: &str) -> Self {
        let mut said = Self::default();
        // A last line without its end was cut by a kill: nobody was told.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["ack", id, seq] => said.acks.push((id.parse().unwrap(), seq.parse().unwrap())),
                ["refused", code] => said.refusals.push((*code).to_owned()),
                other => unreachable!("the child said {other:?}"),
            }
        }
        said
    }
}

/// The example `store_child`, which `cargo test` builds beside the tests.
pub(crate) fn child_program() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().unwrap().parent().unwrap().join("examples/store_child");
    assert!(
        path.exists(),
        "build the example first: cargo build -p cyberine-run-store --example store_child"
    );
    path
}

pub(crate) fn child(place: &Place, mode: &str) -> Command {
    let mut command = Command::new(child_program());
    command.arg(mode).arg(place.home()).arg(place.project()).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// `strace` around a child, or `None` and a printed reason where there is none that works.
pub(crate) fn traced(place: &Place, mode: &str, options: &[&str]) -> Option<Command> {
    let works = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: `strace` is missing or may not trace (apt-get install -y strace)");
        return None;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(place.root.path().join("trace")).args(options);
    command.arg(child_program()).arg(mode).arg(place.home()).arg(place.project());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Some(command)
}

/// What must hold after any death: what was acknowledged is there, everything else is whole or
/// absent, the runs left behind can be adopted and settled, and then nothing is held and the
/// doctor is content.
pub(crate) fn assert_sound(place: &Place, acks: &[(RunId, u64)]) {
    block_on(async {
        let store = place.store();
        for (id, seq) in acks {
            let run = store.load(*id).await.unwrap().unwrap();
            assert!(run.next_seq > *seq, "event {seq} of {id} was acknowledged and is lost");
        }
        let report = check(&store).await.unwrap();
        let grave = [FindingKind::Database, FindingKind::Log, FindingKind::Row, FindingKind::Reservation];
        let found: Vec<_> = report.findings.iter().filter(|finding| grave.contains(&finding.kind)).collect();
        assert_eq!(found, Vec::<&Finding>::new());
        for id in store.unsettled().await.unwrap() {
            let claim = store.adopt(id).await.unwrap().unwrap();
            store.append(&claim, vec![interrupted()]).await.unwrap();
        }
        let totals = store.day(place.clock.now().day()).await.unwrap();
        assert_eq!(totals.reserved, Usd::ZERO, "every reservation is settled");
        assert_eq!(check(&store).await.unwrap().findings, []);
    });
}

pub(crate) fn interrupted() -> RunEvent {
    RunEvent::Settled {
        state: RunState::Error,
        detail: "its runner died".to_owned(),
        reason: Some("interrupted".to_owned()),
        processes: ProcessCount::default(),
    }
}

/// A small random sequence, seeded and printed by its user.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*, by Marsaglia and Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}
