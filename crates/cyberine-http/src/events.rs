//! Event streams (HTML, 9.2, "Server-sent events").

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use cyberine_protocol::sse::{KEEP_ALIVE, Outgoing};
use cyberine_server::Exchange;
use cyberine_types::{Clock as _, SystemClock, Timestamp};
use futures_util::stream;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use crate::session::{Place, Reader};
use crate::visitors::StreamPlace;

/// A comment, which every client passes over.
const ALIVE: Bytes = Bytes::from_static(KEEP_ALIVE);

/// Where the messages of an event stream come from.
pub(crate) enum Messages {
    /// An exchange whose stream is all there is: dropped with it.
    Once(Exchange),
    /// A session's stream, which can be taken up again. From 2025-11-25 on it begins with an event
    /// without a message, so that there is a place to take it up from.
    Lasting { reader: Reader, primed: bool },
}

/// How an event stream behaves.
pub(crate) struct Manner {
    pub(crate) keep_alive: Duration,
    /// From when on its reader may hear no more: a listen ends with its result, a lasting one without a
    /// word, for whoever may go on takes it up again.
    pub(crate) until: Option<Timestamp>,
    /// How long a lasting one stays open.
    pub(crate) lifetime: Option<Duration>,
    /// What the client of a lasting one is told to wait before it comes again.
    pub(crate) retry: Duration,
    /// Ends all streams.
    pub(crate) over: CancellationToken,
}

struct State {
    messages: Messages,
    manner: Manner,
    /// When a lasting one is closed.
    closes: Option<Instant>,
    /// Whether the first event is due.
    opening: bool,
    /// The stream's place among all of them.
    _held: StreamPlace,
}

/// The body of an event stream, which keeps its place among all of them.
pub(crate) fn body(messages: Messages, manner: Manner, held: StreamPlace) -> Body {
    let lifetime = manner.lifetime.filter(|_| matches!(messages, Messages::Lasting { .. }));
    let closes = lifetime.map(|lifetime| Instant::now() + lifetime);
    let state = State { messages, manner, closes, opening: true, _held: held };
    Body::from_stream(stream::unfold(state, |mut state| async {
        let events = state.next().await?;
        Some((Ok::<_, Infallible>(events), state))
    }))
}

/// The body of an event stream on which nothing comes: that of a request that was cancelled, to which
/// nothing is answered.
pub(crate) fn nothing() -> Body {
    ALIVE.into()
}

impl State {
    /// The next events; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening() {
            return Some(opening);
        }
        let (closes, alive) = (self.closes, Instant::now() + self.manner.keep_alive);
        loop {
            let left = self.manner.until.map(left);
            if left.is_some_and(|left| left.is_zero()) {
                self.manner.until = None;
                match &self.messages {
                    Messages::Once(exchange) => exchange.end(),
                    Messages::Lasting { .. } => return None,
                }
                continue;
            }
            // The wall clock may be set meanwhile: it is looked at again whatever happens.
            tokio::select! {
                biased;
                events = self.messages.next() => return events,
                () = self.manner.over.cancelled() => return None,
                () = some(closes.map(tokio::time::sleep_until)) => return None,
                () = some(left.map(tokio::time::sleep)) => {}
                () = tokio::time::sleep_until(alive) => return Some(ALIVE),
            }
        }
    }

    fn opening(&mut self) -> Option<Bytes> {
        if !std::mem::take(&mut self.opening) {
            return None;
        }
        match &self.messages {
            Messages::Lasting { reader, primed: true } => {
                let id = reader.place().to_string();
                let retry_ms = u64::try_from(self.manner.retry.as_millis()).ok();
                let mut priming = Vec::new();
                Outgoing { id: Some(&id), retry_ms, data: Some(b"") }.put(&mut priming);
                Some(priming.into())
            }
            // Headers alone may wait in a proxy for the first byte behind them.
            _ => Some(ALIVE),
        }
    }
}

/// How long it is until `at`.
fn left(at: Timestamp) -> Duration {
    let left_ms = at.unix_ms().saturating_sub(SystemClock.now().unix_ms());
    Duration::from_millis(u64::try_from(left_ms).unwrap_or_default())
}

/// Waits for a time that there may not be.
async fn some(sleep: Option<Sleep>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

impl Messages {
    async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Once(exchange) => exchange.next().await.map(|batch| without_ids(&batch)),
            Self::Lasting { reader, .. } => reader.next().await.map(|messages| with_ids(&messages)),
        }
    }
}

/// Messages that are each followed by a line feed, as events.
fn without_ids(batch: &[u8]) -> Bytes {
    let mut events = Vec::with_capacity(batch.len() + 32);
    for message in batch.split(|byte| *byte == b'\n').filter(|message| !message.is_empty()) {
        Outgoing { data: Some(message), ..Outgoing::default() }.put(&mut events);
    }
    events.into()
}

fn with_ids(messages: &[(Place, Bytes)]) -> Bytes {
    let length: usize = messages.iter().map(|(_, message)| message.len() + 64).sum();
    let mut events = Vec::with_capacity(length);
    for (place, message) in messages {
        let id = place.to_string();
        Outgoing { id: Some(&id), data: Some(message), ..Outgoing::default() }.put(&mut events);
    }
    events.into()
}
