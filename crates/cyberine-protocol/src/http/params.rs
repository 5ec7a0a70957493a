//! Arguments of tools that are mirrored into headers (2026-07-28, `server/tools`, "x-mcp-header").

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::PARAM_PREFIX;
use super::head::{Field, HttpHead};
use super::value::{decode_value, encode_value};
use crate::jsonrpc::{excerpt, integral, members, text};

const ANNOTATION: &str = "x-mcp-header";

/// Members of a schema whose values are no schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];

/// Members of a schema that hold schemas by names.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Which arguments of a tool are mirrored, found once in its input schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderParams {
    params: Vec<HeaderParam>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HeaderParam {
    /// What follows `Mcp-Param-`.
    name: String,
    /// The names of the properties on the way to the argument.
    path: Vec<String>,
}

/// An annotation that is not allowed. A client leaves such a tool out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderParamError {
    /// It is no name for a header.
    #[error("`x-mcp-header` must be a name of letters, digits and `!#$%&'*+-.^_`|~`, not `{0}`")]
    Name(String),
    /// Two of them have one name.
    #[error("`x-mcp-header` has the name `{0}` twice")]
    Twice(String),
    /// What it is at cannot be reached through `properties` alone.
    #[error("`x-mcp-header` stands where no argument can be found by its path alone")]
    Place,
    /// What it is at is not a string, an integer or a boolean.
    #[error("`x-mcp-header` `{0}` is not at a string, an integer or a boolean")]
    Type(String),
}

impl HeaderParams {
    /// Finds them in an input schema.
    ///
    /// # Errors
    /// The first annotation that is not allowed.
    pub fn of_schema(schema: &Value) -> Result<Self, HeaderParamError> {
        let mut found = Self::default();
        found.look(schema, Some(&mut Vec::new()))?;
        Ok(found)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Looks through a schema. `path` is how it is reached, where that is through `properties` alone.
    fn look(&mut self, schema: &Value, mut path: Option<&mut Vec<String>>) -> Result<(), HeaderParamError> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => return items.iter().try_for_each(|item| self.look(item, None)),
            _ => return Ok(()),
        };
        if let Some(name) = members.get(ANNOTATION) {
            self.add(name, members, path.as_deref().map_or(&[], Vec::as_slice))?;
        }
        for (key, value) in members.iter().filter(|(key, _)| !DATA.contains(&key.as_str())) {
            match value {
                Value::Object(named) if NAMED.contains(&key.as_str()) => {
                    for (name, schema) in named {
                        match path.as_deref_mut().filter(|_| key == "properties") {
                            Some(path) => {
                                path.push(name.clone());
                                self.look(schema, Some(path))?;
                                path.pop();
                            }
                            None => self.look(schema, None)?,
                        }
                    }
                }
                _ => self.look(value, None)?,
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: &Value,
        schema: &Map<String, Value>,
        path: &[String],
    ) -> Result<(), HeaderParamError> {
        let token = |name: &&str| !name.is_empty() && name.bytes().all(is_token);
        let Some(name) = name.as_str().filter(token) else {
            let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
            return Err(HeaderParamError::Name(excerpt(&name).to_owned()));
        };
        if path.is_empty() {
            return Err(HeaderParamError::Place);
        }
        if !is_primitive(schema.get("type")) {
            return Err(HeaderParamError::Type(excerpt(name).to_owned()));
        }
        if self.params.iter().any(|param| param.name.eq_ignore_ascii_case(name)) {
            return Err(HeaderParamError::Twice(excerpt(name).to_owned()));
        }
        self.params.push(HeaderParam { name: name.to_owned(), path: path.to_vec() });
        Ok(())
    }

    /// Checks the headers of a call against its arguments, given as they were written.
    pub(super) fn check(&self, head: &HttpHead<'_>, arguments: Option<&str>) -> Result<(), String> {
        for param in &self.params {
            let wrong = match (head.param(&param.name), param.argument(arguments)) {
                (Field::Absent, None) => continue,
                // Only what can be mirrored must be. Anything else is refused as an argument.
                (Field::Absent, Some(body)) if body.starts_with(['{', '[']) => continue,
                (Field::Absent, Some(_)) => "is missing",
                (Field::Many, _) => "occurs more than once",
                (Field::One(_), None) => "is there, and its argument is not",
                (Field::One(said), Some(body)) => match decode_value(said) {
                    Some(said) if is_same(&said, body) => continue,
                    Some(_) => "and its argument differ",
                    None => "holds no text: it has characters a header must not have, or bad Base64",
                },
            };
            return Err(format!("the header `{PARAM_PREFIX}{}` {wrong}", excerpt(&param.name)));
        }
        Ok(())
    }

    /// The headers that mirror the arguments of a call. Arguments that are absent, `null`, or neither
    /// text, a number nor a truth value have none.
    #[must_use]
    pub fn mirror(&self, arguments: &Map<String, Value>) -> Vec<(String, String)> {
        let mirrored = self.params.iter().filter_map(|param| {
            let (last, way) = param.path.split_last()?;
            let holder = way.iter().try_fold(arguments, |object, name| object.get(name)?.as_object())?;
            let value = match holder.get(last)? {
                Value::String(text) => encode_value(text).into_owned(),
                Value::Bool(truth) => truth.to_string(),
                Value::Number(number) => {
                    let written = number.to_string();
                    integral(&written).map_or(written, String::from)
                }
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((format!("{PARAM_PREFIX}{}", param.name), value))
        });
        mirrored.collect()
    }
}

impl HeaderParam {
    /// The argument as it was written; `null` counts as none.
    fn argument<'a>(&self, arguments: Option<&'a str>) -> Option<&'a str> {
        let find =
            |object, name: &String| members(object).find(|(key, _)| key == name).map(|(_, value)| value);
        let value = self.path.iter().try_fold(arguments?, find)?;
        Some(value).filter(|value| *value != "null")
    }
}

/// Whether a header says what an argument says, by the argument's own type.
fn is_same(said: &str, body: &str) -> bool {
    if body.starts_with('"') {
        return text(body).is_some_and(|body: Cow<'_, str>| body == said);
    }
    match (integral(said), integral(body)) {
        (Some(said), Some(body)) => said == body,
        // Of what has parts, no header can say anything.
        _ => said == body && !body.starts_with(['{', '[']),
    }
}

/// The characters of a header's name (RFC 9110, section 5.6.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// Whether a `type` is one that can be mirrored; `null` beside it is fine.
fn is_primitive(kind: Option<&Value>) -> bool {
    let is = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            let mut others = kinds.iter().filter(|kind| *kind != "null");
            others.next().is_some_and(is) && others.next().is_none()
        }
        Some(kind) => is(kind),
        None => false,
    }
}
