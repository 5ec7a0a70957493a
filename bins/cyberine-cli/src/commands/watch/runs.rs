//! The runs that are watched.

use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_app::{Problem, Workplace};
use cyberine_run_store::{Cursor, Event, Registry, Run, RunState, RunStore, RunSummary};
use cyberine_types::{Clock as _, RunId, SystemClock, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use super::lines::{Line, Names, clock, standing};
use crate::decision::short;
use crate::out::{Out, Style};
use crate::plain::{cut, escaped};
use crate::report::paint_as;
use crate::waiting::Waiting;

/// How many runs are listed at once.
const PAGE: u32 = 50;
/// How many runs are remembered; of those that are over the ones that changed long ago are
/// forgotten first.
const REMEMBERED: usize = 1_000;
/// How often runs are looked for whose runners are gone.
const BURY: Duration = Duration::from_secs(2);

/// Which runs are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    One(RunId),
    /// Those of the project in this directory.
    Project(String),
    All,
}

/// The runs, as far as they have been shown.
pub(super) struct Runs {
    scope: Scope,
    known: BTreeMap<RunId, Known>,
    /// Nothing that happened before this is told of runs that were not known.
    since: Timestamp,
    buried: Instant,
}

struct Known {
    cwd: String,
    updated_at: Timestamp,
    /// The last event that was shown.
    after: u64,
    state: RunState,
    names: Names,
    waiting: Option<Waiting>,
}

impl Runs {
    /// Tells how the runs stand that are not over, or the one that is named.
    pub(super) async fn begin(scope: Scope, workplace: &Workplace, out: &Out) -> Result<Self, Problem> {
        let since = SystemClock.now();
        workplace.supervisor.settle_dead_runs().await?;
        let mut runs = Self { scope, known: BTreeMap::new(), since, buried: Instant::now() };
        let mut found = workplace.store.unsettled().await?;
        if let Scope::One(run) = runs.scope {
            found = vec![run];
        }
        for id in found {
            let Some(run) = workplace.store.load(id).await? else { continue };
            let known = Known::of(&run);
            if runs.is_in_scope(id, &run.cwd) {
                tell(out, id, &run.cwd, run.next_seq.saturating_sub(1), run.updated_at, &standing(&run));
            }
            runs.known.insert(id, known);
        }
        Ok(runs)
    }

    pub(super) const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The runs in scope that are not over, each with its last event.
    pub(super) fn live(&self) -> Vec<(RunId, u64)> {
        let live = self.known.iter().filter(|(_, known)| !known.state.is_terminal());
        let live = live.filter(|(id, known)| self.is_in_scope(**id, &known.cwd));
        live.map(|(id, known)| (*id, known.after)).collect()
    }

    /// The one run that is watched, once it is over.
    pub(super) fn over(&self) -> Option<RunId> {
        let Scope::One(run) = self.scope else { return None };
        self.known.get(&run).filter(|known| known.state.is_terminal()).map(|_| run)
    }

    fn is_in_scope(&self, id: RunId, cwd: &str) -> bool {
        match &self.scope {
            Scope::One(run) => *run == id,
            Scope::Project(directory) => directory == cwd,
            Scope::All => true,
        }
    }

    /// Tells every change since the last look.
    pub(super) async fn look(&mut self, workplace: &Workplace, out: &Out) -> Result<(), Problem> {
        if self.buried.elapsed() >= BURY {
            workplace.supervisor.settle_dead_runs().await?;
            self.buried = Instant::now();
        }
        let mut told = Vec::new();
        for summary in self.changed(workplace).await? {
            told.extend(self.news_of(&summary, workplace).await?);
        }
        told.sort_by_key(|(at, ..)| *at);
        for (at, id, cwd, seq, line) in told {
            tell(out, id, &cwd, seq, at, &line);
        }
        self.tell_who_waits(workplace, out).await;
        self.forget();
        Ok(())
    }

    /// Tells who has begun to wait for a provider.
    async fn tell_who_waits(&mut self, workplace: &Workplace, out: &Out) {
        for (id, seq) in self.live() {
            let Some(known) = self.known.get_mut(&id) else { continue };
            if known.waiting.is_none() {
                known.waiting = Waiting::of(workplace, id).await;
            }
            for (name, words) in known.waiting.as_mut().map(Waiting::look).unwrap_or_default() {
                let text = format!("{} {}", escaped(&name), cut(&words, usize::MAX));
                let line = Line { event: "waiting", text, state: None };
                tell(out, id, &known.cwd, seq, SystemClock.now(), &line);
            }
        }
    }

    /// The runs that are not as they were. They come first in the list, so that a page without one
    /// ends it.
    async fn changed(&self, workplace: &Workplace) -> Result<Vec<RunSummary>, Problem> {
        let mut changed = Vec::new();
        let mut cursor = None;
        loop {
            let page = workplace.store.recent(cursor, PAGE).await?;
            let last = page.last().map(Cursor::from);
            let before = changed.len();
            changed.extend(page.into_iter().filter(|summary| self.is_news(summary)));
            match last {
                Some(last) if changed.len() > before && changed.len() < REMEMBERED => cursor = Some(last),
                _ => return Ok(changed),
            }
        }
    }

    fn is_news(&self, summary: &RunSummary) -> bool {
        match self.known.get(&summary.run_id) {
            Some(known) => known.updated_at != summary.updated_at || known.state != summary.state,
            None => summary.updated_at >= self.since,
        }
    }

    async fn news_of(&mut self, summary: &RunSummary, workplace: &Workplace) -> Result<Vec<News>, Problem> {
        let id = summary.run_id;
        let is_new = !self.known.contains_key(&id);
        let in_scope = self.is_in_scope(id, &summary.cwd);
        let known = self.known.entry(id).or_insert_with(|| Known::new(summary));
        known.updated_at = summary.updated_at;
        known.state = summary.state;
        if !in_scope {
            return Ok(Vec::new());
        }
        let mut news = Vec::new();
        for event in workplace.store.events(id, known.after).await? {
            known.after = event.seq;
            let is_old = is_new && event.at < self.since;
            if let Some(line) = known.line(id, &event).filter(|_| !is_old) {
                news.push((event.at, id, summary.cwd.clone(), event.seq, line));
            }
        }
        Ok(news)
    }

    fn forget(&mut self) {
        let too_many = self.known.len().saturating_sub(REMEMBERED);
        if too_many == 0 {
            return;
        }
        let over = self.known.iter().filter(|(_, known)| known.state.is_terminal());
        let mut over: Vec<(Timestamp, RunId)> = over.map(|(id, known)| (known.updated_at, *id)).collect();
        over.sort_unstable();
        for (at, id) in over.into_iter().take(too_many) {
            self.known.remove(&id);
            // What is forgotten is old: it is not told again.
            self.since = self.since.max(at);
        }
    }
}

/// When, which run, where, its event, what.
type News = (Timestamp, RunId, String, u64, Line);

impl Known {
    fn new(summary: &RunSummary) -> Self {
        Self {
            cwd: summary.cwd.clone(),
            updated_at: summary.updated_at,
            after: 0,
            state: summary.state,
            names: Names::default(),
            waiting: None,
        }
    }

    fn of(run: &Run) -> Self {
        Self {
            cwd: run.cwd.clone(),
            updated_at: run.updated_at,
            after: run.next_seq.saturating_sub(1),
            state: run.state,
            names: Names::of(run),
            waiting: None,
        }
    }

    fn line(&mut self, id: RunId, event: &Event) -> Option<Line> {
        let line = self.names.line(id, event)?;
        self.state = line.state.unwrap_or(self.state);
        Some(line)
    }
}

fn tell(out: &Out, id: RunId, cwd: &str, seq: u64, at: Timestamp, line: &Line) {
    if out.is_json() {
        return out.json_line(&json!({
            "type": "run", "runId": id, "cwd": cwd, "seq": seq, "at": at, "event": line.event, "state": line.state,
            "detail": line.text,
        }));
    }
    let text = line.state.map_or_else(|| line.text.clone(), |state| paint_as(out, state, &line.text));
    out.line(format_args!("{}  {}  {text}", clock(at), out.paint(Style::Strong, short(id))));
}
