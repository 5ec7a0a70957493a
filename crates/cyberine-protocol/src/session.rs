//! The server's side of one pipe, as a machine without I/O.
//!
//! Every message is judged by itself: a request with a protocol version in its `_meta` is served
//! statelessly, one without by what `initialize` agreed, and both kinds may be in flight at once.
//! Nothing a client sends ends a session or pins it to an era.

mod answer;
mod ask;
mod batch;
mod body;
mod effect;
mod flight;
mod params;
mod profile;
mod receive;
mod table;

use serde_json::Value;

use crate::encode;
use crate::jsonrpc::{ENDS, RequestId, RpcError, request_id_of_ends};
use crate::model::{DetailedTask, InputRequest, ListKind, LogLevel, SubscriptionFilter};
use crate::revision::Revision;
use crate::strict::{Limits, StrictError};
use flight::{Method, News};
use table::Table;

pub(crate) use params::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, Meta, PROTOCOL_VERSION, Params};

pub use ask::{AskError, ask_scope_of};
pub use profile::{LegacyClient, ServerProfile, SharedProfile};

pub use effect::{Answer, AskKey, Effect, Ignored, Inbound, InboundBody, RequestKey};

/// The state of one pipe: the session `initialize` opened, and every request in flight.
///
/// It is synchronous, and small enough to sit behind a mutex: the reader calls
/// [`receive`](Self::receive) for every line, and whoever finishes a request calls
/// [`finish`](Self::finish). Lines come back without a newline and must go out in the order the
/// calls returned them.
///
/// ```
/// use cyberine_protocol::{Effect, ServerProfile, ServerSession};
///
/// let mut session = ServerSession::new(ServerProfile { tools: true, ..ServerProfile::default() });
/// let effects = session.receive(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
/// assert!(matches!(&effects[..], [Effect::Send(line)] if line == br#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
/// ```
#[derive(Debug)]
pub struct ServerSession {
    profile: SharedProfile,
    client: Option<LegacyClient>,
    table: Table,
}

impl ServerSession {
    /// A session in which nothing has been said.
    #[must_use]
    pub fn new(profile: impl Into<SharedProfile>) -> Self {
        Self { profile: profile.into(), client: None, table: Table::default() }
    }

    /// A session for one message of a client that talks to several: ids are unique within it, and a
    /// client of the `initialize` era is the one an earlier session [got to know](Self::legacy_client).
    /// The ids of questions carry `ask_scope`, by which [`ask_scope_of`] finds the
    /// session an answer belongs to: give each session of a client its own.
    #[must_use]
    pub fn resumed(profile: SharedProfile, client: Option<LegacyClient>, ask_scope: u64) -> Self {
        Self { profile, client, table: Table::scoped(ask_scope) }
    }

    /// What `initialize` agreed in this session or before it, and the level of the log that was set.
    #[must_use]
    pub const fn legacy_client(&self) -> Option<&LegacyClient> {
        self.client.as_ref()
    }

    /// Takes one line from the client, without its newline, and says what to do, in order.
    ///
    /// Bytes of any kind are fine: what is no message is answered with an error, and the session
    /// goes on. A line cut off by the end of the stream is a line like any other.
    pub fn receive(&mut self, line: &[u8]) -> Vec<Effect> {
        receive::receive(self, line)
    }

    /// How many bytes of the beginning and of the end of a line that is too long
    /// [`oversized`](Self::oversized) looks at.
    pub const ENDS: usize = ENDS;

    /// The answer to a line the reader threw away because it is longer than the frame limit. It has
    /// the request's id where `start` or `end`, its first and last [`ENDS`](Self::ENDS) bytes, show it.
    #[must_use]
    pub fn oversized(&self, start: &[u8], end: &[u8]) -> Vec<u8> {
        let error = StrictError::TooLong { limit: self.limits().frame };
        self.refused_line(request_id_of_ends(start, end).as_ref(), &error)
    }

    /// Closes a request and gives the line to send. `None` where nothing is to be sent: the
    /// request was cancelled, is answered already, or belongs to a batch that is not complete.
    ///
    /// A `tools/call` of the `initialize` era whose client wants progress, and which has a result,
    /// stays known after this, so that its progress may go on: call
    /// [`end_progress`](Self::end_progress) when it is over. A `resources/subscribe` with a result
    /// stays known too, where [`is_followed`](Self::is_followed) says so, until
    /// [`end_subscription`](Self::end_subscription). All others are forgotten.
    pub fn finish(&mut self, key: RequestKey, answer: Result<Answer, RpcError>) -> Option<Vec<u8>> {
        let flight = self.table.open_flight(key)?;
        let answer = answer.map(|answer| match answer {
            Answer::TaskState(task) => Answer::TaskState(task.shown_to(flight.capabilities)),
            other => other,
        });
        let answer = match &answer {
            Ok(answer) => answer::admissible(flight, answer).map(|()| answer),
            Err(error) => Err(error.clone()),
        };
        let line = match &answer {
            Ok(answer) => {
                encode::result_line(&flight.id, answer, flight.revision, self.profile.server_info())
            }
            Err(error) => encode::error_line(Some(&flight.id), error, flight.revision),
        };
        let news = match flight.method {
            Method::CallTool if answer.is_ok() => News::Progress,
            Method::Subscribe if answer.is_ok() => News::Changes,
            _ => News::Over,
        };
        self.table.answered(key, line, news)
    }

    /// Tells a client that listens what of its wishes is served, once and before anything else.
    /// `None` where it has been told, has cancelled, or does not listen.
    pub fn acknowledge(&mut self, key: RequestKey, served: &SubscriptionFilter) -> Option<Vec<u8>> {
        let id = self.table.acknowledge(key, served)?;
        Some(encode::acknowledged_line(id, served))
    }

    /// Tells that the resource at `uri` has changed, under the key of the `resources/subscribe` or
    /// `subscriptions/listen` that wanted to know. `None` where nothing more will be sent for it.
    #[must_use]
    pub fn updated(&self, key: RequestKey, uri: &str) -> Option<Vec<u8>> {
        let flight = self.table.following(key)?;
        let subscription = (flight.method == Method::Listen).then_some(&flight.id);
        Some(encode::updated_line(uri, subscription))
    }

    /// Whether changes are told under this key: a subscription is answered, or a client that listens
    /// has been told what it will hear of, and neither is over.
    #[must_use]
    pub fn is_followed(&self, key: RequestKey) -> bool {
        self.table.following(key).is_some()
    }

    /// Ends a subscription of the `initialize` era. Harmless for unknown keys.
    pub fn end_subscription(&mut self, key: RequestKey) {
        self.table.end_subscription(key);
    }

    /// News of a request. `None` where nothing is to be sent: the client asked for none, the
    /// request was cancelled, `progress` is not more than the last one, or the request is
    /// stateless and answered. In the `initialize` era news may follow the reply.
    pub fn progress(
        &mut self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: &str,
    ) -> Option<Vec<u8>> {
        let (token, revision) = self.table.advance(key, progress)?;
        let total = total.filter(|total| total.is_finite());
        Some(encode::progress_line(token, progress, total, message, revision))
    }

    /// Says that no more news of a request will come. Harmless for unknown keys; a request that
    /// is not answered yet can still be.
    pub fn end_progress(&mut self, key: RequestKey) {
        self.table.end_progress(key);
    }

    /// A line of the log, on behalf of a request: `data` is any JSON. `None` where nothing is to be sent:
    /// the client wants less of the log or none, or nothing more is sent for the request.
    #[must_use]
    pub fn log(
        &self,
        key: RequestKey,
        level: LogLevel,
        logger: Option<&str>,
        data: &Value,
    ) -> Option<Vec<u8>> {
        let flight = self.table.flight(key).filter(|_| self.profile.profile().logging)?;
        let wanted = match &self.client {
            _ if flight.revision.is_stateless() => flight.log_level,
            client => client.as_ref().map(LegacyClient::wanted_log),
        };
        (level >= wanted?).then(|| encode::log_line(level, logger, data))
    }

    /// Tells a client that listens that a list has changed. `None` where it was not
    /// [told](Self::acknowledge) that it would hear of that.
    #[must_use]
    pub fn list_changed(&self, list: ListKind, key: RequestKey) -> Option<Vec<u8>> {
        let listen = self.table.following(key).filter(|flight| flight.hears_of(list))?;
        Some(encode::list_changed_line(list, Some(&listen.id)))
    }

    /// Tells the client of the `initialize` era that a list has changed. `None` where there is none, or
    /// the server does not tell of that list.
    #[must_use]
    pub fn list_changed_unsolicited(&self, list: ListKind) -> Option<Vec<u8>> {
        let tells = self.client.is_some() && self.profile.profile().tells_of(list);
        tells.then(|| encode::list_changed_line(list, None))
    }

    /// Tells a client that listens how a task stands. `None` where it was not
    /// [told](Self::acknowledge) that it would hear of tasks. Which ones, the caller knows.
    #[must_use]
    pub fn task_changed(&self, key: RequestKey, task: &DetailedTask) -> Option<Vec<u8>> {
        let listen = self.table.following(key).filter(|flight| flight.hears_of_tasks())?;
        let task = task.clone().shown_to(listen.capabilities);
        Some(encode::task_changed_line(&task, &listen.id, listen.revision))
    }

    /// A question to the client on behalf of a request of the `initialize` era. Its answer comes
    /// as [`Effect::Answered`], unless the request is over before.
    ///
    /// # Errors
    /// Why the client cannot be asked.
    pub fn ask(&mut self, key: RequestKey, request: &InputRequest) -> Result<(AskKey, Vec<u8>), AskError> {
        let flight = self.table.open_flight(key).ok_or(AskError::Over)?;
        let revision = flight.revision;
        if revision.is_stateless() {
            return Err(AskError::Stateless);
        }
        if !ask::can_be_asked(request, revision, flight.capabilities) {
            return Err(AskError::Unsupported);
        }
        let (ask, id) = self.table.ask(key, ask::Kind::of(request));
        Ok((ask, encode::ask_line(&id, request, revision)))
    }

    /// Whether a line cancels a request of this session, so that [`receive`](Self::receive) would give
    /// [`Effect::Cancel`] for it.
    #[must_use]
    pub fn would_cancel(&self, line: &[u8]) -> bool {
        receive::cancelled_id(line, self.limits()).is_some_and(|id| self.table.knows(&id))
    }

    /// How many requests wait for their answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.table.open_flights()
    }

    fn limits(&self) -> Limits {
        self.profile.profile().limits
    }

    /// The answer to a line that the strict layer refuses.
    fn refused_line(&self, id: Option<&RequestId>, error: &StrictError) -> Vec<u8> {
        let rpc = if id.is_some() { error.to_rpc_of_request() } else { error.to_rpc() };
        self.refusal(id, &rpc)
    }

    /// An error line, without the id where another request with that id still waits: it would be
    /// taken for that one's answer. What is refused before it is served has one code in every revision
    /// that knows it.
    fn refusal(&self, id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
        let id = id.filter(|id| !self.table.is_open(id));
        encode::error_line(id, error, Revision::V2026_07_28)
    }
}
