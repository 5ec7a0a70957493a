//! Messages that come by themselves, as over HTTP: each has a connection of its own, and so its ids
//! mean something within it only. What a client's exchanges share is its [`Peer`].

mod lists;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cyberine_protocol::http::HeaderParams;
use cyberine_protocol::{LegacyClient, Revision, ServerSession, ask_scope_of};
use cyberine_types::{Caller, Identity};

use crate::connection::{Connection, Performed, Received, Shared};
use crate::lines::Line;
use crate::output::Output;
use crate::server::Server;
use lists::Lists;

pub use crate::output::First;

/// A client that sends every message by itself: all messages of one `initialize` session, or the
/// stateless ones of whoever counts as one.
///
/// What it may do at once (requests in flight, resources followed) is bounded over all its exchanges, the
/// requests also over all its sessions.
/// Dropped, it leaves calls running; [`end`](Self::end) it instead.
pub struct Peer {
    server: Arc<Server>,
    shared: Arc<Shared>,
    session: Option<Session>,
}

/// What an `initialize` session keeps between two messages.
struct Session {
    client: Mutex<Option<LegacyClient>>,
    /// The exchanges to which something may still be said, by the scope of their questions.
    live: Mutex<HashMap<u64, Weak<Connection>>>,
    scopes: AtomicU64,
    /// Messages that belong to no exchange, or come after its reply.
    news: Arc<Output>,
    /// Lists of which the client hears without asking, while it reads the news.
    lists: tokio::sync::Mutex<Lists>,
}

impl Session {
    fn client(&self) -> MutexGuard<'_, Option<LegacyClient>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, HashMap<u64, Weak<Connection>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All live exchanges; the others are forgotten.
    fn exchanges(&self) -> Vec<Arc<Connection>> {
        let mut exchanges = Vec::new();
        self.live().retain(|_, exchange| {
            exchange.upgrade().is_some_and(|exchange| {
                exchanges.push(exchange);
                true
            })
        });
        exchanges
    }
}

impl Peer {
    /// Whoever sends stateless requests; an exchange that is dropped before its reply is cancelled.
    #[must_use]
    pub fn stateless(server: Arc<Server>) -> Self {
        Self { server, shared: Arc::default(), session: None }
    }

    /// A session of `client`, which the first exchange opens with `initialize`. Its exchanges go on when
    /// they are dropped: a client that is gone for a moment has cancelled nothing. The requests in flight
    /// are bounded over all sessions of a client and itself.
    #[must_use]
    pub fn session(client: &Self) -> Self {
        let server = Arc::clone(&client.server);
        let session = Session {
            client: Mutex::default(),
            live: Mutex::default(),
            scopes: AtomicU64::new(1),
            news: Arc::new(Output::to_news()),
            lists: tokio::sync::Mutex::new(Lists::of(&server)),
        };
        Self { server, shared: Arc::new(client.shared.session()), session: Some(session) }
    }

    /// Serves one message of `identity`, which must be a request or a batch.
    ///
    /// It resolves when the message is taken in; a client that has too much in flight already waits
    /// here for a moment.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it counts as an exchange that was dropped.
    pub async fn post(&self, identity: Arc<Identity>, message: &[u8]) -> Exchange {
        let (exchange, mut received) = self.receive(identity, message);
        let connection = &exchange.connection;
        while connection.perform(&mut received) == Performed::UpToPlace {
            connection.place(&received).await;
        }
        connection.settled();
        exchange
    }

    fn receive(&self, identity: Arc<Identity>, message: &[u8]) -> (Exchange, Received) {
        let open = |client, scope, then| {
            let session = ServerSession::resumed(self.server.profile.clone(), client, scope);
            let (server, shared) = (Arc::clone(&self.server), Arc::clone(&self.shared));
            Connection::of_exchange(server, identity, session, Output::to_exchange(then), shared)
        };
        let Some(session) = &self.session else {
            let connection = open(None, 0, None);
            let received = connection.receive(Line::Whole(message));
            return (Exchange { connection, dropped: Dropped::Cancels }, received);
        };
        let scope = session.scopes.fetch_add(1, Ordering::Relaxed);
        // What the message changes of the client's record, such as its log level, is seen by the next.
        let mut client = session.client();
        let connection = open(client.clone(), scope, Some(Arc::clone(&session.news)));
        let received = connection.receive(Line::Whole(message));
        *client = connection.client();
        drop(client);
        let mut live = session.live();
        live.retain(|_, exchange| exchange.strong_count() > 0);
        live.insert(scope, Arc::downgrade(&connection));
        drop(live);
        (Exchange { connection, dropped: Dropped::GoesOn }, received)
    }

    /// Takes in a notification or a response of a session's client. A cancellation reaches the one
    /// exchange that has the request; where several have one with its id, nobody knows which is meant,
    /// and none is cancelled. A response reaches the exchange that asked.
    ///
    /// Must be called with the runtime entered.
    pub fn tell(&self, message: &[u8]) {
        let Some(session) = &self.session else { return };
        let exchange = match ask_scope_of(message) {
            Some(scope) => session.live().get(&scope).and_then(Weak::upgrade),
            None => {
                let mut meant = session.exchanges();
                meant.retain(|exchange| exchange.would_cancel(message));
                meant.pop().filter(|_| meant.is_empty())
            }
        };
        let Some(exchange) = exchange else {
            tracing::debug!("a message that answers or cancels nothing was ignored");
            return;
        };
        let mut received = exchange.receive(Line::Whole(message));
        // Neither kind needs a place.
        exchange.perform(&mut received);
        exchange.settled();
    }

    /// The revision the session's `initialize` agreed on; `None` before that.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.session.as_ref()?.client().as_ref().map(|client| client.revision())
    }

    /// The session's messages that belong to no exchange, each with a line feed behind it: at least
    /// one, all that wait. `None` once the session has ended. For one reader at a time.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, nothing is lost.
    pub async fn news(&self) -> Option<Vec<u8>> {
        let session = self.session.as_ref()?;
        loop {
            let changed = async { session.lists.lock().await.changed().await };
            let kind = tokio::select! {
                biased;
                news = session.news.next() => return news,
                kind = changed => kind,
            };
            let client = session.client().clone();
            let speaker = ServerSession::resumed(self.server.profile.clone(), client, 0);
            if let Some(mut line) = speaker.list_changed_unsolicited(kind) {
                line.push(b'\n');
                return Some(line);
            }
        }
    }

    /// Whether nothing goes on for this client.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shared.is_idle()
    }

    /// Ends everything of this client at once: calls are cancelled and answered with an error, listens
    /// get their result, and no news comes any more.
    pub fn end(&self) {
        self.shared.cancel();
        if let Some(session) = &self.session {
            session.news.end();
        }
    }

    /// Ends everything of this client: gives calls in flight `grace` to finish, then cancels them, ends
    /// listens with their result. What waits can still be taken.
    pub async fn wind_down(&self, grace: Duration) {
        self.shared.wind_down(grace).await;
        self.end();
    }
}

impl Server {
    /// The arguments of a tool that a client over HTTP mirrors into headers (2026-07-28,
    /// `server/tools`, "x-mcp-header"). `None` where there are none, or no such tool.
    #[must_use]
    pub fn header_params(&self, identity: &Arc<Identity>, tool: &str) -> Option<Arc<HeaderParams>> {
        let caller = Caller { identity: Arc::clone(identity), client: None };
        self.catalog(&caller).mirrored(tool)
    }
}

/// What becomes of an exchange whose client is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dropped {
    /// Its request is cancelled, unless its reply is there.
    Cancels,
    /// It goes on, and nobody hears of it.
    GoesOn,
}

/// One message that is being served: what goes back, up to the reply.
pub struct Exchange {
    connection: Arc<Connection>,
    dropped: Dropped,
}

impl Exchange {
    /// Resolves when it is known how the answer begins. A reply that is all there is comes with it, and
    /// [`next`](Self::next) then has nothing more.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, nothing is lost.
    pub async fn first(&self) -> First {
        self.connection.output.first().await
    }

    /// The messages that wait, each with a line feed behind it: at least one, in the order they were
    /// made. The last of all is the reply. `None` when no more will come.
    ///
    /// While they are not taken, at most a megabyte and a message wait, and the handler with them.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, nothing is lost.
    pub async fn next(&self) -> Option<Vec<u8>> {
        self.connection.output.next().await
    }

    /// The reply alone, without a line feed, for a client that can be given one message only. What comes
    /// before it is dropped, and questions are left unanswered at once, so that their handler goes on.
    /// `None` where no reply will come.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it may have dropped messages.
    pub async fn reply(&self) -> Option<Vec<u8>> {
        let mut last = None;
        while let Some(mut batch) = self.next().await {
            self.connection.leave_unanswered();
            batch.pop();
            last = Some(match memchr::memrchr(b'\n', &batch) {
                Some(end) => batch.split_off(end + 1),
                None => batch,
            });
        }
        last.filter(|line| is_reply(line))
    }

    /// Ends what goes on in it: a listen gets its result, a call that is not done an error. Both come to
    /// [`next`](Self::next).
    pub fn end(&self) {
        self.connection.cancel_all();
    }

    /// Whether the reply is made, or none will come. It may wait to be taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.connection.output.is_open()
    }

    /// How many bytes wait to be taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.connection.output.waits()
    }
}

/// Whether a line of this crate's own answers something: its members are `jsonrpc`, `id`, and then what it
/// is. A batch is an array.
fn is_reply(line: &[u8]) -> bool {
    let Some(members) = line.strip_prefix(br#"{"jsonrpc":"2.0","#) else { return true };
    let behind = match members.strip_prefix(br#""id":"#) {
        Some(id) => {
            let mut values = serde_json::Deserializer::from_slice(id).into_iter::<serde_json::Value>();
            values.next();
            id.get(values.byte_offset() + 1..).unwrap_or_default()
        }
        None => members,
    };
    !behind.starts_with(br#""method""#)
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let early = self.connection.output.abandon();
        if early && self.dropped == Dropped::Cancels {
            self.connection.cancel_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_told_from_news_and_questions() {
        for (line, told) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"method":"x"}}"#, true),
            (r#"{"jsonrpc":"2.0","id":"a,\"method\"","result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#, true),
            (r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, true),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#, false),
            (r#"{"jsonrpc":"2.0","id":"1-2","method":"elicitation/create"}"#, false),
            (r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#, false),
        ] {
            assert_eq!(is_reply(line.as_bytes()), told, "{line}");
        }
    }
}
