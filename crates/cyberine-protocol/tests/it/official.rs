//! The official schemas, where they are at hand beside the repository.

use std::collections::HashMap;
use std::path::PathBuf;

use cyberine_protocol::Revision;
use serde_json::{Value, json};

/// The schema of one revision, or of an extension.
pub(crate) struct Official {
    name: String,
    document: Value,
    validators: HashMap<String, jsonschema::Validator>,
}

impl Official {
    /// Loads `<name>.json`. `None`, with a word on standard error, where the schemas are missing
    /// and this is not CI.
    pub(crate) fn load(name: &str) -> Option<Self> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/mcp-schema");
        let path = root.join(format!("{name}.json"));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let document = serde_json::from_str(&text).unwrap();
                Some(Self { name: name.to_owned(), document, validators: HashMap::new() })
            }
            Err(error) if std::env::var_os("CI").is_some() => panic!("{}: {error}", path.display()),
            Err(_) => {
                eprintln!("skipped: the official schema {name} is not beside the repository");
                None
            }
        }
    }

    pub(crate) fn of(revision: Revision) -> Option<Self> {
        Self::load(revision.as_str())
    }

    fn definitions(&self) -> &'static str {
        if self.document.get("$defs").is_some() { "$defs" } else { "definitions" }
    }

    pub(crate) fn has(&self, definition: &str) -> bool {
        self.document[self.definitions()].get(definition).is_some()
    }

    /// Why `value` is no `definition`; empty where it is one.
    pub(crate) fn violations(&mut self, definition: &str, value: &Value) -> Vec<String> {
        assert!(self.has(definition), "{} has no {definition}", self.name);
        let key = self.definitions();
        let validator = self.validators.entry(definition.to_owned()).or_insert_with(|| {
            let schema = json!({
                "$schema": self.document["$schema"],
                "$ref": format!("#/{key}/{definition}"),
                key: self.document[key],
            });
            jsonschema::options().build(&schema).unwrap()
        });
        validator.iter_errors(value).map(|error| error.to_string()).collect()
    }

    /// Panics where `value` is no `definition`.
    pub(crate) fn assert(&mut self, definition: &str, value: &Value) {
        let violations = self.violations(definition, value);
        assert!(violations.is_empty(), "{} {definition}: {violations:#?}\n{value:#}", self.name);
    }
}

#[test]
fn a_result_without_its_type_does_not_pass() {
    let Some(mut official) = Official::of(Revision::V2026_07_28) else { return };
    let good = json!({ "resultType": "complete", "content": [] });
    official.assert("CallToolResult", &good);
    assert!(!official.violations("CallToolResult", &json!({ "content": [] })).is_empty());
}
