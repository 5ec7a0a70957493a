//! From a prompt to the arguments of a call, and from its result to an answer.

use cyberine_client::{OfferedTool, ReplyPart, ResourceBody, ToolReply};
use serde_json::{Map, Value};

use crate::config::McpConfig;

/// The most names that are told at once.
const TOLD: usize = 30;

/// The fixed arguments, and the prompt in its own.
pub(super) fn arguments(config: &McpConfig, prompt: String) -> Map<String, Value> {
    let mut arguments: Map<String, Value> =
        config.arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    arguments.insert(config.argument().to_owned(), Value::String(prompt));
    arguments
}

/// Checks that the server has the tool, and that the tool takes the prompt where it says what it
/// takes.
pub(super) fn check(tools: &[OfferedTool], server: &str, config: &McpConfig) -> Result<(), String> {
    let wanted = &config.tool;
    let Some(tool) = tools.iter().find(|tool| tool.name == *wanted) else {
        let has = names(tools.iter().map(|tool| tool.name.as_str()));
        return Err(format!("the server `{server}` has no tool `{wanted}`; it has {has}"));
    };
    let schema = tool.input_schema.as_ref().map(|schema| serde_json::from_str::<Value>(schema.get()));
    let Some(Ok(schema)) = schema else { return Ok(()) };
    let (Some(known), Some(false)) =
        (schema["properties"].as_object(), schema["additionalProperties"].as_bool())
    else {
        return Ok(());
    };
    let argument = config.argument();
    if known.contains_key(argument) {
        return Ok(());
    }
    let has = names(known.keys().map(String::as_str));
    Err(format!(
        "the tool `{wanted}` has no argument `{argument}` for the prompt; it has {has}: set `argument`"
    ))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match all.len() {
        0 => "none".to_owned(),
        count if count > TOLD => format!("{} and {} more", all[..TOLD].join(", "), count - TOLD),
        _ => all.join(", "),
    }
}

/// The answer: what a model reads, or where there is nothing of that, the structure as JSON. What is
/// not text is named in its place. The error is what a tool that failed says.
pub(super) fn text(reply: ToolReply) -> Result<String, String> {
    let parts: Vec<String> = reply.content.into_iter().map(part).filter(|text| !text.is_empty()).collect();
    let mut text = parts.join("\n\n");
    if text.trim().is_empty()
        && let Some(structured) = reply.structured
    {
        structured.get().clone_into(&mut text);
    }
    if reply.is_error { Err(text) } else { Ok(text) }
}

fn part(part: ReplyPart) -> String {
    match part {
        ReplyPart::Text(text) => text,
        ReplyPart::Image { data, mime_type } => named("image", &mime_type, &data),
        ReplyPart::Audio { data, mime_type } => named("sound", &mime_type, &data),
        ReplyPart::Link { uri, name } if name.is_empty() => format!("[resource: {uri}]"),
        ReplyPart::Link { uri, name } => format!("[resource: {name}, {uri}]"),
        ReplyPart::Embedded(contents) => match contents.body {
            ResourceBody::Text(text) => text,
            ResourceBody::Blob(data) => {
                named(&contents.uri, contents.mime_type.as_deref().unwrap_or("bytes"), &data)
            }
        },
        ReplyPart::Unknown { kind } => format!("[a part of the type `{kind}`, which is not known here]"),
    }
}

/// What is left of bytes in Base64.
fn named(what: &str, mime_type: &str, data: &str) -> String {
    format!("[{what}: {mime_type}, {} bytes]", data.trim_end_matches('=').len() * 3 / 4)
}

#[cfg(test)]
mod tests {
    use cyberine_client::ResourceContents;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn config(extra: Value) -> McpConfig {
        let mut config = json!({ "command": ["x"], "tool": "ask" });
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        serde_json::from_value(config).unwrap()
    }

    fn tool(name: &str, schema: &Value) -> OfferedTool {
        let input_schema = Some(to_raw_value(schema).unwrap());
        OfferedTool { name: name.to_owned(), description: None, input_schema }
    }

    #[test]
    fn the_prompt_joins_the_fixed_arguments() {
        let fixed = config(json!({ "arguments": { "limit": 3 }, "argument": "query" }));
        assert_eq!(Value::Object(arguments(&fixed, "why?".into())), json!({ "limit": 3, "query": "why?" }));
        assert_eq!(Value::Object(arguments(&config(json!({})), "why?".into())), json!({ "prompt": "why?" }));
    }

    #[test]
    fn a_tool_or_an_argument_that_is_not_there_is_told_with_those_that_are() {
        let closed = json!({ "properties": { "query": {}, "limit": {} }, "additionalProperties": false });
        let tools = [tool("ask", &closed), tool("b", &json!({}))];
        let told = |tools: &[OfferedTool], extra: Value| check(tools, "peer 1", &config(extra)).unwrap_err();
        assert_eq!(told(&tools[1..], json!({})), "the server `peer 1` has no tool `ask`; it has `b`");
        assert_eq!(told(&[], json!({})), "the server `peer 1` has no tool `ask`; it has none");
        let many: Vec<OfferedTool> = (0..TOLD + 2).map(|n| tool(&format!("t{n}"), &closed)).collect();
        assert!(told(&many, json!({})).ends_with("`t29` and 2 more"));
        assert_eq!(
            told(&tools, json!({})),
            "the tool `ask` has no argument `prompt` for the prompt; it has `limit`, `query`: set `argument`"
        );
        for (tool, extra) in
            [(&tools[0], json!({ "argument": "query" })), (&tools[1], json!({ "tool": "b" }))]
        {
            assert_eq!(check(std::slice::from_ref(tool), "peer 1", &config(extra)), Ok(()));
        }
    }

    fn reply(content: Vec<ReplyPart>, structured: Option<Value>) -> ToolReply {
        let structured = structured.map(|value| to_raw_value(&value).unwrap());
        ToolReply { content, structured, is_error: false }
    }

    #[test]
    fn an_answer_is_its_text_and_names_what_is_none() {
        let embedded = |body: ResourceBody| {
            let (uri, mime_type) = ("x://e".to_owned(), Some("application/pdf".to_owned()));
            ReplyPart::Embedded(ResourceContents { uri, mime_type, body, meta: Map::new() })
        };
        let content = vec![
            ReplyPart::Text("a".into()),
            ReplyPart::Text(String::new()),
            ReplyPart::Image { data: "AAEC".into(), mime_type: "image/png".into() },
            ReplyPart::Audio { data: "AA==".into(), mime_type: "audio/wav".into() },
            ReplyPart::Link { uri: "x://y".into(), name: "report".into() },
            embedded(ResourceBody::Text("b".into())),
            embedded(ResourceBody::Blob("AAECAw==".into())),
            ReplyPart::Unknown { kind: "hologram".into() },
        ];
        let expected = "a\n\n[image: image/png, 3 bytes]\n\n[sound: audio/wav, 1 bytes]\n\n[resource: report, x://y]\n\nb\n\n\
            [x://e: application/pdf, 4 bytes]\n\n[a part of the type `hologram`, which is not known here]";
        assert_eq!(text(reply(content, Some(json!({ "n": 1 })))), Ok(expected.to_owned()));
    }

    #[test]
    fn structure_is_the_answer_where_there_is_no_text() {
        let blank = vec![ReplyPart::Text(" \n".into())];
        assert_eq!(text(reply(blank, Some(json!({ "n": 1 })))), Ok("{\"n\":1}".to_owned()));
        assert_eq!(text(reply(vec![], None)), Ok(String::new()));
        let failed = ToolReply { is_error: true, ..reply(vec![ReplyPart::Text("no".into())], None) };
        assert_eq!(text(failed), Err("no".to_owned()));
    }
}
