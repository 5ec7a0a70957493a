//! What the inner set lets out, without the token.

use std::collections::BTreeMap;

use cyberine_protocol::model::{
    ContentBlock, ElicitForm, ElicitUrl, InputRequest, Resource, ResourceBody, ResourceContents,
};
use serde_json::Value;

use super::scrub::Scrub;
use crate::task_set::{TaskState, TaskView};
use crate::toolset::ToolResult;

impl Scrub {
    /// Bytes of pictures and sound are let out as they are.
    pub(super) fn result(&self, result: ToolResult) -> ToolResult {
        let ToolResult { structured, content, is_error } = result;
        let content = content.map(|blocks| blocks.into_iter().map(|block| self.block(block)).collect());
        ToolResult { structured: self.value(structured), content, is_error }
    }

    fn block(&self, block: ContentBlock) -> ContentBlock {
        match block {
            ContentBlock::Text { text, annotations } => {
                ContentBlock::Text { text: self.document(text), annotations }
            }
            ContentBlock::ResourceLink(link) => ContentBlock::ResourceLink(Resource {
                uri: self.text(link.uri),
                name: self.text(link.name),
                title: link.title.map(|text| self.text(text)),
                description: link.description.map(|text| self.text(text)),
                ..link
            }),
            ContentBlock::Embedded { contents, annotations } => {
                let ResourceContents { uri, mime_type, body, meta } = contents;
                let contents =
                    ResourceContents { uri: self.text(uri), mime_type, body: self.body(body), meta };
                ContentBlock::Embedded { contents, annotations }
            }
            ContentBlock::Image { .. } | ContentBlock::Audio { .. } => block,
        }
    }

    /// Bytes are let out as they are.
    pub(super) fn body(&self, body: ResourceBody) -> ResourceBody {
        match body {
            ResourceBody::Text(text) => ResourceBody::Text(self.document(text)),
            ResourceBody::Blob(bytes) => ResourceBody::Blob(bytes),
        }
    }

    pub(super) fn questions(&self, asked: BTreeMap<String, InputRequest>) -> BTreeMap<String, InputRequest> {
        asked.into_iter().map(|(key, question)| (key, self.question(question))).collect()
    }

    fn question(&self, question: InputRequest) -> InputRequest {
        match question {
            InputRequest::Form(ElicitForm { message, requested_schema }) => InputRequest::Form(ElicitForm {
                message: self.text(message),
                requested_schema: self.value(requested_schema),
            }),
            InputRequest::Url(ElicitUrl { message, url }) => {
                InputRequest::Url(ElicitUrl { message: self.text(message), url: self.text(url) })
            }
            InputRequest::Sampling(params) => match self.value(Value::Object(params)) {
                Value::Object(params) => InputRequest::Sampling(params),
                _ => InputRequest::Sampling(serde_json::Map::new()),
            },
            InputRequest::Roots => InputRequest::Roots,
        }
    }

    pub(super) fn task(&self, view: TaskView) -> TaskView {
        let state = match view.state {
            TaskState::InputRequired(asked) => TaskState::InputRequired(self.questions(asked)),
            TaskState::Completed(result) => TaskState::Completed(self.result(result)),
            TaskState::Failed(message) => TaskState::Failed(self.text(message)),
            other @ (TaskState::Working | TaskState::Cancelled) => other,
        };
        TaskView { state, message: view.message.map(|text| self.text(text)), ..view }
    }
}
