//! A configuration file as TOML: its sections, and what to say of a mistake in one.

use std::ops::Range;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::ConfigError;
use crate::config::source::ConfigSource;

/// A parsed file that still knows where everything stands.
pub(super) struct Document<'a> {
    source: &'a ConfigSource,
    root: DeTable<'a>,
}

/// A value of the file.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Document<'a> {
    pub(super) fn parse(source: &'a ConfigSource) -> Result<Self, ConfigError> {
        match DeTable::parse(source.text()) {
            Ok(root) => Ok(Self { source, root: root.into_inner() }),
            Err(error) => {
                let at = place(source, error.span().map_or(0, |span| span.start));
                Err(ConfigError::Invalid { at, message: error.message().to_owned() })
            }
        }
    }

    /// Refuses every section that is none of `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ConfigError> {
        match self.root.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some((key, _)) => Err(unknown(self.source, key.span().start, key.get_ref(), "the file", known)),
        }
    }

    /// The sections there are, in the order of their names.
    pub(super) fn sections(&self) -> Vec<String> {
        let mut names: Vec<String> = self.root.keys().map(|key| key.get_ref().to_string()).collect();
        names.sort_unstable();
        names
    }

    /// The keys of a section with their values, spelled as in the file and in its order.
    pub(super) fn entries(&self, section: &str) -> Vec<(String, String)> {
        self.root.get(section).map(|value| self.entries_of(value)).unwrap_or_default()
    }

    /// The keys of a table with their values, spelled as in the file and in its order; a key of a
    /// table within it is dotted.
    pub(super) fn entries_of(&self, value: &Value<'a>) -> Vec<(String, String)> {
        let mut entries: Vec<_> =
            value.get_ref().as_table().into_iter().flat_map(|table| table.iter()).collect();
        entries.sort_unstable_by_key(|(key, _)| key.span().start);
        let told = entries.into_iter().flat_map(|(key, value)| {
            let key = key.get_ref().to_string();
            if value.get_ref().is_table() {
                let within = self.entries_of(value).into_iter();
                within.map(|(name, value)| (format!("{key}.{name}"), value)).collect()
            } else {
                vec![(key, self.source.text().get(value.span()).unwrap_or_default().to_owned())]
            }
        });
        told.collect()
    }

    /// Where a key of a section stands.
    pub(super) fn place_in(&self, section: &str, key: &str) -> Option<Place> {
        self.place_of(self.root.get(section)?, key)
    }

    /// Where the key stands that `path` leads to, or else the deepest table on the way to it that is
    /// there; the file's beginning where there is none.
    pub(super) fn place_at(&self, path: &[&str]) -> Place {
        let mut table = Some(&self.root);
        let mut start = 0;
        for name in path {
            let Some((key, value)) =
                table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name))
            else {
                break;
            };
            start = key.span().start;
            table = value.get_ref().as_table();
        }
        place(self.source, start)
    }

    /// Where a section stands.
    pub(super) fn place_of_root(&self, section: &str) -> Option<Place> {
        let (key, _) = self.root.iter().find(|(key, _)| key.get_ref() == section)?;
        Some(place(self.source, key.span().start))
    }

    /// One section, in the shape of `T`; `None` where the file has none of that name.
    pub(super) fn section<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        self.root.get(name).map(|value| self.read(value, name)).transpose()
    }

    /// The tables of a section of tables, by name.
    pub(super) fn tables(&self, name: &str) -> Result<Vec<(&str, &Value<'a>, Place)>, ConfigError> {
        let Some(section) = self.root.get(name) else { return Ok(Vec::new()) };
        let Some(table) = section.get_ref().as_table() else {
            let message = format!("`{name}` must be a table of tables, such as `[{name}.local]`");
            return Err(ConfigError::Invalid { at: place(self.source, section.span().start), message });
        };
        let named = table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), value, place(self.source, key.span().start)));
        Ok(named.collect())
    }

    /// `value` in the shape of `T`; a mistake is told with its place and the nearest right word.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        value: &Value<'a>,
        section: &str,
    ) -> Result<T, ConfigError> {
        T::deserialize(toml::de::ValueDeserializer::from(value.clone()))
            .map_err(|error| self.diagnose(value, section, &error))
    }

    /// Where a key of the table `value` stands.
    pub(super) fn place_of(&self, value: &Value<'a>, key: &str) -> Option<Place> {
        let (key, _) = value.get_ref().as_table()?.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(place(self.source, key.span().start))
    }

    fn diagnose(&self, value: &Value<'a>, section: &str, error: &toml::de::Error) -> ConfigError {
        let span = error.span().filter(|span| !span.is_empty()).unwrap_or_else(|| value.span());
        let Some(word) = UnknownWord::of(error.message()) else {
            let section = table_at(value, span.start, section).unwrap_or_else(|| section.to_owned());
            let message = format!("[{section}]: {}", error.message());
            return ConfigError::Invalid { at: place(self.source, span.start), message };
        };
        // An enum buffers its table before it looks at it, and forgets where the word stood.
        let start = locate(value, &word.found, &span).map_or(span.start, |span| span.start);
        let section = &table_at(value, start, section).unwrap_or_else(|| section.to_owned());
        let known: Vec<&str> = word.known.iter().map(String::as_str).collect();
        match word.kind {
            Word::Key => unknown(self.source, start, &word.found, &format!("[{section}]"), &known),
            Word::Value => ConfigError::Invalid {
                at: place(self.source, start),
                message: format!(
                    "[{section}]: `{}` is not a known value{}",
                    word.found,
                    advice(&word.found, &known)
                ),
            },
        }
    }
}

/// A place in a file, for people and editors: `path:line:column`, both from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

fn place(source: &ConfigSource, offset: usize) -> Place {
    let before = source.text().get(..offset).unwrap_or(source.text());
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Place {
        path: source.path().to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

fn unknown(source: &ConfigSource, offset: usize, key: &str, within: &str, known: &[&str]) -> ConfigError {
    ConfigError::UnknownKey {
        at: place(source, offset),
        key: key.to_owned(),
        within: within.to_owned(),
        advice: advice(key, known),
    }
}

/// What people call the key that they want to pay with.
const KEYS: [&str; 5] = ["api_key", "apikey", "key", "token", "api_token"];

/// `; did you mean …` where one word is near, else the words there are.
pub(super) fn advice(found: &str, known: &[&str]) -> String {
    let lower = found.to_ascii_lowercase();
    if KEYS.contains(&lower.as_str()) && known.contains(&"api_key_env") {
        return "; a key never stands in a file: name the variable that holds it in `api_key_env`".to_owned();
    }
    let near = known.iter().map(|word| (strsim::damerau_levenshtein(&lower, word), word)).min();
    match near {
        Some((distance, word)) if distance <= found.chars().count().div_ceil(3).max(2) => {
            format!("; did you mean `{word}`?")
        }
        _ => format!(
            "; known here: {}",
            known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

enum Word {
    Key,
    Value,
}

/// What serde says of a word it does not know. The trait hands over text only, so the text is
/// taken apart again; the tests below fail should its form ever change.
struct UnknownWord {
    kind: Word,
    found: String,
    known: Vec<String>,
}

impl UnknownWord {
    fn of(message: &str) -> Option<Self> {
        let (kind, rest) = match message.strip_prefix("unknown field ") {
            Some(rest) => (Word::Key, rest),
            None => (Word::Value, message.strip_prefix("unknown variant ")?),
        };
        let mut words = rest.split('`').skip(1).step_by(2).map(str::to_owned);
        Some(Self { kind, found: words.next()?, known: words.collect() })
    }
}

/// The name of the table in which the key or the plain value at `start` stands.
fn table_at(value: &Value<'_>, start: usize, name: &str) -> Option<String> {
    value.get_ref().as_table()?.iter().find_map(|(key, value)| {
        let holds = |span: Range<usize>| span.contains(&start);
        let is_table = value.get_ref().is_table();
        if !is_table && (holds(key.span()) || holds(value.span())) {
            return Some(name.to_owned());
        }
        table_at(value, start, &format!("{name}.{}", key.get_ref()))
    })
}

/// Where `word` stands as a key or a value within `value`, `within` first.
fn locate(value: &Value<'_>, word: &str, within: &Range<usize>) -> Option<Range<usize>> {
    let mut found = Vec::new();
    collect(value, word, &mut found);
    let inside = found.iter().find(|span| within.start <= span.start && span.end <= within.end);
    inside.or(found.first()).cloned()
}

fn collect(value: &Value<'_>, word: &str, found: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                if key.get_ref() == word {
                    found.push(key.span());
                }
                collect(value, word, found);
            }
        }
        DeValue::Array(array) => array.iter().for_each(|value| collect(value, word, found)),
        DeValue::String(text) if text == word => found.push(value.span()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
    enum Tagged {
        Plain { model: String, color: Option<String> },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Nested {
        amount: Option<f64>,
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        minimum: u8,
    }

    fn fault<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        let source = ConfigSource::of("c.toml", text);
        let document = match Document::parse(&source) {
            Ok(document) => document,
            Err(error) => return error.to_string(),
        };
        document.section::<T>("s").unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_key_is_told_with_its_place_and_the_nearest_right_one_at_every_level() {
        let check = |message: String, want: &str| assert_eq!(message, want);
        check(
            fault::<Nested>("[s]\namuont = 1"),
            "c.toml:2:1: unknown key `amuont` in [s]; did you mean `amount`?",
        );
        check(
            fault::<Nested>("[s]\ninner = { minimum = 1, minimun = 2 }"),
            "c.toml:2:24: unknown key `minimun` in [s.inner]; did you mean `minimum`?",
        );
        check(
            fault::<Nested>("# é\n[s.inner]\n  colour = 1"),
            "c.toml:3:3: unknown key `colour` in [s.inner]; known here: `minimum`",
        );
        check(
            fault::<Tagged>("[s]\nmodel = \"m\"\nkind = \"plain\"\nColour = \"x\""),
            "c.toml:4:1: unknown key `Colour` in [s]; did you mean `color`?",
        );
    }

    #[test]
    fn a_wrong_value_is_told_with_its_place() {
        let tagged = fault::<Tagged>("[s]\nmodel = \"m\"\nkind = \"plane\"");
        assert_eq!(tagged, "c.toml:3:8: [s]: `plane` is not a known value; did you mean `plain`?");
        let wrong_type = fault::<Nested>("[s]\namount = \"much\"");
        assert!(wrong_type.starts_with("c.toml:2:10: [s]: invalid type"), "{wrong_type}");
        let nested = fault::<Nested>("[s.inner]\nminimum = 300");
        assert!(nested.starts_with("c.toml:2:11: [s.inner]: invalid value"), "{nested}");
        let missing = fault::<Tagged>("[s]\nkind = \"plain\"");
        assert!(missing.starts_with("c.toml:1:1: [s]: missing field `model`"), "{missing}");
        let syntax = fault::<Nested>("[s]\namount = = 1");
        assert!(syntax.starts_with("c.toml:2:10: "), "{syntax}");
        let twice = fault::<Nested>("[s]\namount = 1\namount = 2");
        assert!(twice.starts_with("c.toml:3:1: "), "{twice}");
    }

    #[test]
    fn a_wrong_section_is_told() {
        let source = ConfigSource::of("c.toml", "[budgte]\nx = 1");
        let error = Document::parse(&source).unwrap().only(&["budget", "run"]).unwrap_err();
        assert_eq!(error.to_string(), "c.toml:1:2: unknown key `budgte` in the file; did you mean `budget`?");
    }
}
