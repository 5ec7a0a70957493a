use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::ContentBlock;

/// How long a list or a read may be kept. Goes out in the stateless era only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// Milliseconds; zero means not at all.
    pub ttl_ms: u64,
    /// By whom.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Not to be kept.
    pub const NONE: Self = Self { ttl_ms: 0, scope: CacheScope::Private };
}

/// Who may keep a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// Anyone: it is the same for every caller.
    Public,
    /// Only who asked.
    Private,
}

/// The result of a call that is over.
#[derive(Debug, Clone)]
pub struct CallToolResult {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// The same for programs. From 2025-06-18; before 2026-07-28 only where it is an object.
    pub structured: Option<Box<RawValue>>,
    /// Whether the work failed.
    pub is_error: bool,
    /// `_meta`, beside what the server adds.
    pub meta: Map<String, Value>,
}

impl CallToolResult {
    /// A result of text alone.
    #[must_use]
    pub fn text(text: impl Into<String>, is_error: bool) -> Self {
        Self { content: vec![ContentBlock::text(text)], structured: None, is_error, meta: Map::new() }
    }

    /// A structured result, with the same JSON as text for clients and models that read text.
    #[must_use]
    pub fn structured(value: &Value, is_error: bool) -> Self {
        // A `Value` has only string keys, the one thing that could fail.
        let structured = to_raw_value(value).ok();
        let text = structured.as_ref().map_or_else(String::new, |raw| raw.get().to_owned());
        Self { content: vec![ContentBlock::text(text)], structured, is_error, meta: Map::new() }
    }
}
