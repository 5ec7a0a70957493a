use std::collections::HashMap;

use super::ask::Kind;
use super::effect::{AskKey, RequestKey};
use super::flight::{Flight, Following, Method, News};
use crate::encode::error_line;
use crate::jsonrpc::{IdValue, RequestId, RpcError};
use crate::model::SubscriptionFilter;
use crate::revision::Revision;

/// The most bytes of answers that wait in open batches, all together. An answer that finds no room
/// is left out, and an error says so in its place.
const BATCHED_LIMIT: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BatchKey(u64);

#[derive(Debug)]
struct Batch {
    /// How many answers are missing.
    waiting: usize,
    /// The array as far as it is known, without its end; empty where no answer is there.
    line: Vec<u8>,
}

impl Batch {
    /// Adds an answer, and tells by how many bytes the array has grown.
    fn push(&mut self, part: &[u8]) -> usize {
        self.line.push(if self.line.is_empty() { b'[' } else { b',' });
        self.line.extend_from_slice(part);
        part.len() + 1
    }
}

/// What stands in the place of an answer that the batches have no room for.
fn left_out(flight: &Flight) -> Vec<u8> {
    let message = format!(
        "the answers that wait in batches would be longer than {BATCHED_LIMIT} bytes; send this request by itself"
    );
    error_line(Some(&flight.id), &RpcError::internal(message), flight.revision)
}

#[derive(Debug)]
struct Ask {
    key: RequestKey,
    ask: AskKey,
    kind: Kind,
}

/// Every request of one pipe that something may still be sent for. Ids are unique among those
/// not answered, progress tokens among all.
#[derive(Debug, Default)]
pub(super) struct Table {
    flights: HashMap<RequestKey, Flight>,
    ids: HashMap<IdValue, RequestKey>,
    tokens: HashMap<IdValue, RequestKey>,
    batches: HashMap<BatchKey, Batch>,
    asks: HashMap<IdValue, Ask>,
    /// The bytes of answers that wait in open batches.
    batched: usize,
    answered: usize,
    serial: u64,
    /// What the ids of questions carry.
    scope: Option<u64>,
}

/// What a cancellation leaves to do.
#[derive(Debug)]
pub(super) struct Cancelled {
    pub(super) key: RequestKey,
    /// Questions the client need not answer any more.
    pub(super) asks: Vec<RequestId>,
    /// The answers to the batch it belonged to, if it was the last one missing.
    pub(super) batch: Option<Vec<u8>>,
}

impl Table {
    pub(super) fn scoped(scope: u64) -> Self {
        Self { scope: Some(scope), ..Self::default() }
    }

    fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Whether a request with this id waits for its answer.
    pub(super) fn is_open(&self, id: &RequestId) -> bool {
        self.ids.get(id.value()).is_some_and(|key| self.open_flight(*key).is_some())
    }

    /// Whether there is a request with this id to cancel.
    pub(super) fn knows(&self, id: &RequestId) -> bool {
        self.ids.contains_key(id.value())
    }

    /// Whether news with this token belongs to a request that waits for its answer.
    pub(super) fn token_is_open(&self, token: &RequestId) -> bool {
        self.tokens.get(token.value()).is_some_and(|key| self.open_flight(*key).is_some())
    }

    /// A request that something may still be sent for.
    pub(super) fn flight(&self, key: RequestKey) -> Option<&Flight> {
        self.flights.get(&key)
    }

    pub(super) fn open_flight(&self, key: RequestKey) -> Option<&Flight> {
        self.flights.get(&key).filter(|flight| !flight.answered)
    }

    pub(super) fn open_flights(&self) -> usize {
        self.flights.len() - self.answered
    }

    /// Takes a request in. Its id and token pass to it from an answered request that still had
    /// them: what the client says or hears of them now means the new one.
    pub(super) fn open(&mut self, flight: Flight) -> RequestKey {
        let key = RequestKey(self.next());
        self.ids.insert(flight.id.value().clone(), key);
        if let Some(token) = &flight.token
            && let Some(earlier) = self.tokens.insert(token.value().clone(), key)
            && let Some(earlier) = self.flights.get_mut(&earlier)
        {
            earlier.token = None;
        }
        if let Some(batch) = flight.batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.waiting += 1;
        }
        self.flights.insert(key, flight);
        key
    }

    fn remove(&mut self, key: RequestKey) -> Option<Flight> {
        let flight = self.flights.remove(&key)?;
        self.answered -= usize::from(flight.answered);
        if self.ids.get(flight.id.value()) == Some(&key) {
            self.ids.remove(flight.id.value());
        }
        if let Some(token) = &flight.token
            && self.tokens.get(token.value()) == Some(&key)
        {
            self.tokens.remove(token.value());
        }
        Some(flight)
    }

    /// Marks a request as answered by `line` and gives the line to send, if there is one now.
    pub(super) fn answered(&mut self, key: RequestKey, line: Vec<u8>, news: News) -> Option<Vec<u8>> {
        let fits = self.batched + line.len() <= BATCHED_LIMIT;
        let flight = self.flights.get_mut(&key)?;
        let batch = flight.batch;
        let line = if batch.is_some() && !fits { left_out(flight) } else { line };
        if flight.outlives(news) {
            flight.answered = true;
            self.answered += 1;
        } else {
            self.remove(key);
        }
        self.take_asks(key);
        match batch {
            None => Some(line),
            Some(batch) => {
                self.batch_part(batch, &line);
                self.settle(batch)
            }
        }
    }

    /// Moves the progress of a request on. `None` where no news may be sent.
    pub(super) fn advance(&mut self, key: RequestKey, progress: f64) -> Option<(&RequestId, Revision)> {
        let flight = self.flights.get_mut(&key)?;
        if !progress.is_finite() || progress <= flight.progress {
            return None;
        }
        let token = flight.token.as_ref()?;
        flight.progress = progress;
        Some((token, flight.revision))
    }

    pub(super) fn end_progress(&mut self, key: RequestKey) {
        let Some(flight) = self.flights.get_mut(&key) else { return };
        if flight.answered {
            self.remove(key);
        } else if let Some(token) = flight.token.take() {
            self.tokens.remove(token.value());
        }
    }

    /// Lets changes be told under the key of a request in flight. `None` where they are already, or
    /// never will be.
    pub(super) fn acknowledge(&mut self, key: RequestKey, served: &SubscriptionFilter) -> Option<&RequestId> {
        let flight = self.flights.get_mut(&key).filter(|flight| flight.method == Method::Listen)?;
        if !flight.begin_following() {
            return None;
        }
        flight.hear(served);
        Some(&flight.id)
    }

    /// The request under whose key changes of resources are told.
    pub(super) fn following(&self, key: RequestKey) -> Option<&Flight> {
        self.flights.get(&key).filter(|flight| flight.following == Following::Begun)
    }

    /// Ends the subscriptions of the client whose session is over, and gives their keys. One that is
    /// not answered yet will be, and begins nothing.
    pub(super) fn end_subscriptions(&mut self) -> Vec<RequestKey> {
        let mut ended = Vec::new();
        for (key, flight) in &mut self.flights {
            if flight.method == Method::Subscribe {
                if flight.answered {
                    ended.push(*key);
                }
                flight.following = Following::Never;
            }
        }
        ended.sort_unstable();
        ended.iter().for_each(|key| drop(self.remove(*key)));
        ended
    }

    /// Ends one subscription that is answered.
    pub(super) fn end_subscription(&mut self, key: RequestKey) {
        if self.following(key).is_some_and(|flight| flight.answered) {
            self.remove(key);
        }
    }

    /// Forgets the request with this id, answered or not.
    pub(super) fn cancel(&mut self, id: &RequestId) -> Option<Cancelled> {
        let key = *self.ids.get(id.value())?;
        let flight = self.remove(key)?;
        let asks = self.take_asks(key);
        let batch = flight.batch.filter(|_| !flight.answered).and_then(|batch| self.settle(batch));
        Some(Cancelled { key, asks, batch })
    }

    pub(super) fn ask(&mut self, key: RequestKey, kind: Kind) -> (AskKey, RequestId) {
        let serial = self.next();
        let (ask, id) = (AskKey(serial), RequestId::own(self.scope, serial));
        self.asks.insert(id.value().clone(), Ask { key, ask, kind });
        (ask, id)
    }

    /// The question a response answers, once.
    pub(super) fn answer_ask(&mut self, id: &RequestId) -> Option<(RequestKey, AskKey, Kind)> {
        self.asks.remove(id.value()).map(|ask| (ask.key, ask.ask, ask.kind))
    }

    fn take_asks(&mut self, key: RequestKey) -> Vec<RequestId> {
        if self.asks.is_empty() {
            return Vec::new();
        }
        let mut taken: Vec<u64> =
            self.asks.extract_if(|_, ask| ask.key == key).map(|(_, ask)| ask.ask.0).collect();
        taken.sort_unstable();
        taken.into_iter().map(|serial| RequestId::own(self.scope, serial)).collect()
    }

    /// Starts a batch. Until [`Self::batch_read`] its own reading counts as something missing.
    pub(super) fn batch(&mut self) -> BatchKey {
        let batch = BatchKey(self.next());
        self.batches.insert(batch, Batch { waiting: 1, line: Vec::new() });
        batch
    }

    /// Adds an answer that was there at once: a short one.
    pub(super) fn batch_part(&mut self, batch: BatchKey, line: &[u8]) {
        if let Some(batch) = self.batches.get_mut(&batch) {
            self.batched += batch.push(line);
        }
    }

    /// Says that all of a batch is read. Gives its answers where none is missing.
    pub(super) fn batch_read(&mut self, batch: BatchKey) -> Option<Vec<u8>> {
        self.settle(batch)
    }

    /// Takes one missing answer off a batch and gives the line where it was the last one.
    fn settle(&mut self, key: BatchKey) -> Option<Vec<u8>> {
        let batch = self.batches.get_mut(&key)?;
        batch.waiting -= 1;
        if batch.waiting > 0 {
            return None;
        }
        let Batch { mut line, .. } = self.batches.remove(&key)?;
        self.batched -= line.len();
        (!line.is_empty()).then(|| {
            line.push(b']');
            line
        })
    }
}
