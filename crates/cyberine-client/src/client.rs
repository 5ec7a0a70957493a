use std::collections::BTreeMap;
use std::time::Duration;

use cyberine_process::{KillReport, Spawn};
use cyberine_protocol::http::HeaderParams;
use cyberine_protocol::model::{ClientCapabilities, Implementation, LogLevel};
use cyberine_protocol::strict::{FRAME_LIMIT, Limits};
use cyberine_protocol::{Ask, ClientEffect, ClientProfile, OfferedTool, Opening, ServerFacts};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::call::Call;
use crate::child::Child;
use crate::error::ClientError;
use crate::http::{Http, HttpServer};
use crate::link::{Link, Next, Wire};
use crate::tools;

/// How a client goes about it.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The name the server is told.
    pub name: String,
    /// The version it is told.
    pub version: String,
    /// What the server is told that it can ask, and whether it may answer with tasks. Whoever declares
    /// something answers it: see [`Call::answer`] and [`Call::go_on`].
    pub capabilities: ClientCapabilities,
    /// How much of its log a server of the stateless era is to send.
    pub log_level: Option<LogLevel>,
    /// The longest message of the server that is read, in bytes.
    pub frame_limit: usize,
    /// How long `server/discover` may stay unanswered before `initialize` is sent after it. Over HTTP
    /// silence says nothing of the era.
    pub probe: Duration,
    /// How long the server has from its start until its session is open.
    pub handshake: Duration,
}

impl ClientOptions {
    /// 8 MiB a message, five seconds for the first answer, a minute in all; nothing can be asked.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            capabilities: ClientCapabilities::default(),
            log_level: None,
            frame_limit: FRAME_LIMIT,
            probe: Duration::from_secs(5),
            handshake: Duration::from_secs(60),
        }
    }

    fn profile(&self) -> ClientProfile {
        let (name, version) = (self.name.clone(), self.version.clone());
        ClientProfile {
            info: Implementation { name, version, ..Implementation::default() },
            capabilities: self.capabilities,
            log_level: self.log_level,
            limits: Limits { frame: self.frame_limit, ..Limits::default() },
        }
    }
}

/// A session with one server.
///
/// Dropping it kills what can be found of a child's tree in one pass; [`close`](Self::close)
/// ends it in order and says what is left.
pub struct Client {
    /// The child, to be started once more where it must be.
    server: Option<Spawn>,
    options: ClientOptions,
    until: Instant,
    pub(crate) link: Link,
    /// Which arguments of the tools are told in headers, over HTTP.
    pub(crate) marks: BTreeMap<String, HeaderParams>,
}

impl Client {
    /// Starts a server. Call it inside a tokio runtime, and [`open`](Self::open) next.
    ///
    /// # Errors
    /// [`ClientError::Start`].
    pub fn start(server: Spawn, options: ClientOptions) -> Result<Self, ClientError> {
        let child = Child::start(server.clone()).map_err(|source| ClientError::Start { source })?;
        Ok(Self::of(Wire::Child(Box::new(child)), Some(server), options))
    }

    /// Turns to a server elsewhere. Nothing is sent before [`open`](Self::open). Building the HTTP
    /// client of an `https:` address takes milliseconds.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Token`], [`ClientError::Web`].
    pub fn connect(server: HttpServer, options: ClientOptions) -> Result<Self, ClientError> {
        let http = Http::new(server, options.frame_limit)?;
        Ok(Self::of(Wire::Http(Box::new(http)), None, options))
    }

    /// As [`connect`](Self::connect), without asking for the stateless era first: for a server that is
    /// known to be of the `initialize` era.
    ///
    /// # Errors
    /// As of [`connect`](Self::connect).
    pub fn connect_legacy(server: HttpServer, options: ClientOptions) -> Result<Self, ClientError> {
        let http = Http::new(server, options.frame_limit)?;
        let until = after(options.handshake);
        let link = Link::open(Wire::Http(Box::new(http)), options.profile(), Opening::Initialize);
        Ok(Self { server: None, options, until, link, marks: BTreeMap::new() })
    }

    fn of(wire: Wire, server: Option<Spawn>, options: ClientOptions) -> Self {
        let until = after(options.handshake);
        let link = Link::open(wire, options.profile(), Opening::Discover);
        Self { server, options, until, link, marks: BTreeMap::new() }
    }

    /// Finds out the era and opens the session.
    ///
    /// A child that ends without a word is started once more and asked `initialize` at once: some
    /// do not survive another first message.
    ///
    /// # Errors
    /// [`ClientError::Late`] at the deadline, [`ClientError::Ended`], or what is wrong with the server.
    ///
    /// # Cancel safety
    /// Dropping the future stops the waiting only.
    pub async fn open(&mut self) -> Result<ServerFacts, ClientError> {
        let first = self.opened().await;
        let Some(server) = &self.server else { return first };
        if !matches!(first, Err(ClientError::Ended { .. })) || self.link.heard {
            return first;
        }
        let child = Child::start(server.clone()).map_err(|source| ClientError::Start { source })?;
        self.link = Link::open(Wire::Child(Box::new(child)), self.options.profile(), Opening::Initialize);
        self.opened().await
    }

    async fn opened(&mut self) -> Result<ServerFacts, ClientError> {
        let probe = if self.server.is_some() { self.options.probe } else { self.options.handshake };
        let mut until = self.until.min(after(probe));
        loop {
            match timeout_at(until, self.link.next()).await {
                Ok(Ok(Next::Effect(ClientEffect::Opened(facts)))) => return Ok(facts),
                // A server may log before it answers.
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) if until < self.until => {
                    until = self.until;
                    if let Some(line) = self.link.session.discover_is_late() {
                        self.link.say(line);
                    }
                }
                Err(_) => return Err(self.late().await),
            }
        }
    }

    async fn late(&mut self) -> ClientError {
        ClientError::Late { limit: self.options.handshake, stderr: self.link.last_words().await }
    }

    /// Every tool the server offers, in its order. Over HTTP the tools whose marks of headers
    /// (`x-mcp-header`) break the rules are left out, as the specification wants it.
    ///
    /// # Errors
    /// [`ClientError::EndlessTools`] beyond 1,000 pages, 10,000 tools or 16 MiB; else as of a call.
    ///
    /// # Cancel safety
    /// Dropping the future gives the list up.
    pub async fn tools(&mut self) -> Result<Vec<OfferedTool>, ClientError> {
        let mut tools = tools::all(&mut self.link).await?;
        if self.link.http().is_some() {
            self.marks = tools::marked(&mut tools);
        }
        Ok(tools)
    }

    /// Calls a tool. Nothing is read before [`Call::next`]. Over HTTP ask for [`tools`](Self::tools)
    /// first, so that it is known which arguments are told in headers.
    ///
    /// # Errors
    /// [`ClientError::NotOpen`].
    pub fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Result<Call<'_>, ClientError> {
        self.ask(Ask::CallTool { name: tool.to_owned(), arguments: arguments.clone() })
    }

    /// Asks anything of the server. Nothing is read before [`Call::next`].
    ///
    /// # Errors
    /// [`ClientError::NotOpen`], [`ClientError::NoSuchMethod`].
    pub fn ask(&mut self, ask: Ask) -> Result<Call<'_>, ClientError> {
        Call::begin(self, ask)
    }

    /// Ends the session. A child's input is closed, after a second it is told to end, and after the
    /// grace of its [`Spawn`] it is killed, with everything it started; of a server elsewhere nothing is
    /// left.
    ///
    /// # Cancel safety
    /// Call it again; killing that has begun goes on.
    pub async fn close(&mut self) -> KillReport {
        self.link.close().await
    }
}

/// The instant `span` from now, or one that nobody lives to see.
fn after(span: Duration) -> Instant {
    const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(span).unwrap_or(now + AGES)
}
