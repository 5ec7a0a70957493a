//! Streamable HTTP as far as it is about bytes: which POST is a message of which era, and how its
//! headers and its body must agree (2026-07-28 and 2025-11-25, `basic/transports`).
//!
//! [`judge`] is the ladder a POST climbs before anything is served; what falls off gets a [`Refusal`].
//! Whoever speaks HTTP checks before it where the request comes from and who sent it, and after it
//! whether its session exists. A client builds its headers with [`headers_of`] and
//! [`HeaderParams::mirror`].
//!
//! | step | refused with |
//! |---|---|
//! | `Content-Type` is `application/json` | 415, `-32600` |
//! | `Accept` takes JSON and event streams | 406, `-32600` |
//! | the body is a message | 400, `-32700` or `-32600`; 413 where it is too long |
//! | `MCP-Protocol-Version` and the body agree | 400, `-32020` |
//! | the envelope of a stateless request | 400, `-32602` |
//! | its revision is served | 400, `-32022` |
//! | `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` are there and agree with the body | 400, `-32020` |
//! | `Mcp-Param-*`: [`Posted::check_params`], once the tool is known | 400, `-32020` |
//!
//! Everything after that is answered by the session, with the status [`status_of`] has for it.

mod head;
mod ladder;
mod params;
mod refusal;
mod value;

pub use head::{Field, HttpHead};
pub use ladder::{Post, Posted, headers_of, judge};
pub use params::{HeaderParamError, HeaderParams};
pub use refusal::{Refusal, status_of};
pub use value::{decode_value, encode_value};

/// `MCP-Protocol-Version`: by which rules a message is to be read.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// `Mcp-Method`: the method of a stateless request.
pub const METHOD: &str = "mcp-method";
/// `Mcp-Name`: what a stateless request is about.
pub const NAME: &str = "mcp-name";
/// `Mcp-Session-Id`: the session of the `initialize` era a message belongs to.
pub const SESSION_ID: &str = "mcp-session-id";
/// `Last-Event-ID`: where a stream of that era is to be resumed.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// What the names of headers begin with that mirror an argument.
pub const PARAM_PREFIX: &str = "mcp-param-";
