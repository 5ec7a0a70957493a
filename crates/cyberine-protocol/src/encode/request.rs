//! What a client sends.

use serde_json::{Map, Value};

use super::json::Object;
use super::line::line;
use crate::jsonrpc::RequestId;
use crate::revision::Revision;
use crate::session::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};

/// Who asks, and by which rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender<'a> {
    /// The encoded `Implementation`.
    pub(crate) info: &'a str,
    /// The revision that was agreed.
    pub(crate) revision: Revision,
}

impl Sender<'_> {
    pub(crate) fn discover(self, id: &RequestId) -> Vec<u8> {
        self.request(id, "server/discover", 0, None, |_| {})
    }

    pub(crate) fn list_tools(self, id: &RequestId, cursor: Option<&str>) -> Vec<u8> {
        self.request(id, "tools/list", 0, None, |params| params.optional("cursor", cursor.as_ref()))
    }

    /// Its progress is told under its own id.
    pub(crate) fn call_tool(self, id: &RequestId, name: &str, arguments: &Map<String, Value>) -> Vec<u8> {
        let length = arguments.values().filter_map(Value::as_str).map(str::len).sum();
        self.request(id, "tools/call", length, Some(id), |params| {
            params.member("name", name);
            params.member("arguments", arguments);
        })
    }

    fn request(
        self,
        id: &RequestId,
        method: &str,
        length: usize,
        progress: Option<&RequestId>,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Vec<u8> {
        line(400 + length, |message| {
            message.raw("id", id.token());
            message.member("method", method);
            let mut params = message.object("params");
            write(&mut params);
            if self.revision.is_stateless() || progress.is_some() {
                self.meta(params.object("_meta"), progress);
            }
            params.end();
        })
    }

    /// In the stateless era every request says who sends it, by which rules, and what that client
    /// can do: nothing that is asked for yet.
    fn meta(self, mut meta: Object<'_>, progress: Option<&RequestId>) {
        if let Some(token) = progress {
            meta.raw("progressToken", token.token());
        }
        if self.revision.is_stateless() {
            meta.member(PROTOCOL_VERSION, self.revision.as_str());
            meta.raw(CLIENT_INFO, self.info);
            meta.raw(CLIENT_CAPABILITIES, "{}");
        }
        meta.end();
    }
}

/// `initialize`, which asks for the newest revision that has it. `info` is the encoded
/// `Implementation`.
pub(crate) fn initialize_request(id: &RequestId, info: &str) -> Vec<u8> {
    line(256, |message| {
        message.raw("id", id.token());
        message.raw("method", "\"initialize\"");
        let mut params = message.object("params");
        params.member("protocolVersion", Revision::NEWEST_LEGACY.as_str());
        params.raw("capabilities", "{}");
        params.raw("clientInfo", info);
        params.end();
    })
}

/// `notifications/initialized`.
pub(crate) fn initialized_line() -> Vec<u8> {
    line(64, |message| message.raw("method", "\"notifications/initialized\""))
}

/// `notifications/cancelled` for a request of this client: on a pipe it is the same in both eras.
pub(crate) fn cancel_line(id: &RequestId, reason: &str) -> Vec<u8> {
    line(160 + reason.len(), |message| {
        message.raw("method", "\"notifications/cancelled\"");
        let mut params = message.object("params");
        params.raw("requestId", id.token());
        params.member("reason", reason);
        params.end();
    })
}
