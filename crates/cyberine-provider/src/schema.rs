//! JSON Schemas in the subset that makers enforce on an answer.

use serde_json::{Map, Value, json};

/// Forms of strings that are enforced.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// `schema` in the subset that Anthropic and OpenAI enforce: objects are closed, and what is demanded
/// beyond it goes into the description, where the model reads it. The answer may then break such a
/// demand; whoever asks checks.
pub(crate) fn enforced(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut kept = Map::new();
    let mut rest = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "$defs" | "definitions" | "properties" => {
                kept.insert(key.clone(), each_member(value));
            }
            "items" => {
                kept.insert(key.clone(), enforced(value));
            }
            "anyOf" | "allOf" => {
                kept.insert(key.clone(), each_item(value));
            }
            "oneOf" => {
                kept.insert("anyOf".to_owned(), each_item(value));
            }
            "type" | "enum" | "const" | "$ref" | "title" | "description" | "required" => {
                kept.insert(key.clone(), value.clone());
            }
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                kept.insert(key.clone(), value.clone());
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => {
                kept.insert(key.clone(), value.clone());
            }
            "additionalProperties" | "$schema" => {}
            _ => {
                rest.insert(key.clone(), value.clone());
            }
        }
    }
    if is_object(&kept) {
        kept.entry("properties").or_insert_with(|| json!({}));
        kept.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if !rest.is_empty() {
        let told = Value::Object(rest).to_string();
        let described = kept.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = if described.is_empty() { told } else { format!("{described}\n\n{told}") };
        kept.insert("description".to_owned(), Value::String(description));
    }
    Value::Object(kept)
}

/// Whether every object of `schema` demands all of its properties, without which OpenAI enforces
/// nothing.
pub(crate) fn is_total(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let required = members.get("required").and_then(Value::as_array);
            let demanded = |name: &String| required.is_some_and(|names| names.iter().any(|n| n == name));
            let all = !is_object(members)
                || members
                    .get("properties")
                    .and_then(Value::as_object)
                    .is_none_or(|properties| properties.keys().all(demanded));
            all && members.values().all(is_total)
        }
        Value::Array(items) => items.iter().all(is_total),
        _ => true,
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

fn each_member(value: &Value) -> Value {
    match value.as_object() {
        Some(members) => members.iter().map(|(name, schema)| (name.clone(), enforced(schema))).collect(),
        None => value.clone(),
    }
}

fn each_item(value: &Value) -> Value {
    match value.as_array() {
        Some(items) => items.iter().map(enforced).collect(),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_enforced_is_told_in_words() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "winner": { "enum": ["A", "B"] },
                "why": { "type": "string", "description": "One sentence.", "maxLength": 9, "format": "regex" },
                "at": { "type": "string", "format": "date" },
                "scores": { "type": "array", "items": { "type": "object" }, "minItems": 1, "maxItems": 2 },
                "either": { "oneOf": [{ "type": "null" }, { "type": "integer", "minimum": 3 }] },
            },
            "required": ["winner"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "winner": { "enum": ["A", "B"] },
                "why": { "type": "string", "description": "One sentence.\n\n{\"format\":\"regex\",\"maxLength\":9}" },
                "at": { "type": "string", "format": "date" },
                "scores": {
                    "type": "array",
                    "items": { "type": "object", "properties": {}, "additionalProperties": false },
                    "minItems": 1,
                    "description": "{\"maxItems\":2}",
                },
                "either": { "anyOf": [
                    { "type": "null" },
                    { "type": "integer", "description": "{\"minimum\":3}" },
                ] },
            },
            "required": ["winner"],
            "additionalProperties": false,
        });
        assert_eq!(enforced(&schema), expected);
        assert_eq!(enforced(&expected), expected, "what is in the subset stays");
        assert_eq!(enforced(&json!(true)), json!(true));
    }

    #[test]
    fn a_schema_is_total_where_nothing_may_be_left_out() {
        let inner = |required: Value| {
            json!({ "type": "object", "properties": { "b": { "type": "object",
                "properties": { "c": {} }, "required": required } }, "required": ["b"] })
        };
        assert!(is_total(&inner(json!(["c"]))));
        assert!(!is_total(&inner(json!([]))));
        assert!(is_total(&json!({ "type": "object" })));
        assert!(!is_total(&json!({ "anyOf": [{ "type": "object", "properties": { "a": {} } }] })));
    }
}
