use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Icon;

/// One tool of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tool {
    /// The name: 1 to 64 characters of `[A-Za-z0-9_.-]`.
    pub name: String,
    /// The name for people. From 2025-06-18.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of the arguments, `type: object` at its root.
    pub input_schema: Value,
    /// JSON Schema of the structured result. From 2025-06-18; before 2026-07-28 only where its
    /// root is `type: object`.
    pub output_schema: Option<Value>,
    /// Hints. From 2025-03-26.
    pub annotations: Option<ToolAnnotations>,
    /// Pictures of it. From 2025-11-25.
    pub icons: Vec<Icon>,
    /// `_meta`. From 2025-06-18.
    pub meta: Map<String, Value>,
}

/// One tool of a list, as whoever keeps it lends it out. The members are those of [`Tool`], the
/// schemas as the text of one line.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool<'a> {
    /// The name.
    pub name: &'a str,
    /// The name for people.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
    /// JSON Schema of the arguments.
    pub input_schema: Cow<'a, str>,
    /// JSON Schema of the structured result.
    pub output_schema: Option<ListedSchema<'a>>,
    /// Hints.
    pub annotations: Option<ToolAnnotations>,
    /// Pictures of it.
    pub icons: &'a [Icon],
    /// `_meta`, where it has one.
    pub meta: Option<&'a Map<String, Value>>,
}

/// The schema of a structured result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSchema<'a> {
    /// The schema, as JSON on one line.
    pub text: Cow<'a, str>,
    /// Whether its root is `type: object`.
    pub is_object: bool,
}

impl<'a> From<&'a Tool> for ListedTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        let listed = |schema: &Value| ListedSchema {
            text: Cow::Owned(schema.to_string()),
            is_object: schema["type"] == "object",
        };
        Self {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            input_schema: Cow::Owned(tool.input_schema.to_string()),
            output_schema: tool.output_schema.as_ref().map(listed),
            annotations: tool.annotations.clone(),
            icons: &tool.icons,
            meta: Some(&tool.meta),
        }
    }
}

/// Hints about a tool. Hosts do not trust them. An absent hint has the schema's default: it may
/// change and destroy things, is not idempotent, and reaches the open world.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy what is there.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it twice is calling it once.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches beyond this machine.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}
