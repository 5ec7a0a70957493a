//! A server elsewhere: one POST for each message, and what comes back on it (Streamable HTTP of
//! either era).
//!
//! Everything that is under way is polled by whoever asks for the next thing; nothing runs by
//! itself. A request of the stateless era is cancelled by letting its connection go.

mod post;
mod web;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cyberine_protocol::http::{PROTOCOL_VERSION, SESSION_ID, headers_of};
use cyberine_protocol::{CallKey, ClientFault, Revision};
use cyberine_types::Secret;
use futures_util::Stream;
use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::error::ClientError;
use post::{Event, Exchange, Resume};
pub use web::{WebError, web_client};

/// How often a stream that broke before its answer is taken up again, one after the other.
const RESUMES: u32 = 5;
/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where a server is, and what it is shown.
#[derive(Clone)]
pub struct HttpServer {
    /// Its address: `http:` or `https:`.
    pub url: Url,
    /// The token of the header `Authorization: Bearer`, sent to this address and nowhere else.
    pub bearer: Option<Secret>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "HttpServer({})", self.url)
    }
}

/// What came over the wire.
pub(crate) enum Arrived {
    /// A message, on the connection of a request, or on another.
    Message { of: Option<CallKey>, message: Vec<u8> },
    /// A connection is over. `why`: what was wrong with it.
    Over { of: Option<CallKey>, why: Option<ClientError> },
}

pub(crate) struct Http {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    limit: usize,
    session: Option<HeaderValue>,
    revision: Option<Revision>,
    under_way: Vec<Exchange>,
}

impl Http {
    pub(crate) fn new(server: HttpServer, limit: usize) -> Result<Self, ClientError> {
        let HttpServer { url, bearer } = server;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some()
        {
            return Err(ClientError::Address { url: shown(&url) });
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(bearer) = bearer {
            let value = HeaderValue::from_str(&format!("Bearer {}", bearer.expose()));
            let mut value = value.map_err(|_| ClientError::Token)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = web_client(url.scheme() == "https").map_err(|source| ClientError::Web { source })?;
        Ok(Self { client, url, headers, limit, session: None, revision: None, under_way: Vec::new() })
    }

    /// Takes note of what was agreed: from now on the headers say so.
    pub(crate) const fn agreed(&mut self, revision: Revision) {
        self.revision = Some(revision);
    }

    /// Listens to what a server of the `initialize` era says by itself, where it lets itself be.
    pub(crate) fn listen(&mut self) {
        if self.revision.is_some_and(|revision| !revision.is_stateless()) {
            let headers = self.session_headers();
            self.under_way.push(Exchange::standalone(&self.client, &self.url, headers, self.limit));
        }
    }

    /// Sends a message that is no request of the driver's, or a word of the beginning.
    pub(crate) fn say(&mut self, line: Vec<u8>) {
        let headers = self.headers_for(&line, Vec::new());
        self.post(None, line, headers);
    }

    /// Sends a request. `mirrored` are the names and values of its marked arguments.
    pub(crate) fn ask(&mut self, key: CallKey, line: Vec<u8>, mirrored: Vec<(String, String)>) {
        let headers = self.headers_for(&line, mirrored);
        self.post(Some(key), line, headers);
    }

    /// Gives a request up. Its connection is let go, which is all a server of the stateless era needs
    /// to know; another one is told.
    pub(crate) fn cancel(&mut self, key: CallKey, line: Vec<u8>) {
        self.forget(key);
        if self.revision.is_some_and(|revision| !revision.is_stateless()) {
            self.say(line);
        }
    }

    /// Lets the connection of a request go.
    pub(crate) fn forget(&mut self, key: CallKey) {
        self.under_way.retain(|exchange| exchange.of() != Some(key));
    }

    fn post(&mut self, of: Option<CallKey>, line: Vec<u8>, headers: HeaderMap) {
        let request = self.client.post(self.url.clone()).headers(headers).body(line);
        self.under_way.push(Exchange::post(of, request, self.limit));
    }

    /// What is said of a message beside it: what it is, in the stateless era; else the session it
    /// belongs to.
    fn headers_for(&self, line: &[u8], mirrored: Vec<(String, String)>) -> HeaderMap {
        let own = headers_of(line);
        if own.is_empty() {
            return self.session_headers();
        }
        let mut headers = self.headers.clone();
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        for (name, value) in own.chain(mirrored) {
            // What the protocol crate writes is a name, and visible ASCII.
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        headers
    }

    fn session_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(session) = &self.session {
            headers.insert(SESSION_ID, session.clone());
        }
        if let Some(revision) = self.revision {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }

    /// What arrives next. Waits for ever where nothing is under way.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Arrived {
        loop {
            let (at, event) = poll_fn(|context| self.poll(context)).await;
            let of = self.under_way[at].of();
            match event {
                Some(Event::Session(id)) => self.session = Some(id),
                Some(Event::Message(message)) => return Arrived::Message { of, message },
                Some(Event::Over { resume, why }) => {
                    let over = self.under_way.swap_remove(at);
                    match resume {
                        Some(resume) if over.may_resume(RESUMES) => self.resume(over, resume),
                        _ => return Arrived::Over { of, why },
                    }
                }
                None => {
                    self.under_way.swap_remove(at);
                    return Arrived::Over { of, why: None };
                }
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(usize, Option<Event>)> {
        for (at, exchange) in self.under_way.iter_mut().enumerate() {
            if let Poll::Ready(event) = Pin::new(exchange).poll_next(context) {
                return Poll::Ready((at, event));
            }
        }
        Poll::Pending
    }

    /// Takes a stream up where it broke (2025-11-25, `basic/transports`, "Resumability").
    fn resume(&mut self, over: Exchange, resume: Resume) {
        let headers = self.session_headers();
        self.under_way.push(over.again(&self.client, &self.url, headers, resume, self.limit));
    }

    /// Ends the session, where there is one.
    pub(crate) async fn close(&mut self) {
        self.under_way.clear();
        if self.session.is_none() {
            return;
        }
        let request = self.client.delete(self.url.clone()).headers(self.session_headers());
        self.session = None;
        // A server may keep its sessions; then it ends them by itself.
        if tokio::time::timeout(FAREWELL, request.send()).await.is_err() {
            tracing::debug!("an MCP server did not end its session in time");
        }
    }
}

/// A URL without what may be a secret.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.to_string()
}

/// What is wrong with the answer of a server elsewhere.
pub(crate) fn of_answer(fault: &ClientFault) -> String {
    match fault {
        ClientFault::NoMessage { reason, line } => {
            format!("the server answered with what is no message ({reason}): `{line}`")
        }
        other => other.to_string(),
    }
}
