//! How far each reader of a mailbox has read: one small file a reader.

use cyberine_fs::{Durability, FsError, PrivateDir};
use serde::{Deserialize, Serialize};

use crate::names;

const DIRECTORY: &str = "readers";
const SUFFIX: &str = ".json";
/// A reader's file holds its name, escaped at worst, and a number.
const LARGEST: usize = 16 << 10;
/// The lock over changes of the files.
pub(crate) const LOCK: &str = "lock";

/// What a reader's file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) reader: String,
    pub(crate) through: u64,
}

/// The readers' directory, made where there is none.
pub(crate) fn directory(mailbox: &PrivateDir) -> Result<PrivateDir, FsError> {
    mailbox.subdir(DIRECTORY)
}

/// Every reader there is. One whose file cannot be read has read nothing, for all anybody knows.
pub(crate) fn all(mailbox: &PrivateDir) -> Result<Vec<Mark>, FsError> {
    let Some(dir) = mailbox.existing_subdir(DIRECTORY)? else { return Ok(Vec::new()) };
    let mut marks = Vec::new();
    for name in dir.list(usize::MAX)?.names {
        let Some(encoded) = name.strip_suffix(SUFFIX) else { continue };
        let mark = dir.read(&name, LARGEST)?.and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
        let mark = mark.filter(|mark| names::encode(&mark.reader) == encoded);
        if mark.is_none() {
            tracing::warn!(file = %dir.path().join(&name).display(), "a reader's file is broken");
        }
        let reader = names::decode(encoded).unwrap_or_else(|| encoded.to_owned());
        marks.push(mark.unwrap_or(Mark { reader, through: 0 }));
    }
    marks.sort_by(|one, other| one.reader.cmp(&other.reader));
    Ok(marks)
}

/// How far `reader` has read; `None` where it is not known.
pub(crate) fn one(dir: &PrivateDir, reader: &str) -> Result<Option<u64>, FsError> {
    let bytes = dir.read(&name(reader), LARGEST)?;
    let mark = bytes.and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
    Ok(mark.filter(|mark| mark.reader == reader).map(|mark| mark.through))
}

/// Writes down how far a reader has read.
pub(crate) fn record(dir: &PrivateDir, mark: &Mark) -> Result<(), FsError> {
    let bytes = serde_json::to_vec(mark).unwrap_or_default();
    dir.replace(&name(&mark.reader), &bytes, Durability::Durable)
}

fn name(reader: &str) -> String {
    format!("{}{SUFFIX}", names::encode(reader))
}
