//! What a project shows of its runs: `.local/runs/<runId>/` with `run.json`, `events.jsonl`,
//! `approval.json` and `outputs/`. All of it can be written again from the database, so none of it is synced.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use cyberine_fs::{Durability, FsError, Identity, PrivateDir};
use cyberine_types::RunId;
use serde::Serialize;

use crate::error::StoreError;
use crate::event::{Event, OperatorDecision, RunEvent, RunState};
use crate::run::Run;

pub(crate) const RUN: &str = "run.json";
pub(crate) const APPROVAL: &str = "approval.json";
pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const STREAM: &str = "stream.jsonl";
pub(crate) const CONTROL: &str = "control.json";
const LOCAL: &str = ".local";
const RUNS: &str = "runs";
pub(crate) const OUTPUTS: &str = "outputs";
/// The most that is read back of one projection.
pub(crate) const PROJECTION_MAX: usize = 1 << 30;

/// The directory of one run in its project. It is reached through the project's own handle, so
/// that a path component that is replaced later leads nowhere.
#[derive(Debug, Clone)]
pub struct RunDir {
    pub(crate) dir: PrivateDir,
}

impl RunDir {
    /// Where it lies, for messages and for watching.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Creates the directory of a run that is about to be admitted; `None` where there is one.
    pub(crate) fn create(project: &PrivateDir, run: RunId) -> Result<Option<Self>, FsError> {
        let local = directory(project, LOCAL)?;
        if !local.exists(".gitignore")? {
            local.replace(".gitignore", b"*\n", Durability::Fast)?;
        }
        let runs = directory(&local, RUNS)?;
        if runs.existing_subdir(&run.to_string())?.is_some() {
            return Ok(None);
        }
        directory(&runs, &run.to_string()).map(|dir| Some(Self { dir }))
    }

    /// The directory of a run, created where it has been lost.
    pub(crate) fn open_or_create(project: &PrivateDir, run: RunId) -> Result<Self, FsError> {
        let dir = directory(&directory(&directory(project, LOCAL)?, RUNS)?, &run.to_string())?;
        Ok(Self { dir })
    }

    /// The directory of a run, where there is one.
    pub(crate) fn open(project: &PrivateDir, run: RunId) -> Result<Option<Self>, FsError> {
        let Some(runs) = runs_of(project)? else { return Ok(None) };
        Ok(runs.existing_subdir(&run.to_string())?.map(|dir| Self { dir }))
    }

    /// Whether an admission was cut short and has left the directory: it writes one whole event,
    /// and then `run.json`. A log that cannot be read, or that is gone from beside its document,
    /// was a run.
    pub(crate) fn is_cut_short(&self) -> Result<bool, FsError> {
        let ReadLog { events, broken } = read_log(self)?;
        Ok(broken.is_none() && (events.len() == 1 || events.is_empty() && !self.dir.exists(RUN)?))
    }

    /// Removes the temporary files of writers that were killed; says how many. Only for who
    /// holds the lock of the run's files: there is no other living writer then.
    pub(crate) fn sweep(&self) -> Result<usize, FsError> {
        self.dir.sweep_temporary(Duration::ZERO)
    }

    /// Removes what an admission that was refused has written.
    pub(crate) fn discard(self) {
        for name in [RUN, EVENTS] {
            if let Err(error) = self.dir.remove(name) {
                tracing::debug!(%error, "a file of a refused run stays behind");
            }
        }
        if let Err(error) = self.sweep() {
            tracing::debug!(%error, "a temporary file of a refused run stays behind");
        }
        // Removes an empty directory only, whatever the path has become.
        if let Err(error) = std::fs::remove_dir(self.dir.path()) {
            tracing::debug!(%error, "the directory of a refused run stays behind");
        }
    }
}

/// The directory `name` in `parent`, made where there is none. Unlike [`PrivateDir::subdir`] it
/// does not sync the parent, since everything in here can be made again. The path is used for the
/// making only: what is entered afterwards is what lies in the directory that `parent` is.
fn directory(parent: &PrivateDir, name: &str) -> Result<PrivateDir, FsError> {
    if let Some(dir) = parent.existing_subdir(name)? {
        return Ok(dir);
    }
    let path = parent.path().join(name);
    let made = DirBuilder::new().mode(0o700).create(&path);
    match parent.existing_subdir(name)? {
        Some(dir) => Ok(dir),
        None => {
            let source = made.err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
            Err(FsError::Io { action: "create", path, source })
        }
    }
}

/// `.local/runs` of a project, where there is one.
fn runs_of(project: &PrivateDir) -> Result<Option<PrivateDir>, FsError> {
    let Some(local) = project.existing_subdir(LOCAL)? else { return Ok(None) };
    local.existing_subdir(RUNS)
}

/// The ids of the runs that have a directory in the project.
pub(crate) fn runs_in(project: &PrivateDir) -> Result<Vec<RunId>, FsError> {
    let Some(runs) = runs_of(project)? else { return Ok(Vec::new()) };
    let names = runs.list(usize::MAX)?.names;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// Opens a project's directory and checks that it is the one it was.
pub(crate) fn open_project(
    path: &str,
    known: Option<Identity>,
) -> Result<(PrivateDir, Identity), StoreError> {
    let path = Path::new(path);
    let unusable = |error: FsError| StoreError::project(path, &error);
    if !path.is_absolute() {
        let detail = "it is not an absolute path".to_owned();
        return Err(StoreError::ProjectUnusable { path: path.to_owned(), detail });
    }
    let dir = PrivateDir::open_existing(path).map_err(unusable)?;
    let identity = dir.identity().map_err(unusable)?;
    if known.is_some_and(|known| known != identity) {
        let detail = "another directory has taken its place since the run was admitted".to_owned();
        return Err(StoreError::ProjectUnusable { path: path.to_owned(), detail });
    }
    Ok((dir, identity))
}

/// Writes the projections of one run. The holder of the run's claim has one for as long as it
/// holds it, and whoever decides on the run one for a moment; each writes under the lock of the
/// run's files only.
#[derive(Debug)]
pub(crate) struct Projector {
    dir: RunDir,
    /// The last event that `events.jsonl` was given; zero where it has to be written anew.
    written: u64,
    /// How long `events.jsonl` was then, in bytes.
    size: u64,
    /// Whether somebody else held the files the last time, and for long.
    pub(crate) shut_out: bool,
}

impl Projector {
    pub(crate) const fn new(dir: RunDir) -> Self {
        Self { dir, written: 0, size: 0, shut_out: false }
    }

    pub(crate) fn into_dir(self) -> RunDir {
        self.dir
    }

    /// Whether `added` can be appended to what is written. Somebody else may have written more
    /// since.
    pub(crate) fn follows(&self, added: &[Event]) -> bool {
        let last = || self.dir.dir.read_from(EVENTS, self.size.saturating_sub(1), 2);
        self.written > 0
            && added.first().is_some_and(|first| first.seq == self.written + 1)
            && matches!(last(), Ok(Some(rest)) if rest == b"\n")
    }

    /// Whether the projections hold everything up to `seq` already.
    pub(crate) const fn covers(&self, seq: u64) -> bool {
        self.written >= seq
    }

    /// Adds events that follow what is written.
    pub(crate) fn extend(&mut self, run: &Run, added: &[Event]) -> Result<(), FsError> {
        let done = added.iter().filter_map(|event| match &event.body {
            RunEvent::CandidateDone { step, candidate, .. }
            | RunEvent::CandidateKept { step, candidate, .. } => Some((step.as_str(), candidate.as_str())),
            _ => None,
        });
        let done: BTreeSet<_> = done.collect();
        let (written, lines) = (std::mem::replace(&mut self.written, 0), lines(added));
        self.dir.dir.append(EVENTS, &lines, Durability::Fast)?;
        self.finish(run, |step, candidate| done.contains(&(step, candidate)))?;
        self.written = written + added.len() as u64;
        self.size += lines.len() as u64;
        Ok(())
    }

    /// Writes everything anew.
    pub(crate) fn rewrite(&mut self, run: &Run, log: &[Event]) -> Result<(), FsError> {
        self.written = 0;
        let lines = lines(log);
        self.dir.dir.replace(EVENTS, &lines, Durability::Fast)?;
        if run.decisions.is_empty() {
            self.dir.dir.remove(APPROVAL)?;
        }
        self.finish(run, |_, _| true)?;
        self.written = run.next_seq - 1;
        self.size = lines.len() as u64;
        Ok(())
    }

    fn finish(&self, run: &Run, wanted: impl Fn(&str, &str) -> bool) -> Result<(), FsError> {
        self.write_outputs(run, wanted)?;
        if !run.decisions.is_empty() {
            self.dir.dir.replace(APPROVAL, &approval(run), Durability::Fast)?;
        }
        if run.state.is_terminal() {
            self.dir.dir.remove(STREAM)?;
        }
        self.dir.dir.replace(RUN, &document(run), Durability::Fast)
    }

    fn write_outputs(&self, run: &Run, wanted: impl Fn(&str, &str) -> bool) -> Result<(), FsError> {
        let mut outputs = None;
        for (s, step) in run.steps.iter().enumerate() {
            for (c, candidate) in step.candidates.iter().enumerate() {
                if candidate.state != RunState::Done || !wanted(&step.id, &candidate.id) {
                    continue;
                }
                let dir = match outputs.take() {
                    Some(dir) => dir,
                    None => directory(&self.dir.dir, OUTPUTS)?,
                };
                dir.replace(
                    &output_name(s, c, &candidate.id),
                    candidate.output.as_bytes(),
                    Durability::Fast,
                )?;
                outputs = Some(dir);
            }
        }
        Ok(())
    }
}

/// `01-02-claude.md`: the numbers make it unique, the name is for people.
pub(crate) fn output_name(step: usize, candidate: usize, id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let id: String = id.chars().map(plain).take(40).collect();
    format!("{:02}-{:02}-{id}.md", step + 1, candidate + 1)
}

/// `run.json`.
pub(crate) fn document(run: &Run) -> Vec<u8> {
    pretty(run)
}

/// `approval.json`; there is one as soon as something was decided.
pub(crate) fn approval(run: &Run) -> Vec<u8> {
    #[derive(Serialize)]
    struct Approval<'run> {
        decisions: &'run [OperatorDecision],
    }
    pretty(&Approval { decisions: &run.decisions })
}

fn pretty(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Lines of `events.jsonl`.
pub(crate) fn lines(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events {
        bytes.extend(serde_json::to_vec(event).unwrap_or_default());
        bytes.push(b'\n');
    }
    bytes
}

/// What `events.jsonl` holds.
pub(crate) struct ReadLog {
    /// Every event up to the first line that is damaged or out of order.
    pub(crate) events: Vec<Event>,
    /// That line, where there is one.
    pub(crate) broken: Option<Broken>,
}

/// The place where a log breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The first line that is no event in its place, from 1.
    pub(crate) line: usize,
    /// How many lines follow it.
    pub(crate) rest: usize,
    /// Whether it is the last one and has no end: a writer was killed.
    pub(crate) is_torn_tail: bool,
}

pub(crate) fn read_log(dir: &RunDir) -> Result<ReadLog, FsError> {
    let bytes = dir.dir.read(EVENTS, PROJECTION_MAX)?.unwrap_or_default();
    let lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut events: Vec<Event> = Vec::new();
    for line in &lines {
        match serde_json::from_slice::<Event>(line) {
            Ok(event) if line.ends_with(b"\n") && event.seq == events.len() as u64 + 1 => events.push(event),
            _ => break,
        }
    }
    let broken = lines.get(events.len()).map(|line| {
        let rest = lines.len() - events.len() - 1;
        Broken { line: events.len() + 1, rest, is_torn_tail: rest == 0 && !line.ends_with(b"\n") }
    });
    Ok(ReadLog { events, broken })
}
