//! Sessions of the `initialize` era (2025-11-25, `basic/transports`, "Session Management").

mod stream;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderValue;
use cyberine_server::{Exchange, Peer};
use cyberine_types::Principal;
use tokio::time::Instant;

use crate::observe::{Gauge, Held};
use crate::settings::Settings;
use crate::visitors::Visitor;

pub(crate) use stream::{Place, Reader, Stream};

/// How long what was sent on a stream is kept for a client that has lost its connection, once its
/// reply is made.
const RESUME_WINDOW: Duration = Duration::from_secs(60);

/// Streams of one session that are over and kept all the same: as many as calls may be in flight.
const KEPT: usize = 256;

/// Bytes of them. The newest is kept however large it is.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Names a session: 128 random bits, written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionId([u8; 16]);

impl SessionId {
    /// A new one.
    ///
    /// # Errors
    /// Where the system has no randomness.
    fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    fn parse(text: &str) -> Option<Self> {
        if text.len() != 32
            || !text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    /// The value of `Mcp-Session-Id`.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{:032x}", u128::from_be_bytes(self.0))).ok()
    }
}

/// One session.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) peer: Peer,
    /// Whose it is.
    pub(crate) visitor: Arc<Visitor>,
    principal: Principal,
    state: Mutex<State>,
    _held: Held,
}

struct State {
    seen: Instant,
    streams: Vec<Arc<Stream>>,
    serial: u64,
    news: Option<Arc<Stream>>,
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an exchange whose answer is a stream, so that it can be taken up again.
    pub(crate) fn keep(&self, exchange: Exchange) -> Arc<Stream> {
        let mut state = self.state();
        forget_streams(&mut state, Instant::now());
        state.serial += 1;
        let stream = Arc::new(Stream::of_exchange(state.serial, exchange));
        state.streams.push(Arc::clone(&stream));
        stream
    }

    /// The stream of what belongs to no request.
    pub(crate) fn news(self: &Arc<Self>) -> Arc<Stream> {
        let session = Arc::downgrade(self);
        Arc::clone(self.state().news.get_or_insert_with(|| Arc::new(Stream::of_news(session))))
    }

    /// The stream of that number, if it is still there.
    pub(crate) fn stream(self: &Arc<Self>, number: u64) -> Option<Arc<Stream>> {
        if number == stream::NEWS {
            return Some(self.news());
        }
        self.state().streams.iter().find(|stream| stream.number == number).cloned()
    }

    fn touch(&self) {
        self.state().seen = Instant::now();
    }

    /// Whether nobody has used it since `before`, and nobody waits for an answer or reads a stream: only
    /// the table keeps it. Calls whose streams are cut do not keep it, nor does what it follows: its client
    /// has had all that time to come back.
    fn is_idle(self: &Arc<Self>, before: Instant) -> bool {
        Arc::strong_count(self) == 1 && self.state().seen < before
    }
}

/// The use of a session by an open stream.
pub(crate) struct InUse(Arc<Session>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.touch();
    }
}

/// Forgets streams nobody can want any more. Where too many are over, those that were sent to their end
/// go first, and then the oldest: what was sent may be lost on its way, but what was not sent is.
fn forget_streams(state: &mut State, now: Instant) {
    state.streams.retain(|stream| stream.over_since().is_none_or(|over| now < over + RESUME_WINDOW));
    let over = state.streams.iter().filter(|stream| stream.over_since().is_some());
    let over = over.map(|stream| (stream.number, stream.bytes(), stream.was_read())).collect();
    let gone = surplus(over);
    state.streams.retain(|stream| !gone.contains(&stream.number));
}

/// Which of the streams that are over (number, bytes, whether it was sent to its end; the oldest first)
/// are too many.
fn surplus(mut over: Vec<(u64, usize, bool)>) -> Vec<u64> {
    let newest = over.pop();
    let (mut count, mut bytes) =
        over.iter().chain(&newest).fold((0, 0), |(count, sum), (_, bytes, _)| (count + 1, sum + bytes));
    over.sort_by_key(|(number, _, was_read)| (!was_read, *number));
    let mut gone = Vec::new();
    for (number, size, _) in over {
        if count <= KEPT && bytes <= KEPT_BYTES {
            break;
        }
        (count, bytes) = (count - 1, bytes - size);
        gone.push(number);
    }
    gone
}

/// Why there is no room for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// There are too many of all.
    Full,
    /// There are too many of this principal.
    FullForOne,
    /// The system has no randomness.
    NoId,
}

/// All sessions.
pub(crate) struct Sessions {
    most: usize,
    most_of_one: usize,
    idle: Duration,
    gauge: Gauge,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<SessionId, Arc<Session>>,
    of_one: HashMap<Principal, usize>,
}

impl Table {
    fn remove(&mut self, id: SessionId) -> Option<Arc<Session>> {
        let session = self.sessions.remove(&id)?;
        if let Some(count) = self.of_one.get_mut(&session.principal) {
            *count -= 1;
            if *count == 0 {
                self.of_one.remove(&session.principal);
            }
        }
        Some(session)
    }
}

impl Sessions {
    pub(crate) fn new(settings: &Settings, gauge: Gauge) -> Self {
        Self {
            most: settings.max_sessions,
            most_of_one: settings.max_sessions_of_one,
            idle: settings.session_idle,
            gauge,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session of `principal`. Where there is no room, idle ones are ended first.
    ///
    /// # Errors
    /// Why there is none all the same.
    pub(crate) fn open(
        &self,
        peer: Peer,
        visitor: Arc<Visitor>,
        principal: &Principal,
    ) -> Result<Arc<Session>, NoSession> {
        if self.room(principal).is_err() {
            self.sweep();
        }
        let id = SessionId::random().map_err(|_| NoSession::NoId)?;
        let state = State { seen: Instant::now(), streams: Vec::new(), serial: 0, news: None };
        let (principal, state, held) = (principal.clone(), Mutex::new(state), self.gauge.hold());
        let session = Arc::new(Session { id, peer, visitor, principal, state, _held: held });
        let mut table = self.table();
        self.room_in(&table, &session.principal)?;
        *table.of_one.entry(session.principal.clone()).or_default() += 1;
        table.sessions.insert(id, Arc::clone(&session));
        Ok(session)
    }

    fn room_in(&self, table: &Table, principal: &Principal) -> Result<(), NoSession> {
        if table.sessions.len() >= self.most {
            return Err(NoSession::Full);
        }
        let of_one = table.of_one.get(principal).copied().unwrap_or_default();
        if of_one >= self.most_of_one { Err(NoSession::FullForOne) } else { Ok(()) }
    }

    fn room(&self, principal: &Principal) -> Result<(), NoSession> {
        self.room_in(&self.table(), principal)
    }

    /// The session of that id, where it is one of `principal`: anybody else's does not exist.
    pub(crate) fn of(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let id = SessionId::parse(id)?;
        let session =
            self.table().sessions.get(&id).filter(|session| session.principal == *principal).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session. `false` where it was not there any more.
    pub(crate) fn end(&self, session: &Session) -> bool {
        let ended = self.table().remove(session.id);
        ended.inspect(|session| session.peer.end()).is_some()
    }

    /// Ends sessions that were idle for too long, and lets go of what others keep in vain.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let before = now.checked_sub(self.idle);
        let mut table = self.table();
        let mut ended = Vec::new();
        for (id, session) in &table.sessions {
            if before.is_some_and(|before| session.is_idle(before)) {
                ended.push(*id);
            } else {
                forget_streams(&mut session.state(), now);
            }
        }
        let ended: Vec<_> = ended.into_iter().filter_map(|id| table.remove(id)).collect();
        drop(table);
        for session in &ended {
            session.peer.end();
        }
        if !ended.is_empty() {
            tracing::debug!(sessions = ended.len(), "idle sessions were ended");
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.table().sessions.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_goes_first_and_only_where_there_is_too_much() {
        let kept = u64::try_from(KEPT).unwrap();
        assert_eq!(surplus(Vec::new()), [0; 0]);
        assert_eq!(surplus((0..kept).map(|number| (number, 1, true)).collect()), [0; 0]);
        assert_eq!(surplus((0..kept + 2).map(|number| (number, 1, number == 7)).collect()), [7, 0]);
        assert_eq!(surplus(vec![(1, KEPT_BYTES / 2, false), (2, KEPT_BYTES / 2, true), (3, 1, false)]), [2]);
        assert_eq!(surplus(vec![(1, 1, false), (2, 2 * KEPT_BYTES, false)]), [1]);
    }
}
