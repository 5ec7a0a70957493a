//! From the model to the bytes of one revision, by leaving out what it does not know.
//!
//! | from | on the wire |
//! |---|---|
//! | 2025-03-26 | annotations of tools, audio, `message` of progress, the capability `completions` |
//! | 2025-06-18 | `title`, `outputSchema`, `structuredContent`, resource links, `lastModified`, `_meta` of parts |
//! | 2025-11-25 | `icons`, `description` and `websiteUrl` of the server, `mode` of forms; there alone `elicitationId` |
//! | 2026-07-28 | `resultType`, `ttlMs`, `cacheScope`, `serverInfo` in `_meta`, structured results of any type, `extensions` |

mod ask;
mod content;
mod greeting;
mod json;
mod line;
mod notice;
mod prompt;
mod request;
mod result;
mod task;
mod tools;

pub(crate) use ask::ask_line;
pub(crate) use greeting::{discover_line, implementation, initialize_line};
pub(crate) use line::{cancelled_line, empty_line, error_line, progress_line};
pub(crate) use notice::{acknowledged_line, list_changed_line, log_line, task_changed_line, updated_line};
pub(crate) use request::{Sender, answer_line, cancel_line, initialize_request, initialized_line};
pub(crate) use result::result_line;
pub use tools::{ToolListing, ToolSource};
