//! One client on a pipe, or one exchange of it: a session, its requests and its output.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::vec;

use cyberine_protocol::model::InputRequest;
use cyberine_protocol::{
    Answer, AskError, AskKey, Effect, Inbound, InboundBody, LegacyClient, RequestKey, RpcError, ServerSession,
};
use cyberine_types::{Caller, ClientInfo, Identity};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::dispatch::{self, Request};
use crate::lines::Line;
use crate::output::{Flush, Output};
use crate::server::Server;
use follow::{Followed, Follower, Listening};

mod announce;
mod entry;
pub(crate) mod follow;
mod log;
mod places;
mod shared;
mod watched;

pub(crate) use entry::{Entry, News};
pub(crate) use shared::Shared;

/// The code of a refusal for want of a place, outside the range JSON-RPC reserves.
const BUSY: i64 = -33003;

/// The code of a request that the end of the server cut short, as [`BUSY`].
const ENDED: i64 = -33004;

/// How long the last lines have to be read.
const END_WAIT: Duration = Duration::from_millis(200);

/// What a client answered to a question, or why it did not.
type ClientAnswer = Result<Value, RpcError>;

/// What a request comes to.
pub(crate) type Reply = Result<Answer, RpcError>;

/// What serving a request comes to.
pub(crate) enum Served {
    /// It is over.
    Reply(Reply),
    /// It is answered, and a resource is followed from then on.
    Subscribed(Follower, Followed),
    /// It goes on as a listen.
    Listening(Follower, Listening),
}

/// What serving came to, and the leave to read that it came by. It is given back when the reply has
/// left.
type Ended = (Served, Option<OwnedSemaphorePermit>);

/// What one line asks to be done, and how much of it is.
pub(crate) struct Received {
    effects: vec::IntoIter<Effect>,
    /// A request that waits for places.
    held: Option<Inbound>,
    /// How many places each of its requests takes.
    places: u32,
}

/// How far the effects of a line were performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Performed {
    /// All of them.
    All,
    /// Up to a request that finds no place: call [`Connection::place`] and go on.
    UpToPlace,
}

/// Where the lines of a client come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A pipe, which carries one after the other until it ends.
    Pipe,
    /// One message that came by itself, as over HTTP: when it is answered, the output is sealed.
    Exchange,
}

/// One client's connection, or one exchange of a client that sends every message by itself. Locks are
/// taken in this order: session, subscriptions, output; none is held while a handler runs.
pub(crate) struct Connection {
    pub(crate) server: Arc<Server>,
    pub(crate) output: Output,
    kind: Kind,
    identity: Arc<Identity>,
    session: Mutex<ServerSession>,
    /// The cancellation of every request that is in flight, or whose news or tasks go on.
    requests: Mutex<HashMap<RequestKey, CancellationToken>>,
    asks: Mutex<HashMap<AskKey, oneshot::Sender<ClientAnswer>>>,
    shared: Arc<Shared>,
    /// What goes on after replies.
    pub(crate) background: TaskTracker,
}

impl Connection {
    /// A pipe, whose client is whom the server's transport vouches for.
    pub(crate) fn new(server: Arc<Server>, output: Output) -> Arc<Self> {
        let session = ServerSession::new(server.profile.clone());
        let identity = Arc::clone(&server.identity);
        Arc::new(Self::of(Kind::Pipe, server, identity, session, output, Arc::default()))
    }

    /// One exchange of a client that shares `shared` with its others.
    pub(crate) fn of_exchange(
        server: Arc<Server>,
        identity: Arc<Identity>,
        session: ServerSession,
        output: Output,
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        Arc::new(Self::of(Kind::Exchange, server, identity, session, output, shared))
    }

    fn of(
        kind: Kind,
        server: Arc<Server>,
        identity: Arc<Identity>,
        session: ServerSession,
        output: Output,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            server,
            output,
            kind,
            identity,
            session: Mutex::new(session),
            requests: Mutex::default(),
            asks: Mutex::default(),
            background: shared.background.clone(),
            shared,
        }
    }

    /// Who sent a request: the transport's word, beside the client's own.
    pub(crate) fn caller(&self, client: Option<ClientInfo>) -> Caller {
        Caller { identity: Arc::clone(&self.identity), client }
    }

    fn session(&self) -> MutexGuard<'_, ServerSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one line in. Must be called with the runtime entered, as must
    /// [`perform`](Self::perform).
    pub(crate) fn receive(&self, line: Line<'_>) -> Received {
        let (effects, length) = match line {
            Line::Whole(bytes) => (self.session().receive(bytes), bytes.len()),
            Line::TooLong { start, end } => (vec![Effect::Send(self.session().oversized(start, end))], 0),
        };
        let requests = effects.iter().filter(|effect| matches!(effect, Effect::Request(_))).count();
        Received { effects: effects.into_iter(), held: None, places: places::places_of(length, requests) }
    }

    /// Does what a line asks for. What can be answered at once is queued, to leave with the next
    /// flush.
    pub(crate) fn perform(self: &Arc<Self>, received: &mut Received) -> Performed {
        while let Some(effect) = received.held.take().map(Effect::Request).or_else(|| received.effects.next())
        {
            received.held = self.perform_one(effect, received.places);
            if received.held.is_some() {
                return Performed::UpToPlace;
            }
        }
        Performed::All
    }

    /// Gives back a request that has to wait for places.
    fn perform_one(self: &Arc<Self>, effect: Effect, places: u32) -> Option<Inbound> {
        match effect {
            Effect::Send(line) => self.output.push(self.redacted(line), Flush::Later),
            Effect::Request(inbound) => return self.begin(inbound, places),
            Effect::Cancel(key) => {
                self.shared.follows.forget(self, key);
                if self.cancel(key) {
                    self.shared.places.will_be_free();
                }
            }
            Effect::Answered { ask, answer, .. } => {
                let waiting = self.asks().remove(&ask);
                if let Some(waiting) = waiting {
                    // Who asked may have given up a moment ago.
                    let _ = waiting.send(answer);
                }
            }
            Effect::Ignored(what) => {
                tracing::debug!(what = self.server.tools.redact(what.to_string()), "message ignored");
            }
        }
        None
    }

    /// Cancels a request, where there is something to cancel.
    fn cancel(&self, key: RequestKey) -> bool {
        // Woken tasks may end requests: not while the table is locked.
        let cancel = self.requests().get(&key).cloned();
        cancel.inspect(CancellationToken::cancel).is_some()
    }

    /// Cancels every request, because nobody waits for the reply any more.
    pub(crate) fn cancel_all(&self) {
        let tokens: Vec<_> = self.requests().values().cloned().collect();
        tokens.iter().for_each(CancellationToken::cancel);
    }

    /// What `initialize` agreed, as it is now.
    pub(crate) fn client(&self) -> Option<LegacyClient> {
        self.session().legacy_client().cloned()
    }

    /// Whether a message cancels a request of this connection.
    pub(crate) fn would_cancel(&self, message: &[u8]) -> bool {
        self.session().would_cancel(message)
    }

    /// A line of the session's own, which may quote what it refuses.
    fn redacted(&self, line: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(line) {
            Ok(line) => self.server.tools.redact(line).into_bytes(),
            Err(error) => error.into_bytes(),
        }
    }

    /// Begins to serve a request. It is polled once here, so that an answer that is ready leaves
    /// without a thread switch; what waits goes on in the runtime. Gives the request back where it
    /// has to wait for places.
    fn begin(self: &Arc<Self>, inbound: Inbound, places: u32) -> Option<Inbound> {
        let key = inbound.key;
        let at_once = || dispatch::at_once(self, &inbound);
        if let Some(reply) =
            catch_unwind(AssertUnwindSafe(at_once)).unwrap_or_else(|panic| Some(panicked(&*panic)))
        {
            self.finish(key, reply, Flush::Later);
            return None;
        }
        let Some(place) = self.shared.places.take(places, || self.is_control(&inbound.body)) else {
            if !self.shared.places.are_crowded() {
                return Some(inbound);
            }
            let refusal = RpcError::own(BUSY, "too many requests are in flight; wait for one to end");
            self.finish(key, Err(refusal), Flush::Later);
            return None;
        };
        let cancel = self.shared.scope.child_token();
        self.requests().insert(key, cancel.clone());
        let mut serving = contained(self.served(inbound, cancel.clone()));
        match serving.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((served, _read)) => self.conclude(key, served, Flush::Later),
            Poll::Pending => self.detach(key, serving, cancel, place),
        }
        None
    }

    /// Whether a request is a call that controls others.
    fn is_control(&self, body: &InboundBody) -> bool {
        let InboundBody::CallTool { name, .. } = body else { return false };
        let is_control = || self.server.tools.is_control(name);
        catch_unwind(AssertUnwindSafe(is_control)).unwrap_or_else(|panic| {
            log_panic(&*panic, "a tool set panicked");
            false
        })
    }

    /// Serves a request, within the reads that may go on at once.
    fn served(
        self: &Arc<Self>,
        inbound: Inbound,
        cancel: CancellationToken,
    ) -> impl Future<Output = Ended> + Send + use<> {
        let is_read = matches!(inbound.body, InboundBody::ReadResource { .. });
        let reads = is_read.then(|| Arc::clone(&self.shared.reads));
        let entry = Entry {
            connection: Arc::clone(self),
            key: inbound.key,
            progress: inbound.progress,
            subscribes: matches!(inbound.body, InboundBody::Subscribe { .. }),
        };
        let (request, body) = Request::new(Arc::new(entry), inbound, cancel);
        async move {
            let read = match reads {
                // The semaphore is never closed.
                Some(reads) => reads.acquire_owned().await.ok(),
                None => None,
            };
            (dispatch::serve(request, body).await, read)
        }
    }

    /// Lets a request go on in the runtime, which polls it again at once with a waker of its own.
    fn detach(
        self: &Arc<Self>,
        key: RequestKey,
        serving: BoxFuture<'static, Ended>,
        cancel: CancellationToken,
        place: OwnedSemaphorePermit,
    ) {
        let connection = Arc::clone(self);
        self.shared.calls.spawn(
            async move {
                let answer = async {
                    let (served, read) = serving.await;
                    (served, read, connection.output.turn().await)
                };
                match cancel.run_until_cancelled(answer).await {
                    Some((served, _read, _turn)) => connection.conclude(key, served, Flush::Now),
                    None => connection.given_up(key),
                }
                drop(place);
            }
            .in_current_span(),
        );
    }

    /// Ends a request that was cancelled. Nothing is sent where its client did that; on a pipe the end
    /// says enough where it was the server.
    fn given_up(&self, key: RequestKey) {
        if self.kind == Kind::Exchange {
            let ended = "the server, or the session, has ended before the answer; whether this was carried out is not known";
            self.finish(key, Err(RpcError::own(ENDED, ended)), Flush::Now);
        }
    }

    fn conclude(self: &Arc<Self>, key: RequestKey, served: Served, flush: Flush) {
        match served {
            Served::Reply(reply) => self.finish(key, reply, flush),
            Served::Subscribed(follower, followed) => self.subscribe(key, follower, followed, flush),
            Served::Listening(follower, listening) => self.listen(key, follower, listening, flush),
        }
    }

    fn finish(&self, key: RequestKey, reply: Reply, flush: Flush) {
        let mut session = self.session();
        if let Some(line) = session.finish(key, reply) {
            // Under the session's lock, so that no news of this request gets behind its reply.
            self.output.push(line, flush);
        }
        self.settle(&session);
    }

    /// Takes note that a message is performed: where nothing of it waits, its exchange is over.
    pub(crate) fn settled(&self) {
        self.settle(&self.session());
    }

    /// Seals the output of an exchange to which nothing is missing any more.
    fn settle(&self, session: &ServerSession) {
        if self.kind == Kind::Exchange && session.in_flight() == 0 {
            self.output.seal();
        }
    }

    /// Asks the client a question in the `initialize` era. The answer comes to the receiver.
    ///
    /// # Errors
    /// Why the client cannot be asked.
    pub(crate) fn ask(
        &self,
        key: RequestKey,
        request: &InputRequest,
    ) -> Result<oneshot::Receiver<ClientAnswer>, AskError> {
        let (sender, receiver) = oneshot::channel();
        let mut session = self.session();
        let (ask, line) = session.ask(key, request)?;
        let mut asks = self.asks();
        asks.retain(|_, waiting| !waiting.is_closed());
        asks.insert(ask, sender);
        drop(asks);
        self.output.push(line, Flush::Now);
        Ok(receiver)
    }

    /// Takes note that nobody will answer what the client was asked.
    pub(crate) fn leave_unanswered(&self) {
        // Woken tasks may ask again: not while the table is locked.
        let unanswered = std::mem::take(&mut *self.asks());
        drop(unanswered);
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<RequestKey, CancellationToken>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asks(&self) -> MutexGuard<'_, HashMap<AskKey, oneshot::Sender<ClientAnswer>>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, for a bounded time, until there are places for the request that is held back. Too late
    /// is an answer too: the request is then refused.
    pub(crate) async fn place(&self, received: &Received) {
        self.output.flush();
        self.shared.places.wait(received.places).await;
    }

    /// Ends everything, as [`Shared::wind_down`], and writes what waits.
    pub(crate) async fn wind_down(&self, grace: Duration) {
        self.shared.wind_down(grace).await;
        self.output.close(END_WAIT).await;
    }
}

/// A request's future, whose panic is an internal error of that request alone.
fn contained(serving: impl Future<Output = Ended> + Send + 'static) -> BoxFuture<'static, Ended> {
    let contained = AssertUnwindSafe(serving).catch_unwind();
    Box::pin(contained.map(|ended| ended.unwrap_or_else(|panic| (Served::Reply(panicked(&*panic)), None))))
}

/// The reply to a request whose handler panicked. The panic's text goes to the log.
fn panicked(panic: &(dyn Any + Send)) -> Reply {
    log_panic(panic, "a handler panicked");
    Err(RpcError::internal("the server failed on this request; its log says more"))
}

pub(crate) fn log_panic(panic: &(dyn Any + Send), what: &'static str) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("of another type"), "{what}");
}
