use std::borrow::Cow;

use cyberine_types::ClientInfo;
use serde::Deserialize;

use crate::jsonrpc::{RequestId, RpcError, members, text};
use crate::model::{ClientCapabilities, LogLevel};

pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The longest name and the longest version of a client that are kept, in bytes.
const CLIENT_LIMIT: usize = 1024;

/// The parameters of every method served here, unread: one pass finds where those are that the most
/// frequent methods have, and others are looked for when they are wanted.
#[derive(Default)]
pub(crate) struct Params<'a> {
    all: &'a str,
    meta: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: Option<&'a str>,
    pub(super) cursor: Option<&'a str>,
    pub(crate) uri: Option<&'a str>,
    pub(super) input_responses: Option<&'a str>,
    pub(super) request_state: Option<&'a str>,
}

/// The members of `_meta` that mean something here, unread.
#[derive(Default)]
pub(crate) struct Meta<'a> {
    version: Option<&'a str>,
    capabilities: Option<&'a str>,
    client: Option<&'a str>,
    log_level: Option<&'a str>,
    progress_token: Option<&'a str>,
}

/// The envelope of a stateless request (2026-07-28, `basic`, "Request metadata").
pub(crate) struct Envelope<'a> {
    pub(crate) version: Cow<'a, str>,
    pub(crate) capabilities: ClientCapabilities,
}

/// What `initialize` says.
pub(super) struct Initialize<'a> {
    pub(super) version: Cow<'a, str>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) info: ClientInfo,
}

pub(super) fn invalid(name: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("`{name}` must be {what}"))
}

pub(super) fn object_members<'a>(
    token: &'a str,
    name: &str,
) -> Result<impl Iterator<Item = (Cow<'a, str>, &'a str)> + use<'a>, RpcError> {
    if token.starts_with('{') { Ok(members(token)) } else { Err(invalid(name, "an object")) }
}

/// Reads an object into a derived struct, which would also read an array.
pub(super) fn object<'a, T: Deserialize<'a>>(raw: &'a str, name: &str) -> Result<T, RpcError> {
    if !raw.starts_with('{') {
        return Err(invalid(name, "an object"));
    }
    serde_json::from_str(raw)
        .map_err(|error| RpcError::invalid_params(format!("`{name}` cannot be read: {error}")))
}

pub(super) fn string<'a>(raw: &'a str, name: &str) -> Result<Cow<'a, str>, RpcError> {
    text(raw).ok_or_else(|| invalid(name, "a string"))
}

pub(super) fn required<'a>(raw: Option<&'a str>, name: &str, what: &str) -> Result<&'a str, RpcError> {
    raw.ok_or_else(|| RpcError::invalid_params(format!("`{name}` is missing; it must be {what}")))
}

fn capabilities(token: &str, name: &str) -> Result<ClientCapabilities, RpcError> {
    ClientCapabilities::from_json(token).map_err(|part| {
        RpcError::invalid_params(format!("`{name}` must be an object, and so must `{part}` in it"))
    })
}

const LEVELS: &str = "a log level, `debug` to `emergency`";

fn log_level(raw: &str, name: &str) -> Result<LogLevel, RpcError> {
    text(raw).and_then(|level| LogLevel::parse(&level)).ok_or_else(|| invalid(name, LEVELS))
}

/// Who the client says it is. Every request in flight keeps it, so what is too long is cut.
fn client_info(raw: &str, name: &str) -> Result<ClientInfo, RpcError> {
    let mut info: ClientInfo = object(raw, name)?;
    for text in [&mut info.name, &mut info.version] {
        text.truncate(text.floor_char_boundary(CLIENT_LIMIT));
        text.shrink_to_fit();
    }
    Ok(info)
}

impl<'a> Params<'a> {
    pub(crate) fn read(params: Option<&'a str>) -> Result<Self, RpcError> {
        let Some(all) = params else { return Ok(Self::default()) };
        let mut read = Self { all, ..Self::default() };
        for (key, value) in object_members(all, "params")? {
            let member = match &*key {
                "_meta" => &mut read.meta,
                "name" => &mut read.name,
                "arguments" => &mut read.arguments,
                "cursor" => &mut read.cursor,
                "uri" => &mut read.uri,
                "inputResponses" => &mut read.input_responses,
                "requestState" => &mut read.request_state,
                _ => continue,
            };
            *member = Some(value);
        }
        Ok(read)
    }

    /// A member that few methods have.
    pub(crate) fn member(&self, name: &str) -> Option<&'a str> {
        members(self.all).find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn meta(&self) -> Result<Meta<'a>, RpcError> {
        let mut read = Meta::default();
        let Some(meta) = self.meta else { return Ok(read) };
        for (key, value) in object_members(meta, "_meta")? {
            let member = match &*key {
                PROTOCOL_VERSION => &mut read.version,
                CLIENT_CAPABILITIES => &mut read.capabilities,
                CLIENT_INFO => &mut read.client,
                LOG_LEVEL => &mut read.log_level,
                "progressToken" => &mut read.progress_token,
                _ => continue,
            };
            *member = Some(value);
        }
        Ok(read)
    }

    pub(super) fn initialize(&self) -> Result<Initialize<'a>, RpcError> {
        let version = required(self.member("protocolVersion"), "protocolVersion", "a string")?;
        let declared = required(self.member("capabilities"), "capabilities", "an object")?;
        let info = required(self.member("clientInfo"), "clientInfo", "an object")?;
        Ok(Initialize {
            version: string(version, "protocolVersion")?,
            capabilities: capabilities(declared, "capabilities")?,
            info: client_info(info, "clientInfo")?,
        })
    }

    /// The id a cancellation names, if it names one.
    pub(super) fn request_id(&self) -> Option<RequestId> {
        self.member("requestId").and_then(RequestId::from_token)
    }

    /// The level of `logging/setLevel`.
    pub(super) fn level(&self) -> Result<LogLevel, RpcError> {
        log_level(required(self.member("level"), "level", LEVELS)?, "level")
    }
}

impl<'a> Meta<'a> {
    /// Whether the request claims to be stateless.
    pub(crate) const fn is_stateless(&self) -> bool {
        self.version.is_some()
    }

    /// What every stateless request must carry.
    pub(crate) fn envelope(&self) -> Result<Envelope<'a>, RpcError> {
        let version = required(self.version, PROTOCOL_VERSION, "a string")?;
        let declared = required(self.capabilities, CLIENT_CAPABILITIES, "an object")?;
        Ok(Envelope {
            version: string(version, PROTOCOL_VERSION)?,
            capabilities: capabilities(declared, CLIENT_CAPABILITIES)?,
        })
    }

    /// The version the request claims, where that is text.
    pub(crate) fn claimed_version(&self) -> Option<Cow<'a, str>> {
        self.version.and_then(text)
    }

    /// The answer to a request whose header claims to be stateless, and whose body does not.
    pub(crate) fn unclaimed() -> RpcError {
        RpcError::invalid_params(format!(
            "`{PROTOCOL_VERSION}` and `{CLIENT_CAPABILITIES}` are missing in `_meta`"
        ))
    }

    /// The answer to a request that is neither stateless nor part of a session.
    pub(crate) fn missing() -> RpcError {
        RpcError::invalid_params(format!(
            "no session is open: send `initialize` first, or put `{PROTOCOL_VERSION}` and `{CLIENT_CAPABILITIES}` into `_meta`"
        ))
    }

    pub(super) fn client(&self) -> Result<Option<ClientInfo>, RpcError> {
        self.client.map(|raw| client_info(raw, CLIENT_INFO)).transpose()
    }

    pub(super) fn log_level(&self) -> Result<Option<LogLevel>, RpcError> {
        self.log_level.map(|raw| log_level(raw, LOG_LEVEL)).transpose()
    }

    pub(super) fn progress_token(&self) -> Result<Option<RequestId>, RpcError> {
        let Some(raw) = self.progress_token else { return Ok(None) };
        let token = RequestId::from_token(raw);
        let what = "a string or an integral number, of 1024 bytes at most";
        token.map(Some).ok_or_else(|| invalid("progressToken", what))
    }
}
