use serde::Serialize;
use serde_json::{Map, Value};

/// A picture of a tool, a resource or a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes it suits, `48x48` or `any`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
}

/// Who something is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints on how to use a piece of content or a resource.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Annotations {
    /// Whom it is for.
    pub audience: Vec<Role>,
    /// 0 (least) to 1 (most important).
    pub priority: Option<f64>,
    /// When it changed last, RFC 3339. From 2025-06-18.
    pub last_modified: Option<String>,
}

/// One piece of a result that a model reads.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Hints.
        annotations: Option<Annotations>,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
        /// Hints.
        annotations: Option<Annotations>,
    },
    /// Sound. From 2025-03-26; a line of text before.
    Audio {
        /// Base64.
        data: String,
        /// Its media type.
        mime_type: String,
        /// Hints.
        annotations: Option<Annotations>,
    },
    /// A pointer to a resource. From 2025-06-18; a line of text before.
    ResourceLink(super::Resource),
    /// A resource's contents.
    Embedded {
        /// The contents.
        contents: ResourceContents,
        /// Hints.
        annotations: Option<Annotations>,
    },
}

impl ContentBlock {
    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), annotations: None }
    }
}

/// What a resource, or a part of it, holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// Its URI.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The contents.
    pub body: ResourceBody,
    /// `_meta`. From 2025-06-18.
    pub meta: Map<String, Value>,
}

/// Text, or bytes in Base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Base64.
    Blob(String),
}
