//! Homes, projects and runs for tests.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cyberine_run_store::doctor::{Finding, FindingKind, check};
use cyberine_run_store::{
    Begun, Idempotency as _, IdempotencyKey, Ledger as _, NewRun, ProcessCount, Reserve, RunEvent, RunState,
    RunStore as _, SqliteRunStore,
};
use cyberine_types::{Clock, ManualClock, RunId, Timestamp, Usd};
use serde_json::json;
use tempfile::TempDir;

/// The run in the database of format 1. Its project is on no machine any more.
pub(crate) const OLD_RUN: &str = "c07dfc4f-9480-4a56-9dd8-8e9540804e59";

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

    /// A place whose home has a database of format 1, as the first release wrote it, with one run
    /// that is over.
    pub(crate) fn of_format_1() -> Self {
        let place = Self::new();
        std::fs::create_dir(place.home()).unwrap();
        std::fs::set_permissions(place.home(), Permissions::from_mode(0o700)).unwrap();
        let database = place.home().join("state.db");
        std::fs::write(&database, include_bytes!("../fixtures/format-1.db")).unwrap();
        std::fs::set_permissions(&database, Permissions::from_mode(0o600)).unwrap();
        place
    }

    /// The format of the database.
    pub(crate) fn format(&self) -> i64 {
        let conn = rusqlite::Connection::open(self.home().join("state.db")).unwrap();
        conn.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
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
    Reserve::of(Usd::from_dollars(1.0), None)
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
    /// Decisions acknowledged: run, step or `-`, choice.
    pub(crate) decided: Vec<(RunId, String, String)>,
    /// Keys opened, with their drafts.
    pub(crate) began: Vec<(String, String)>,
    /// Results kept, by key.
    pub(crate) finished: Vec<(String, String)>,
    /// What was found standing: a decision, or a draft.
    pub(crate) stood: Vec<String>,
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
                ["decided", id, step, choice] => {
                    said.decided.push((id.parse().unwrap(), (*step).to_owned(), (*choice).to_owned()));
                }
                ["began", key, draft] => said.began.push(((*key).to_owned(), (*draft).to_owned())),
                ["finished", key, result] => said.finished.push(((*key).to_owned(), (*result).to_owned())),
                ["stood" | "found", what] => said.stood.push((*what).to_owned()),
                ["refused", code] => said.refusals.push((*code).to_owned()),
                other => unreachable!("the child said {other:?}"),
            }
        }
        said
    }

    /// How many things were acknowledged.
    pub(crate) fn count(&self) -> usize {
        self.acks.len() + self.decided.len() + self.began.len() + self.finished.len()
    }

    /// Adds what another child said.
    pub(crate) fn join(&mut self, other: Self) {
        self.acks.extend(other.acks);
        self.decided.extend(other.decided);
        self.began.extend(other.began);
        self.finished.extend(other.finished);
        self.stood.extend(other.stood);
        self.refusals.extend(other.refusals);
    }
}

/// Every decision, key and result that was acknowledged is there.
pub(crate) fn assert_kept(place: &Place, said: &Said) {
    block_on(async {
        let store = place.store();
        for (id, step, choice) in &said.decided {
            let run = store.load(*id).await.unwrap().unwrap();
            let target = (step != "-").then_some(step);
            let found = run.decisions.iter().find(|known| known.step_id.as_ref() == target);
            assert_eq!(found.map(|found| found.decision.name()), Some(choice.as_str()), "{id} {step}");
        }
        let begin = async |key: &str| {
            let (scope, fingerprint) = ("child".to_owned(), "same".to_owned());
            let key = IdempotencyKey { scope, key: key.to_owned(), fingerprint };
            store.begin(key, "another".to_owned()).await.unwrap()
        };
        for (key, result) in &said.finished {
            assert_eq!(begin(key).await, Begun::Finished(json!(result)), "{key}");
        }
        for (key, draft) in &said.began {
            match begin(key).await {
                Begun::Unfinished { draft: found } => assert_eq!(found, *draft),
                // The result came down, and the child died before it could say so.
                found => assert!(matches!(found, Begun::Finished(_)), "{key}: {found:?}"),
            }
        }
    });
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
    child_about(place, mode, place.project().to_str().unwrap())
}

/// A child that is told something else than the project.
pub(crate) fn child_about(place: &Place, mode: &str, what: &str) -> Command {
    let mut command = Command::new(child_program());
    command.arg(mode).arg(place.home()).arg(what).stdin(Stdio::null()).stdout(Stdio::piped());
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
        let mut left = check(&store).await.unwrap().findings;
        left.retain(|finding| finding.subject != OLD_RUN);
        assert_eq!(left, []);
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
