//! A lost database is built again from what the projects show of their runs.

use std::path::PathBuf;

use cyberine_fs::Identity;
use rusqlite::TransactionBehavior;
use serde::Serialize;

use crate::error::{StoreError, chain};
use crate::event::Event;
use crate::fold;
use crate::home::DATABASE;
use crate::projection::{self, Broken, RunDir};
use crate::run::Run;
use crate::sqlite::write::Project;
use crate::sqlite::{Inner, SqliteRunStore, database, read, write};

/// What came of rebuilding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rebuilt {
    /// How many runs are in the database again.
    pub runs: u64,
    /// What could not be read or only in part, and the known projects that show no run, one line
    /// each.
    pub skipped: Vec<String>,
}

struct Found {
    run: Run,
    log: Vec<Event>,
    project: Project,
}

/// Fills an empty database from the projections in the projects the home knows, and in `also`.
/// Runs that were not over are open again, and the next process that looks adopts them. Events
/// that had not reached a project's files are lost.
///
/// # Errors
/// [`StoreError::DatabaseExists`] where the database holds runs: move it aside first.
pub async fn rebuild(store: &SqliteRunStore, also: Vec<PathBuf>) -> Result<Rebuilt, StoreError> {
    store.blocking(move |inner| rebuild_home(inner, &also)).await
}

fn rebuild_home(inner: &Inner, also: &[PathBuf]) -> Result<Rebuilt, StoreError> {
    inner.database.renew();
    if !inner.database.read(read::all)?.is_empty() {
        return Err(StoreError::DatabaseExists { path: inner.database.path().join(DATABASE) });
    }
    let home = inner.database.home()?;
    let known = home.projects()?;
    let also = also.iter().filter_map(|path| path.to_str()).filter(|path| !known.iter().any(|k| k == path));
    let all = known.iter().map(|path| (path.as_str(), true)).chain(also.map(|path| (path, false)));
    let (mut rebuilt, mut found) = (Rebuilt::default(), Vec::new());
    for (path, is_known) in all {
        let before = (found.len(), rebuilt.skipped.len());
        if let Err(error) = collect(path, &mut found, &mut rebuilt.skipped) {
            rebuilt.skipped.push(format!("{path}: {}", chain(&error)));
        }
        if !is_known && found.len() > before.0 {
            home.remember_project(path)?;
        } else if is_known && (found.len(), rebuilt.skipped.len()) == before {
            // A run was the reason to list it.
            rebuilt.skipped.push(format!("{path}: it has had runs and shows none of them"));
        }
    }
    found.sort_by_key(|found| (found.run.started_at, found.run.run_id));
    found.dedup_by_key(|found| found.run.run_id);
    rebuilt.runs = found.len() as u64;
    inner.database.write(|conn| {
        let tx = conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(database("rebuild the database"))?;
        for Found { run, log, project } in &found {
            if read::row(&tx, run.run_id)?.is_none() {
                write::insert(&tx, run, log, project)?;
            }
        }
        tx.commit().map_err(database("rebuild the database"))
    })?;
    Ok(rebuilt)
}

/// What is missing where a log breaks off.
fn left_out(Broken { line, rest, .. }: Broken) -> String {
    let left = match rest {
        0 => "it was left out".to_owned(),
        1 => "it and the line after it were left out".to_owned(),
        _ => format!("it and the {rest} lines after it were left out"),
    };
    format!("line {line} of `events.jsonl` is damaged or out of order, and {left}")
}

fn collect(path: &str, found: &mut Vec<Found>, skipped: &mut Vec<String>) -> Result<(), StoreError> {
    let (project, Identity { device, inode }) = projection::open_project(path, None)?;
    for id in projection::runs_in(&project)? {
        let opened = RunDir::open(&project, id)
            .and_then(|dir| dir.map(|dir| projection::read_log(&dir).map(|log| (dir, log))).transpose());
        let (dir, read) = match opened {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            // One entry that is no run's directory leaves the others as they are.
            Err(error) => {
                skipped.push(format!("{path}: run {id}: {}", chain(&error)));
                continue;
            }
        };
        let shown = dir.path().display();
        match fold::fold(id, &read.events) {
            // The run's own word for its directory is not believed: it is where it was found.
            Ok(run) if run.cwd == path => {
                let project = Project { path: path.to_owned(), dev: device, ino: inode };
                if let Some(broken) = read.broken.filter(|broken| !broken.is_torn_tail) {
                    let until = read.events.len();
                    skipped.push(format!("{shown}: {}; it is rebuilt up to event {until}", left_out(broken)));
                }
                found.push(Found { run, log: read.events, project });
            }
            Ok(run) => skipped.push(format!("{shown}: it belongs to `{}`", run.cwd)),
            Err(error) => match read.broken {
                Some(broken) => skipped.push(format!("{shown}: {error}: {}", left_out(broken))),
                None => skipped.push(format!("{shown}: {error}")),
            },
        }
    }
    Ok(())
}
