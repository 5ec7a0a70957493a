//! The database's tables, and how an older database becomes a present one.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::sqlite::{money, read};

/// Marks a file as a database of ours (`PRAGMA application_id`): `CYBR` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x4359_4252;

/// Step `n` takes a database of format `n` to format `n + 1`. A step that was released never
/// changes.
const STEPS: [&str; 3] = [FORMAT_1, FORMAT_2, FORMAT_3];

/// The newest format (`PRAGMA user_version`) known here.
pub(crate) const FORMAT: i64 = STEPS.len() as i64;

/// `runs.n` is the order of admission: listing newest first walks the primary key backwards.
/// Times are Unix milliseconds, money is micro-dollars, a day counts from 1970-01-01 in UTC.
/// The two search tables hold trigrams only; their row ids are `runs.n`.
const FORMAT_1: &str = "
CREATE TABLE projects(
  n INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  dev INTEGER NOT NULL,
  ino INTEGER NOT NULL,
  UNIQUE(path, dev, ino)
);
CREATE TABLE runs(
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project INTEGER NOT NULL REFERENCES projects(n),
  workflow TEXT NOT NULL,
  task_preview TEXT NOT NULL,
  cwd TEXT NOT NULL,
  state TEXT NOT NULL,
  settled INTEGER NOT NULL,
  detail TEXT NOT NULL,
  winner_preview TEXT,
  admitted_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  last_seq INTEGER NOT NULL
);
CREATE INDEX runs_by_state ON runs(state, n);
CREATE INDEX runs_by_change ON runs(updated_at, n);
CREATE INDEX runs_open ON runs(n) WHERE settled = 0;
CREATE TABLE events(
  run INTEGER NOT NULL REFERENCES runs(n),
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY(run, seq)
);
CREATE TABLE reservations(
  run INTEGER PRIMARY KEY REFERENCES runs(n),
  day INTEGER NOT NULL,
  held INTEGER NOT NULL,
  spent INTEGER
);
CREATE INDEX reservations_by_day ON reservations(day, spent, held);
CREATE VIRTUAL TABLE search USING fts5(
  prompt, workflow, cwd, id, content = '', tokenize = 'trigram');
CREATE VIRTUAL TABLE search_winner USING fts5(
  winner, content = '', contentless_delete = 1, tokenize = 'trigram');
";

/// Keys that calls carried, and the first result of each.
const FORMAT_2: &str = "
CREATE TABLE keys(
  n INTEGER PRIMARY KEY,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  draft TEXT NOT NULL,
  result TEXT,
  begun_at INTEGER NOT NULL,
  UNIQUE(scope, key)
);
CREATE INDEX keys_by_age ON keys(begun_at);
";

/// Who asked for a run, and what it holds and was charged by provider. The index has every column
/// that a day is added up from.
const FORMAT_3: &str = "
ALTER TABLE reservations ADD COLUMN caller TEXT NOT NULL DEFAULT '';
CREATE INDEX reservations_by_caller ON reservations(day, caller, spent, held);
CREATE TABLE charges(
  run INTEGER NOT NULL REFERENCES runs(n),
  provider TEXT NOT NULL,
  day INTEGER NOT NULL,
  billing TEXT NOT NULL,
  held INTEGER NOT NULL,
  spent INTEGER,
  turns INTEGER NOT NULL,
  unknown INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  PRIMARY KEY(run, provider)
) WITHOUT ROWID;
CREATE INDEX charges_by_day ON charges(
  day, provider, billing, spent, held, turns, unknown, input, output);
";
/// The format from which on charges are recorded by provider.
const WITH_CHARGES: i64 = 3;

/// What a database is to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Of the present format.
    Present,
    /// Empty, or of an older format.
    Older,
    /// Of a format that is not known here.
    Newer(i64),
    /// Something else's database.
    Foreign,
}

/// Looks at the database's marks, all of one instant: another process may be making it.
pub(crate) fn standing(conn: &Connection) -> rusqlite::Result<Standing> {
    let conn = conn.unchecked_transaction()?;
    let application: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let format: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(match (application, format) {
        (APPLICATION_ID, found) if found > FORMAT => Standing::Newer(found),
        (APPLICATION_ID, FORMAT) => Standing::Present,
        (APPLICATION_ID, _) => Standing::Older,
        (0, 0) => {
            let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables == 0 { Standing::Older } else { Standing::Foreign }
        }
        _ => Standing::Foreign,
    })
}

/// Brings an empty or older database to the present format, one transaction a step: a kill at
/// any point leaves a format that is known.
pub(crate) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    loop {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let format: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let Some(step) = usize::try_from(format).ok().and_then(|format| STEPS.get(format)) else {
            return Ok(());
        };
        tx.execute_batch(step)?;
        if format + 1 == WITH_CHARGES {
            charge_old_runs(&tx)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", format + 1)?;
        tx.commit()?;
    }
}

/// Records by provider what runs of an older format hold and were charged, one run at a time. One
/// that cannot be read is left as it is, for `cyberine doctor`.
fn charge_old_runs(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut ids = tx.prepare("SELECT id FROM runs ORDER BY n")?;
    let mut rows = ids.query([])?;
    while let Some(found) = rows.next()? {
        let id: String = found.get(0)?;
        let Ok(id) = id.parse() else { continue };
        let run = match read::row(tx, id) {
            Ok(Some(row)) => read::run_of(tx, &row, None).map(|run| (row.n, run)),
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        match run {
            Ok((n, run)) => money::set_reservation(tx, n, &run)?,
            Err(StoreError::Database { source, .. }) => return Err(source),
            Err(error) => tracing::warn!(run = %id, %error, "a run's money is not told apart by provider"),
        }
    }
    Ok(())
}
