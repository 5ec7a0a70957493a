//! How ticks travel: one process writes them to `stream.jsonl`, any other follows the file.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, Subscription, Watcher};

use crate::error::StoreError;
use crate::projection::{RunDir, STREAM};
use crate::tick::{Tick, TickKind};

/// At most four ticks a second for one candidate.
pub const TICK_SPACING: Duration = Duration::from_millis(250);
/// A stream that has grown this long takes no more `text` and `usage` ticks.
const STREAM_MAX: u64 = 8 << 20;
/// How much a reader takes at once.
const CHUNK: usize = 256 << 10;
/// How long a note may be, in characters.
const NOTE_CHARS: usize = 200;

/// Decides which ticks are worth writing. A start, an end and a failure always are; of the rest,
/// the latest of each quarter of a second.
#[derive(Debug, Default)]
struct Spacing {
    candidates: HashMap<String, Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    last: Option<Instant>,
    waiting: Option<Tick>,
}

impl Spacing {
    /// The tick, where it is to be written now.
    fn offer(&mut self, tick: Tick, now: Instant) -> Option<Tick> {
        let recent = self.candidates.entry(tick.candidate.clone()).or_default();
        let marks =
            matches!(tick.kind, TickKind::Started | TickKind::Done | TickKind::Error | TickKind::Settled);
        if marks || recent.is_due(now) {
            // What waited is older than this and says less.
            *recent = Recent { last: Some(now), waiting: None };
            return Some(tick);
        }
        recent.waiting = Some(tick);
        None
    }

    /// The waiting ticks whose time has come.
    fn due(&mut self, now: Instant) -> Vec<Tick> {
        let due = self.candidates.values_mut().filter(|recent| recent.is_due(now));
        due.filter_map(|recent| {
            let tick = recent.waiting.take()?;
            recent.last = Some(now);
            Some(tick)
        })
        .collect()
    }

    fn next_due(&self) -> Option<Instant> {
        let waiting = self.candidates.values().filter(|recent| recent.waiting.is_some());
        waiting.filter_map(|recent| recent.last.map(|last| last + TICK_SPACING)).min()
    }
}

impl Recent {
    fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= TICK_SPACING)
    }
}

/// Writes a run's ticks. Belongs to the holder of the run's claim. Its calls append at most a few
/// hundred bytes without a sync, so they may be made from async code.
///
/// The store removes the stream when the run settles. A tick that comes later, such as the one
/// that tells of it, makes no new stream: followers learn of the end from the store.
#[derive(Debug)]
pub struct TickWriter {
    dir: RunDir,
    spacing: Spacing,
    written: u64,
}

impl TickWriter {
    /// A writer into the run's directory.
    #[must_use]
    pub fn new(dir: RunDir) -> Self {
        Self { dir, spacing: Spacing::default(), written: 0 }
    }

    /// Writes the tick now, or keeps it until [`TickWriter::flush`] where one of its candidate
    /// was written less than [`TICK_SPACING`] ago; a later one then takes its place.
    ///
    /// # Errors
    /// [`StoreError::Files`] where the file cannot be written. The run does not depend on it.
    pub fn offer(&mut self, tick: Tick, now: Instant) -> Result<(), StoreError> {
        match self.spacing.offer(tick, now) {
            Some(tick) => self.write(&[tick]),
            None => Ok(()),
        }
    }

    /// Writes the ticks that have waited long enough.
    ///
    /// # Errors
    /// As [`TickWriter::offer`].
    pub fn flush(&mut self, now: Instant) -> Result<(), StoreError> {
        let due = self.spacing.due(now);
        self.write(&due)
    }

    /// When to call [`TickWriter::flush`] next; `None` where nothing waits.
    #[must_use]
    pub fn next_flush(&self) -> Option<Instant> {
        self.spacing.next_due()
    }

    fn write(&mut self, ticks: &[Tick]) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        for tick in ticks {
            if self.written > STREAM_MAX
                && matches!(tick.kind, TickKind::Text | TickKind::Usage | TickKind::Tool)
            {
                continue;
            }
            let note = tick.note.chars().take(NOTE_CHARS).collect();
            bytes.extend(serde_json::to_vec(&Tick { note, ..tick.clone() }).unwrap_or_default());
            bytes.push(b'\n');
        }
        let begins = self.written == 0 && ticks.iter().any(|tick| tick.kind != TickKind::Settled);
        if bytes.is_empty() || !(begins || self.dir.dir.exists(STREAM)?) {
            return Ok(());
        }
        self.written += bytes.len() as u64;
        Ok(self.dir.dir.append(STREAM, &bytes, Durability::Fast)?)
    }
}

/// Follows a run's ticks from another task or process.
pub struct TickReader {
    dir: RunDir,
    offset: u64,
    subscription: Option<Subscription>,
}

impl TickReader {
    /// A reader that begins at `offset` of the stream: zero, or what [`TickReader::offset`] of an
    /// earlier one said.
    #[must_use]
    pub const fn new(dir: RunDir, offset: u64) -> Self {
        Self { dir, offset, subscription: None }
    }

    /// How far the stream has been read, in bytes.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next ticks, up to a quarter of a mebibyte of them; none where there is nothing new, or
    /// the stream has been removed because the run is over. Lines that cannot be read are skipped,
    /// and a stream that has become shorter is read from its start.
    ///
    /// # Errors
    /// [`StoreError::Files`] where something else lies in the place of the stream.
    pub fn read(&mut self) -> Result<Vec<Tick>, StoreError> {
        // The byte before the offset ends a line, unless the file is no longer what it was.
        let overlap = u64::from(self.offset > 0);
        let Some(mut bytes) = self.dir.dir.read_from(STREAM, self.offset - overlap, CHUNK)? else {
            self.offset = 0;
            return Ok(Vec::new());
        };
        if overlap == 1 && bytes.first() != Some(&b'\n') {
            self.offset = 0;
            bytes = self.dir.dir.read_from(STREAM, 0, CHUNK)?.unwrap_or_default();
        } else if overlap == 1 {
            bytes.remove(0);
        }
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            // No line of ours is as long as a chunk.
            None if bytes.len() + 1 >= CHUNK => bytes.len(),
            None => 0,
        };
        self.offset += whole as u64;
        Ok(bytes[..whole]
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }

    /// Returns once there may be something to read, after half a second at the latest.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self, timeout: Duration) {
        let path = self.dir.path();
        self.subscription.get_or_insert_with(|| Watcher::shared().watch(path)).changed(timeout).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_types::Usage;

    fn tick(candidate: &str, kind: TickKind, text_bytes: u64) -> Tick {
        Tick {
            candidate: candidate.to_owned(),
            kind,
            text_bytes,
            usage: Usage::default(),
            note: String::new(),
        }
    }

    #[test]
    fn a_candidate_has_at_most_four_ticks_a_second_and_its_marks_always() {
        let (mut spacing, start) = (Spacing::default(), Instant::now());
        let mut written = Vec::new();
        for ms in 0..1_000_u64 {
            let now = start + Duration::from_millis(ms);
            written.extend(spacing.offer(tick("a", TickKind::Text, ms), now));
            written.extend(spacing.due(now));
        }
        let bytes: Vec<u64> = written.iter().map(|tick| tick.text_bytes).collect();
        assert_eq!(bytes, [0, 250, 500, 750]);
        let end = start + Duration::from_millis(1_000);
        assert_eq!(
            spacing.offer(tick("a", TickKind::Done, 1_000), end),
            Some(tick("a", TickKind::Done, 1_000))
        );
        assert_eq!(spacing.next_due(), None, "the end says more than what waited");
    }

    #[test]
    fn candidates_do_not_wait_for_each_other() {
        let (mut spacing, now) = (Spacing::default(), Instant::now());
        assert!(spacing.offer(tick("a", TickKind::Text, 1), now).is_some());
        assert!(spacing.offer(tick("b", TickKind::Text, 1), now).is_some());
        assert!(spacing.offer(tick("a", TickKind::Text, 2), now).is_none());
        assert_eq!(spacing.next_due(), Some(now + TICK_SPACING));
        assert_eq!(spacing.due(now + TICK_SPACING), [tick("a", TickKind::Text, 2)]);
        assert_eq!(spacing.due(now + TICK_SPACING), []);
    }
}
