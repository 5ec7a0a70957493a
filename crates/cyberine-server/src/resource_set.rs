//! The shape of everything a host can read.

use std::collections::BTreeMap;

use cyberine_protocol::model::{ClientCapabilities, InputRequest, ResourceBody};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::changes::ListChanges;

/// A set of resources, served by the rail.
pub trait ResourceSet: Send + Sync {
    /// The URI templates (RFC 6570).
    fn templates(&self) -> Vec<ResourceTemplate>;

    /// One page of resources. `cursor` is one this method gave, or `None` for the first page.
    fn list(
        &self,
        caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>>;

    /// The contents of one resource: its parts, never none.
    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>>;

    /// Follows the list, where it may change while it is served.
    fn changes(&self) -> Option<ListChanges> {
        None
    }

    /// A URI as it is without what opens a gate, for telling which of two URIs mean one resource.
    fn plain_uri(&self, uri: &str) -> String {
        uri.to_owned()
    }

    /// Whether changes of a resource can be followed.
    fn is_watchable(&self) -> bool {
        false
    }

    /// Follows one resource. What [`read`](Self::read) refuses, this refuses too.
    fn watch(
        &self,
        caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        let _ = caller;
        Box::pin(std::future::ready(Err(ResourceError::NotFound { uri })))
    }
}

/// One `resources/read`. Handlers are re-entrant, as those of tools are.
#[derive(Debug)]
pub struct ResourceRead {
    /// The URI, unchecked.
    pub uri: String,
    /// Who reads.
    pub caller: Caller,
    /// What the client can be asked for.
    pub capabilities: ClientCapabilities,
    /// Answers to what an earlier [`ReadOutcome::InputRequired`] asked, by its keys.
    pub input_responses: BTreeMap<String, Value>,
    /// The state that outcome carried, verified by the rail.
    pub state: Option<Value>,
}

impl ResourceRead {
    /// The first read of a client that can be asked nothing.
    #[must_use]
    pub fn of(caller: Caller, uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            caller,
            capabilities: ClientCapabilities::default(),
            input_responses: BTreeMap::new(),
            state: None,
        }
    }
}

/// What a read comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadOutcome {
    /// What the resource holds.
    Contents(Vec<ResourceContents>),
    /// It cannot be read without input.
    InputRequired {
        /// What to ask, by keys of the handler's choice.
        requests: BTreeMap<String, InputRequest>,
        /// What the handler wants back with the answers. The rail seals it.
        state: Value,
    },
}

/// One resource that is followed.
pub trait ResourceWatch: Send {
    /// Its URI, without any token: what notifications name.
    fn uri(&self) -> &str;

    /// Resolves when the resource has changed since the last time it resolved, or since the watch
    /// began. Several changes may count as one; none is left out.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, no change is lost.
    fn changed(&mut self) -> BoxFuture<'_, ()>;
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// What it holds.
    pub description: String,
    /// The media type of every member.
    pub mime_type: String,
}

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Its media type.
    pub mime_type: String,
    /// When it last changed, RFC 3339.
    pub last_modified: Option<String>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePage {
    /// The resources.
    pub resources: Vec<Resource>,
    /// Where the next page begins; `None` at the end.
    pub next_cursor: Option<String>,
}

impl ReadOutcome {
    /// The text of a resource that is one text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Contents(parts) => match &parts[..] {
                [ResourceContents { body: ResourceBody::Text(text), .. }] => Some(text),
                _ => None,
            },
            Self::InputRequired { .. } => None,
        }
    }
}

/// What a resource, or a part of it, holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceContents {
    /// Its URI, without any token.
    pub uri: String,
    /// Its media type.
    pub mime_type: String,
    /// Its text, or its bytes in Base64.
    pub body: ResourceBody,
}

/// A read or a list that cannot be answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResourceError {
    /// There is no such resource. `-32602` in the stateless era, `-32002` before.
    #[error("resource `{uri}` not found")]
    NotFound {
        /// The URI as asked, without any token.
        uri: String,
    },
    /// The cursor is none of ours. `-32602`.
    #[error("the cursor is not one this server gave")]
    BadCursor,
    /// The gate is closed. `-33001` with `data.reason: "unauthorized"`.
    #[error("unauthorized")]
    Unauthorized,
    /// The URI cannot be used. `-32602` with `data.reason`.
    #[error("{message}")]
    BadUri {
        /// What is wrong with it. It repeats nothing that may be a secret.
        message: String,
        /// The same for code: a fixed word.
        reason: &'static str,
    },
    /// The server is at fault. `-32603`.
    #[error("internal error: {0}")]
    Internal(String),
    /// Any other refusal, with a code of its own.
    #[error("{message}")]
    Other {
        /// The JSON-RPC code, outside the reserved ranges.
        code: i64,
        /// What happened.
        message: String,
        /// Facts for code.
        data: Option<Value>,
    },
}
