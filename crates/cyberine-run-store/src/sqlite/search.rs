//! Listing and search. Every query walks an index from its newest end and stops at its limit.

use std::ops::RangeInclusive;

use rusqlite::{Connection, Params, Rows, params};

use super::database;
use super::write::indexable;
use crate::error::StoreError;
use crate::event::RunState;
use crate::port::{Cursor, RunSummary};
use cyberine_types::Timestamp;

/// How many of the newest runs a text too short for the trigram index is looked for in.
pub(crate) const SHORT_TEXT_RUNS: u32 = 2_000;
/// How many of the newest runs that begin to match a very long text are compared with all of it.
const LONG_TEXT_RUNS: u32 = 200;
/// The longest text that is handed to the trigram index, in characters: each costs it a cursor.
const PHRASE_CHARS: usize = 200;
/// The shortest text that the trigram index can find, in characters.
const TRIGRAM: usize = 3;

pub(crate) const STATES: [RunState; 6] = [
    RunState::Queued,
    RunState::Running,
    RunState::Suspended,
    RunState::Done,
    RunState::Error,
    RunState::Cancelled,
];

const SUMMARY: &str =
    "id, workflow, state, detail, task_preview, cwd, winner_preview, admitted_at, updated_at";

pub(crate) const NEWEST: &str = "SELECT n FROM runs ORDER BY n DESC LIMIT ?1";
pub(crate) const RECENT: &str = "SELECT n FROM runs ORDER BY updated_at DESC, n DESC LIMIT ?1";
pub(crate) const RECENT_AFTER: &str =
    "SELECT n FROM runs WHERE (updated_at, n) < (?2, ?3) ORDER BY updated_at DESC, n DESC LIMIT ?1";
pub(crate) const BY_TEXT: &str =
    "SELECT rowid FROM search WHERE search MATCH ?1 ORDER BY rowid DESC LIMIT ?2";
pub(crate) const BY_WINNER: &str =
    "SELECT rowid FROM search_winner WHERE search_winner MATCH ?1 ORDER BY rowid DESC LIMIT ?2";
pub(crate) const BY_STATE: &str = "SELECT n FROM runs WHERE state = ?1 ORDER BY n DESC LIMIT ?2";
const SHORT: &str = "SELECT runs.n, workflow, cwd, state, id, winner_preview,
           CASE WHEN json_valid(body) THEN json_extract(body, '$.prompt') END
    FROM runs LEFT JOIN events ON events.run = runs.n AND events.seq = 1 ORDER BY runs.n DESC LIMIT ?1";

const LONG: &str = "SELECT runs.n, cwd, CASE WHEN json_valid(body) THEN json_extract(body, '$.prompt') END
    FROM (SELECT rowid AS n FROM search WHERE search MATCH ?1 ORDER BY rowid DESC LIMIT ?2) AS near
    JOIN runs ON runs.n = near.n LEFT JOIN events ON events.run = runs.n AND events.seq = 1
    ORDER BY runs.n DESC";

/// Runs that contain `text`, newest first.
pub(crate) fn query(conn: &Connection, text: &str, limit: u32) -> Result<Vec<RunSummary>, StoreError> {
    let found = if text.is_empty() {
        numbers(conn, NEWEST, [limit])?
    } else if text.chars().count() < TRIGRAM {
        by_short_text(conn, text, limit)?
    } else {
        by_text(conn, text, limit)?
    };
    summaries(conn, &found)
}

/// Runs by their last change, newest first.
pub(crate) fn recent(
    conn: &Connection,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Vec<RunSummary>, StoreError> {
    let found = match after {
        None => numbers(conn, RECENT, [limit])?,
        Some(Cursor { updated_at, run }) => {
            let row = super::read::row(conn, run)?.ok_or(StoreError::NotFound { run })?;
            numbers(conn, RECENT_AFTER, params![limit, updated_at.unix_ms(), row.n])?
        }
    };
    summaries(conn, &found)
}

/// The text as one phrase of the full-text language, in which nothing but `"` is special.
pub(crate) fn phrase(text: &str) -> String {
    format!("\"{}\"", indexable(text).replace('"', "\"\""))
}

fn by_text(conn: &Connection, text: &str, limit: u32) -> Result<Vec<i64>, StoreError> {
    if let Some((end, _)) = text.char_indices().nth(PHRASE_CHARS) {
        return by_long_text(conn, text, &phrase(&text[..end]), limit);
    }
    let phrase = phrase(text);
    let mut found = numbers(conn, BY_TEXT, params![phrase, limit])?;
    found.extend(numbers(conn, BY_WINNER, params![phrase, limit])?);
    let text = text.to_ascii_lowercase();
    for state in STATES.iter().filter(|state| state.name().contains(&text)) {
        found.extend(numbers(conn, BY_STATE, params![state.name(), limit])?);
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// Finds by the text's beginning and compares the rest. Only prompts and directories are as long
/// as that.
fn by_long_text(conn: &Connection, text: &str, beginning: &str, limit: u32) -> Result<Vec<i64>, StoreError> {
    let failed = database("search runs");
    let text = text.to_lowercase();
    let mut statement = conn.prepare(LONG).map_err(&failed)?;
    let mut rows = statement.query(params![beginning, LONG_TEXT_RUNS]).map_err(&failed)?;
    take_matching(&mut rows, 1..=2, &text, limit)
}

fn by_short_text(conn: &Connection, text: &str, limit: u32) -> Result<Vec<i64>, StoreError> {
    let failed = database("search runs");
    let text = text.to_lowercase();
    let mut statement = conn.prepare(SHORT).map_err(&failed)?;
    let mut rows = statement.query([SHORT_TEXT_RUNS]).map_err(&failed)?;
    take_matching(&mut rows, 1..=6, &text, limit)
}

/// The first rows of which one of these columns contains the lower-case `text`.
fn take_matching(
    rows: &mut Rows<'_>,
    columns: RangeInclusive<usize>,
    text: &str,
    limit: u32,
) -> Result<Vec<i64>, StoreError> {
    let failed = database("search runs");
    let mut found = Vec::new();
    while found.len() < usize::try_from(limit).unwrap_or(usize::MAX)
        && let Some(row) = rows.next().map_err(&failed)?
    {
        let contains =
            |column| matches!(row.get::<_, String>(column), Ok(field) if field.to_lowercase().contains(text));
        if columns.clone().any(contains) {
            found.push(row.get(0).map_err(&failed)?);
        }
    }
    Ok(found)
}

fn numbers(conn: &Connection, sql: &str, params: impl Params) -> Result<Vec<i64>, StoreError> {
    let failed = database("list runs");
    let mut statement = conn.prepare(sql).map_err(&failed)?;
    let rows = statement.query_map(params, |row| row.get(0)).map_err(&failed)?;
    rows.collect::<rusqlite::Result<Vec<i64>>>().map_err(&failed)
}

/// The run's line; `None` where it cannot be read.
pub(crate) fn one(conn: &Connection, n: i64) -> Result<Option<RunSummary>, StoreError> {
    summaries(conn, &[n]).map(|mut found| found.pop())
}

/// A row that cannot be read is left out and never hides another.
fn summaries(conn: &Connection, found: &[i64]) -> Result<Vec<RunSummary>, StoreError> {
    let sql = format!("SELECT {SUMMARY} FROM runs WHERE n = ?1");
    let mut statement = conn.prepare(&sql).map_err(database("list runs"))?;
    let mut summaries = Vec::with_capacity(found.len());
    for n in found {
        match statement.query_row([n], summary) {
            Ok(summary) => summaries.push(summary),
            Err(rusqlite::Error::QueryReturnedNoRows) => {}
            Err(
                error @ (rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)),
            ) => {
                tracing::warn!(row = n, %error, "a run cannot be listed; run `cyberine doctor`");
            }
            Err(error) => return Err(database("list runs")(error)),
        }
    }
    Ok(summaries)
}

fn summary(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunSummary> {
    let id: String = row.get(0)?;
    let state: String = row.get(2)?;
    let known = STATES.into_iter().find(|known| known.name() == state);
    Ok(RunSummary {
        run_id: id.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
        })?,
        workflow_name: row.get(1)?,
        state: known.unwrap_or(RunState::Error),
        detail: match known {
            Some(_) => row.get(3)?,
            None => "its record is damaged; run `cyberine doctor`".to_owned(),
        },
        task_preview: row.get(4)?,
        cwd: row.get(5)?,
        winner_preview: row.get(6)?,
        started_at: Timestamp::from_unix_ms(row.get(7)?),
        updated_at: Timestamp::from_unix_ms(row.get(8)?),
    })
}

#[cfg(test)]
mod tests;
