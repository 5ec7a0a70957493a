//! What of a mailbox may go: segments that are old and that everybody has read.

use cyberine_fs::{FsError, PrivateDir};
use cyberine_types::Timestamp;

use super::read;
use super::readers;
use super::segment::Lines;
use crate::names;
use crate::record::checked;

const DAY_MS: i64 = 86_400_000;

/// Removes the oldest segments while everything in them was sent more than `days` days before
/// `now`, somebody reads the mailbox, and all who do have read past them. The last segment stays,
/// since it says how far the numbers have come. Only under the mailbox's lock.
pub(crate) fn sweep(dir: &PrivateDir, now: Timestamp, days: u32) -> Result<(), FsError> {
    let Some(read) = readers::all(dir)?.iter().map(|mark| mark.through).min() else { return Ok(()) };
    let oldest_kept = Timestamp::from_unix_ms(now.unix_ms().saturating_sub(i64::from(days) * DAY_MS));
    let segments = read::segments(dir)?;
    for pair in segments.windows(2) {
        let [first, next] = pair else { break };
        if next - 1 > read || newest(dir, *first)?.is_none_or(|newest| newest >= oldest_kept) {
            break;
        }
        dir.remove(&names::segment(*first))?;
    }
    Ok(())
}

/// When the newest message of a segment was sent; `None` where nothing in it tells.
fn newest(dir: &PrivateDir, first: u64) -> Result<Option<Timestamp>, FsError> {
    let Some((file, length)) = read::open(dir, first)? else { return Ok(None) };
    let mut lines = Lines::between(&file, 0, length);
    let mut newest = None;
    while let Some(line) = lines.next()? {
        let envelope = checked(line.bytes).and_then(|record| record.envelope());
        newest = newest.max(envelope.map(|envelope| envelope.sent_at));
    }
    Ok(newest)
}
