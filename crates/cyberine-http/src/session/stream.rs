use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use cyberine_server::Exchange;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{InUse, Session};

/// The number of the stream of what belongs to no request.
pub(super) const NEWS: u64 = 0;

/// Bytes of what was sent that one stream keeps for a client that has lost its connection, beside the
/// newest message.
const LOG_BYTES: usize = 1024 * 1024;

/// A place in a stream, which a client says with `Last-Event-ID`: the last event it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The stream's number in its session.
    pub(crate) stream: u64,
    /// The event's number in its stream; 0 before the first.
    pub(crate) event: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.stream, self.event)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number).ok_or(())
        };
        let (stream, event) = text.split_once('-').ok_or(())?;
        Ok(Self { stream: number(stream)?, event: number(event)? })
    }
}

/// Messages of a session that go out on one event stream after the other: a client that has lost one
/// takes up where it was.
pub(crate) struct Stream {
    pub(crate) number: u64,
    source: Source,
    log: Mutex<Log>,
    /// Wakes the reader when another one took its place or added something.
    moved: Notify,
}

enum Source {
    Exchange(Exchange),
    News(Weak<Session>),
}

#[derive(Default)]
struct Log {
    /// Messages with their numbers, the oldest first.
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
    /// The last message that was sent to anybody.
    sent: u64,
    /// Who reads it: the latest.
    reader: u64,
    /// Since when the source makes no more.
    over: Option<Instant>,
    /// Whether all of it is here.
    drained: bool,
}

impl Log {
    fn push(&mut self, batch: &Bytes) {
        let mut rest = batch.clone();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let message = rest.split_to(end);
            let _line_feed = rest.split_to(1);
            self.last += 1;
            self.bytes += message.len();
            self.events.push_back((self.last, message));
        }
    }

    /// Forgets the oldest of what was sent, while too much is kept. What was sent may be lost on its way,
    /// so the newest message, which is the reply at the end, stays however long it is.
    fn trim(&mut self) {
        let newest = self.events.back().map_or(0, |(_, message)| message.len());
        while self.bytes - newest > LOG_BYTES
            && let Some((_, message)) = self.events.pop_front()
        {
            self.bytes -= message.len();
        }
    }

    /// Whether all that came behind an event is here.
    fn has_all_behind(&self, event: u64) -> bool {
        self.events.front().is_none_or(|(first, _)| *first <= event.saturating_add(1))
    }
}

impl Stream {
    pub(super) fn of_exchange(number: u64, exchange: Exchange) -> Self {
        Self::new(number, Source::Exchange(exchange))
    }

    pub(super) fn of_news(session: Weak<Session>) -> Self {
        Self::new(NEWS, Source::News(session))
    }

    fn new(number: u64, source: Source) -> Self {
        Self { number, source, log: Mutex::default(), moved: Notify::new() }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when nothing more will come.
    pub(super) fn over_since(&self) -> Option<Instant> {
        let mut log = self.log();
        if let Source::Exchange(exchange) = &self.source
            && log.over.is_none()
            && exchange.is_over()
        {
            log.over = Some(Instant::now());
        }
        log.over
    }

    /// How much waits to be sent, or is kept for a client that has lost its connection.
    pub(super) fn bytes(&self) -> usize {
        let waiting = match &self.source {
            Source::Exchange(exchange) => exchange.waiting(),
            Source::News(_) => 0,
        };
        self.log().bytes + waiting
    }

    /// Whether all of it was sent at least once.
    pub(super) fn was_read(&self) -> bool {
        let log = self.log();
        log.drained && log.sent == log.last
    }

    /// Reads on behind an event; whoever read before reads no more. `None` where some of what came behind
    /// it is not kept any more: nobody is given the rest as if it were all.
    pub(crate) fn read_from(self: Arc<Self>, session: &Arc<Session>, event: u64) -> Option<Reader> {
        let mut log = self.log();
        if !log.has_all_behind(event) {
            return None;
        }
        log.reader += 1;
        // An event that was never sent counts as the last.
        let (number, seen) = (log.reader, event.min(log.last));
        drop(log);
        self.moved.notify_waiters();
        Some(Reader { stream: self, number, seen, _used: InUse(Arc::clone(session)) })
    }

    /// What the source has next.
    async fn next(&self) -> Option<Vec<u8>> {
        match &self.source {
            Source::Exchange(exchange) => exchange.next().await,
            Source::News(session) => {
                let session = session.upgrade()?;
                session.peer.news().await
            }
        }
    }
}

/// Reads a stream.
pub(crate) struct Reader {
    stream: Arc<Stream>,
    number: u64,
    seen: u64,
    _used: InUse,
}

/// What a reader has to do.
enum Step {
    Give(Vec<(Place, Bytes)>),
    Wait,
    End,
}

impl Reader {
    /// The last event that was read, or behind which reading began.
    pub(crate) fn place(&self) -> Place {
        Place { stream: self.stream.number, event: self.seen }
    }

    /// The next messages, with the places behind them; waits for one. `None` when no more will come,
    /// or another reader has come.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Vec<(Place, Bytes)>> {
        loop {
            let stream = Arc::clone(&self.stream);
            let mut moved = std::pin::pin!(stream.moved.notified());
            moved.as_mut().enable();
            match self.step() {
                Step::Give(messages) => return Some(messages),
                Step::End => return None,
                Step::Wait => {}
            }
            tokio::select! {
                batch = stream.next() => {
                    let mut log = stream.log();
                    match batch {
                        Some(batch) => log.push(&batch.into()),
                        None => {
                            log.drained = true;
                            log.over.get_or_insert_with(Instant::now);
                        }
                    }
                    drop(log);
                    stream.moved.notify_waiters();
                }
                () = moved => {}
            }
        }
    }

    fn step(&mut self) -> Step {
        let mut log = self.stream.log();
        if log.reader != self.number {
            return Step::End;
        }
        let (number, seen) = (self.stream.number, self.seen);
        let new = log.events.iter().filter(|(event, _)| *event > seen);
        let messages: Vec<_> =
            new.map(|(event, message)| (Place { stream: number, event: *event }, message.clone())).collect();
        if messages.is_empty() {
            return if log.drained { Step::End } else { Step::Wait };
        }
        self.seen = log.last;
        log.sent = log.last;
        log.trim();
        Step::Give(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(lengths: &[usize]) -> Log {
        let mut log = Log::default();
        for length in lengths {
            let mut message = vec![b'x'; *length];
            message.push(b'\n');
            log.push(&message.into());
        }
        log.trim();
        log
    }

    fn kept(log: &Log) -> Vec<u64> {
        log.events.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn the_newest_message_stays_however_long_it_is_and_a_gap_is_noticed() {
        assert_eq!(kept(&log_of(&[10, 10, 3 * LOG_BYTES])), [1, 2, 3]);
        let log = log_of(&[10, LOG_BYTES, LOG_BYTES, LOG_BYTES]);
        assert_eq!((kept(&log), log.bytes), (vec![3, 4], 2 * LOG_BYTES));
        assert!(!log.has_all_behind(0) && !log.has_all_behind(1));
        assert!(log.has_all_behind(2) && log.has_all_behind(4) && log.has_all_behind(u64::MAX));
        assert!(Log::default().has_all_behind(0));
    }
}
