use std::time::Duration;

use cyberine_process::{KillReport, Spawn};
use cyberine_protocol::model::Implementation;
use cyberine_protocol::strict::{FRAME_LIMIT, Limits};
use cyberine_protocol::{ClientEffect, ClientProfile, OfferedTool, Opening, ServerFacts};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::call::Call;
use crate::error::{ClientError, StderrTail};
use crate::pipe::Pipe;
use crate::tools;

/// How a client goes about it.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The name the server is told.
    pub name: String,
    /// The version it is told.
    pub version: String,
    /// The longest line of the server that is read, in bytes.
    pub frame_limit: usize,
    /// How long `server/discover` may stay unanswered before `initialize` is sent after it.
    pub probe: Duration,
    /// How long the server has from its start until its session is open.
    pub handshake: Duration,
}

impl ClientOptions {
    /// 8 MiB a line, five seconds for the first answer, a minute in all.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            frame_limit: FRAME_LIMIT,
            probe: Duration::from_secs(5),
            handshake: Duration::from_secs(60),
        }
    }

    fn profile(&self) -> ClientProfile {
        let (name, version) = (self.name.clone(), self.version.clone());
        ClientProfile {
            info: Implementation { name, version, ..Implementation::default() },
            limits: Limits { frame: self.frame_limit, ..Limits::default() },
        }
    }
}

/// A session with one server.
///
/// Dropping it kills what can be found of the server's tree in one pass; [`close`](Self::close)
/// ends it in order and says what is left.
pub struct Client {
    server: Spawn,
    options: ClientOptions,
    until: Instant,
    pub(crate) pipe: Pipe,
}

impl Client {
    /// Starts the server. Call it inside a tokio runtime, and [`open`](Self::open) next.
    ///
    /// # Errors
    /// [`ClientError::Start`].
    pub fn start(server: Spawn, options: ClientOptions) -> Result<Self, ClientError> {
        let pipe = Pipe::start(server.clone(), options.profile(), Opening::Discover)
            .map_err(|source| ClientError::Start { source })?;
        let until = after(options.handshake);
        Ok(Self { server, options, until, pipe })
    }

    /// Finds out the era and opens the session.
    ///
    /// A server that ends without a word is started once more and asked `initialize` at once: some
    /// do not survive another first message.
    ///
    /// # Errors
    /// [`ClientError::Late`] at the deadline, [`ClientError::Ended`], or what is wrong with the server.
    ///
    /// # Cancel safety
    /// Dropping the future stops the waiting only.
    pub async fn open(&mut self) -> Result<ServerFacts, ClientError> {
        let first = self.opened().await;
        if !matches!(first, Err(ClientError::Ended { .. })) || self.pipe.heard {
            return first;
        }
        self.pipe = Pipe::start(self.server.clone(), self.options.profile(), Opening::Initialize)
            .map_err(|source| ClientError::Start { source })?;
        self.opened().await
    }

    async fn opened(&mut self) -> Result<ServerFacts, ClientError> {
        let mut until = self.until.min(after(self.options.probe));
        loop {
            match timeout_at(until, self.pipe.next()).await {
                Ok(Ok(ClientEffect::Opened(facts))) => return Ok(facts),
                // A server may log before it answers.
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) if until < self.until => {
                    until = self.until;
                    if let Some(line) = self.pipe.session.discover_is_late() {
                        self.pipe.say(line);
                    }
                }
                Err(_) => return Err(self.late().await),
            }
        }
    }

    async fn late(&mut self) -> ClientError {
        let stderr = self.pipe.end().await.map(|exit| exit.stderr).unwrap_or_default();
        ClientError::Late { limit: self.options.handshake, stderr: StderrTail(stderr) }
    }

    /// Every tool the server offers, in its order.
    ///
    /// # Errors
    /// [`ClientError::EndlessTools`] beyond 1,000 pages, 10,000 tools or 16 MiB; else as of a call.
    ///
    /// # Cancel safety
    /// Dropping the future gives the list up.
    pub async fn tools(&mut self) -> Result<Vec<OfferedTool>, ClientError> {
        tools::all(&mut self.pipe).await
    }

    /// Calls a tool. Nothing is read before [`Call::next`].
    ///
    /// # Errors
    /// [`ClientError::NotOpen`].
    pub fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Result<Call<'_>, ClientError> {
        let (key, line) = self.pipe.session.call_tool(tool, arguments).ok_or(ClientError::NotOpen)?;
        self.pipe.say(line);
        Ok(Call::new(&mut self.pipe, key))
    }

    /// Ends the server: its input is closed, after a second it is told to end, and after the
    /// grace of its [`Spawn`] it is killed, with everything it started.
    ///
    /// # Cancel safety
    /// Call it again; killing that has begun goes on.
    pub async fn close(&mut self) -> KillReport {
        self.pipe.close().await
    }
}

/// The instant `span` from now, or one that nobody lives to see.
fn after(span: Duration) -> Instant {
    const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(span).unwrap_or(now + AGES)
}
