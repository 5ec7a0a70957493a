//! JSON Schema: compiled once, checked often, never fetched.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// The deepest nesting of a schema.
const DEPTH_LIMIT: usize = 64;
/// The most values in a schema, counted at every depth.
const SIZE_LIMIT: usize = 20_000;
/// How many violations are told at once.
const TOLD: usize = 5;

/// A compiled JSON Schema. Without `$schema` it is 2020-12.
///
/// Patterns run on an engine that is linear in the text, so `(a+)+$` costs no more than any
/// other; and a violation never shows the value, which may be a secret.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too large to be checked in bounded time.
    #[error("the schema nests deeper than {DEPTH_LIMIT} levels or has more than {SIZE_LIMIT} values")]
    TooLarge,
    /// It is invalid, of an unknown dialect, or refers to what is not part of it. References are
    /// never fetched (2026-07-28, `server/tools`, "JSON Schema").
    #[error("the schema cannot be compiled: {0}")]
    Invalid(String),
}

/// Why a value does not satisfy a schema: one fragment per violation, each naming the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct Violations(Vec<String>);

impl Violations {
    /// The fragments, a handful at most.
    #[must_use]
    pub fn fragments(&self) -> &[String] {
        &self.0
    }
}

impl Schema {
    /// Compiles a schema given as text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let schema = serde_json::from_str(text).map_err(|error| SchemaError::Invalid(error.to_string()))?;
        Self::compile(&schema)
    }

    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut budget = SIZE_LIMIT;
        if !within(schema, DEPTH_LIMIT, &mut budget) {
            return Err(SchemaError::TooLarge);
        }
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20))
            .build(schema)
            .map_err(|error| SchemaError::Invalid(error.to_string()))?;
        Ok(Self { validator })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The first few violations.
    pub fn check(&self, value: &Value) -> Result<(), Violations> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        Err(Violations(self.validator.iter_errors(value).take(TOLD).map(|error| fragment(&error)).collect()))
    }
}

fn within(value: &Value, depth: usize, budget: &mut usize) -> bool {
    let (Some(depth), Some(left)) = (depth.checked_sub(1), budget.checked_sub(1)) else { return false };
    *budget = left;
    match value {
        Value::Array(items) => items.iter().all(|item| within(item, depth, budget)),
        Value::Object(members) => members.values().all(|member| within(member, depth, budget)),
        _ => true,
    }
}

fn fragment(error: &ValidationError<'_>) -> String {
    let path = field(error.instance_path().as_str());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("`{}` is missing", join(&path, name))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().take(TOLD).map(|name| format!("`{}`", join(&path, name))).collect();
            format!("{} not known here", names.join(", "))
        }
        _ if path.is_empty() => error.masked_with("the value").to_string(),
        _ => error.masked_with(format!("`{path}`")).to_string(),
    }
}

fn join(path: &str, name: &str) -> String {
    let name = crate::jsonrpc::excerpt(name);
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A JSON pointer (RFC 6901) as people write a field: `/a/0/b` is `a.0.b`.
fn field(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn violations(schema: &Value, value: &Value) -> String {
        Schema::compile(schema).unwrap().check(value).unwrap_err().to_string()
    }

    #[test]
    fn a_violation_names_the_field_and_hides_the_value() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": { "type": "integer", "minimum": 1, "maximum": 200 },
                "kind": { "enum": ["run", "chat"] },
                "authToken": { "type": "string", "maxLength": 4 },
                "steps": { "type": "array", "items": { "type": "object", "required": ["id"] } },
            },
            "required": ["kind"],
            "additionalProperties": false,
        });
        for (value, expected) in [
            (json!({}), "`kind` is missing"),
            (json!({ "kind": "run", "limit": "20" }), "`limit` is not of type \"integer\""),
            (json!({ "kind": "run", "limit": -1 }), "`limit` is less than the minimum of 1"),
            (json!({ "kind": "run", "limit": 2.5 }), "`limit` is not of type \"integer\""),
            (json!({ "kind": "run", "Limit": 2 }), "`Limit` not known here"),
            (json!({ "kind": "run", "authToken": "hunter2" }), "`authToken` is longer than 4 characters"),
            (json!({ "kind": "run", "steps": [{ "id": 1 }, {}] }), "`steps.1.id` is missing"),
            (json!([]), "the value is not of type \"object\""),
        ] {
            assert_eq!(violations(&schema, &value), expected, "{value}");
        }
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.check(&json!({ "kind": "run", "limit": 2.0 })), Ok(()));
    }

    #[test]
    fn a_reference_outside_is_refused_without_a_connection() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let outside = format!("http://{}/schema.json", listener.local_addr().unwrap());
        for reference in [outside.as_str(), "file:///etc/passwd", "other.json"] {
            let error =
                Schema::compile(&json!({ "properties": { "a": { "$ref": reference } } })).unwrap_err();
            assert!(matches!(error, SchemaError::Invalid(_)), "{reference}: {error}");
        }
        assert!(listener.accept().is_err(), "something connected");
        let inside = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } });
        assert!(Schema::compile(&inside).unwrap().check(&json!(1)).is_err());
    }

    #[test]
    fn a_pattern_built_to_explode_does_not() {
        let schema = Schema::compile(&json!({ "pattern": "^(a+)+$" })).unwrap();
        let text = json!(format!("{}!", "a".repeat(64 * 1024)));
        let start = Instant::now();
        assert!(schema.check(&text).is_err());
        assert!(start.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn schemas_are_bounded_and_of_a_known_dialect() {
        let deep = (0..70).fold(json!({}), |inner, _| json!({ "not": inner }));
        assert_eq!(Schema::compile(&deep).unwrap_err(), SchemaError::TooLarge);
        let wide = json!({ "enum": vec![0; 30_000] });
        assert_eq!(Schema::compile(&wide).unwrap_err(), SchemaError::TooLarge);
        for bad in [json!({ "type": "intger" }), json!({ "$schema": "https://example.com/mine" }), json!(7)] {
            assert!(matches!(Schema::compile(&bad), Err(SchemaError::Invalid(_))), "{bad}");
        }
    }
}
