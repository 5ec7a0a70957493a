//! The tools as they are listed.

use std::sync::Arc;

use cyberine_server::{Annotations, ObjectSchema, Tool};
use serde_json::{Value, json};

/// Tools that take nothing.
const PLAIN: [(&str, &str); 25] = [
    ("test_simple_text", "Returns a text."),
    ("test_image_content", "Returns a picture."),
    ("test_audio_content", "Returns sound."),
    ("test_embedded_resource", "Returns an embedded resource."),
    ("test_multiple_content_types", "Returns a text, a picture and a resource."),
    ("test_error_handling", "Returns an error."),
    ("test_tool_with_logging", "Sends three lines of a log."),
    ("test_logging_tool", "Sends three lines of a log."),
    ("test_tool_with_progress", "Reports its progress three times."),
    ("test_reconnection", "Takes longer than a stream stays open."),
    ("test_trigger_tool_change", "Says that the list of tools has changed."),
    ("test_trigger_prompt_change", "Says that the list of prompts has changed."),
    ("test_elicitation_sep1034_defaults", "Asks for values that have defaults."),
    ("test_elicitation_sep1330_enums", "Asks for choices in all five forms."),
    ("test_missing_capability", "Needs a client whose model can be asked."),
    ("test_streaming_elicitation", "Asks a question, in the result."),
    ("test_input_required_result_elicitation", "Asks for a name."),
    ("test_input_required_result_sampling", "Asks the client's model."),
    ("test_input_required_result_list_roots", "Asks for the client's directories."),
    ("test_input_required_result_request_state", "Asks for a confirmation, and checks its state."),
    ("test_input_required_result_multiple_inputs", "Asks three questions at once."),
    ("test_input_required_result_multi_round", "Asks one question after another."),
    ("test_input_required_result_tampered_state", "Asks for a confirmation, and trusts only its own state."),
    ("test_input_required_result_capabilities", "Asks what this client can be asked."),
    ("test_tool_with_task", "Asks for a name, and goes on as a task."),
];

pub(crate) fn tools() -> Arc<[Tool]> {
    let plain = PLAIN
        .into_iter()
        .map(|(name, description)| tool(name, description, json!({ "additionalProperties": false })));
    let text = |name: &str| json!({ "properties": { name: { "type": "string" } }, "required": [name], "additionalProperties": false });
    let seconds = json!({
        "properties": {
            "seconds": { "type": "number", "minimum": 0, "maximum": 60 },
            "label": { "type": "string" },
        },
    });
    plain
        .chain([
            tool("test_sampling", "Asks the client's model.", text("prompt")),
            tool("test_elicitation", "Asks the user.", text("message")),
            tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", every_keyword()),
            tool("test_x_mcp_header", "Takes an argument that HTTP mirrors in a header.", mirrored()),
            tool("greet", "Greets, at once.", text("name")),
            tool("slow_compute", "Sleeps; as a task, where the client takes one.", seconds),
            tool("failing_job", "A task whose work fails.", json!({})),
            tool("protocol_error_job", "A task that breaks.", json!({})),
            tool("confirm_delete", "A task that asks before it goes on.", text("filename")),
            tool("multi_input", "A task that asks two questions at once.", json!({})),
        ])
        .collect()
}

fn tool(name: &'static str, description: &'static str, input_schema: Value) -> Tool {
    Tool {
        name,
        title: name,
        description: description.into(),
        input_schema: input_schema.into(),
        output_schema: ObjectSchema::new("", ""),
        annotations: Annotations { read_only: true, destructive: false, idempotent: true, open_world: false },
    }
}

fn mirrored() -> Value {
    json!({ "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } })
}

fn every_keyword() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
