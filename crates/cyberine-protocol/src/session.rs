//! The server's side of one pipe, as a machine without I/O.
//!
//! Every message is judged by itself: a request with a protocol version in its `_meta` is served
//! statelessly, one without by what `initialize` agreed, and both kinds may be in flight at once.
//! Nothing a client sends ends a session or pins it to an era.

mod answer;
mod batch;
mod effect;
mod params;
mod receive;
mod table;

use cyberine_types::ClientInfo;

use crate::encode::{self, Profile};
use crate::jsonrpc::{ENDS, RequestId, RpcError, request_id_of_ends};
use crate::model::{ClientCapabilities, ElicitForm, Implementation, SubscriptionFilter};
use crate::revision::Revision;
use crate::strict::{Limits, StrictError};
use table::{Method, News, Table};

pub(crate) use params::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};

pub use effect::{Answer, AskKey, Effect, Ignored, Inbound, InboundBody, RequestKey};

/// What a server is and serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerProfile {
    /// Who it is.
    pub info: Implementation,
    /// What a model should know before it uses the server.
    pub instructions: Option<String>,
    /// Whether it serves tools. Methods of what it does not serve get `-32601`.
    pub tools: bool,
    /// Whether it serves resources.
    pub resources: bool,
    /// Whether changes of its resources can be followed.
    pub subscriptions: bool,
    /// What a line may cost.
    pub limits: Limits,
}

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
    profile: ServerProfile,
    /// The encoded `serverInfo` of stateless results: name, title and version. Pictures and prose
    /// go out with `server/discover` only, not with every result.
    server_info: String,
    client: Option<LegacyClient>,
    table: Table,
}

/// What the latest `initialize` said.
#[derive(Debug)]
struct LegacyClient {
    revision: Revision,
    info: ClientInfo,
    capabilities: ClientCapabilities,
}

/// Why the client cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The request is stateless: answer it with [`Answer::InputRequired`].
    #[error("a stateless request is answered with what it needs, not asked")]
    Stateless,
    /// The client did not declare that it can show a form, or its revision has none.
    #[error("the client cannot show a form")]
    Unsupported,
    /// The request is answered or cancelled.
    #[error("the request is over")]
    Over,
}

impl ServerSession {
    /// A session in which nothing has been said.
    #[must_use]
    pub fn new(profile: ServerProfile) -> Self {
        let Implementation { name, version, title, .. } = profile.info.clone();
        let short = Implementation { name, version, title, ..Implementation::default() };
        let server_info = encode::implementation(&short, Revision::V2026_07_28);
        Self { profile, server_info, client: None, table: Table::default() }
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
        let error = StrictError::TooLong { limit: self.profile.limits.frame };
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
        let answer = answer.and_then(|answer| answer::admissible(flight, answer));
        let line = match &answer {
            Ok(answer) => encode::result_line(&flight.id, answer, flight.revision, &self.server_info),
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
        let id = self.table.acknowledge(key)?;
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

    /// A question to the client on behalf of a request of the `initialize` era. Its answer comes
    /// as [`Effect::Answered`], unless the request is over before.
    ///
    /// # Errors
    /// Why the client cannot be asked.
    pub fn ask(&mut self, key: RequestKey, form: &ElicitForm) -> Result<(AskKey, Vec<u8>), AskError> {
        let flight = self.table.open_flight(key).ok_or(AskError::Over)?;
        let revision = flight.revision;
        if revision.is_stateless() {
            return Err(AskError::Stateless);
        }
        if revision < Revision::V2025_06_18 || !flight.capabilities.elicitation_form {
            return Err(AskError::Unsupported);
        }
        let (ask, id) = self.table.ask(key);
        Ok((ask, encode::elicit_line(&id, form, revision)))
    }

    /// How many requests wait for their answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.table.open_flights()
    }

    fn profile(&self) -> Profile<'_> {
        Profile {
            info: &self.profile.info,
            instructions: self.profile.instructions.as_deref(),
            tools: self.profile.tools,
            resources: self.profile.resources,
            subscriptions: self.profile.subscriptions,
        }
    }

    /// The answer to a line that the strict layer refuses.
    fn refused_line(&self, id: Option<&RequestId>, error: &StrictError) -> Vec<u8> {
        let rpc = if id.is_some() { error.to_rpc_of_request() } else { error.to_rpc() };
        self.refusal(id, &rpc)
    }

    /// An error line, without the id where another request with that id still waits: it would be
    /// taken for that one's answer.
    fn refusal(&self, id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
        let id = id.filter(|id| !self.table.is_open(id));
        encode::error_line(id, error, Revision::NEWEST_LEGACY)
    }
}
