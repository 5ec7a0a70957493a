//! Telling a client how a run goes on.
//!
//! Starts, ends and the settlement come from the run's log, so that each is told once and none is
//! lost; what happens in between comes from the ticks, which may be thinned out.

use std::collections::HashSet;
use std::time::Duration;

use cyberine_orchestrator::STEP_ID;
use cyberine_run_store::{Choice, Event, OperatorDecision, RunEvent, Tick, TickKind};
use cyberine_server::Progress;
use cyberine_types::RunId;
use tokio::time::Instant;

use crate::services::{Services, TickFeed};

/// How often ticks are looked at; they come at most four a second.
const TICK: Duration = Duration::from_millis(250);
/// A client hears something at least this often.
const SILENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the runner is still alive.
const ALIVE: Duration = Duration::from_secs(2);

/// One item of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) text: String,
    /// Whether it may not be dropped.
    pub(crate) must_arrive: bool,
}

/// Which news of a run has been told. Pure.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// The last event told.
    pub(crate) seq: u64,
    running: HashSet<String>,
    candidates: HashSet<String>,
    pub(crate) settled: bool,
    /// Whether it waits for a decision.
    pub(crate) suspended: bool,
}

impl Story {
    /// A story that goes on after the event `seq`.
    pub(crate) fn after(seq: u64) -> Self {
        Self { seq, ..Self::default() }
    }

    /// Takes in what came before without telling it.
    pub(crate) fn skip(&mut self, events: &[Event]) {
        self.events(events);
    }

    pub(crate) fn events(&mut self, events: &[Event]) -> Vec<News> {
        events.iter().filter_map(|event| self.event(event)).collect()
    }

    fn event(&mut self, event: &Event) -> Option<News> {
        self.seq = self.seq.max(event.seq);
        let text = match &event.body {
            RunEvent::CandidateStarted { candidate, .. } => {
                self.running.insert(candidate.clone());
                self.candidates.insert(candidate.clone());
                format!("{candidate} started")
            }
            RunEvent::CandidateDone { candidate, output, usage, .. } => {
                self.running.remove(candidate);
                format!("{candidate} done: {} bytes, {} tokens", output.len(), usage.tokens())
            }
            RunEvent::CandidateFailed { candidate, code, message, .. } => {
                self.running.remove(candidate);
                format!("{candidate} error: {code}: {message}")
            }
            RunEvent::CandidateKept { candidate, from_step, .. } => {
                format!("{candidate} keeps its answer of {from_step}")
            }
            RunEvent::StepStarted { step, name } if step != STEP_ID => {
                format!("{name}: asked again, each shown the others' answers")
            }
            RunEvent::CandidateFellBack { candidate, model, code, .. } => {
                format!("{candidate} goes on with the model {model}, after: {code}")
            }
            RunEvent::Steered { from, text, .. } => format!("steered by {from}: {text}"),
            RunEvent::ApprovalRequested { expires_at, on_expiry, .. } => {
                self.suspended = true;
                let then = match on_expiry {
                    Choice::Approve => "approved",
                    Choice::Reject => "rejected",
                };
                format!("waits for approve_run or reject_run until {expires_at}, then it is {then}")
            }
            RunEvent::Resumed { by } => {
                self.suspended = false;
                format!("goes on: {by}")
            }
            RunEvent::Approved { by } => format!("goes on without waiting: {by}"),
            RunEvent::Rejected { by } => {
                self.suspended = false;
                format!("rejected by {by}, and ends")
            }
            RunEvent::Decided { decision } => {
                format!("{}: {} by {}", decision.decision.name(), subject(decision), decision.decider())
            }
            RunEvent::Settled { state, detail, .. } => {
                self.settled = true;
                format!("settled: {}: {detail}", state.name())
            }
            _ => return None,
        };
        Some(News { text: line(&text), must_arrive: true })
    }

    pub(crate) fn ticks(&self, ticks: &[Tick]) -> Vec<News> {
        let told = ticks.iter().filter_map(|tick| self.tick(tick));
        told.map(|text| News { text: line(&text), must_arrive: false }).collect()
    }

    fn tick(&self, tick: &Tick) -> Option<String> {
        let who = &tick.candidate;
        let judge = !self.candidates.contains(who);
        if self.settled || !(judge || self.running.contains(who)) {
            return None;
        }
        match tick.kind {
            TickKind::Text => Some(format!("{who} text: {} bytes", tick.text_bytes)),
            TickKind::Tool => Some(format!("{who} tool: {}", tick.note)),
            TickKind::Usage => Some(format!("{who} usage: {} tokens", tick.usage.tokens())),
            TickKind::Waiting => Some(format!("{who} {}", tick.note)),
            // Of a candidate these come from the log; a judge's are nowhere else.
            TickKind::Started if judge => Some(format!("{who} started")),
            TickKind::Done if judge => Some(format!("{who} done")),
            TickKind::Error if judge => Some(format!("{who} error: {}", tick.note)),
            TickKind::Started | TickKind::Done | TickKind::Error | TickKind::Settled => None,
        }
    }
}

fn subject(decision: &OperatorDecision) -> &str {
    decision.step_id.as_deref().unwrap_or("the run")
}

/// One line of at most 200 characters: hosts show no more.
fn line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    crate::bounded::cut(&plain, 200)
}

/// Follows one run and reports to one client.
pub(crate) struct Follower<'a> {
    services: &'a Services,
    run: RunId,
    story: Story,
    feed: Option<Box<dyn TickFeed>>,
    progress: Progress,
    count: u32,
    told_at: Instant,
    looked_at: Instant,
}

impl<'a> Follower<'a> {
    /// Tells of everything after the event `seq`. What the ticks held before is old news.
    pub(crate) async fn after(services: &'a Services, run: RunId, seq: u64, progress: Progress) -> Self {
        let mut story = Story::after(seq);
        let mut feed = None;
        if progress.wanted() {
            let before = services.store.events(run, 0).await.unwrap_or_default();
            let known: Vec<Event> = before.into_iter().filter(|event| event.seq <= seq).collect();
            story.skip(&known);
            feed = services.ticks.follow(run).await;
            if let Some(feed) = feed.as_mut().filter(|_| !known.is_empty() && seq > 1) {
                while !feed.read().is_empty() {}
            }
        }
        let now = Instant::now();
        Self { services, run, story, feed, progress, count: 0, told_at: now, looked_at: now }
    }

    /// Waits until `enough` says so of what has been told, or until `deadline`, and tells the
    /// client all the while.
    pub(crate) async fn until(&mut self, deadline: Option<Instant>, enough: impl Fn(&Story) -> bool) {
        loop {
            self.catch_up().await;
            let now = Instant::now();
            if enough(&self.story) || deadline.is_some_and(|deadline| now >= deadline) {
                return;
            }
            let step = if self.feed.is_some() { TICK } else { ALIVE };
            let step = deadline.map_or(step, |deadline| step.min(deadline - now));
            self.services.store.changed(self.run, self.story.seq, step).await;
            if self.looked_at.elapsed() >= ALIVE {
                self.services.buried(self.run).await;
                self.looked_at = Instant::now();
            }
        }
    }

    async fn catch_up(&mut self) {
        let events = match self.services.store.events(self.run, self.story.seq).await {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(run = %self.run, %error, "a run could not be followed");
                Vec::new()
            }
        };
        // Ticks of before the events: read first, told first.
        let ticks = self.feed.as_mut().map(|feed| feed.read()).unwrap_or_default();
        let (starts, rest): (Vec<Event>, Vec<Event>) =
            events.into_iter().partition(|event| matches!(event.body, RunEvent::CandidateStarted { .. }));
        let last = rest.iter().chain(&starts).map(|event| event.seq).max();
        let mut news = self.story.events(&starts);
        news.extend(self.story.ticks(&ticks));
        news.extend(self.story.events(&rest));
        self.story.seq = last.unwrap_or(self.story.seq).max(self.story.seq);
        for one in news {
            self.tell(&one).await;
        }
        if self.told_at.elapsed() >= SILENCE {
            self.tell(&News { text: "still running".to_owned(), must_arrive: false }).await;
        }
    }

    async fn tell(&mut self, news: &News) {
        self.count += 1;
        self.told_at = Instant::now();
        if news.must_arrive {
            self.progress.deliver(f64::from(self.count), None, Some(&news.text)).await;
        } else {
            self.progress.send(f64::from(self.count), None, Some(&news.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_run_store::{ProcessCount, RunState};
    use cyberine_types::{Billing, Timestamp, Usage};

    fn event(seq: u64, body: RunEvent) -> Event {
        Event { seq, at: Timestamp::from_unix_ms(0), epoch: 1, body }
    }

    fn started(seq: u64, candidate: &str) -> Event {
        let body = RunEvent::CandidateStarted {
            step: "dispatch".into(),
            candidate: candidate.into(),
            provider: candidate.into(),
            kind: "command".into(),
            model: None,
            billing: Billing::Free,
        };
        event(seq, body)
    }

    fn failed(seq: u64, candidate: &str) -> Event {
        let body = RunEvent::CandidateFailed {
            step: "dispatch".into(),
            candidate: candidate.into(),
            code: "auth".into(),
            message: "no\nkey".into(),
            usage: Usage::default(),
            duration_ms: 1,
        };
        event(seq, body)
    }

    fn tick(candidate: &str, kind: TickKind) -> Tick {
        Tick { candidate: candidate.into(), kind, text_bytes: 7, usage: Usage::default(), note: "n".into() }
    }

    fn texts(news: Vec<News>) -> Vec<String> {
        news.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn starts_and_ends_are_told_once_and_ticks_only_in_between() {
        let mut story = Story::default();
        let all = [
            TickKind::Started,
            TickKind::Text,
            TickKind::Tool,
            TickKind::Usage,
            TickKind::Waiting,
            TickKind::Done,
            TickKind::Settled,
        ];
        assert_eq!(texts(story.events(&[started(1, "a"), started(2, "b")])), ["a started", "b started"]);
        let ticks = all.map(|kind| tick("a", kind));
        assert_eq!(texts(story.ticks(&ticks)), ["a text: 7 bytes", "a tool: n", "a usage: 0 tokens", "a n"]);
        let fell = RunEvent::CandidateFellBack {
            step: "s".into(),
            candidate: "b".into(),
            model: "small".into(),
            code: "overloaded".into(),
            message: "busy".into(),
            usage: Usage::default(),
            duration_ms: 1,
        };
        let told = texts(story.events(&[event(3, fell)]));
        assert_eq!(told, ["b goes on with the model small, after: overloaded"]);
        assert_eq!(texts(story.events(&[failed(3, "a")])), ["a error: auth: no key"]);
        assert_eq!(texts(story.ticks(&ticks)), Vec::<String>::new());
        let settled = RunEvent::Settled {
            state: RunState::Done,
            detail: "d".into(),
            reason: None,
            processes: ProcessCount::default(),
        };
        assert_eq!(texts(story.events(&[event(4, settled)])), ["settled: done: d"]);
        assert!(story.settled);
        assert_eq!(texts(story.ticks(&[tick("b", TickKind::Text)])), Vec::<String>::new());
    }

    #[test]
    fn a_judge_is_told_of_by_its_ticks() {
        let mut story = Story::default();
        story.events(&[started(1, "a")]);
        let ticks =
            [TickKind::Started, TickKind::Text, TickKind::Done].map(|kind| tick("llm-judge (j)", kind));
        assert_eq!(
            texts(story.ticks(&ticks)),
            ["llm-judge (j) started", "llm-judge (j) text: 7 bytes", "llm-judge (j) done"]
        );
    }
}
