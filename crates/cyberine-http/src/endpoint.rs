//! From a request to its answer.

mod cors;
mod listen;
mod post;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cyberine_protocol::http::{Field, HttpHead};
use cyberine_server::Server;
use cyberine_types::Identity;
use http_body::Body as HttpBody;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::guard::Guard;
use crate::identity::{Admission, Door};
use crate::observe::{Answered, Meters, Observer};
use crate::reply::{self, INVALID_REQUEST};
use crate::session::{Session, Sessions};
use crate::settings::Settings;
use crate::trace_context::request_span;
use crate::visitors::Visitors;

/// Names a request in the log of this server.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The least that the head of a request may have.
pub(crate) const LEAST_HEAD: usize = 8 * 1024;

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

/// All that a request needs.
pub(crate) struct Endpoint {
    pub(crate) server: Arc<Server>,
    pub(crate) door: Door,
    pub(crate) guard: Guard,
    pub(crate) settings: Settings,
    pub(crate) sessions: Sessions,
    pub(crate) visitors: Visitors,
    pub(crate) routes: Router,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) meters: Meters,
    /// Numbers requests, for the logs of both sides.
    pub(crate) numbers: AtomicU64,
    /// Set from when on nothing new begins.
    pub(crate) closing: CancellationToken,
    /// Ends what is still open when the time of the end is over.
    pub(crate) over: CancellationToken,
}

/// An answer, and what it was to.
struct Outcome {
    method: &'static str,
    response: Response,
}

impl Outcome {
    const fn new(method: &'static str, response: Response) -> Self {
        Self { method, response }
    }
}

impl Endpoint {
    /// Answers one request.
    pub(crate) async fn answer<B>(&self, request: Request<B>, link: Link) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
    {
        let start = Instant::now();
        let in_flight = self.meters.in_flight.hold();
        let (parts, body) = request.into_parts();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let share = self.guard.shared_with(&parts.headers).cloned();
        let Outcome { method, mut response } = self.outcome(number, parts, body, link).await;
        drop(in_flight);
        response.headers_mut().insert(REQUEST_ID, number.into());
        if let Some(origin) = share {
            cors::share(response.headers_mut(), origin);
        }
        let answered = Answered { method, status: response.status().as_u16(), took: start.elapsed() };
        self.observer.answered(&answered);
        response
    }

    async fn outcome<B>(&self, number: u64, parts: Parts, body: B, link: Link) -> Outcome
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
    {
        if length_of_head(&parts) > self.settings.max_head.max(LEAST_HEAD) {
            let reason = "the head of the request is too long";
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Outcome::new("unknown", reply::last(reply::refusal(status, INVALID_REQUEST, reason)));
        }
        if let Err(foreign) = self.guard.admit(&parts, link.local.ip()) {
            tracing::debug!(reason = foreign.reason, "a request was refused");
            return Outcome::new("unknown", reply::refusal(foreign.status, INVALID_REQUEST, foreign.reason));
        }
        if parts.method == Method::OPTIONS && self.guard.shares() {
            return Outcome::new("OPTIONS", cors::preflight(&parts.headers));
        }
        if parts.uri.path() != self.settings.path {
            return Outcome::new("other", self.elsewhere(parts, body, link).await);
        }
        match parts.method {
            Method::POST => self.post(number, &parts, body, link).await,
            Method::GET => {
                let answer = self.listen(&parts, link).instrument(request_span(number, &parts.headers, None));
                Outcome::new("GET", answer.await.unwrap_or_else(|refused| *refused))
            }
            Method::DELETE => {
                let answer = self.delete(&parts, link).instrument(request_span(number, &parts.headers, None));
                Outcome::new("DELETE", answer.await.unwrap_or_else(|refused| *refused))
            }
            _ if self.guard.shares() => {
                Outcome::new("unknown", reply::wrong_method("GET, POST, DELETE, OPTIONS"))
            }
            _ => Outcome::new("unknown", reply::wrong_method("GET, POST, DELETE")),
        }
    }

    /// Answers a request to another path than that of the endpoint.
    async fn elsewhere<B>(&self, parts: Parts, body: B, link: Link) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        // Of the answer to HEAD only the head is sent.
        if [Method::GET, Method::HEAD].contains(&parts.method)
            && let Some(metadata) = self.door.metadata(parts.uri.path())
        {
            return metadata;
        }
        let mut request = Request::from_parts(parts, Body::new(body));
        request.extensions_mut().insert(ConnectInfo(link.peer));
        let Ok(response) = TowerToHyperService::new(self.routes.clone()).call(request).await;
        response
    }

    /// Who sent a request.
    async fn admitted(&self, parts: &Parts, link: Link) -> Result<Admission, Box<Response>> {
        let admitted = self.door.admit(parts, link.peer).await;
        admitted.map_err(|refusal| Box::new(refusal.into_response()))
    }

    /// The session a request belongs to, and what it must say of it. `None` where it names none.
    fn session(
        &self,
        head: &HttpHead<'_>,
        identity: &Identity,
    ) -> Result<Option<Arc<Session>>, Box<Response>> {
        let refused = |status, reason| Err(Box::new(reply::refusal(status, INVALID_REQUEST, reason)));
        let id = match head.session_id() {
            Field::Absent => return Ok(None),
            Field::Many => {
                return refused(StatusCode::BAD_REQUEST, "there is more than one Mcp-Session-Id header");
            }
            Field::One(id) => id,
        };
        let Some(session) = self.sessions.of(id, &identity.principal) else {
            return refused(
                StatusCode::NOT_FOUND,
                "there is no such session any more; open one with initialize",
            );
        };
        let agreed = session.peer.revision().map(cyberine_protocol::Revision::as_str);
        match head.version() {
            Field::One(version) if agreed != Some(version) => refused(
                StatusCode::BAD_REQUEST,
                "MCP-Protocol-Version is not the version that initialize agreed on in this session",
            ),
            Field::Many => {
                refused(StatusCode::BAD_REQUEST, "there is more than one MCP-Protocol-Version header")
            }
            _ => Ok(Some(session)),
        }
    }

    /// Ends a session.
    async fn delete(&self, parts: &Parts, link: Link) -> Result<Response, Box<Response>> {
        let Admission { identity, .. } = self.admitted(parts, link).await?;
        let values = header_texts(parts);
        let head = HttpHead::read(values);
        match self.session(&head, &identity)? {
            Some(session) => {
                self.sessions.end(&session);
                Ok(reply::empty(StatusCode::NO_CONTENT))
            }
            None => Ok(reply::wrong_method("POST")),
        }
    }
}

/// How many bytes the head of a request has, as it is usually written.
fn length_of_head(parts: &Parts) -> usize {
    let path = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = parts.method.as_str().len() + path + "  HTTP/1.1\r\n".len();
    let headers =
        parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}

/// All headers as text. What is not ASCII is no text that means anything.
fn header_texts(parts: &Parts) -> impl Iterator<Item = (&str, &str)> {
    parts.headers.iter().map(|(name, value)| (name.as_str(), text_of(value)))
}

fn text_of(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("\u{fffd}")
}
