use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::Icon;

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
    /// It takes a task for an answer (extension `io.modelcontextprotocol/tasks`).
    pub tasks: bool,
}

pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(Deserialize)]
struct Wire {
    elicitation: Option<Elicitation>,
    sampling: Option<Object>,
    #[serde(default)]
    extensions: Extensions,
}

#[derive(Deserialize)]
struct Elicitation {
    form: Option<Object>,
    url: Option<Object>,
}

#[derive(Deserialize, Default)]
struct Extensions {
    #[serde(rename = "io.modelcontextprotocol/tasks")]
    tasks: Option<Object>,
}

/// Any JSON object.
struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Object)
            }
        }
        input.deserialize_map(Members)
    }
}

impl ClientCapabilities {
    /// Reads the `ClientCapabilities` object of any revision. Members not listed here are ignored.
    ///
    /// # Errors
    /// What is wrong with it, for the client.
    pub fn from_json(json: &str) -> Result<Self, String> {
        // Derived structs also read arrays; a capability set is an object.
        if !json.starts_with('{') {
            return Err("not an object".to_owned());
        }
        if json == "{}" {
            return Ok(Self::default());
        }
        let wire: Wire = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let (form, url) = wire.elicitation.map_or((false, false), |elicitation| {
            let url = elicitation.url.is_some();
            (elicitation.form.is_some() || !url, url)
        });
        Ok(Self {
            elicitation_form: form,
            elicitation_url: url,
            sampling: wire.sampling.is_some(),
            tasks: wire.extensions.tasks.is_some(),
        })
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
        if self.sampling {
            object.insert("sampling".to_owned(), json!({}));
        }
        if self.tasks {
            object.insert("extensions".to_owned(), json!({ TASKS_EXTENSION: {} }));
        }
        Value::Object(object)
    }
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
            (r#"{"roots":{"listChanged":true},"experimental":{"x":{}}}"#, none),
            (r#"{"elicitation":{}}"#, form),
            (r#"{"elicitation":{"form":{}}}"#, form),
            (r#"{"elicitation":{"url":{}}}"#, ClientCapabilities { elicitation_url: true, ..none }),
            (
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#,
                ClientCapabilities { elicitation_url: true, sampling: true, ..form },
            ),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{}}}"#,
                ClientCapabilities { tasks: true, ..none },
            ),
        ] {
            assert_eq!(read(json), Ok(expected), "{json}");
            assert_eq!(read(&expected.to_json().to_string()), Ok(expected), "{json}");
        }
        for json in ["[]", "null", "7", r#"{"elicitation":3}"#, r#"{"sampling":[]}"#] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
