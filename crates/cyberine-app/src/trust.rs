//! Which project configurations the user has looked at and wants.
//!
//! A project's `cyberine.toml` comes with the project, and whoever wrote the project wrote it: it
//! could name a program to run or an address to send prompts to. So it may define providers only
//! after the user has said so, and every change of it must be said again. So must every change of the
//! rubric it names: who writes that tells the judges what to prefer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cyberine_fs::{Durability, FsError, PrivateDir};
use cyberine_types::{Clock, Timestamp};
use serde::{Deserialize, Serialize};

use crate::config::ConfigSource;
use crate::home::{Home, HomeError};

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";
const LONGEST: usize = 4 << 20;

/// The configurations a user trusts: a file in the home.
#[derive(Debug, Clone)]
pub struct Trust {
    home: Home,
}

/// How a configuration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustState {
    /// It is as it was when the user trusted it.
    Trusted,
    /// The user trusted another state of it.
    Changed,
    /// The user has never trusted it.
    Unknown,
}

/// The record of what is trusted could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The home cannot be used.
    #[error("what is trusted is recorded in the home, which cannot be used")]
    Home(#[from] HomeError),
    /// The record cannot be read or written.
    #[error("the record of what is trusted could not be read or written")]
    File(#[from] FsError),
    /// The record is not one of ours.
    #[error("`{}` is damaged; move it away and run `cyberine trust` again in each project", .path.display())]
    Damaged {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Another process holds the record.
    #[error("another process is changing what is trusted; try again")]
    Busy,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    version: u32,
    files: BTreeMap<PathBuf, Entry>,
}

impl Default for Record {
    fn default() -> Self {
        Self { version: 1, files: BTreeMap::new() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    sha256: String,
    trusted_at: Timestamp,
}

impl Trust {
    /// The record of `home`.
    #[must_use]
    pub const fn of(home: Home) -> Self {
        Self { home }
    }

    /// How `source` stands.
    ///
    /// # Errors
    /// Where the record cannot be read.
    pub fn state(&self, source: &ConfigSource) -> Result<TrustState, TrustError> {
        let record = read(&self.home.open()?)?;
        Ok(match record.files.get(&canonical(source.path())) {
            Some(entry) if entry.sha256 == sealed(source) => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Unknown,
        })
    }

    /// Records that the user trusts `source` as it is.
    ///
    /// # Errors
    /// Where the record cannot be read or written.
    pub fn grant(&self, source: &ConfigSource, clock: &dyn Clock) -> Result<(), TrustError> {
        let directory = self.home.open()?;
        let _held = directory.try_lock(LOCK)?.ok_or(TrustError::Busy)?;
        let mut record = read(&directory)?;
        let entry = Entry { sha256: sealed(source), trusted_at: clock.now() };
        record.files.insert(canonical(source.path()), entry);
        let damaged = |source| TrustError::Damaged { path: directory.path().join(FILE), source };
        let bytes = serde_json::to_vec_pretty(&record).map_err(damaged)?;
        Ok(directory.replace(FILE, &bytes, Durability::Durable)?)
    }
}

/// The digest of a configuration, together with the rubric where it names one. One that cannot be
/// read is like none.
fn sealed(source: &ConfigSource) -> String {
    let Some(rubric) = rubric(source) else { return source.digest() };
    ConfigSource::of(source.path(), format!("{}\0{rubric}", source.text())).digest()
}

/// What the rubric says that the configuration names.
fn rubric(source: &ConfigSource) -> Option<String> {
    let table: toml::Table = source.text().parse().ok()?;
    let named = table.get("orchestrate")?.get("rubric")?.as_str()?;
    let path = source.path().parent()?.join(named);
    ConfigSource::read(&path).ok()?.map(|rubric| rubric.text().to_owned())
}

fn read(directory: &PrivateDir) -> Result<Record, TrustError> {
    let Some(bytes) = directory.read(FILE, LONGEST)? else { return Ok(Record::default()) };
    let damaged = |source| TrustError::Damaged { path: directory.path().join(FILE), source };
    serde_json::from_slice(&bytes).map_err(damaged)
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_types::ManualClock;

    #[test]
    fn a_file_is_trusted_until_one_byte_of_it_changes() {
        let root = tempfile::tempdir().unwrap();
        let trust = Trust::of(Home::at(root.path().join("home")));
        let one = ConfigSource::of("/p/cyberine.toml", "a");
        assert_eq!(trust.state(&one).unwrap(), TrustState::Unknown);
        trust.grant(&one, &ManualClock::default()).unwrap();
        assert_eq!(trust.state(&one).unwrap(), TrustState::Trusted);
        assert_eq!(trust.state(&ConfigSource::of("/p/cyberine.toml", "a ")).unwrap(), TrustState::Changed);
        assert_eq!(trust.state(&ConfigSource::of("/q/cyberine.toml", "a")).unwrap(), TrustState::Unknown);
    }

    #[test]
    fn a_damaged_record_is_told_and_trusts_nothing() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("home"));
        home.open().unwrap().replace(FILE, b"{", Durability::Durable).unwrap();
        let trust = Trust::of(home);
        let source = ConfigSource::of("/p/cyberine.toml", "a");
        assert!(matches!(trust.state(&source), Err(TrustError::Damaged { .. })));
        assert!(matches!(trust.grant(&source, &ManualClock::default()), Err(TrustError::Damaged { .. })));
    }
}
