//! The queries for one run and the open runs.

use cyberine_fs::Identity;
use cyberine_types::{RunId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::write::Project;
use super::{database, int, uint};
use crate::error::StoreError;
use crate::event::Event;
use crate::fold;
use crate::run::Run;

/// What the database says of a run beside its events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) n: i64,
    pub(crate) id: RunId,
    pub(crate) epoch: u64,
    pub(crate) last_seq: u64,
    pub(crate) settled: bool,
}

pub(crate) fn row(conn: &Connection, id: RunId) -> Result<Option<Row>, StoreError> {
    conn.query_row("SELECT n, epoch, last_seq, settled FROM runs WHERE id = ?1", [id.to_string()], |row| {
        Ok(Row {
            n: row.get(0)?,
            id,
            epoch: uint(row.get(1)?),
            last_seq: uint(row.get(2)?),
            settled: row.get(3)?,
        })
    })
    .optional()
    .map_err(database("read a run"))
}

/// The run's events after `after`, oldest first.
pub(crate) fn events(conn: &Connection, row: &Row, after: u64) -> Result<Vec<Event>, StoreError> {
    let mut statement = conn
        .prepare("SELECT seq, at, epoch, body FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq")
        .map_err(database("read events"))?;
    let mut rows = statement.query(params![row.n, int(after)]).map_err(database("read events"))?;
    let mut events = Vec::new();
    while let Some(found) = rows.next().map_err(database("read events"))? {
        events.push(event(row.id, found)?);
    }
    Ok(events)
}

fn event(run: RunId, row: &rusqlite::Row<'_>) -> Result<Event, StoreError> {
    let corrupt = |detail: String| StoreError::Corrupt { run, detail };
    let column = |error: rusqlite::Error| corrupt(format!("an event's column has the wrong type: {error}"));
    let seq = uint(row.get(0).map_err(column)?);
    let body: String = row.get(3).map_err(column)?;
    let body = serde_json::from_str(&body).map_err(|error| corrupt(format!("event {seq}: {error}")))?;
    let at = Timestamp::from_unix_ms(row.get(1).map_err(column)?);
    Ok(Event { seq, at, epoch: uint(row.get(2).map_err(column)?), body })
}

/// The run, folded. `known` is the run as it was some events ago: only later ones are read then.
pub(crate) fn run_of(conn: &Connection, row: &Row, known: Option<Run>) -> Result<Run, StoreError> {
    let corrupt = |error: fold::FoldError| StoreError::Corrupt { run: row.id, detail: error.to_string() };
    let run = match known {
        Some(mut run) => {
            for event in events(conn, row, run.next_seq - 1)? {
                fold::apply(&mut run, &event).map_err(corrupt)?;
            }
            run
        }
        None => fold::fold(row.id, &events(conn, row, 0)?).map_err(corrupt)?,
    };
    if run.next_seq - 1 == row.last_seq {
        return Ok(run);
    }
    let detail = format!("it should have {} events and has {}", row.last_seq, run.next_seq - 1);
    Err(StoreError::Corrupt { run: row.id, detail })
}

/// Runs that are not over, oldest first.
pub(crate) fn unsettled(conn: &Connection) -> Result<Vec<RunId>, StoreError> {
    let mut statement = conn
        .prepare("SELECT id FROM runs WHERE settled = 0 ORDER BY n")
        .map_err(database("list open runs"))?;
    let ids = statement.query_map([], |row| row.get::<_, String>(0)).map_err(database("list open runs"))?;
    let mut found = Vec::new();
    for id in ids {
        match id.map_err(database("list open runs"))?.parse() {
            Ok(id) => found.push(id),
            Err(error) => tracing::warn!(%error, "an open run has no readable id; run `cyberine doctor`"),
        }
    }
    Ok(found)
}

/// The project of a run and which directory it was.
pub(crate) fn project(conn: &Connection, id: RunId) -> Result<Option<(String, Identity)>, StoreError> {
    let project = conn
        .query_row(
            "SELECT path, dev, ino FROM projects JOIN runs ON runs.project = projects.n WHERE runs.id = ?1",
            [id.to_string()],
            |row| {
                let (dev, ino): (i64, i64) = (row.get(1)?, row.get(2)?);
                Ok(Project { path: row.get(0)?, dev: dev.cast_unsigned(), ino: ino.cast_unsigned() })
            },
        )
        .optional()
        .map_err(database("find a run's project"))?;
    Ok(project.map(|found| (found.path, Identity { device: found.dev, inode: found.ino })))
}

/// The paths of the projects that have had a run.
pub(crate) fn projects(conn: &Connection) -> Result<Vec<String>, StoreError> {
    let failed = database("list projects");
    let mut statement = conn.prepare("SELECT DISTINCT path FROM projects ORDER BY n").map_err(&failed)?;
    let paths = statement.query_map([], |row| row.get(0)).map_err(&failed)?;
    paths.collect::<rusqlite::Result<_>>().map_err(&failed)
}

/// Whether the project at `path` has had a run.
pub(crate) fn knows_project(conn: &Connection, path: &str) -> Result<bool, StoreError> {
    conn.query_row("SELECT EXISTS (SELECT 1 FROM projects WHERE path = ?1)", [path], |row| row.get(0))
        .map_err(database("look for a project"))
}

/// Every run's id, oldest first; `Err` holds the text of one that is not an id.
pub(crate) fn all(conn: &Connection) -> Result<Vec<Result<RunId, String>>, StoreError> {
    let mut statement = conn.prepare("SELECT id FROM runs ORDER BY n").map_err(database("list runs"))?;
    let ids = statement
        .query_map([], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<String>>>)
        .map_err(database("list runs"))?;
    Ok(ids.into_iter().map(|id| id.parse().map_err(|_| id)).collect())
}
