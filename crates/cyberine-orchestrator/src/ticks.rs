//! Ticks: fast news of a live run, thinned out.

use std::time::Duration;

use cyberine_run_store::{Tick, TickKind};
use cyberine_types::Usage;
use tokio::time::Instant;

/// Takes the fast news of a run. It never waits: what it has no room for it drops.
pub trait TickSink: Send + Sync {
    /// Takes one tick.
    fn tick(&self, tick: &Tick);
}

/// Drops every tick, where nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTicks;

impl TickSink for NoTicks {
    fn tick(&self, _tick: &Tick) {}
}

/// At most one tick about a candidate's progress in this time.
const GAP: Duration = Duration::from_millis(250);

/// Thins out what happens during one turn to four ticks a second. Nothing is lost: a tick tells
/// totals, and what waits is told at the next occasion or at the turn's end.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    last: Option<Instant>,
    tool: Option<String>,
    text: bool,
    usage: bool,
}

impl Coalescer {
    pub(crate) fn tool(&mut self, name: &str) {
        self.tool = Some(name.to_owned());
    }

    pub(crate) const fn text(&mut self) {
        self.text = true;
    }

    pub(crate) const fn usage(&mut self) {
        self.usage = true;
    }

    /// The tick that is due at `now`, if one is.
    pub(crate) fn due(&mut self, now: Instant) -> Option<(TickKind, String)> {
        if self.last.is_some_and(|last| now.duration_since(last) < GAP) {
            return None;
        }
        let due = self.take()?;
        self.last = Some(now);
        Some(due)
    }

    /// What still waits, at the turn's end.
    pub(crate) fn take(&mut self) -> Option<(TickKind, String)> {
        if let Some(name) = self.tool.take() {
            return Some((TickKind::Tool, name));
        }
        if std::mem::take(&mut self.text) {
            return Some((TickKind::Text, String::new()));
        }
        std::mem::take(&mut self.usage).then(|| (TickKind::Usage, String::new()))
    }
}

/// A tick about one candidate.
pub(crate) fn about(candidate: &str, kind: TickKind, text: &str, usage: &Usage, note: String) -> Tick {
    let text_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    Tick { candidate: candidate.to_owned(), kind, text_bytes, usage: *usage, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_four_a_second_and_no_kind_is_forgotten() {
        let start = Instant::now();
        let mut coalescer = Coalescer::default();
        let mut kinds = Vec::new();
        for ms in 0..1000 {
            coalescer.text();
            if ms == 10 {
                coalescer.tool("search");
                coalescer.usage();
            }
            kinds.extend(coalescer.due(start + Duration::from_millis(ms)).map(|(kind, _)| kind));
        }
        kinds.extend(std::iter::from_fn(|| coalescer.take()).map(|(kind, _)| kind));
        use TickKind::{Text, Tool, Usage};
        assert_eq!(kinds, [Text, Tool, Text, Text, Text, Usage]);
    }
}
