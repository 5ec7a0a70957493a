use serde_json::{Map, Value, json};

use crate::model::ClientCapabilities;
use crate::revision::Revision;

/// The error object of a response.
///
/// It carries a kind, not a code: the code of one kind differs by revision, and
/// [`RpcError::code`] knows how. The message is for people and models, `data` for code.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    kind: ErrorKind,
    message: String,
    data: Option<Value>,
}

/// Why a request has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// `-32700`: the line is not JSON.
    Parse,
    /// `-32600`: the JSON is not a message.
    InvalidRequest,
    /// `-32601`: no such method, or its capability is not served.
    MethodNotFound,
    /// `-32602`: parameters that cannot be used.
    InvalidParams,
    /// `-32603`: the server is at fault.
    Internal,
    /// `-32020`, HTTP only: a header and the body disagree.
    HeaderMismatch,
    /// `-32021`: the answer needs what the client did not declare. Stateless era only.
    MissingCapability,
    /// `-32022`: the revision is not served statelessly.
    UnsupportedVersion,
    /// No such resource: `-32002` with `initialize`, `-32602` in the stateless era.
    ResourceNotFound,
    /// `-32042`: a page must be opened first. 2025-11-25 only, `-32603` elsewhere.
    UrlElicitationRequired,
    /// A code of Cyberine's own, outside the range JSON-RPC reserves.
    Own(i64),
}

impl RpcError {
    fn new(kind: ErrorKind, message: impl Into<String>, data: Option<Value>) -> Self {
        Self { kind, message: message.into(), data }
    }

    /// The line is not JSON.
    #[must_use]
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parse, message, None)
    }

    /// The JSON is not a message.
    #[must_use]
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message, None)
    }

    /// There is no such method, or its capability is not served.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(ErrorKind::MethodNotFound, format!("method `{}` is not served", excerpt(method)), None)
    }

    /// The parameters cannot be used; `message` names the field.
    #[must_use]
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message, None)
    }

    /// There is no such tool.
    #[must_use]
    pub fn unknown_tool(name: &str) -> Self {
        Self::invalid_params(format!("unknown tool `{}`; tools/list has the names", excerpt(name)))
    }

    /// The cursor is not one this server gave.
    #[must_use]
    pub fn invalid_cursor() -> Self {
        Self::invalid_params("`cursor` is not one this server gave; list again without it")
    }

    /// The server is at fault.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message, None)
    }

    /// A header disagrees with the body (2026-07-28, `basic/transports`).
    #[must_use]
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::HeaderMismatch, message, None)
    }

    /// The client did not declare what the answer needs: `data.requiredCapabilities`.
    #[must_use]
    pub fn missing_capability(required: ClientCapabilities) -> Self {
        let data = json!({ "requiredCapabilities": required.to_json() });
        Self::new(
            ErrorKind::MissingCapability,
            "the answer needs a capability this client did not declare",
            Some(data),
        )
    }

    /// The revision is not served statelessly: `data.supported` and `data.requested`.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = Revision::STATELESS.iter().map(|revision| revision.as_str()).collect();
        let data = json!({ "supported": supported, "requested": excerpt(requested) });
        Self::new(ErrorKind::UnsupportedVersion, "unsupported protocol version", Some(data))
    }

    /// There is no such resource: `data.uri`.
    #[must_use]
    pub fn resource_not_found(uri: &str) -> Self {
        let data = json!({ "uri": excerpt(uri) });
        Self::new(ErrorKind::ResourceNotFound, "resource not found", Some(data))
    }

    /// Pages the user must open before the request can be served: `data.elicitations`, each with
    /// `mode`, `elicitationId`, `url` and `message` (2025-11-25, `client/elicitation`).
    #[must_use]
    pub fn url_elicitation_required(
        message: impl Into<String>,
        elicitations: Vec<Map<String, Value>>,
    ) -> Self {
        let data = json!({ "elicitations": elicitations });
        Self::new(ErrorKind::UrlElicitationRequired, message, Some(data))
    }

    /// An error with a code of Cyberine's own. A code inside -32768 to -32000, which JSON-RPC
    /// reserves, goes out as -32603.
    #[must_use]
    pub fn own(code: i64, message: impl Into<String>) -> Self {
        let kind = if (-32768..=-32000).contains(&code) { ErrorKind::Internal } else { ErrorKind::Own(code) };
        Self::new(kind, message, None)
    }

    /// The same with facts for code.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The facts for code.
    #[must_use]
    pub const fn data(&self) -> Option<&Value> {
        self.data.as_ref()
    }

    /// The code as `revision` has it (wire tables of each revision's `basic` page).
    #[must_use]
    pub fn code(&self, revision: Revision) -> i64 {
        match self.kind {
            ErrorKind::Parse => -32700,
            ErrorKind::InvalidRequest => -32600,
            ErrorKind::MethodNotFound => -32601,
            ErrorKind::InvalidParams => -32602,
            ErrorKind::Internal => -32603,
            ErrorKind::HeaderMismatch if revision.is_stateless() => -32020,
            ErrorKind::MissingCapability if revision.is_stateless() => -32021,
            ErrorKind::HeaderMismatch | ErrorKind::MissingCapability => -32600,
            ErrorKind::UnsupportedVersion => -32022,
            ErrorKind::ResourceNotFound if revision.is_stateless() => -32602,
            ErrorKind::ResourceNotFound => -32002,
            ErrorKind::UrlElicitationRequired if revision == Revision::V2025_11_25 => -32042,
            ErrorKind::UrlElicitationRequired => -32603,
            ErrorKind::Own(code) => code,
        }
    }
}

/// The first 200 characters, so that an error never echoes a megabyte.
pub(crate) fn excerpt(text: &str) -> &str {
    text.char_indices().nth(200).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_the_revision() {
        let missing = RpcError::resource_not_found("cyberine://runs/x");
        assert_eq!(missing.code(Revision::V2025_11_25), -32002);
        assert_eq!(missing.code(Revision::V2026_07_28), -32602);
        let page = RpcError::url_elicitation_required("open the page", Vec::new());
        let codes: Vec<i64> = Revision::ALL.into_iter().map(|revision| page.code(revision)).collect();
        assert_eq!(codes, [-32603, -32603, -32603, -32042, -32603]);
    }

    #[test]
    fn own_codes_stay_out_of_the_reserved_range() {
        assert_eq!(RpcError::own(-33001, "unauthorized").code(Revision::V2026_07_28), -33001);
        for reserved in [-32768, -32050, -32000] {
            assert_eq!(RpcError::own(reserved, "x").code(Revision::V2026_07_28), -32603);
        }
    }
}
