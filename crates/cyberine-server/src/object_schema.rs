//! The schemas of tools, kept as text.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A JSON Schema (2020-12) whose root is `type: object`, kept as its text: a list of tools goes out
/// without being parsed or built, and what checks a value parses it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSchema {
    properties: Cow<'static, str>,
    rest: Cow<'static, str>,
}

/// An argument that a wrapper of a tool set takes beside those of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraArgument {
    /// The name, of characters that JSON does not escape.
    pub name: &'static str,
    /// Its JSON Schema, on one line.
    pub schema: &'static str,
}

impl ObjectSchema {
    /// A schema with these `properties` and the members `rest` beside them and `type`. Both are the
    /// inside of a JSON object, without its braces, on one line; either may be empty.
    ///
    /// ```
    /// use cyberine_server::ObjectSchema;
    ///
    /// let schema = ObjectSchema::new(r#""n":{"type":"integer"}"#, r#""required":["n"]"#);
    /// assert_eq!(schema.to_string(), r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
    /// ```
    #[must_use]
    pub const fn new(properties: &'static str, rest: &'static str) -> Self {
        Self { properties: Cow::Borrowed(properties), rest: Cow::Borrowed(rest) }
    }

    /// Whether the schema says no more than that it means an object.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.rest.is_empty()
    }

    /// The schema as a value.
    ///
    /// # Errors
    /// Where its text is no JSON.
    pub fn value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.to_string())
    }

    /// The text of the schema, with `extra` among its properties.
    pub(crate) fn text_with(&self, extra: &[ExtraArgument]) -> String {
        let mut text = String::with_capacity(self.properties.len() + self.rest.len() + 256);
        text.push_str("{\"type\":\"object\",\"properties\":{");
        text.push_str(&self.properties);
        for (at, ExtraArgument { name, schema }) in extra.iter().enumerate() {
            let comma = if at == 0 && self.properties.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}\"{name}\":{schema}");
        }
        text.push('}');
        if !self.rest.is_empty() {
            text.push(',');
            text.push_str(&self.rest);
        }
        text.push('}');
        text
    }
}

/// The text of the schema.
impl std::fmt::Display for ObjectSchema {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text_with(&[]))
    }
}

/// The schema that a value is: its `properties`, and its other members but `type`, which is
/// `object` whatever the value says.
impl From<Value> for ObjectSchema {
    fn from(schema: Value) -> Self {
        let Value::Object(mut rest) = schema else { return Self::new("", "") };
        let properties = match rest.remove("properties") {
            Some(Value::Object(properties)) => inside(&properties),
            _ => String::new(),
        };
        rest.remove("type");
        Self { properties: properties.into(), rest: inside(&rest).into() }
    }
}

/// The members of an object, without its braces.
fn inside(members: &Map<String, Value>) -> String {
    let member = |(name, value): (&String, &Value)| format!("{}:{value}", Value::from(name.as_str()));
    members.iter().map(member).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_and_its_text_are_one_schema() {
        for (value, whole) in [
            (json!({}), json!({ "type": "object", "properties": {} })),
            (
                json!({ "type": "object", "additionalProperties": false }),
                json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            ),
            (
                json!({ "properties": { "\"a": { "const": "}\n" } }, "required": ["\"a"] }),
                json!({ "type": "object", "properties": { "\"a": { "const": "}\n" } }, "required": ["\"a"] }),
            ),
        ] {
            let schema = ObjectSchema::from(value);
            assert_eq!(schema.value().unwrap(), whole);
            assert!(!schema.to_string().contains('\n'));
        }
        assert!(ObjectSchema::new("\"a\"", "").value().is_err());
    }

    #[test]
    fn further_arguments_stand_among_the_properties() {
        let extra = |name| ExtraArgument { name, schema: "true" };
        for (schema, expected) in [
            (ObjectSchema::new("", ""), r#"{"type":"object","properties":{"x":true,"y":true}}"#),
            (
                ObjectSchema::new(r#""a":{}"#, r#""required":["a"]"#),
                r#"{"type":"object","properties":{"a":{},"x":true,"y":true},"required":["a"]}"#,
            ),
        ] {
            assert_eq!(schema.text_with(&[extra("x"), extra("y")]), expected);
        }
    }
}
