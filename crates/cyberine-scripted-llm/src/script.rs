//! The script: ordered rules, the first that matches a request answers it.

mod fault;
mod pick;
mod rule;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use fault::{Escape, Fault, Program};
pub(crate) use pick::{Reply, ReplyUsage};
pub use rule::{JudgeKind, Pattern, Rule, Stop, Texts, Tokens, ToolUse, UsageFault, UsageSpec, When};

/// A script, as read from TOML.
///
/// ```
/// let script = cyberine_scripted_llm::Script::parse(r#"
///     seed = 7
///     [[rule]]
///     when = { model = "scripted/north", user = "(?i)capital of france" }
///     text = "Paris."
///     chunk = 3
///     [[rule]]
///     when = { call = 1 }
///     fault = { status = { code = 429, retry_after = "1" } }
/// "#)?;
/// assert_eq!(script.rules.len(), 2);
/// # Ok::<(), cyberine_scripted_llm::ScriptError>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// What variants of a text are chosen by, together with model and prompt.
    pub seed: u64,
    /// The key a request must carry (`Authorization: Bearer …` or `x-api-key`); unset means any.
    pub key: Option<String>,
    /// Names that `/v1/models` lists besides those the rules name.
    pub models: Vec<String>,
    /// The rules, in order.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script `{}` could not be read: check the path and its permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is not TOML, or not this TOML.
    #[error("the script is not valid: {detail}")]
    Parse {
        /// Where and what, as the parser put it.
        detail: String,
    },
    /// A rule contradicts itself.
    #[error("rule {index} (`{name}`) of the script {problem}")]
    Rule {
        /// Its place, counted from one.
        index: usize,
        /// Its name.
        name: String,
        /// What is wrong with it, and what would be right.
        problem: &'static str,
    },
}

/// The script that `cyberine demo` and a server without `--script` answer from.
const DEMO: &str = include_str!("demo.toml");

impl Script {
    /// Reads a script from TOML text.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Parse`] and [`ScriptError::Rule`].
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self =
            toml::from_str(text).map_err(|error| ScriptError::Parse { detail: error.to_string() })?;
        for (at, rule) in script.rules.iter().enumerate() {
            if let Some(problem) = rule.problem() {
                return Err(ScriptError::Rule { index: at + 1, name: rule.name.clone(), problem });
            }
        }
        Ok(script)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// Every [`ScriptError`].
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Read { path: path.to_path_buf(), source })?;
        Self::parse(&text)
    }

    /// The embedded demo script.
    ///
    /// # Panics
    ///
    /// Never in a build whose tests passed: one of them parses it.
    #[must_use]
    pub fn demo() -> Self {
        Self::parse(DEMO).expect("the embedded demo script is valid")
    }

    /// The model ids this script knows, sorted, each once.
    #[must_use]
    pub fn model_ids(&self) -> Vec<String> {
        let ruled = self.rules.iter().filter_map(|rule| rule.when.model.as_deref());
        let mut ids: Vec<String> =
            ruled.chain(self.models.iter().map(String::as_str)).map(scripted_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Whether a hold can be released by name: letters, digits, `-`, `_` and `.`.
pub(crate) fn is_hold_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// A model id that says what it is: `scripted/<name>`, whatever was asked for.
pub(crate) fn scripted_id(name: &str) -> String {
    format!("scripted/{}", name.strip_prefix("scripted/").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Script::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_demo_script_is_valid_and_names_only_scripted_models() {
        let ids = Script::demo().model_ids();
        assert!(ids.len() >= 3);
        assert!(ids.iter().all(|id| id.starts_with("scripted/")));
    }

    #[test]
    fn an_unknown_key_is_named() {
        assert!(refused("[[rule]]\ntxt = 'x'").contains("txt"));
        assert!(refused("[[rule]]\nwhen = { modle = 'x' }").contains("modle"));
        assert!(refused("[[rule]]\nfault = { status = { cod = 1 } }").contains("cod"));
    }

    #[test]
    fn a_rule_that_contradicts_itself_is_named_by_place() {
        let said = refused("[[rule]]\ntext = 'a'\n[[rule]]\nname = 'two'\ntext = 'a'\njson = { b = 1 }");
        assert!(said.contains("rule 2 (`two`)"), "{said}");
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        assert!(refused("[[rule]]\nwhen = { user = '(' }").contains("user"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let said = Script::load(Path::new("/nonexistent/script.toml")).unwrap_err().to_string();
        assert!(said.contains("/nonexistent/script.toml"));
    }
}
