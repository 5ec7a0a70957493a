use serde_json::{Map, Value};

use super::{CacheHint, ContentBlock, Icon, Role};

/// One prompt of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// The name for programs.
    pub name: String,
    /// The name for people. From 2025-06-18.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
    /// Pictures of it. From 2025-11-25.
    pub icons: Vec<Icon>,
    /// `_meta`. From 2025-06-18.
    pub meta: Map<String, Value>,
}

/// One argument of a prompt. Its value is text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptArgument {
    /// The name for programs.
    pub name: String,
    /// The name for people. From 2025-06-18.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether the prompt cannot be had without it.
    pub required: bool,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}

/// One page of prompts.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPromptsResult {
    /// The page.
    pub prompts: Vec<Prompt>,
    /// Where the next page begins; `None` at the end.
    pub next_cursor: Option<String>,
    /// How long it may be kept.
    pub cache: CacheHint,
}

/// A prompt with its arguments filled in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GetPromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// Its messages, in order.
    pub messages: Vec<PromptMessage>,
}
