//! A record on the disk.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cyberine_fs::{Dated, Identity};
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::text;

/// The format this program writes and reads.
const FORMAT: u32 = 1;
/// The largest file that is read. The largest record that may be announced has some 45,000 bytes
/// of text; escapes of JSON may lengthen that.
pub(super) const MAX_BYTES: usize = 256 << 10;
/// How record files end.
pub(super) const SUFFIX: &str = ".json";

#[derive(Serialize)]
struct Outgoing<'a> {
    format: u32,
    ended: bool,
    record: &'a Record,
}

/// What a file says.
#[derive(Debug, Deserialize)]
pub(super) struct Stored {
    format: u32,
    /// Whether the process has withdrawn the record.
    pub(super) ended: bool,
    pub(super) record: Record,
}

/// Which bytes were read: those of another beat have another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) identity: Identity,
    pub(super) modified: SystemTime,
}

impl Version {
    pub(super) fn of(dated: &Dated) -> Self {
        Self { identity: dated.identity, modified: dated.modified }
    }
}

pub(super) fn bytes(record: &Record, ended: bool) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec(&Outgoing { format: FORMAT, ended, record })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a file's bytes; `None` where they are damaged or of another format. No text of it hides
/// anything.
pub(super) fn parse(bytes: &[u8]) -> Option<Stored> {
    let mut stored: Stored = serde_json::from_slice(bytes).ok()?;
    if stored.format != FORMAT {
        return None;
    }
    text::make_fit(&mut stored.record);
    Some(stored)
}

pub(super) fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}
