//! Candidates and judges that wait for their provider, as the fast news of a run tells it.

use std::collections::BTreeMap;

use cyberine_app::Workplace;
use cyberine_run_store::{Run, RunState, Tick, TickKind, TickReader};
use cyberine_types::RunId;

/// A candidate and what it waits for.
pub(crate) type Wait = (String, String);

/// Who of a run waits.
pub(crate) struct Waiting {
    ticks: TickReader,
    /// The latest words of each that waits.
    by_name: BTreeMap<String, String>,
}

impl Waiting {
    /// Whoever waits in the run `id`; `None` where the run has no files any more.
    pub(crate) async fn of(workplace: &Workplace, id: RunId) -> Option<Self> {
        let ticks = TickReader::new(workplace.store.run_dir(id).await.ok()?, 0);
        Some(Self { ticks, by_name: BTreeMap::new() })
    }

    /// Who has begun to wait since the last look, and in which words.
    pub(crate) fn look(&mut self) -> Vec<Wait> {
        let before = self.by_name.clone();
        while let Some(news) = self.ticks.read().ok().filter(|news| !news.is_empty()) {
            news.into_iter().for_each(|tick| self.take(tick));
        }
        let begun = self.by_name.iter().filter(|(name, words)| before.get(*name) != Some(*words));
        begun.map(|(name, words)| (name.clone(), words.clone())).collect()
    }

    fn take(&mut self, tick: Tick) {
        if tick.kind == TickKind::Waiting {
            self.by_name.insert(tick.candidate, tick.note);
        } else {
            self.by_name.remove(&tick.candidate);
        }
    }
}

/// Who waits in `run` now, and in which words.
pub(crate) async fn waiting(workplace: &Workplace, run: &Run) -> Vec<Wait> {
    if run.state != RunState::Running {
        return Vec::new();
    }
    Waiting::of(workplace, run.run_id).await.map(|mut waiting| waiting.look()).unwrap_or_default()
}
