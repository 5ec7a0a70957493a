//! From the model to the bytes of one revision, by leaving out what it does not know.
//!
//! | from | on the wire |
//! |---|---|
//! | 2025-03-26 | annotations of tools, audio, `message` of progress |
//! | 2025-06-18 | `title`, `outputSchema`, `structuredContent`, resource links, `lastModified`, `_meta` of parts |
//! | 2025-11-25 | `icons`, `description` and `websiteUrl` of the server, `mode` of forms |
//! | 2026-07-28 | `resultType`, `ttlMs`, `cacheScope`, `serverInfo` in `_meta`, structured results of any type |

mod content;
mod json;
mod line;
mod request;
mod result;
mod tools;

pub(crate) use line::{
    acknowledged_line, cancelled_line, elicit_line, empty_line, error_line, progress_line, updated_line,
};
pub(crate) use request::{Sender, cancel_line, initialize_request, initialized_line};
pub(crate) use result::{Profile, discover_line, implementation, initialize_line, result_line};
pub use tools::{ToolListing, ToolSource};
