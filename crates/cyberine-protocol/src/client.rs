//! The client's side of one pipe, as a machine without I/O.
//!
//! It finds out the era, then asks. A stateless server is asked `server/discover` first; whatever
//! is no answer of the stateless era leads to `initialize` (2026-07-28, `basic/versioning`). Bytes
//! that are no message end the session: what follows them cannot be trusted to be whole.

mod decode;
mod effect;
mod quote;
mod receive;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::encode::{self, Sender};
use crate::jsonrpc::{IdValue, RequestId};
use crate::model::Implementation;
use crate::revision::Revision;
use crate::strict::Limits;

pub use effect::{
    CallKey, ClientEffect, ClientFault, ClientIgnored, LogLine, OfferedTool, RemoteError, ReplyPart,
    RequestError, ServerFacts, ToolReply, ToolsPage,
};

/// What a client is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientProfile {
    /// Who it says it is.
    pub info: Implementation,
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
    stage: Stage,
    flights: BTreeMap<IdValue, Flight>,
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
    ListTools,
    /// With the highest progress that was told.
    CallTool {
        progress: f64,
    },
}

impl ClientSession {
    /// A session in which nothing has been said.
    #[must_use]
    pub fn new(profile: ClientProfile) -> Self {
        Self {
            limits: profile.limits,
            stateless_info: encode::implementation(&profile.info, Revision::V2026_07_28),
            legacy_info: encode::implementation(&profile.info, Revision::NEWEST_LEGACY),
            stage: Stage::Opening { initializing: false },
            flights: BTreeMap::new(),
            serial: 0,
            pending: Vec::new(),
        }
    }

    /// The line to begin with. What comes of it is [`ClientEffect::Opened`] or a fault.
    pub fn open(&mut self, opening: Opening) -> Vec<u8> {
        match opening {
            Opening::Discover => {
                let id = self.fly(Asked::Discover);
                let sender = Sender { info: &self.stateless_info, revision: Revision::V2026_07_28 };
                sender.discover(&id)
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

    /// Asks for one page of tools, from `cursor` on where there is one. `None` where the session is
    /// not open. The answer is [`ClientEffect::Tools`] or [`ClientEffect::Failed`].
    pub fn list_tools(&mut self, cursor: Option<&str>) -> Option<(CallKey, Vec<u8>)> {
        self.ask(Asked::ListTools, |sender, id| sender.list_tools(id, cursor))
    }

    /// Calls a tool, and wants news of its progress. `None` where the session is not open. The
    /// answer is [`ClientEffect::Called`] or [`ClientEffect::Failed`].
    pub fn call_tool(&mut self, name: &str, arguments: &Map<String, Value>) -> Option<(CallKey, Vec<u8>)> {
        let asked = Asked::CallTool { progress: f64::NEG_INFINITY };
        self.ask(asked, |sender, id| sender.call_tool(id, name, arguments))
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
        encode::initialize_request(&id, &self.legacy_info)
    }

    fn ask(
        &mut self,
        asked: Asked,
        line: impl FnOnce(Sender<'_>, &RequestId) -> Vec<u8>,
    ) -> Option<(CallKey, Vec<u8>)> {
        let revision = self.revision()?;
        let id = self.fly(asked);
        let line = line(Sender { info: &self.stateless_info, revision }, &id);
        Some((CallKey(self.serial), line))
    }

    fn fly(&mut self, asked: Asked) -> RequestId {
        self.serial += 1;
        let id = RequestId::number(self.serial);
        self.flights.insert(id.value().clone(), Flight { serial: self.serial, asked });
        id
    }
}
