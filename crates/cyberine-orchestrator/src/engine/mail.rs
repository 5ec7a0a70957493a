//! The run's mail: guidance in, news out. Whatever is wrong with the bus, the run goes on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{
    Address, AddressKind, Bus, BusError, Durability, Envelope, FromKind, Outgoing, ReadRequest, Sender, Topic,
};
use cyberine_run_store::RunEvent;
use cyberine_types::RunId;
use futures_util::future::{BoxFuture, select_all};

use crate::machine::{MAX_STEERS, Steering};
use crate::news;

/// The name under which a run says how far it has read.
const READER: &str = "run";
/// How long mail is waited for at a time. The bus looks in between by itself.
const WAIT: Duration = Duration::from_secs(30);
/// After what time mailboxes that could not be read are looked into again.
const POLL: Duration = Duration::from_millis(500);
/// How long a run waits for its mail: before a judge is asked, and before it ends.
const MOMENT: Duration = Duration::from_secs(1);
/// How many things may wait to be done on the bus. A run has some ten.
const MAX_JOBS: usize = 64;

/// One thing to do on the bus.
enum Job {
    Publish(Outgoing),
    Acknowledge(Address, u64),
}

/// A mailbox and how far it was read.
#[derive(Clone, PartialEq)]
struct Position {
    mailbox: Address,
    after: u64,
}

/// What one look into all mailboxes has found.
#[derive(Default)]
struct Found {
    words: Vec<Steering>,
    positions: Vec<Position>,
    /// How far to say that it was read: up to the last guidance of each mailbox.
    read: Vec<(Address, u64)>,
    /// A mailbox could not be read; the others were.
    error: Option<BusError>,
}

type Running<T> = Option<BoxFuture<'static, T>>;

/// The mailboxes of a run and of its candidates.
pub(super) struct Mail {
    bus: Arc<dyn Bus>,
    sender: Sender,
    run: RunId,
    positions: Vec<Position>,
    /// What to acknowledge once it is on record.
    owed: Vec<(Address, u64)>,
    jobs: VecDeque<Job>,
    working: Running<Result<(), BusError>>,
    reading: Running<Found>,
    off: bool,
    complained: bool,
}

impl Mail {
    pub(super) fn new(bus: Arc<dyn Bus>, sender: Sender, run: RunId, candidates: &[String]) -> Self {
        let worker = |name: &String| Address::new(AddressKind::Worker, format!("{run}/{name}")).ok();
        let mailboxes = news::mailbox(run).into_iter().chain(candidates.iter().filter_map(worker));
        let positions: Vec<_> = mailboxes.map(|mailbox| Position { mailbox, after: 0 }).collect();
        Self {
            bus,
            sender,
            run,
            off: positions.is_empty(),
            positions,
            owed: Vec::new(),
            jobs: VecDeque::new(),
            working: None,
            reading: None,
            complained: false,
        }
    }

    /// Tells the run's mailbox of what is on record, in the order of the calls.
    pub(super) fn tell(&mut self, events: &[RunEvent]) {
        for line in events.iter().filter_map(news::line) {
            if let Some(message) = news::message(self.run, &self.sender, line) {
                self.push(Job::Publish(message));
            }
        }
    }

    /// Guidance that was not given before, as soon as there is some; until then everything that
    /// waits to be done on the bus is done.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Vec<Steering> {
        loop {
            self.start_work();
            if self.reading.is_none() && !self.off {
                self.reading = Some(Box::pin(wait(Arc::clone(&self.bus), self.positions.clone())));
            }
            tokio::select! {
                done = running(&mut self.working) => self.done(done),
                found = running(&mut self.reading) => {
                    if found.error.is_some() {
                        self.reading = Some(Box::pin(pause()));
                    }
                    let words = self.found(found);
                    if !words.is_empty() {
                        return words;
                    }
                }
            }
        }
    }

    /// What guidance lies in the mailboxes now, if that can be told in a moment.
    pub(super) async fn look(&mut self) -> Vec<Steering> {
        if self.off {
            return Vec::new();
        }
        self.reading = None;
        let looking = look(&*self.bus, &self.positions);
        match tokio::time::timeout(MOMENT, looking).await {
            Ok(found) => self.found(found),
            Err(_) => Vec::new(),
        }
    }

    /// All guidance that was given is on record: its senders may know.
    pub(super) fn taken_in(&mut self) {
        for (mailbox, through) in std::mem::take(&mut self.owed) {
            self.push(Job::Acknowledge(mailbox, through));
        }
    }

    /// Does what waits to be done, for a moment at most.
    pub(super) async fn close(&mut self) {
        let all = async {
            self.start_work();
            while self.working.is_some() {
                let done = running(&mut self.working).await;
                self.done(done);
                self.start_work();
            }
        };
        if tokio::time::timeout(MOMENT, all).await.is_err() {
            tracing::warn!(run = %self.run, "the message bus is slow; the run ends without its last news");
        }
    }

    fn found(&mut self, found: Found) -> Vec<Steering> {
        for seen in found.positions {
            if let Some(known) = self.positions.iter_mut().find(|known| known.mailbox == seen.mailbox) {
                known.after = known.after.max(seen.after);
            }
        }
        self.owed.extend(found.read);
        if let Some(error) = found.error {
            self.complain(&error);
        }
        found.words
    }

    fn push(&mut self, job: Job) {
        if !self.off && self.jobs.len() < MAX_JOBS {
            self.jobs.push_back(job);
        }
    }

    fn start_work(&mut self) {
        if self.working.is_none()
            && let Some(job) = self.jobs.pop_front()
        {
            self.working = Some(Box::pin(work(Arc::clone(&self.bus), job)));
        }
    }

    fn done(&mut self, done: Result<(), BusError>) {
        if let Err(error) = done {
            self.complain(&error);
        }
    }

    /// Says once that something is wrong. A bus that is off is not asked again.
    fn complain(&mut self, error: &BusError) {
        let run = self.run;
        if matches!(error, BusError::Off) {
            self.off = true;
            self.jobs.clear();
            self.reading = None;
            tracing::debug!(%run, "the message bus is off: the run takes no guidance and tells no news");
        } else if std::mem::replace(&mut self.complained, true) {
            tracing::debug!(%run, %error, "the run's mail");
        } else {
            tracing::warn!(%run, %error, "the run's mail cannot be used for now; the run goes on without");
        }
    }
}

/// Takes a running future to its end and out of its place.
async fn running<T>(place: &mut Running<T>) -> T {
    let Some(future) = place else { return std::future::pending().await };
    let output = future.await;
    *place = None;
    output
}

async fn work(bus: Arc<dyn Bus>, job: Job) -> Result<(), BusError> {
    match job {
        Job::Publish(message) => bus.publish(message, Durability::Fast).await.map(drop),
        Job::Acknowledge(mailbox, through) => {
            bus.acknowledge(mailbox, READER.to_owned(), through).await.map(drop)
        }
    }
}

/// Looks until there is something new.
async fn wait(bus: Arc<dyn Bus>, positions: Vec<Position>) -> Found {
    loop {
        let found = look(&*bus, &positions).await;
        if found.error.is_some() || found.positions != positions {
            return found;
        }
        let changes = positions.iter().map(|at| bus.changed(at.mailbox.clone(), at.after, WAIT));
        select_all(changes).await;
    }
}

async fn pause() -> Found {
    tokio::time::sleep(POLL).await;
    Found::default()
}

async fn look(bus: &dyn Bus, positions: &[Position]) -> Found {
    let mut found = Found::default();
    for position in positions {
        let mut at = position.clone();
        if let Err(error) = look_into(bus, &mut at, &mut found).await {
            found.error = Some(error);
        }
        found.positions.push(at);
    }
    found
}

/// Reads one mailbox to its end.
async fn look_into(bus: &dyn Bus, at: &mut Position, found: &mut Found) -> Result<(), BusError> {
    loop {
        let request = ReadRequest { after: at.after, ..ReadRequest::default() };
        let page = bus.read(at.mailbox.clone(), request).await?;
        for envelope in page.messages.iter().filter(|envelope| envelope.topic == Topic::Steer) {
            found.read.retain(|(mailbox, _)| *mailbox != at.mailbox);
            found.read.push((at.mailbox.clone(), envelope.seq));
            // The one beyond the limit makes it known that there are more.
            if found.words.len() <= MAX_STEERS {
                found.words.push(steering(envelope));
            }
        }
        let ended = page.next <= at.after || !page.more;
        at.after = at.after.max(page.next);
        if ended {
            return Ok(());
        }
    }
}

fn steering(envelope: &Envelope) -> Steering {
    let kind = match envelope.from.kind {
        FromKind::Human => "human",
        FromKind::Mcp => "mcp",
        FromKind::Run => "run",
        FromKind::Worker => "worker",
    };
    Steering::new(envelope.id, &format!("{kind} {}", envelope.from.id), &envelope.text)
}
