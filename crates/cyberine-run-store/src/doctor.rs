//! Checks of a home's runs, repair of what can be derived, and rebuilding of a lost database.

use cyberine_types::RunId;
use rusqlite::{Connection, TransactionBehavior};
use serde::Serialize;

use crate::charge;
use crate::error::{StoreError, chain};
use crate::event::Event;
use crate::fold;
use crate::memory::summary;
use crate::port::RunSummary;
use crate::run::Run;
use crate::sqlite::{Inner, SqliteRunStore, database, money, read, search, write};

mod files;
mod rebuild;

pub use rebuild::{Rebuilt, rebuild};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How many runs were looked at.
    pub runs: u64,
    /// What was out of order, in no particular order.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is out of order, or only what a live home may have: projects that were
    /// removed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.kind.is_expected())
    }
}

/// One thing that is out of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// What it is about: a run id, a path, `state.db`.
    pub subject: String,
    /// What is wrong, in words.
    pub detail: String,
    /// Whether the check has put it right.
    pub repaired: bool,
}

/// Kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The database file itself is damaged.
    Database,
    /// A run's events have a hole or cannot be read.
    Log,
    /// A run's row is not what its events make of it.
    Row,
    /// A run's reservation is not what its events make of it.
    Reservation,
    /// A run's files in its project are not what its events make of them.
    Projection,
    /// A project has the directory of a run that the database does not know.
    Orphan,
    /// A project is missing from the list by which a lost database is rebuilt.
    Unlisted,
    /// A lock or wake-up file of a run that is over or unknown.
    Leftover,
    /// A run is not over and nobody holds its claim. Every process settles such runs when it
    /// starts, so one that stays could not be settled.
    Abandoned,
    /// A project's directory is gone or is another one.
    ProjectGone,
}

impl FindingKind {
    /// Whether a home in good order may have it.
    #[must_use]
    pub const fn is_expected(self) -> bool {
        matches!(self, Self::ProjectGone)
    }
}

/// Checks everything: the database's pages, every run's log against its row, its reservation and
/// its projections, and what lies around. What follows from the events is put right.
///
/// # Errors
/// Where the home or its database cannot be opened at all.
pub async fn check(store: &SqliteRunStore) -> Result<Report, StoreError> {
    store.blocking(check_home).await
}

fn check_home(inner: &Inner) -> Result<Report, StoreError> {
    let mut report = Report::default();
    inner.database.read(|conn| check_pages(conn, &mut report))?;
    match check_runs(inner, &mut report) {
        // What was found is told, and nothing is derived from a database that cannot be read.
        Err(error @ StoreError::DatabaseDamaged { .. }) if !report.findings.is_empty() => {
            report.add(FindingKind::Database, "state.db".to_owned(), detail(&error), Repair::Left);
            return Ok(report);
        }
        outcome => outcome?,
    }
    files::check_projects(inner, &mut report)?;
    files::check_orphans(inner, &mut report)?;
    files::check_leftovers(inner, &mut report)?;
    Ok(report)
}

fn check_runs(inner: &Inner, report: &mut Report) -> Result<(), StoreError> {
    for id in inner.database.read(read::all)? {
        report.runs += 1;
        match id {
            Ok(id) => check_run(inner, id, report)?,
            Err(text) => {
                let detail = "its id is not a run id".to_owned();
                report.add(FindingKind::Row, text.chars().take(80).collect(), detail, Repair::Left);
            }
        }
    }
    Ok(())
}

/// Whether a finding has been put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repair {
    Done,
    Left,
}

impl Report {
    fn add(&mut self, kind: FindingKind, subject: String, detail: String, repair: Repair) {
        self.findings.push(Finding { kind, subject, detail, repaired: repair == Repair::Done });
    }
}

fn check_pages(conn: &Connection, report: &mut Report) -> Result<(), StoreError> {
    for pragma in ["PRAGMA integrity_check(20)", "PRAGMA foreign_key_check"] {
        let failed = database("check the database");
        let mut statement = conn.prepare(pragma).map_err(&failed)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(&failed)?;
        for row in rows {
            let text = row.map_err(&failed)?;
            if text != "ok" {
                report.add(FindingKind::Database, "state.db".to_owned(), text, Repair::Left);
            }
        }
    }
    Ok(())
}

fn check_run(inner: &Inner, id: RunId, report: &mut Report) -> Result<(), StoreError> {
    match inner.database.write(|conn| check_record(conn, id, report)) {
        Ok(Some((run, log))) => files::check_projection(inner, &run, &log, report),
        Ok(None) => Ok(()),
        Err(StoreError::Corrupt { detail, .. }) => {
            report.add(FindingKind::Log, id.to_string(), detail, Repair::Left);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Checks one run's log, row and reservation in one transaction, so that nothing moves meanwhile.
fn check_record(
    conn: &mut Connection,
    id: RunId,
    report: &mut Report,
) -> Result<Option<(Run, Vec<Event>)>, StoreError> {
    let failed = database("check a run");
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    let Some(row) = read::row(&tx, id)? else { return Ok(None) };
    let log = read::events(&tx, &row, 0)?;
    let run =
        fold::fold(id, &log).map_err(|error| StoreError::Corrupt { run: id, detail: error.to_string() })?;
    let mut changed = false;
    if let Some(detail) = row_differs(&tx, &row, &run)? {
        write::repair_row(&tx, row.n, &run).map_err(&failed)?;
        report.add(FindingKind::Row, id.to_string(), detail, Repair::Done);
        changed = true;
    }
    let (wanted, found) = (money::Reservation::of(&run), money::reservation(&tx, row.n)?);
    let (charged, recorded) = (charge::charges(&run), money::charges(&tx, row.n)?);
    if found.as_ref() != Some(&wanted) || recorded != charged {
        money::set_reservation(&tx, row.n, &run).map_err(&failed)?;
        let detail = if found.as_ref() == Some(&wanted) {
            format!("by provider it says {}, and should say {}", all(&recorded), all(&charged))
        } else {
            let found = found.map_or_else(|| "nothing".to_owned(), |found| found.to_string());
            format!("it says {found}, and should say {wanted}")
        };
        report.add(FindingKind::Reservation, id.to_string(), detail, Repair::Done);
        changed = true;
    }
    if changed {
        tx.commit().map_err(&failed)?;
    }
    Ok(Some((run, log)))
}

/// Charges in one line.
fn all(charges: &[charge::Charge]) -> String {
    match charges {
        [] => "nothing".to_owned(),
        charges => charges.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

fn row_differs(conn: &Connection, row: &read::Row, run: &Run) -> Result<Option<String>, StoreError> {
    if row.last_seq != run.next_seq - 1 {
        return Ok(Some(format!("it counts {} events of {}", row.last_seq, run.next_seq - 1)));
    }
    if row.settled != run.state.is_terminal() {
        return Ok(Some(format!("it is {} over", if row.settled { "marked as" } else { "not marked as" })));
    }
    let listed: Option<RunSummary> = search::one(conn, row.n)?;
    Ok(match listed {
        Some(listed) if listed == summary(run) => None,
        Some(listed) => Some(format!("it is listed as {} since {}", listed.state.name(), listed.updated_at)),
        None => Some("it cannot be listed".to_owned()),
    })
}

/// An error as a finding's detail.
fn detail(error: &StoreError) -> String {
    chain(error)
}
