use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Icon;
use crate::jsonrpc::members;

/// Who a program says it is (`Implementation` of the schema).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The version.
    pub version: String,
    /// The name for people. From 2025-06-18.
    pub title: Option<String>,
    /// What it is. From 2025-11-25.
    pub description: Option<String>,
    /// Pictures of it. From 2025-11-25.
    pub icons: Vec<Icon>,
    /// Its home page. From 2025-11-25.
    pub website_url: Option<String>,
}

/// What a client declared that bears on what it may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent capability of the schema")]
pub struct ClientCapabilities {
    /// It can show a form. `elicitation: {}` counts (2025-11-25, `client/elicitation`).
    pub elicitation_form: bool,
    /// It can open a page.
    pub elicitation_url: bool,
    /// It can ask its model.
    pub sampling: bool,
    /// It can let its model use tools while it is asked (`sampling.tools`, from 2025-11-25).
    pub sampling_tools: bool,
    /// It tells which directories it works in.
    pub roots: bool,
    /// It takes a task for an answer (extension `io.modelcontextprotocol/tasks`).
    pub tasks: bool,
}

pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

impl ClientCapabilities {
    /// Reads the `ClientCapabilities` object of any revision, which has passed the strict layer.
    /// Members not listed here are ignored.
    ///
    /// # Errors
    /// The name of the part that should have been an object.
    pub(crate) fn from_json(json: &str) -> Result<Self, &'static str> {
        let mut read = Self::default();
        for (key, value) in parts(json, "capabilities")? {
            match &*key {
                "elicitation" => {
                    for (mode, value) in parts(value, "elicitation")? {
                        match &*mode {
                            "form" => read.elicitation_form = parts(value, "form").is_ok(),
                            "url" => read.elicitation_url = parts(value, "url").is_ok(),
                            _ => {}
                        }
                    }
                    read.elicitation_form |= !read.elicitation_url;
                }
                "sampling" => {
                    read.sampling_tools = parts(value, "sampling")?
                        .any(|(name, value)| name == "tools" && value.starts_with('{'));
                    read.sampling = true;
                }
                "roots" => read.roots = parts(value, "roots").map(|_| true)?,
                "extensions" => {
                    read.tasks = parts(value, "extensions")?
                        .any(|(name, value)| name == TASKS_EXTENSION && value.starts_with('{'));
                }
                _ => {}
            }
        }
        Ok(read)
    }

    /// Whether everything in `required` is declared.
    #[must_use]
    pub const fn covers(self, required: Self) -> bool {
        (self.elicitation_form || !required.elicitation_form)
            && (self.elicitation_url || !required.elicitation_url)
            && (self.sampling || !required.sampling)
            && (self.sampling_tools || !required.sampling_tools)
            && (self.roots || !required.roots)
            && (self.tasks || !required.tasks)
    }

    /// What either declares.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            elicitation_form: self.elicitation_form || other.elicitation_form,
            elicitation_url: self.elicitation_url || other.elicitation_url,
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            roots: self.roots || other.roots,
            tasks: self.tasks || other.tasks,
        }
    }

    /// The same as the newest schema writes it.
    #[must_use]
    pub fn to_json(self) -> Value {
        let mut elicitation = Map::new();
        for (mode, declared) in [("form", self.elicitation_form), ("url", self.elicitation_url)] {
            if declared {
                elicitation.insert(mode.to_owned(), json!({}));
            }
        }
        let mut object = Map::new();
        if !elicitation.is_empty() {
            object.insert("elicitation".to_owned(), Value::Object(elicitation));
        }
        if self.sampling_tools {
            object.insert("sampling".to_owned(), json!({ "tools": {} }));
        } else if self.sampling {
            object.insert("sampling".to_owned(), json!({}));
        }
        if self.roots {
            object.insert("roots".to_owned(), json!({}));
        }
        if self.tasks {
            object.insert("extensions".to_owned(), json!({ TASKS_EXTENSION: {} }));
        }
        Value::Object(object)
    }
}

/// The members of an object; else its name.
fn parts<'a>(
    json: &'a str,
    name: &'static str,
) -> Result<impl Iterator<Item = (Cow<'a, str>, &'a str)> + use<'a>, &'static str> {
    if json.starts_with('{') { Ok(members(json)) } else { Err(name) }
}

/// How much of a request's log its client wants (RFC 5424 severities).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// News.
    Info,
    /// News worth a look.
    Notice,
    /// Something odd.
    Warning,
    /// Something failed.
    Error,
    /// A part failed.
    Critical,
    /// Act now.
    Alert,
    /// Unusable.
    Emergency,
}

impl LogLevel {
    /// The level of that name, if there is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "notice" => Self::Notice,
            "warning" => Self::Warning,
            "error" => Self::Error,
            "critical" => Self::Critical,
            "alert" => Self::Alert,
            "emergency" => Self::Emergency,
            _ => return None,
        })
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elicitation_without_modes_means_forms() {
        let read = |json: &str| ClientCapabilities::from_json(json);
        let none = ClientCapabilities::default();
        let form = ClientCapabilities { elicitation_form: true, ..none };
        for (json, expected) in [
            ("{}", none),
            (r#"{"experimental":{"x":{}}}"#, none),
            (r#"{"roots":{"listChanged":true}}"#, ClientCapabilities { roots: true, ..none }),
            (r#"{"elicitation":{}}"#, form),
            (r#"{"elicitation":{"form":{}}}"#, form),
            (r#"{"elicitation":{"url":{}}}"#, ClientCapabilities { elicitation_url: true, ..none }),
            (
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#,
                ClientCapabilities { elicitation_url: true, sampling: true, sampling_tools: true, ..form },
            ),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{}}}"#,
                ClientCapabilities { tasks: true, ..none },
            ),
        ] {
            assert_eq!(read(json), Ok(expected), "{json}");
            assert_eq!(read(&expected.to_json().to_string()), Ok(expected), "{json}");
        }
        for json in ["[]", "null", "7", r#"{"elicitation":3}"#, r#"{"roots":true}"#, r#"{"sampling":[]}"#] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
