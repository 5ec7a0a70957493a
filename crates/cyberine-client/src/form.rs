//! What a form says by itself.

use serde_json::{Map, Value};

/// The answer to a form of which nothing more is filled in than `content`: the defaults of its schema
/// where they are of the type they should be, and `content` over them (2025-11-25,
/// `client/elicitation`).
#[must_use]
pub fn accepted(schema: &Value, content: Map<String, Value>) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut filled: Map<String, Value> = properties
        .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
        .filter(|(_, value)| !value.is_null() && !value.is_object())
        .collect();
    filled.extend(content);
    serde_json::json!({ "action": "accept", "content": filled })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_is_accepted_with_its_defaults() {
        let schema = json!({ "properties": {
            "name": { "type": "string", "default": "John" }, "age": { "type": "integer", "default": 30 },
            "tags": { "type": "array", "default": ["a"] }, "mail": { "type": "string" },
        } });
        let content = json!({ "age": 31 }).as_object().cloned().unwrap();
        assert_eq!(
            accepted(&schema, content),
            json!({ "action": "accept", "content": { "name": "John", "age": 31, "tags": ["a"] } })
        );
        assert_eq!(accepted(&json!(3), Map::new()), json!({ "action": "accept", "content": {} }));
    }
}
