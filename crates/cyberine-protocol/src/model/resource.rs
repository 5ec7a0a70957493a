use serde_json::{Map, Value};

use super::{Annotations, CacheHint, Icon, ResourceContents};

/// One resource of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The name for people. From 2025-06-18.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures of it. From 2025-11-25.
    pub icons: Vec<Icon>,
    /// `_meta`. From 2025-06-18.
    pub meta: Map<String, Value>,
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceTemplate {
    /// The template (RFC 6570).
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The name for people. From 2025-06-18.
    pub title: Option<String>,
    /// What its members are.
    pub description: Option<String>,
    /// The media type all of them share.
    pub mime_type: Option<String>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures of it. From 2025-11-25.
    pub icons: Vec<Icon>,
    /// `_meta`. From 2025-06-18.
    pub meta: Map<String, Value>,
}

/// One page of resources.
#[derive(Debug, Clone, PartialEq)]
pub struct ListResourcesResult {
    /// The page.
    pub resources: Vec<Resource>,
    /// Where the next page begins; `None` at the end.
    pub next_cursor: Option<String>,
    /// How long it may be kept.
    pub cache: CacheHint,
}

/// One page of templates.
#[derive(Debug, Clone, PartialEq)]
pub struct ListResourceTemplatesResult {
    /// The page.
    pub templates: Vec<ResourceTemplate>,
    /// Where the next page begins; `None` at the end.
    pub next_cursor: Option<String>,
    /// How long it may be kept.
    pub cache: CacheHint,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadResourceResult {
    /// Its parts, never none.
    pub contents: Vec<ResourceContents>,
    /// How long it may be kept.
    pub cache: CacheHint,
}
