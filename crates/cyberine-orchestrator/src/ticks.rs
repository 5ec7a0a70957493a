//! Ticks: fast news of a live run.

use cyberine_run_store::{Tick, TickKind};
use cyberine_types::Usage;

/// Takes the fast news of a run: a tick for everything that happens during a turn. It never
/// waits; thinning them out and dropping what it has no room for are its business. A tick tells
/// totals, so that one which is lost is made good by the next.
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

/// A tick about one candidate that has said `text` so far.
pub(crate) fn about(candidate: &str, kind: TickKind, text: &str, usage: &Usage, note: String) -> Tick {
    let text_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    Tick { candidate: candidate.to_owned(), kind, text_bytes, usage: *usage, note }
}

/// A tick about a trial of the judge `command`.
pub(crate) fn trial(name: &str, kind: TickKind, note: String) -> Tick {
    about(name, kind, "", &Usage::default(), note)
}

/// The last tick of a run.
pub(crate) fn settled(note: String) -> Tick {
    about("", TickKind::Settled, "", &Usage::default(), note)
}
