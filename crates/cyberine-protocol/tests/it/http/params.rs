//! Arguments that are mirrored into headers.

use cyberine_protocol::http::{HeaderParamError, HeaderParams, HttpHead, judge};
use cyberine_protocol::strict::Limits;
use serde_json::{Value, json};

use super::{ACCEPT, JSON, modern, told};
use crate::support::request;

fn params() -> HeaderParams {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "count" },
            "dry": { "type": ["null", "boolean"], "x-mcp-header": "Dry-Run" },
            "where": { "properties": { "zone": { "type": "string", "x-mcp-header": "Zone", "default": "x" } } },
            "x-mcp-header": { "type": "object", "properties": { "a": {} } },
        },
        "examples": [{ "x-mcp-header": "data" }],
    });
    HeaderParams::of_schema(&schema).unwrap()
}

/// Whether a call with these arguments and headers is served.
fn checked(headers: &[(&str, &str)], arguments: Option<Value>) -> bool {
    let mut asked = json!({ "name": "a" });
    if let Some(arguments) = arguments {
        asked["arguments"] = arguments;
    }
    let body = request(super::MODERN, json!(1), "tools/call", asked).to_string();
    let head = HttpHead::read(modern("tools/call", Some("a")).into_iter().chain(headers.iter().copied()));
    let posted = judge(&head, body.as_bytes(), Limits::default()).unwrap();
    match posted.check_params(&head, &params()) {
        Ok(()) => true,
        Err(refusal) => {
            assert_eq!(told(&refusal), (400, -32020, json!(1)));
            false
        }
    }
}

#[test]
fn a_header_says_what_its_argument_says() {
    for (argument, header, same) in [
        (json!({ "region": "us" }), ("Mcp-Param-Region", "us"), true),
        (json!({ "region": "us" }), ("mcp-param-REGION", " us "), true),
        (json!({ "region": "us" }), ("Mcp-Param-Region", "US"), false),
        (json!({ "region": "us" }), ("Mcp-Param-Region", "=?base64?dXM=?="), true),
        (json!({ "region": "us" }), ("Mcp-Param-Region", "=?base64?dXM?="), false),
        (json!({ "region": "us" }), ("Mcp-Param-Region", "=?base64?dX-=?="), false),
        (json!({ "region": "us" }), ("Mcp-Param-Region", "=?BASE64?dXM=?="), false),
        (json!({ "region": "" }), ("Mcp-Param-Region", ""), true),
        (json!({ "region": "ü" }), ("Mcp-Param-Region", "ü"), false),
        (json!({ "region": "ü" }), ("Mcp-Param-Region", "=?base64?w7w=?="), true),
        (json!({ "region": "a\"b" }), ("Mcp-Param-Region", "a\"b"), true),
        (json!({ "count": 42 }), ("Mcp-Param-Count", "42"), true),
        (json!({ "count": 42 }), ("Mcp-Param-Count", "42.0"), true),
        (json!({ "count": 42.0 }), ("Mcp-Param-Count", "42"), true),
        (json!({ "count": -7 }), ("Mcp-Param-Count", "-7"), true),
        (json!({ "count": 42 }), ("Mcp-Param-Count", "4.2e1"), true),
        (json!({ "count": 42 }), ("Mcp-Param-Count", "43"), false),
        (json!({ "count": 42 }), ("Mcp-Param-Count", "042"), false),
        (json!({ "count": 42 }), ("Mcp-Param-Count", "0x2a"), false),
        (json!({ "count": 42 }), ("Mcp-Param-Count", ""), false),
        (json!({ "count": 9_007_199_254_740_993_i64 }), ("Mcp-Param-Count", "9007199254740992"), false),
        (json!({ "count": "42" }), ("Mcp-Param-Count", "42.0"), false),
        (json!({ "dry": true }), ("Mcp-Param-Dry-Run", "true"), true),
        (json!({ "dry": true }), ("Mcp-Param-Dry-Run", "True"), false),
        (json!({ "dry": true }), ("Mcp-Param-Dry-Run", "1"), false),
        (json!({ "dry": false }), ("Mcp-Param-Dry-Run", "false"), true),
        (json!({ "dry": null }), ("Mcp-Param-Dry-Run", "null"), false),
        (json!({ "where": { "zone": "z" } }), ("Mcp-Param-Zone", "z"), true),
        (json!({ "where": { "zone": "z" } }), ("Mcp-Param-Zone", "y"), false),
        (json!({ "where": "zone" }), ("Mcp-Param-Zone", "zone"), false),
        (json!({ "region": {} }), ("Mcp-Param-Region", "{}"), false),
        // The header is there, and the argument is not.
        (json!({}), ("Mcp-Param-Region", "us"), false),
        (json!({ "region": null }), ("Mcp-Param-Region", ""), false),
        // Nobody asked for it.
        (json!({}), ("Mcp-Param-Other", "us"), true),
    ] {
        assert_eq!(checked(&[header], Some(argument.clone())), same, "{argument} {header:?}");
    }
}

#[test]
fn an_argument_has_its_header_once() {
    for argument in [json!({ "region": "us" }), json!({ "count": 0 }), json!({ "dry": false })] {
        assert!(!checked(&[], Some(argument.clone())), "{argument}");
    }
    assert!(!checked(
        &[("Mcp-Param-Region", "us"), ("mcp-param-region", "us")],
        Some(json!({ "region": "us" }))
    ));
    for absent in [None, Some(json!({})), Some(json!({ "region": null, "where": {} })), Some(json!([]))] {
        assert!(checked(&[], absent.clone()), "{absent:?}");
    }
    // It cannot be mirrored: the tool's schema refuses it.
    assert!(checked(&[], Some(json!({ "region": ["us"] }))));
    let both = [("Mcp-Param-Region", "us"), ("Mcp-Param-Count", "1"), JSON, ACCEPT];
    assert!(checked(&both[..2], Some(json!({ "region": "us", "count": 1 }))));
}

#[test]
fn an_annotation_that_is_not_allowed_is_named() {
    let at =
        |schema: Value| HeaderParams::of_schema(&json!({ "type": "object", "properties": { "a": schema } }));
    let text = |name: Value| json!({ "type": "string", "x-mcp-header": name });
    for name in [
        json!(""),
        json!("a b"),
        json!("a\r\nb"),
        json!("ü"),
        json!("a:b"),
        json!("(a)"),
        json!(7),
        json!(null),
    ] {
        assert!(matches!(at(text(name.clone())), Err(HeaderParamError::Name(_))), "{name}");
    }
    let annotated = |kind: Value| at(json!({ "type": kind, "x-mcp-header": "A" }));
    for kind in ["number", "object", "array", "null"] {
        assert_eq!(annotated(json!(kind)), Err(HeaderParamError::Type("A".into())), "{kind}");
    }
    assert!(annotated(json!(["string", "integer"])).is_err() && annotated(json!(["null"])).is_err());
    assert_eq!(at(json!({ "x-mcp-header": "A" })), Err(HeaderParamError::Type("A".into())));
    let good = text(json!("A"));
    for (place, schema) in [
        ("items", json!({ "type": "array", "items": good })),
        ("prefixItems", json!({ "prefixItems": [good] })),
        ("oneOf", json!({ "oneOf": [{ "properties": { "b": good } }] })),
        ("anyOf", json!({ "anyOf": [good] })),
        ("allOf", json!({ "allOf": [good] })),
        ("not", json!({ "not": good })),
        ("then", json!({ "if": {}, "then": { "properties": { "b": good } } })),
        ("additionalProperties", json!({ "additionalProperties": good })),
        ("patternProperties", json!({ "patternProperties": { "x": good } })),
        ("dependentSchemas", json!({ "dependentSchemas": { "x": good } })),
    ] {
        assert_eq!(at(schema), Err(HeaderParamError::Place), "{place}");
    }
    let root = |schema: Value| HeaderParams::of_schema(&schema);
    assert_eq!(root(json!({ "$defs": { "b": good } })), Err(HeaderParamError::Place));
    assert_eq!(root(good.clone()), Err(HeaderParamError::Place));
    let twice = root(json!({ "properties": { "a": text(json!("Re")), "b": text(json!("RE")) } }));
    assert_eq!(twice, Err(HeaderParamError::Twice("RE".into())));
    for nothing in [json!({}), json!(true), json!({ "properties": { "x-mcp-header": {} } })] {
        assert!(root(nothing).unwrap().is_empty());
    }
}

#[test]
fn arguments_are_mirrored_as_they_are_checked() {
    let arguments =
        json!({ "region": "ü ", "count": 42.0, "dry": false, "where": { "zone": "z" }, "other": 1 });
    let headers = params().mirror(arguments.as_object().unwrap());
    let pairs: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert!(pairs.contains(&("mcp-param-count", "42")) && pairs.len() == 4, "{pairs:?}");
    assert!(checked(&pairs, Some(arguments)));
    let none = json!({ "region": null, "count": [], "where": 1 });
    assert_eq!(params().mirror(none.as_object().unwrap()), []);
}
