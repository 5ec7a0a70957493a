//! The transactions of keys.

use cyberine_types::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::database;
use super::write::begin as transaction;
use crate::error::StoreError;
use crate::keys::{self, Entry};
use crate::port::{Begun, IdempotencyKey};

/// Opens a key that is new, or says how it stands. Whoever opens one drops some that are too old.
pub(crate) fn begin(
    conn: &mut Connection,
    now: Timestamp,
    key: &IdempotencyKey,
    draft: String,
) -> Result<Begun, StoreError> {
    keys::check(key, &draft)?;
    let (failed, oldest) = (database("open a key"), keys::oldest(now));
    let tx = transaction(conn)?;
    if let Some(entry) = entry(&tx, key).map_err(&failed)?.filter(|entry| entry.begun_at >= oldest) {
        return Ok(entry.begun(&key.fingerprint));
    }
    tx.execute(
        "DELETE FROM keys WHERE n IN (SELECT n FROM keys WHERE begun_at < ?1 ORDER BY begun_at LIMIT ?2)",
        params![oldest.unix_ms(), keys::DROPPED],
    )
    .map_err(&failed)?;
    // The key itself may be too old, and not among those that were dropped.
    tx.execute(
        "INSERT OR REPLACE INTO keys(scope, key, fingerprint, draft, begun_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![key.scope, key.key, key.fingerprint, draft, now.unix_ms()],
    )
    .map_err(&failed)?;
    tx.commit().map_err(database("commit a key"))?;
    Ok(Begun::Fresh)
}

/// Records the first result of an open key.
pub(crate) fn finish(conn: &mut Connection, key: &IdempotencyKey, result: &Value) -> Result<(), StoreError> {
    let (failed, result) = (database("record a result"), keys::kept(result)?);
    let tx = transaction(conn)?;
    let Some(entry) = entry(&tx, key).map_err(&failed)?.filter(|entry| entry.fingerprint == key.fingerprint)
    else {
        return Err(StoreError::KeyNotOpen { key: key.key.clone() });
    };
    if entry.result.is_none() {
        tx.execute(
            "UPDATE keys SET result = ?3 WHERE scope = ?1 AND key = ?2",
            params![key.scope, key.key, result],
        )
        .map_err(&failed)?;
        tx.commit().map_err(database("commit a result"))?;
    }
    Ok(())
}

/// Names the work of an open key anew, where it is still named `old` and has no result.
pub(crate) fn redraft(
    conn: &mut Connection,
    now: Timestamp,
    key: &IdempotencyKey,
    old: &str,
    new: String,
) -> Result<Begun, StoreError> {
    keys::check(key, &new)?;
    let failed = database("name the work of a key anew");
    let tx = transaction(conn)?;
    let entry = entry(&tx, key).map_err(&failed)?.filter(|entry| entry.begun_at >= keys::oldest(now));
    match entry {
        Some(entry) if entry.is_open(&key.fingerprint, old) => {
            tx.execute(
                "UPDATE keys SET draft = ?3 WHERE scope = ?1 AND key = ?2",
                params![key.scope, key.key, new],
            )
            .map_err(&failed)?;
            tx.commit().map_err(database("commit a key"))?;
            Ok(Begun::Fresh)
        }
        Some(entry) => Ok(entry.begun(&key.fingerprint)),
        None => Err(StoreError::KeyNotOpen { key: key.key.clone() }),
    }
}

fn entry(conn: &Connection, key: &IdempotencyKey) -> rusqlite::Result<Option<Entry>> {
    conn.query_row(
        "SELECT fingerprint, draft, result, begun_at FROM keys WHERE scope = ?1 AND key = ?2",
        params![key.scope, key.key],
        |row| {
            Ok(Entry {
                fingerprint: row.get(0)?,
                draft: row.get(1)?,
                result: row.get(2)?,
                begun_at: Timestamp::from_unix_ms(row.get(3)?),
            })
        },
    )
    .optional()
}
