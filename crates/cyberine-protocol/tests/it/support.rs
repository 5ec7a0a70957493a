//! A server of fixed answers around the machine, and shorthand for lines.

use std::sync::Arc;

use cyberine_protocol::model::{
    Annotations, CacheHint, CacheScope, CallToolResult, Completion, ContentBlock, DetailedTask,
    GetPromptResult, Icon, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, Prompt, PromptArgument, PromptMessage, ReadResourceResult, Resource, ResourceBody,
    ResourceContents, ResourceTemplate, Role, Task, TaskState, TaskStatus, Tool, ToolAnnotations,
};
use cyberine_protocol::{
    Answer, Effect, Inbound, InboundBody, RequestKey, Revision, RpcError, ServerProfile, ServerSession,
    ToolListing,
};
use serde_json::{Map, Value, json};

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

pub(crate) fn icon() -> Icon {
    Icon {
        src: "data:image/svg+xml;base64,PHN2Zy8+".into(),
        mime_type: Some("image/svg+xml".into()),
        sizes: vec!["any".into()],
    }
}

pub(crate) fn profile() -> ServerProfile {
    ServerProfile {
        info: Implementation {
            name: "cyberine".into(),
            version: "0.1.0".into(),
            title: Some("Cyberine".into()),
            description: Some("a team of agents".into()),
            icons: vec![icon()],
            website_url: Some("https://example.com/".into()),
        },
        instructions: Some("Ask before anything that spends.".into()),
        tools: true,
        resources: true,
        subscriptions: true,
        prompts: true,
        completions: true,
        logging: true,
        tasks: true,
        tools_list_changed: true,
        prompts_list_changed: true,
        resources_list_changed: true,
        ..ServerProfile::default()
    }
}

pub(crate) fn session() -> ServerSession {
    ServerSession::new(profile())
}

/// A session in which requests of `revision` are served.
pub(crate) fn session_of(revision: Revision) -> ServerSession {
    let mut session = session();
    if !revision.is_stateless() {
        let line = initialize(revision.as_str()).to_string();
        assert!(matches!(&session.receive(line.as_bytes())[..], [Effect::Send(_)]));
    }
    session
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": { "elicitation": {}, "roots": { "listChanged": true } },
        "clientInfo": { "name": "host", "version": "3.1.0", "title": "Host" },
    }})
}

/// The `_meta` of a stateless request.
pub(crate) fn meta() -> Map<String, Value> {
    let meta = json!({
        VERSION: "2026-07-28",
        CLIENT: { "name": "host", "version": "3.1.0" },
        CAPABILITIES: { "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let Value::Object(meta) = meta else { unreachable!() };
    meta
}

/// A request of `revision`.
pub(crate) fn request(revision: Revision, id: Value, method: &str, mut params: Value) -> Value {
    if revision.is_stateless() {
        let mut all = meta();
        all.extend(params["_meta"].as_object().cloned().unwrap_or_default());
        params["_meta"] = Value::Object(all);
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The request a line opens.
pub(crate) fn opened(session: &mut ServerSession, line: &Value) -> Inbound {
    let effects = session.receive(line.to_string().as_bytes());
    let [Effect::Request(inbound)] = &effects[..] else { panic!("{line} gives {effects:?}") };
    inbound.clone()
}

/// The one line a line is answered with at once.
pub(crate) fn answered(session: &mut ServerSession, line: &[u8]) -> Value {
    let effects = session.receive(line);
    let [Effect::Send(answer)] = &effects[..] else {
        panic!("{} gives {effects:?}", String::from_utf8_lossy(line))
    };
    parse(answer)
}

pub(crate) fn parse(line: &[u8]) -> Value {
    assert!(!line.contains(&b'\n'), "a line holds a newline");
    serde_json::from_slice(line).unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(line)))
}

/// Answers a request with the fixture that fits it.
pub(crate) fn finish(session: &mut ServerSession, inbound: &Inbound) -> Option<Vec<u8>> {
    session.finish(inbound.key, fixture(&inbound.body))
}

pub(crate) fn finish_with(session: &mut ServerSession, key: RequestKey, answer: Answer) -> Value {
    parse(&session.finish(key, Ok(answer)).expect("a line"))
}

pub(crate) fn fixture(body: &InboundBody) -> Result<Answer, RpcError> {
    let cache = CacheHint { ttl_ms: 300_000, scope: CacheScope::Private };
    match body {
        InboundBody::ListTools { cursor: Some(_) } => Err(RpcError::invalid_cursor()),
        InboundBody::ListTools { cursor: None } => {
            Ok(Answer::Tools(Arc::new(ToolListing::new(vec![tool()], cache))))
        }
        InboundBody::CallTool { name, .. } if name == "list_team" => {
            Ok(Answer::Call(CallToolResult::structured(&json!({ "members": [] }), false)))
        }
        InboundBody::CallTool { name, .. } => Err(RpcError::unknown_tool(name)),
        InboundBody::ListResources { .. } => Ok(Answer::Resources(ListResourcesResult {
            resources: vec![resource()],
            next_cursor: Some("b2Zmc2V0PTUw".into()),
            cache: CacheHint::NONE,
        })),
        InboundBody::ListTemplates { .. } => Ok(Answer::Templates(ListResourceTemplatesResult {
            templates: vec![ResourceTemplate {
                uri_template: "cyberine://runs/{runId}".into(),
                name: "run".into(),
                title: Some("Run".into()),
                description: Some("one run".into()),
                mime_type: Some("application/json".into()),
                annotations: Some(annotations()),
                icons: vec![icon()],
                meta: own_meta(),
            }],
            next_cursor: None,
            cache: CacheHint { ttl_ms: 3_600_000, scope: CacheScope::Public },
        })),
        InboundBody::ReadResource { uri, .. } if uri == "cyberine://runs/5b1e" => {
            Ok(Answer::Contents(ReadResourceResult {
                contents: vec![
                    contents(ResourceBody::Text("{\"state\":\"done\"}".into())),
                    contents(ResourceBody::Blob("AAEC".into())),
                ],
                cache: CacheHint::NONE,
            }))
        }
        InboundBody::ReadResource { uri, .. } => Err(RpcError::resource_not_found(uri)),
        InboundBody::Subscribe { .. }
        | InboundBody::Unsubscribe { .. }
        | InboundBody::UpdateTask { .. }
        | InboundBody::CancelTask { .. } => Ok(Answer::Empty),
        InboundBody::Listen { .. } => Ok(Answer::ListenEnded),
        InboundBody::ListPrompts { .. } => {
            Ok(Answer::Prompts(ListPromptsResult { prompts: vec![prompt()], next_cursor: None, cache }))
        }
        InboundBody::GetPrompt { .. } => Ok(Answer::Prompt(GetPromptResult {
            description: Some("Review a run".into()),
            messages: every_block()
                .into_iter()
                .map(|content| PromptMessage { role: Role::User, content })
                .collect(),
        })),
        InboundBody::Complete { .. } => Ok(Answer::Completion(Completion {
            values: vec!["5b1e".into()],
            total: Some(1),
            has_more: false,
        })),
        InboundBody::GetTask { .. } => {
            let task = task(TaskStatus::Working);
            Ok(Answer::TaskState(DetailedTask { task, state: TaskState::Open }))
        }
    }
}

pub(crate) fn prompt() -> Prompt {
    Prompt {
        name: "review".into(),
        title: Some("Review".into()),
        description: Some("review a run".into()),
        arguments: vec![
            PromptArgument {
                name: "runId".into(),
                title: Some("Run".into()),
                description: Some("which run".into()),
                required: true,
            },
            PromptArgument { name: "tone".into(), ..PromptArgument::default() },
        ],
        icons: vec![icon()],
        meta: own_meta(),
    }
}

pub(crate) fn task(status: TaskStatus) -> Task {
    Task {
        task_id: "9d1c6d1e-8f0b-4a55-9d1b-2a4b7b7d0c11".into(),
        status,
        status_message: Some("started".into()),
        created_at: "2026-11-30T10:00:00Z".into(),
        last_updated_at: "2026-11-30T10:00:01Z".into(),
        ttl_ms: None,
        poll_interval_ms: Some(1000),
    }
}

pub(crate) fn own_meta() -> Map<String, Value> {
    [("dev.cyberine/run".to_owned(), json!("5b1e"))].into_iter().collect()
}

pub(crate) fn annotations() -> Annotations {
    Annotations {
        audience: vec![Role::User, Role::Assistant],
        priority: Some(0.5),
        last_modified: Some("2026-11-30T10:00:00Z".into()),
    }
}

pub(crate) fn resource() -> Resource {
    Resource {
        uri: "cyberine://runs/5b1e".into(),
        name: "run-5b1e".into(),
        title: Some("fix the parser".into()),
        description: Some("workflow=mcp-orchestrate state=done".into()),
        mime_type: Some("application/json".into()),
        size: Some(2048),
        annotations: Some(annotations()),
        icons: vec![icon()],
        meta: own_meta(),
    }
}

pub(crate) fn contents(body: ResourceBody) -> ResourceContents {
    let mime_type = Some("application/json".into());
    ResourceContents { uri: "cyberine://runs/5b1e".into(), mime_type, body, meta: own_meta() }
}

pub(crate) fn tool() -> Tool {
    Tool {
        name: "list_team".into(),
        title: Some("List team".into()),
        description: Some("Live presence roster.".into()),
        input_schema: json!({ "type": "object", "properties": { "joinRuns": { "type": "boolean" } }, "additionalProperties": false }),
        output_schema: Some(
            json!({ "type": "object", "properties": { "members": { "type": "array" } }, "required": ["members"] }),
        ),
        annotations: Some(ToolAnnotations {
            read_only: Some(true),
            open_world: Some(false),
            ..ToolAnnotations::default()
        }),
        icons: vec![icon()],
        meta: own_meta(),
    }
}

pub(crate) fn every_block() -> Vec<ContentBlock> {
    let annotations = Some(annotations());
    vec![
        ContentBlock::Text { text: "a\u{2028}b\u{9b}c\nd".into(), annotations: annotations.clone() },
        ContentBlock::Image {
            data: "AAEC".into(),
            mime_type: "image/png".into(),
            annotations: annotations.clone(),
        },
        ContentBlock::Audio {
            data: "AAEC".into(),
            mime_type: "audio/wav".into(),
            annotations: annotations.clone(),
        },
        ContentBlock::ResourceLink(resource()),
        ContentBlock::Embedded { contents: contents(ResourceBody::Text("x".into())), annotations },
    ]
}
