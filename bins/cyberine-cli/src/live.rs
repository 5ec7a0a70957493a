//! A run while it runs, drawn over and over on a terminal, or told line by line elsewhere.

use std::collections::BTreeMap;

use cyberine_orchestrator::STEP_ID;
use cyberine_run_store::{Awaiting, Candidate, Run, RunState, Step, Tick, TickKind, Verdict};
use cyberine_types::Usage;

use crate::decision::{short, waits};
use crate::out::Out;
use crate::plain::{cut, escaped};
use crate::report::{billed, mark, outcome, why_not};
use crate::table::aligned;

/// What has been shown so far of one run.
pub(crate) struct Live<'a> {
    out: &'a Out,
    /// Lines on the terminal that the next picture replaces.
    drawn: usize,
    /// The latest fast news by candidate.
    news: BTreeMap<String, Tick>,
    /// What has been told already, where lines are not drawn over.
    told: Vec<String>,
}

impl<'a> Live<'a> {
    pub(crate) const fn new(out: &'a Out) -> Self {
        Self { out, drawn: 0, news: BTreeMap::new(), told: Vec::new() }
    }

    /// Takes fast news; the next picture shows it.
    pub(crate) fn tick(&mut self, tick: Tick) {
        if !tick.candidate.is_empty() {
            self.news.insert(tick.candidate.clone(), tick);
        }
    }

    /// Shows how the run stands.
    pub(crate) fn show(&mut self, run: &Run) {
        if self.out.is_live() {
            self.draw(run);
        } else {
            self.tell(run);
        }
    }

    fn draw(&mut self, run: &Run) {
        let width = self.out.width();
        let mut picture = String::new();
        if self.drawn > 0 {
            picture.push_str(&format!("\u{1b}[{}A", self.drawn));
        }
        let lines = self.picture(run, width);
        for line in &lines {
            picture.push_str(&format!("\r\u{1b}[2K{line}\n"));
        }
        // A shorter picture leaves old lines below itself.
        picture.push_str("\u{1b}[J");
        self.drawn = lines.len();
        self.out.raw(&picture);
    }

    fn picture(&self, run: &Run, width: usize) -> Vec<String> {
        let candidates: Vec<&Candidate> = run.steps.last().iter().flat_map(|step| &step.candidates).collect();
        let rows: Vec<Vec<String>> = candidates.iter().map(|one| self.row(one)).collect();
        let mut lines = vec![cut(&format!("{} {}", run.state.name(), run.detail), width)];
        for (candidate, row) in candidates.iter().zip(aligned(&rows)) {
            lines.push(format!(
                "  {} {}",
                mark(self.out, candidate.state),
                shorten(&row, width.saturating_sub(4))
            ));
        }
        if run.awaiting.is_some() {
            let id = short(run.run_id);
            lines.push(cut(&format!("  `cyberine approve {id}` or `cyberine reject {id}` decides"), width));
        }
        lines
    }

    /// Name, model, state, what it has used so far, how much it has said, a note.
    fn row(&self, candidate: &Candidate) -> Vec<String> {
        let tick = self.news.get(&candidate.id).filter(|_| candidate.state == RunState::Running);
        let used = tick.map_or(&candidate.usage, |tick| &tick.usage);
        let bytes = tick.map_or(candidate.output.len() as u64, |tick| tick.text_bytes);
        let note = tick.map_or("", |tick| tick.note.as_str());
        let error = candidate.error.as_ref().map_or(note, |error| error.message.as_str());
        vec![
            escaped(&candidate.id),
            candidate.model.as_deref().map(escaped).unwrap_or_default(),
            candidate.state.name().to_owned(),
            spent(used, candidate),
            format!("{bytes} B"),
            cut(error, usize::MAX),
        ]
    }

    fn tell(&mut self, run: &Run) {
        let mut lines: Vec<String> = run.steps.iter().flat_map(lines_of).collect();
        let waiting = self.news.values().filter(|tick| tick.kind == TickKind::Waiting);
        lines.extend(waiting.map(|tick| format!("{}: {}", escaped(&tick.candidate), cut(&tick.note, 300))));
        if let Some(Awaiting { expires_at, on_expiry, .. }) = &run.awaiting {
            lines.push(waits(run.run_id, *expires_at, *on_expiry));
        }
        for line in lines {
            if !self.told.contains(&line) {
                self.out.line(&line);
                self.told.push(line);
            }
        }
    }
}

/// What there is to tell of a step. In a later round the same may happen again.
fn lines_of(step: &Step) -> impl Iterator<Item = String> {
    let verdict = |one: &Verdict| format!("{}: {}{}", escaped(&one.kind), outcome(one.outcome), why_not(one));
    let all = step.candidates.iter().map(line_of).chain(step.verdicts.iter().map(verdict));
    let round = if step.id == STEP_ID { String::new() } else { format!("{}: ", escaped(&step.name)) };
    all.map(move |line| format!("{round}{line}"))
}

fn line_of(candidate: &Candidate) -> String {
    let name = escaped(&candidate.id);
    match (candidate.state, &candidate.error) {
        (RunState::Done, Some(error)) => format!("{name}: {}, keeps its answer of before", error.code),
        (_, Some(error)) => format!("{name}: {}: {}", error.code, cut(&error.message, 300)),
        (RunState::Done, None) => format!("{name}: done, {}", spent(&candidate.usage, candidate)),
        (state, None) => format!("{name}: {}", state.name()),
    }
}

fn spent(used: &Usage, candidate: &Candidate) -> String {
    if *used == Usage::default() { String::new() } else { billed(used, candidate.billing) }
}

/// A row, no longer than the terminal is wide: a line that wraps would spoil the next picture.
fn shorten(row: &str, width: usize) -> String {
    if row.chars().count() <= width {
        return row.to_owned();
    }
    let mut short: String = row.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
