//! The transactions that change something. One commit is one transition.

use std::path::PathBuf;

use cyberine_types::{Clock, RunId, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::read::{self, Row};
use super::{database, int, money};
use crate::charge;
use crate::error::StoreError;
use crate::event::{Event, RunEvent};
use crate::fold::{self, preview};
use crate::money::Reserve;
use crate::port::{CancelOutcome, DecideOutcome, NewRun, Wish};
use crate::run::Run;
use crate::schema::FORMAT;

/// What is to be appended, by whom, and after what.
pub(crate) struct Addition {
    pub(crate) run: RunId,
    pub(crate) epoch: u64,
    /// The last event there may be.
    pub(crate) seen: Option<u64>,
    pub(crate) bodies: Vec<RunEvent>,
}

/// A project directory and which one it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its absolute path.
    pub(crate) path: String,
    /// The device it was on.
    pub(crate) dev: u64,
    /// Its inode.
    pub(crate) ino: u64,
}

/// A run after a change, with the events that the change added.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) run: Run,
    pub(crate) added: Vec<Event>,
    pub(crate) epoch: u64,
}

impl Changed {
    pub(crate) const fn last_seq(&self) -> u64 {
        self.run.next_seq.saturating_sub(1)
    }
}

pub(crate) fn begin(conn: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database("begin a transaction"))
}

/// Refuses where a newer program has brought the database to its format since it was opened here: it
/// may count more than is written here. Runs that are under way come to their end.
fn refuse_newer(tx: &Transaction<'_>) -> Result<(), StoreError> {
    let found: i64 = tx
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(database("read the database's format"))?;
    if found > FORMAT {
        let path = tx.path().map(PathBuf::from).unwrap_or_default();
        return Err(StoreError::NewerDatabase { path, found, known: FORMAT });
    }
    Ok(())
}

/// The first event of a run that somebody wants.
pub(crate) fn first_event(at: Timestamp, new: &NewRun, reserve: &Reserve) -> Event {
    let body = RunEvent::Admitted {
        workflow: new.workflow.clone(),
        prompt: new.prompt.clone(),
        cwd: new.cwd.clone(),
        requested_by: new.requested_by.clone(),
        spec: new.spec.clone(),
        reserved: reserve.amount,
        shares: reserve.shares.clone(),
    };
    Event { seq: 1, at, epoch: 1, body }
}

/// Cap check, run, first event, reservation and search rows, in one transaction.
pub(crate) fn admit(
    conn: &mut Connection,
    first: &Event,
    run: &Run,
    project: &Project,
    reserve: &Reserve,
) -> Result<(), StoreError> {
    let tx = begin(conn)?;
    refuse_newer(&tx)?;
    if read::row(&tx, run.run_id)?.is_some() {
        return Err(StoreError::AlreadyAdmitted { run: run.run_id });
    }
    money::check(&tx, first.at.day(), reserve)?;
    insert(&tx, run, std::slice::from_ref(first), project)?;
    tx.commit().map_err(database("commit an admission"))
}

/// Inserts a run with the events it was folded from: one, or, where a database is rebuilt, all.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    run: &Run,
    log: &[Event],
    project: &Project,
) -> Result<(), StoreError> {
    let project = project_row(tx, project).map_err(database("record a project"))?;
    insert_run(tx, run, log.iter().map(|event| event.epoch).max().unwrap_or(1), project)
        .map_err(database("record a run"))?;
    let n = tx.last_insert_rowid();
    insert_events(tx, n, run.run_id, log)?;
    index_run(tx, n, run).map_err(database("index a run"))?;
    money::set_reservation(tx, n, run).map_err(database("record a reservation"))
}

fn project_row(tx: &Transaction<'_>, project: &Project) -> rusqlite::Result<i64> {
    // Device and inode numbers use all 64 bits on some systems: they are stored bit for bit.
    let key = params![project.path, project.dev.cast_signed(), project.ino.cast_signed()];
    tx.execute("INSERT OR IGNORE INTO projects(path, dev, ino) VALUES (?1, ?2, ?3)", key)?;
    tx.query_row("SELECT n FROM projects WHERE path = ?1 AND dev = ?2 AND ino = ?3", key, |row| row.get(0))
}

fn insert_run(tx: &Transaction<'_>, run: &Run, epoch: u64, project: i64) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO runs(id, project, workflow, task_preview, cwd, state, settled, detail, winner_preview,
                          admitted_at, updated_at, epoch, last_seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            run.run_id.to_string(),
            project,
            run.workflow_name,
            preview(&run.task),
            run.cwd,
            run.state.name(),
            run.state.is_terminal(),
            run.detail,
            winner_preview(run),
            run.started_at.unix_ms(),
            run.updated_at.unix_ms(),
            int(epoch),
            int(run.next_seq - 1),
        ],
    )?;
    Ok(())
}

fn index_run(tx: &Transaction<'_>, n: i64, run: &Run) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO search(rowid, prompt, workflow, cwd, id) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            n,
            indexable(&run.task),
            indexable(&run.workflow_name),
            indexable(&run.cwd),
            run.run_id.to_string()
        ],
    )?;
    index_winner(tx, n, winner_preview(run).as_deref())
}

fn index_winner(tx: &Transaction<'_>, n: i64, winner: Option<&str>) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM search_winner WHERE rowid = ?1", [n])?;
    if let Some(winner) = winner {
        tx.execute(
            "INSERT INTO search_winner(rowid, winner) VALUES (?1, ?2)",
            params![n, indexable(winner)],
        )?;
    }
    Ok(())
}

/// The tokenizer stops at a NUL; one that is searched for is replaced in the same way.
pub(crate) fn indexable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn winner_preview(run: &Run) -> Option<String> {
    run.winner().map(|winner| preview(&winner.output))
}

fn insert_events(tx: &Transaction<'_>, n: i64, run: RunId, events: &[Event]) -> Result<(), StoreError> {
    let mut statement = tx
        .prepare("INSERT INTO events(run, seq, at, epoch, body) VALUES (?1, ?2, ?3, ?4, ?5)")
        .map_err(database("record an event"))?;
    for event in events {
        let body = serde_json::to_string(&event.body)
            .map_err(|error| StoreError::Corrupt { run, detail: error.to_string() })?;
        statement
            .execute(params![n, int(event.seq), event.at.unix_ms(), int(event.epoch), body])
            .map_err(database("record an event"))?;
    }
    Ok(())
}

/// Appends under a claim.
pub(crate) fn append(
    conn: &mut Connection,
    clock: &dyn Clock,
    known: Option<Run>,
    Addition { run: id, epoch, seen, bodies }: Addition,
) -> Result<Changed, StoreError> {
    let tx = begin(conn)?;
    let row = present(&tx, id)?;
    let fenced = |detail: &str| Err(StoreError::Fenced { run: id, epoch, detail: detail.to_owned() });
    if row.epoch != epoch {
        return fenced("another claim has been taken since");
    }
    if row.settled {
        return fenced("the run is over");
    }
    if let Some(seen) = seen.filter(|seen| *seen != row.last_seq) {
        return Err(StoreError::Moved { run: id, last: row.last_seq, seen });
    }
    let changed = extend(&tx, &row, clock.now(), known, bodies)?;
    tx.commit().map_err(database("commit a transition"))?;
    Ok(changed)
}

/// Takes the claim for a caller that holds the run's lock, and appends `bodies` under it. `None`
/// where the run is over.
pub(crate) fn claim(
    conn: &mut Connection,
    clock: &dyn Clock,
    id: RunId,
    known: Option<Run>,
    bodies: Vec<RunEvent>,
) -> Result<Option<Changed>, StoreError> {
    let tx = begin(conn)?;
    let mut row = present(&tx, id)?;
    if row.settled {
        return Ok(None);
    }
    row.epoch += 1;
    tx.execute("UPDATE runs SET epoch = ?2 WHERE n = ?1", params![row.n, int(row.epoch)])
        .map_err(database("take a claim"))?;
    let changed = extend(&tx, &row, clock.now(), known, bodies)?;
    tx.commit().map_err(database("commit a claim"))?;
    Ok(Some(changed))
}

/// Records that somebody wants the run stopped. Needs no claim.
pub(crate) fn request_cancel(
    conn: &mut Connection,
    clock: &dyn Clock,
    id: RunId,
    by: String,
    reason: Option<String>,
) -> Result<CancelOutcome, StoreError> {
    let tx = begin(conn)?;
    let Some(row) = read::row(&tx, id)? else { return Ok(CancelOutcome::NotFound) };
    let run = read::run_of(&tx, &row, None)?;
    if run.state.is_terminal() {
        return Ok(CancelOutcome::AlreadyFinished(run.state));
    }
    if run.cancel_requested_by.is_none() {
        extend(&tx, &row, clock.now(), Some(run), vec![RunEvent::CancelRequested { by, reason }])?;
        tx.commit().map_err(database("commit a request to stop"))?;
    }
    Ok(CancelOutcome::Requested)
}

/// Records what somebody decided, and returns the run as it is then. Needs no claim, and no run
/// that is still open.
pub(crate) fn decide(
    conn: &mut Connection,
    clock: &dyn Clock,
    id: RunId,
    wish: Wish,
) -> Result<(DecideOutcome, Option<Run>), StoreError> {
    let tx = begin(conn)?;
    let Some(row) = read::row(&tx, id)? else { return Ok((DecideOutcome::NotFound, None)) };
    let run = read::run_of(&tx, &row, None)?;
    let at = run.moment(clock.now());
    let decision = match run.decide(wish, at) {
        Ok(decision) => decision,
        Err(outcome) => return Ok((outcome, None)),
    };
    let event = RunEvent::Decided { decision: decision.clone() };
    let changed = extend(&tx, &row, at, Some(run), vec![event])?;
    tx.commit().map_err(database("commit a decision"))?;
    Ok((DecideOutcome::Recorded(decision), Some(changed.run)))
}

fn present(tx: &Transaction<'_>, id: RunId) -> Result<Row, StoreError> {
    read::row(tx, id)?.ok_or(StoreError::NotFound { run: id })
}

/// Appends at the moment `now`, which is read after the database's lock was waited for.
fn extend(
    tx: &Transaction<'_>,
    row: &Row,
    now: Timestamp,
    known: Option<Run>,
    bodies: Vec<RunEvent>,
) -> Result<Changed, StoreError> {
    let mut run = read::run_of(tx, row, known)?;
    let at = run.moment(now);
    let winner_before = winner_preview(&run);
    let mut added = Vec::with_capacity(bodies.len());
    for body in bodies {
        let event = Event { seq: run.next_seq, at, epoch: row.epoch, body };
        fold::apply(&mut run, &event).map_err(|source| StoreError::EventRefused { run: row.id, source })?;
        added.push(event);
    }
    if !added.is_empty() {
        insert_events(tx, row.n, row.id, &added)?;
        update_row(tx, row.n, &run).map_err(database("record a run's state"))?;
        let winner = winner_preview(&run);
        if winner != winner_before {
            index_winner(tx, row.n, winner.as_deref()).map_err(database("index a winner"))?;
        }
        if run.state.is_terminal() && !row.settled {
            settle_reservation(tx, row, &run)?;
        }
    }
    Ok(Changed { run, added, epoch: row.epoch })
}

fn update_row(tx: &Transaction<'_>, n: i64, run: &Run) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE runs SET state = ?2, settled = ?3, detail = ?4, winner_preview = ?5, updated_at = ?6, last_seq = ?7
         WHERE n = ?1",
        params![
            n,
            run.state.name(),
            run.state.is_terminal(),
            run.detail,
            winner_preview(run),
            run.updated_at.unix_ms(),
            int(run.next_seq - 1),
        ],
    )?;
    Ok(())
}

/// Makes a run's row and its search rows what its events make of them.
pub(crate) fn repair_row(tx: &Transaction<'_>, n: i64, run: &Run) -> rusqlite::Result<()> {
    update_row(tx, n, run)?;
    tx.execute(
        "UPDATE runs SET workflow = ?2, task_preview = ?3, cwd = ?4, admitted_at = ?5 WHERE n = ?1",
        params![n, run.workflow_name, preview(&run.task), run.cwd, run.started_at.unix_ms()],
    )?;
    index_winner(tx, n, winner_preview(run).as_deref())
}

fn settle_reservation(tx: &Transaction<'_>, row: &Row, run: &Run) -> Result<(), StoreError> {
    let settled = tx
        .execute(
            "UPDATE reservations SET spent = ?2 WHERE run = ?1 AND spent IS NULL",
            params![row.n, int(charge::charge(run).micros())],
        )
        .map_err(database("settle a reservation"))?;
    if settled == 1 {
        return money::set_charges(tx, row.n, run).map_err(database("settle a reservation"));
    }
    Err(StoreError::Corrupt {
        run: row.id,
        detail: "its reservation is missing or settled already".to_owned(),
    })
}
