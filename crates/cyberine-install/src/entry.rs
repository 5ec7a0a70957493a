//! What is registered: how a host starts the server.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::{EntryError, Host};

/// The name the server is registered under.
pub const NAME: &str = "cyberine";
/// The program of the server, without an ending.
pub const SERVER: &str = "cyberine-mcp";

/// The variables an entry may set: places, and never a credential.
const VARIABLES: [&str; 2] = ["CYBERINE_HOME", "CYBERINE_PROJECT"];

/// How a host starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Entry {
    /// An entry that starts `command`, a path, without arguments.
    ///
    /// # Errors
    ///
    /// [`EntryError::Expanded`] for a path that hosts would read as a variable.
    pub fn new(command: impl Into<String>) -> Result<Self, EntryError> {
        Ok(Self { command: literal(command.into())?, args: Vec::new(), env: BTreeMap::new() })
    }

    /// The same entry with arguments.
    ///
    /// # Errors
    ///
    /// As [`Entry::new`].
    pub fn with_args(mut self, args: impl IntoIterator<Item = String>) -> Result<Self, EntryError> {
        self.args = args.into_iter().map(literal).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The same entry with `CYBERINE_HOME` or `CYBERINE_PROJECT` set.
    ///
    /// # Errors
    ///
    /// [`EntryError::Variable`] for any other variable, and as [`Entry::new`].
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Result<Self, EntryError> {
        if !VARIABLES.contains(&name) {
            return Err(EntryError::Variable { name: name.to_owned() });
        }
        self.env.insert(name.to_owned(), literal(value.into())?);
        Ok(self)
    }

    /// The program it starts.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The arguments of that program.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The variables it sets, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether it starts our server, wherever that lies.
    #[must_use]
    pub(crate) fn is_ours(&self) -> bool {
        let program = self.command.rsplit(['/', '\\']).next().unwrap_or_default();
        program.strip_suffix(".exe").unwrap_or(program) == SERVER
    }

    /// The entry that `value` is, as far as its command, arguments and variables go; `None` for
    /// what starts no program.
    pub(crate) fn of_json(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let command = text(value.get("command")?)?;
        let args = match value.get("args") {
            Some(args) => args.as_array()?.iter().map(text).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        let env = match value.get("env") {
            Some(Value::Null) | None => BTreeMap::new(),
            Some(env) => {
                let named = |(name, value): (&String, &Value)| Some((name.clone(), text(value)?));
                env.as_object()?.iter().map(named).collect::<Option<_>>()?
            }
        };
        Some(Self { command, args, env })
    }

    /// What stands for it in the JSON of `host`.
    pub(crate) fn for_json(&self, host: Host) -> impl Serialize {
        Shown {
            r#type: host.names_transport().then_some("stdio"),
            command: &self.command,
            args: (host.wants_arguments() || !self.args.is_empty()).then_some(&self.args),
            env: (!self.env.is_empty()).then_some(&self.env),
        }
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<&'a BTreeMap<String, String>>,
}

/// Hosts put variables in where a text says `$NAME` or `${NAME}`; such a text would not arrive.
fn literal(text: String) -> Result<String, EntryError> {
    if text.contains('$') { Err(EntryError::Expanded { text }) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_sets_places_only_and_says_what_it_means() {
        let entry = Entry::new("/bin/cyberine-mcp").unwrap();
        let token = entry.clone().with_variable("CYBERINE_MCP_AUTH_TOKEN", "t");
        assert!(matches!(token, Err(EntryError::Variable { .. })), "{token:?}");
        assert!(entry.clone().with_variable("CYBERINE_HOME", "/h").is_ok());
        assert!(matches!(Entry::new("/a$b/cyberine-mcp"), Err(EntryError::Expanded { .. })));
        assert!(entry.with_args(["${TOKEN}".to_owned()]).is_err());
    }

    #[test]
    fn ours_is_what_starts_our_server() {
        for (command, ours) in [
            ("/usr/bin/cyberine-mcp", true),
            ("cyberine-mcp", true),
            (r"C:\bin\cyberine-mcp.exe", true),
            ("/usr/bin/not-cyberine-mcp", false),
            ("npx", false),
        ] {
            assert_eq!(Entry::new(command).unwrap().is_ours(), ours, "{command}");
        }
    }
}
