//! What a server's answers say. The text has passed the strict layer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::effect::{LogLine, OfferedTool, RemoteError, ReplyPart, RequestError, ToolReply, ToolsPage};
use super::question::{self, Asking};
use super::quote::quote;
use super::{ReplyKind, Thing};
use crate::jsonrpc::{RequestId, excerpt};
use crate::model::{
    ClientCapabilities, InputRequired, LogLevel, ResourceBody, ResourceContents, SubscriptionFilter,
};
use crate::revision::Revision;

/// The most revisions of a server that are told.
const TOLD: usize = 10;

/// What a server of the stateless era says of itself.
#[derive(Debug, Default)]
pub(super) struct Discovered {
    /// Nothing where it is of another era.
    pub(super) offered: Vec<String>,
    pub(super) label: Option<String>,
    pub(super) tools: bool,
}

/// What a server agreed to.
pub(super) struct Initialized {
    pub(super) version: String,
    pub(super) label: Option<String>,
    pub(super) tools: bool,
}

/// News of a call.
pub(super) struct News {
    pub(super) token: RequestId,
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// Reads an object into a derived struct, which would also read an array.
fn object<'a, T: Deserialize<'a>>(raw: &'a str) -> Result<T, String> {
    if !raw.starts_with('{') {
        return Err("it is no object".to_owned());
    }
    serde_json::from_str(raw).map_err(|error| quote(error.to_string().as_bytes()))
}

/// The error object of a response. One that is malformed is told as it is.
pub(super) fn error(raw: &str) -> RemoteError {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
        message: String,
        data: Option<Value>,
    }
    match object(raw) {
        Ok(Error { code, message, data }) => RemoteError { code, message: message.trim().to_owned(), data },
        Err(_) => RemoteError { code: -32603, message: quote(raw.as_bytes()), data: None },
    }
}

/// The revisions an error `-32022` names.
pub(super) fn supported(error: &RemoteError) -> Vec<String> {
    let listed = error.data.as_ref().and_then(|data| data["supported"].as_array());
    let named: Vec<String> = versions(listed.into_iter().flatten());
    // It is a server of that era even where it does not say which revisions it speaks.
    if named.is_empty() { vec!["no revision of this client".to_owned()] } else { named }
}

fn versions<'a>(listed: impl Iterator<Item = &'a Value>) -> Vec<String> {
    listed.filter_map(Value::as_str).take(TOLD).map(|version| quote(version.as_bytes())).collect()
}

/// What is no `DiscoverResult` comes from a server that answers anything with anything.
pub(super) fn discovered(raw: &str) -> Discovered {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        supported_versions: Vec<Value>,
        #[serde(default)]
        capabilities: Map<String, Value>,
        #[serde(default, rename = "_meta")]
        meta: Map<String, Value>,
    }
    let Ok(result) = object::<Result>(raw) else { return Discovered::default() };
    Discovered {
        offered: versions(result.supported_versions.iter()),
        label: label(result.meta.get("io.modelcontextprotocol/serverInfo")),
        tools: result.capabilities.contains_key("tools"),
    }
}

pub(super) fn initialized(raw: &str) -> Result<Initialized, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        protocol_version: String,
        #[serde(default)]
        capabilities: Map<String, Value>,
        server_info: Option<Value>,
    }
    let result: Result = object(raw)?;
    Ok(Initialized {
        version: result.protocol_version,
        label: label(result.server_info.as_ref()),
        tools: result.capabilities.contains_key("tools"),
    })
}

fn label(info: Option<&Value>) -> Option<String> {
    let info = info?;
    let text = |name: &str| info[name].as_str().map(str::trim).filter(|text| !text.is_empty());
    let name = text("name")?;
    let whole = text("version").map_or_else(|| name.to_owned(), |version| format!("{name} {version}"));
    Some(quote(whole.as_bytes()))
}

/// What kind of a result it is.
pub(super) enum Kind {
    /// It is the end of its request. Before the stateless era there are no others.
    Complete,
    /// It is a question.
    NeedsInput(InputRequired),
    /// It says that the call goes on as a task.
    Task,
}

/// What a result comes to, for a client that declared `declared`.
pub(super) fn kind(
    raw: &str,
    thing: &Thing,
    revision: Option<Revision>,
    declared: ClientCapabilities,
) -> Result<Kind, RequestError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        result_type: Option<String>,
        #[serde(default)]
        input_requests: BTreeMap<String, Asking>,
        request_state: Option<String>,
    }
    if !revision.is_some_and(Revision::is_stateless) {
        return Ok(Kind::Complete);
    }
    let method = thing.method;
    let unreadable = |reason| RequestError::Unreadable { method, reason };
    let result: Result = object(raw).map_err(unreadable)?;
    match result.result_type.as_deref() {
        None | Some("complete") => Ok(Kind::Complete),
        Some("input_required") if thing.may_need_input => {
            let needs = question::needs(result.input_requests, result.request_state, declared);
            let needs = needs.map_err(unreadable)?;
            needs.map(Kind::NeedsInput).map_err(|methods| RequestError::NeedsInput { methods })
        }
        Some("task") if thing.reply == ReplyKind::Call && declared.tasks => Ok(Kind::Task),
        Some(other) => {
            let reason = format!("its type `{}` is not known", quote(other.as_bytes()));
            Err(unreadable(reason))
        }
    }
}

/// The text of a result that the driver reads.
pub(super) fn whole(raw: &str) -> Result<Box<RawValue>, String> {
    if !raw.starts_with('{') {
        return Err("it is no object".to_owned());
    }
    RawValue::from_string(raw.to_owned()).map_err(|error| quote(error.to_string().as_bytes()))
}

/// The listen a notification belongs to, as its `_meta` names it.
fn listen(meta: &Map<String, Value>) -> Option<RequestId> {
    RequestId::from_token(&meta.get("io.modelcontextprotocol/subscriptionId")?.to_string())
}

/// A notification that belongs to a listen, or comes unasked.
pub(super) struct Heard {
    pub(super) listen: Option<RequestId>,
    pub(super) uri: Option<String>,
    pub(super) served: SubscriptionFilter,
}

pub(super) fn heard(params: Option<&str>) -> Option<Heard> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Served {
        tools_list_changed: bool,
        prompts_list_changed: bool,
        resources_list_changed: bool,
        resource_subscriptions: Vec<String>,
        task_ids: Vec<String>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Map<String, Value>,
        uri: Option<String>,
        notifications: Served,
    }
    let read: Params = params.map_or_else(|| Ok(Params::default()), object).ok()?;
    let served = SubscriptionFilter {
        tools_list_changed: read.notifications.tools_list_changed,
        prompts_list_changed: read.notifications.prompts_list_changed,
        resources_list_changed: read.notifications.resources_list_changed,
        resource_subscriptions: read.notifications.resource_subscriptions,
        task_ids: read.notifications.task_ids,
    };
    Some(Heard { listen: listen(&read.meta), uri: read.uri, served })
}

/// The request a cancellation names.
pub(super) fn cancelled(params: Option<&str>) -> Option<RequestId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let read: Params<'_> = object(params?).ok()?;
    RequestId::from_token(read.request_id.get())
}

pub(super) fn tools(raw: &str) -> Result<ToolsPage, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        tools: Vec<Tool>,
        next_cursor: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tool {
        name: String,
        description: Option<String>,
        input_schema: Option<Box<RawValue>>,
    }
    let result: Result = object(raw)?;
    let tools = result
        .tools
        .into_iter()
        .map(|Tool { name, description, input_schema }| OfferedTool { name, description, input_schema })
        .collect();
    Ok(ToolsPage { tools, next_cursor: result.next_cursor })
}

pub(super) fn reply(raw: &str) -> Result<ToolReply, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        #[serde(default)]
        content: Vec<Block>,
        structured_content: Option<Box<RawValue>>,
        is_error: Option<bool>,
    }
    let result: Result = object(raw)?;
    let content = result.content.into_iter().map(part).collect::<std::result::Result<_, _>>()?;
    Ok(ToolReply {
        content,
        structured: result.structured_content,
        is_error: result.is_error.unwrap_or_default(),
    })
}

/// A piece of a result, whichever it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    r#type: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

fn part(block: Block) -> Result<ReplyPart, String> {
    let kind = block.r#type;
    let missing = |member: &str| format!("a part of the type `{kind}` has no `{member}`");
    Ok(match kind.as_str() {
        "text" => ReplyPart::Text(block.text.ok_or_else(|| missing("text"))?),
        "image" | "audio" => {
            let data = block.data.ok_or_else(|| missing("data"))?;
            let mime_type = block.mime_type.ok_or_else(|| missing("mimeType"))?;
            if kind == "image" {
                ReplyPart::Image { data, mime_type }
            } else {
                ReplyPart::Audio { data, mime_type }
            }
        }
        "resource_link" => {
            let uri = block.uri.ok_or_else(|| missing("uri"))?;
            ReplyPart::Link { name: block.name.unwrap_or_default(), uri }
        }
        "resource" => {
            let resource = block.resource.ok_or_else(|| missing("resource"))?;
            let body = match (resource.text, resource.blob) {
                (Some(text), _) => ResourceBody::Text(text),
                (None, Some(blob)) => ResourceBody::Blob(blob),
                (None, None) => return Err(missing("resource.text")),
            };
            let (uri, mime_type, meta) = (resource.uri, resource.mime_type, resource.meta);
            ReplyPart::Embedded(ResourceContents { uri, mime_type, body, meta })
        }
        _ => ReplyPart::Unknown { kind: quote(kind.as_bytes()) },
    })
}

pub(super) fn progress(params: Option<&str>) -> Option<News> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        progress_token: &'a RawValue,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let read: Params<'_> = object(params?).ok()?;
    let token = RequestId::from_token(read.progress_token.get())?;
    Some(News { token, progress: read.progress, total: read.total, message: read.message })
}

pub(super) fn log_line(params: Option<&str>) -> Option<LogLine> {
    #[derive(Deserialize)]
    struct Params {
        level: String,
        data: Value,
    }
    let read: Params = object(params?).ok()?;
    let text = match read.data {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Some(LogLine { level: LogLevel::parse(&read.level), text: excerpt(&text).to_owned() })
}
