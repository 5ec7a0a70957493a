//! The client's side of one pipe, as a machine without I/O.
//!
//! It finds out the era, then asks. A stateless server is asked `server/discover` first; whatever
//! is no answer of the stateless era leads to `initialize` (2026-07-28, `basic/versioning`). Bytes
//! that are no message end the session: what follows them cannot be trusted to be whole.

mod ask;
mod decode;
mod effect;
mod question;
mod quote;
mod receive;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::encode::{self, Sender};
use crate::jsonrpc::{IdValue, RequestId, RpcError};
use crate::model::{ClientCapabilities, Implementation, LogLevel};
use crate::revision::Revision;
use crate::strict::Limits;

pub use ask::{Answers, Ask};
pub use effect::{
    CallKey, ClientEffect, ClientFault, ClientIgnored, LogLine, OfferedTool, QuestionKey, RemoteError,
    ReplyPart, RequestError, ServerFacts, ToolReply, ToolsPage,
};

/// What a client is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientProfile {
    /// Who it says it is.
    pub info: Implementation,
    /// What it can be asked, and whether it takes tasks. What is not declared here is never asked of
    /// the driver.
    pub capabilities: ClientCapabilities,
    /// How much of its log a server of the stateless era is to send with each request. With
    /// `initialize` ask for it with [`Ask::SetLevel`].
    pub log_level: Option<LogLevel>,
    /// What a line of the server may cost.
    pub limits: Limits,
}

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// With `server/discover`, and `initialize` where the server knows no such thing.
    Discover,
    /// With `initialize`, for a server that does not survive another beginning.
    Initialize,
}

/// The state of one pipe: what was agreed, and every request in flight.
///
/// Lines to send come back without a newline and must go out in the order they were given. After a
/// fault the session is over, and takes and gives nothing more.
///
/// ```
/// use cyberine_protocol::{ClientEffect, ClientProfile, ClientSession, Opening, Revision};
///
/// let mut session = ClientSession::new(ClientProfile::default());
/// let line = session.open(Opening::Discover);
/// assert!(line.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"server/discover""#));
/// let mut effects = Vec::new();
/// let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
/// session.receive(answer, &mut effects)?;
/// assert!(effects.is_empty());
/// session.receive(b"\n", &mut effects)?;
/// assert!(matches!(&effects[..], [ClientEffect::Opened(facts)] if facts.revision == Revision::V2026_07_28));
/// # Ok::<(), cyberine_protocol::ClientFault>(())
/// ```
#[derive(Debug)]
pub struct ClientSession {
    limits: Limits,
    /// The encoded `clientInfo` of either era.
    stateless_info: String,
    legacy_info: String,
    capabilities: ClientCapabilities,
    /// The encoded capabilities of either era.
    stateless_capabilities: String,
    legacy_capabilities: String,
    log_level: Option<LogLevel>,
    stage: Stage,
    flights: BTreeMap<IdValue, Flight>,
    /// Questions of the server that wait for an answer, by their numbers here.
    questions: BTreeMap<u64, RequestId>,
    serial: u64,
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was agreed; `initialize` may have been sent.
    Opening { initializing: bool },
    /// Requests can be made.
    Open(Revision),
    /// A fault ended it.
    Over,
}

/// A request in flight.
#[derive(Debug)]
struct Flight {
    serial: u64,
    asked: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    Discover,
    Initialize,
    /// Something of the server.
    Thing(Thing),
}

/// What is kept of an [`Ask`] until its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Thing {
    method: &'static str,
    reply: ReplyKind,
    /// Whether its result may be a question.
    may_need_input: bool,
    /// The highest progress that was told.
    progress: f64,
}

/// How a result is read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyKind {
    Tools,
    Call,
    /// A listen, whose result is its end.
    Listen,
    /// As the driver reads it.
    Other,
}

impl From<&Ask> for Thing {
    fn from(ask: &Ask) -> Self {
        let reply = match ask {
            Ask::ListTools { .. } => ReplyKind::Tools,
            Ask::CallTool { .. } => ReplyKind::Call,
            Ask::Listen { .. } => ReplyKind::Listen,
            _ => ReplyKind::Other,
        };
        let (method, may_need_input) = (ask.method(), ask.may_need_input());
        Self { method, reply, may_need_input, progress: f64::NEG_INFINITY }
    }
}

impl ClientSession {
    /// A session in which nothing has been said.
    #[must_use]
    pub fn new(profile: ClientProfile) -> Self {
        let ClientProfile { info, capabilities, log_level, limits } = profile;
        // Extensions are of the stateless era.
        let legacy = ClientCapabilities { tasks: false, ..capabilities };
        Self {
            limits,
            stateless_info: encode::implementation(&info, Revision::V2026_07_28),
            legacy_info: encode::implementation(&info, Revision::NEWEST_LEGACY),
            capabilities,
            stateless_capabilities: capabilities.to_json().to_string(),
            legacy_capabilities: legacy.to_json().to_string(),
            log_level,
            stage: Stage::Opening { initializing: false },
            flights: BTreeMap::new(),
            questions: BTreeMap::new(),
            serial: 0,
            pending: Vec::new(),
        }
    }

    /// The line to begin with. What comes of it is [`ClientEffect::Opened`] or a fault.
    pub fn open(&mut self, opening: Opening) -> Vec<u8> {
        match opening {
            Opening::Discover => {
                let id = self.fly(Asked::Discover);
                self.sender(Revision::V2026_07_28).discover(&id)
            }
            Opening::Initialize => self.initialize(),
        }
    }

    /// Takes silence for the answer to `server/discover`: the line that begins the other way. `None`
    /// where it was sent already, or the session is open or over. An answer that comes late still
    /// counts.
    pub fn discover_is_late(&mut self) -> Option<Vec<u8>> {
        let waits = self.stage == Stage::Opening { initializing: false };
        waits.then(|| self.initialize())
    }

    /// Takes the next bytes of the server, cut anywhere, and says what to do, in order.
    ///
    /// # Errors
    /// What makes it impossible to go on. Effects in `out` count nevertheless.
    pub fn receive(&mut self, bytes: &[u8], out: &mut Vec<ClientEffect>) -> Result<(), ClientFault> {
        receive::receive(self, bytes, out)
    }

    /// Takes the end of the stream: a line without a newline is a line like any other.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn finish(&mut self, out: &mut Vec<ClientEffect>) -> Result<(), ClientFault> {
        receive::finish(self, out)
    }

    /// The revision that was agreed. `None` before, and where the session is over.
    #[must_use]
    pub const fn revision(&self) -> Option<Revision> {
        match self.stage {
            Stage::Open(revision) => Some(revision),
            Stage::Opening { .. } | Stage::Over => None,
        }
    }

    /// Asks something of the server. `None` where the session is not open, or its revision has no
    /// such method. The answer is [`ClientEffect::Tools`], [`ClientEffect::Called`] or
    /// [`ClientEffect::Result`], as the method has it; [`ClientEffect::NeedsInput`], where it is a
    /// question; or [`ClientEffect::Failed`].
    pub fn ask(&mut self, ask: &Ask) -> Option<(CallKey, Vec<u8>)> {
        self.send(ask, None)
    }

    /// Asks the same again, with the answers the server wanted in [`ClientEffect::NeedsInput`]
    /// (2026-07-28, `basic/patterns/mrtr`). `None` as of [`ask`](Self::ask).
    pub fn ask_again(&mut self, ask: &Ask, answers: &Answers) -> Option<(CallKey, Vec<u8>)> {
        self.send(ask, Some(answers))
    }

    fn send(&mut self, ask: &Ask, answers: Option<&Answers>) -> Option<(CallKey, Vec<u8>)> {
        let revision = self.revision().filter(|revision| ask.exists_in(*revision))?;
        let id = self.fly(Asked::Thing(ask.into()));
        let line = self.sender(revision).ask(&id, ask, answers);
        Some((CallKey(self.serial), line))
    }

    /// Answers a question of a server of the `initialize` era: the line that says so. `None` where it
    /// was answered, or withdrawn.
    pub fn answer(&mut self, question: QuestionKey, answer: Result<&Value, &str>) -> Option<Vec<u8>> {
        let id = self.questions.remove(&question.0)?;
        let revision = self.revision().unwrap_or(Revision::NEWEST_LEGACY);
        Some(match answer {
            Ok(result) => encode::answer_line(&id, result),
            Err(reason) => encode::error_line(Some(&id), &RpcError::internal(reason), revision),
        })
    }

    /// Takes one message that came by itself, as the body of an HTTP response or the data of an event
    /// is. A fault of it is that message's own, and the session goes on.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub fn receive_message(
        &mut self,
        message: &[u8],
        out: &mut Vec<ClientEffect>,
    ) -> Result<(), ClientFault> {
        receive::message_alone(self, message, out)
    }

    /// Takes note that a request will have no answer: its connection is gone. Whether it was in flight.
    pub fn lose(&mut self, key: CallKey) -> bool {
        self.flights.remove(RequestId::number(key.0).value()).is_some()
    }

    /// Whether a request waits for its answer.
    #[must_use]
    pub fn is_open(&self, key: CallKey) -> bool {
        self.flights.contains_key(RequestId::number(key.0).value())
    }

    fn sender(&self, revision: Revision) -> Sender<'_> {
        let (info, capabilities) = (&*self.stateless_info, &*self.stateless_capabilities);
        Sender { info, capabilities, log_level: self.log_level, revision }
    }

    /// Gives a request up: the line that says so, in either era. `None` where it is over. What is
    /// said of it afterwards is ignored.
    pub fn cancel(&mut self, key: CallKey, reason: &str) -> Option<Vec<u8>> {
        let id = RequestId::number(key.0);
        self.flights.remove(id.value())?;
        Some(encode::cancel_line(&id, reason))
    }

    fn initialize(&mut self) -> Vec<u8> {
        self.stage = Stage::Opening { initializing: true };
        let id = self.fly(Asked::Initialize);
        encode::initialize_request(&id, &self.legacy_info, &self.legacy_capabilities)
    }

    fn fly(&mut self, asked: Asked) -> RequestId {
        self.serial += 1;
        let id = RequestId::number(self.serial);
        self.flights.insert(id.value().clone(), Flight { serial: self.serial, asked });
        id
    }
}
