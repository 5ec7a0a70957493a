//! POST: one message, and what it is answered with.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use cyberine_protocol::Revision;
use cyberine_protocol::http::{Field, HttpHead, Post, Posted, Refusal, judge, status_of};
use cyberine_protocol::strict::Limits;
use cyberine_server::{Exchange, First, Peer};
use cyberine_types::{Identity, Timestamp};
use http_body::Body as HttpBody;
use tracing::Instrument as _;

use super::listen::crowded;
use super::{Endpoint, Link, Outcome, header_texts};
use crate::body::{self, NoBody};
use crate::events::{self, Manner, Messages};
use crate::identity::Admission;
use crate::reply::{self, ENDED, INTERNAL, INVALID_REQUEST, SESSION_ID};
use crate::session::{NoSession, Session};
use crate::trace_context::{TraceContext, request_span};
use crate::visitors::{StreamPlace, Visitor};

/// The methods that are counted by name.
const METHODS: [&str; 18] = [
    "tools/call",
    "tools/list",
    "initialize",
    "ping",
    "server/discover",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

impl Endpoint {
    pub(super) async fn post<B>(&self, number: u64, parts: &Parts, body: B, link: Link) -> Outcome
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
    {
        let admitted = match self.admitted(parts, link).await {
            Ok(admitted) => admitted,
            Err(refused) => return Outcome::new("unknown", *refused),
        };
        let (limit, time) = (Limits::default().frame, self.settings.body_timeout);
        let body = match body::read(&parts.headers, body, limit, time, &self.closing).await {
            Ok(body) => body,
            Err(fault) => return Outcome::new("unknown", no_body(fault)),
        };
        let head = HttpHead::read(header_texts(parts));
        match judge(&head, &body, Limits::default()) {
            Ok(posted) => {
                let trace = || {
                    posted.trace().and_then(|(parent, state)| TraceContext::parse(&parent, state.as_deref()))
                };
                let span = request_span(number, &parts.headers, trace());
                let served = self.served(&posted, &head, admitted, &body).instrument(span);
                Outcome::new(method_of(&posted), served.await)
            }
            Err(refused) => Outcome::new("unknown", refusal(refused)),
        }
    }

    async fn served(
        &self,
        posted: &Posted<'_>,
        head: &HttpHead<'_>,
        admitted: Admission,
        body: &[u8],
    ) -> Response {
        let Admission { identity, until } = admitted;
        match &posted.post {
            Post::Stateless { revision, tool } => {
                let params = tool.as_ref().and_then(|tool| self.server.header_params(&identity, tool));
                if let Some(Err(refused)) = params.map(|params| posted.check_params(head, &params)) {
                    return refusal(refused);
                }
                let visitor = self.visitors.of(&identity.principal);
                let exchange = visitor.peer.post(identity, body).await;
                if posted.method.as_deref() == Some("subscriptions/listen") {
                    return self.listened(exchange, *revision, until, &visitor).await;
                }
                self.answered(exchange, *revision, &visitor, None).await
            }
            Post::Initialize => self.opened(posted, head, identity, body).await,
            Post::Notification { stateless: true, .. } => reply::empty(StatusCode::ACCEPTED),
            Post::Legacy { .. } | Post::Notification { .. } | Post::Response { .. } => {
                match self.session_of(posted, head, &identity) {
                    Ok(session) => self.within(&session, posted, identity, body).await,
                    Err(refused) => refusal(refused),
                }
            }
        }
    }

    /// The session a message belongs to.
    fn session_of(
        &self,
        posted: &Posted<'_>,
        head: &HttpHead<'_>,
        identity: &Identity,
    ) -> Result<Arc<Session>, Refusal> {
        let id = match head.session_id() {
            Field::Absent => return Err(posted.without_session()),
            Field::Many => return Err(posted.of_unknown_session()),
            Field::One(id) => id,
        };
        let session = self.sessions.of(id, &identity.principal).ok_or_else(|| posted.of_unknown_session())?;
        let revision = session.peer.revision().unwrap_or(Revision::NEWEST_LEGACY);
        posted.of_wrong_version(revision).map_or(Ok(session), Err)
    }

    async fn within(
        &self,
        session: &Arc<Session>,
        posted: &Posted<'_>,
        identity: Arc<Identity>,
        body: &[u8],
    ) -> Response {
        // What answers or cancels means an exchange that is there already, in a batch too.
        if posted.method.as_deref().is_none_or(|method| method.starts_with("notifications/")) {
            posted.parts().for_each(|part| session.peer.tell(part));
        }
        if !matches!(posted.post, Post::Legacy { answered: true, .. }) {
            return reply::empty(StatusCode::ACCEPTED);
        }
        let exchange = session.peer.post(identity, body).await;
        let revision = session.peer.revision().unwrap_or(Revision::NEWEST_LEGACY);
        self.answered(exchange, revision, &session.visitor, Some(session)).await
    }

    /// Opens a session.
    async fn opened(
        &self,
        posted: &Posted<'_>,
        head: &HttpHead<'_>,
        identity: Arc<Identity>,
        body: &[u8],
    ) -> Response {
        if head.session_id() != Field::Absent {
            let reason = "initialize opens a session of its own; send it without Mcp-Session-Id";
            return refusal(posted.refusal(400, &cyberine_protocol::RpcError::invalid_request(reason)));
        }
        let principal = identity.principal.clone();
        let visitor = self.visitors.of(&principal);
        let peer = Peer::session(&visitor.peer);
        let exchange = peer.post(identity, body).await;
        let mut response = self.answered(exchange, Revision::NEWEST_LEGACY, &visitor, None).await;
        if peer.revision().is_none() {
            return response;
        }
        match self.sessions.open(peer, visitor, &principal).map(|session| session.id.header()) {
            Ok(Some(id)) => {
                response.headers_mut().insert(SESSION_ID, id);
                response
            }
            Ok(None) | Err(NoSession::NoId) => {
                reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, "no session id could be made")
            }
            Err(NoSession::Full) => reply::busy("too many sessions are open; try again later"),
            Err(NoSession::FullForOne) => {
                reply::busy("you have too many sessions open; end some with DELETE, or try again later")
            }
        }
    }

    /// The answer of an exchange: JSON where its reply comes first, an event stream where another
    /// message does, or nothing for a while.
    async fn answered(
        &self,
        exchange: Exchange,
        revision: Revision,
        visitor: &Visitor,
        session: Option<&Arc<Session>>,
    ) -> Response {
        let first = tokio::select! {
            biased;
            first = exchange.first() => first,
            () = self.over.cancelled() => return ended(),
            () = tokio::time::sleep(self.settings.quiet) => First::Message,
        };
        match first {
            First::Reply(line) => replied(line, revision),
            First::Nothing => reply::events(events::nothing()),
            First::Message => match (self.place_of_stream(visitor), session) {
                (None, _) => self.without_stream(&exchange, revision).await,
                (Some(held), Some(session)) => {
                    self.lasting(session, session.keep(exchange), 0, self.manner(None), held)
                }
                (Some(held), None) => self.once(exchange, self.manner(None), held),
            },
        }
    }

    /// The answer of an exchange where there is no place for an event stream: what was begun is not
    /// refused, but its client hears of nothing but the end.
    async fn without_stream(&self, exchange: &Exchange, revision: Revision) -> Response {
        tracing::debug!("no event stream is free: the answer is its reply alone");
        let reply = tokio::select! {
            biased;
            reply = exchange.reply() => reply,
            () = self.over.cancelled() => return ended(),
        };
        reply.map_or_else(|| reply::events(events::nothing()), |line| replied(line, revision))
    }

    /// The answer of a listen, which begins at once, and is nothing without an event stream. It ends when
    /// whoever listens may hear no more; the call of another exchange may finish.
    async fn listened(
        &self,
        exchange: Exchange,
        revision: Revision,
        until: Option<Timestamp>,
        visitor: &Visitor,
    ) -> Response {
        match exchange.first().await {
            First::Reply(line) => replied(line, revision),
            First::Message | First::Nothing => match self.place_of_stream(visitor) {
                Some(held) => self.once(exchange, self.manner(until), held),
                None => crowded(),
            },
        }
    }

    /// An event stream of its exchange, which ends with it.
    fn once(&self, exchange: Exchange, manner: Manner, held: StreamPlace) -> Response {
        reply::events(events::body(Messages::Once(exchange), manner, held))
    }
}

/// The answer to what was begun, and is cut short by the end.
fn ended() -> Response {
    let reason = "the server has ended before the answer; whether this was carried out is not known";
    reply::refusal(StatusCode::SERVICE_UNAVAILABLE, ENDED, reason)
}

/// A reply as the whole answer.
fn replied(line: Vec<u8>, revision: Revision) -> Response {
    let status = StatusCode::from_u16(status_of(&line, revision)).unwrap_or(StatusCode::OK);
    reply::whole(status, line)
}

/// What was asked, for whoever counts.
fn method_of(posted: &Posted<'_>) -> &'static str {
    match &posted.post {
        Post::Response { .. } => return "response",
        Post::Notification { .. } | Post::Legacy { answered: false, .. } => return "notification",
        Post::Stateless { .. } | Post::Initialize | Post::Legacy { .. } => {}
    }
    let Some(method) = posted.method.as_deref() else { return "batch" };
    METHODS.iter().find(|known| **known == method).unwrap_or(&"unknown")
}

fn refusal(refused: Refusal) -> Response {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
    reply::json(status, refused.line)
}

fn no_body(fault: NoBody) -> Response {
    let (status, reason) = match fault {
        NoBody::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than a message may be"),
        NoBody::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        NoBody::Broken => (StatusCode::BAD_REQUEST, "the body ended early, or cannot be read"),
        NoBody::Coded => (
            StatusCode::NOT_IMPLEMENTED,
            "the body comes in a transfer coding that is not served; send it plain or chunked",
        ),
        NoBody::Encoded => {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is encoded; send it without Content-Encoding")
        }
        NoBody::Stopping => return reply::last(reply::busy("the server is stopping; try again later")),
    };
    reply::last(reply::refusal(status, INVALID_REQUEST, reason))
}
