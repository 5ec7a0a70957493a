//! The shape of everything a host can call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_protocol::model::{ClientCapabilities, ContentBlock, InputRequest};
use cyberine_protocol::{Schema, SchemaError, Violations};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::changes::ListChanges;
use crate::log::Log;
use crate::object_schema::{ExtraArgument, ObjectSchema};
use crate::progress::Progress;
use crate::task_set::TaskView;

/// A set of tools, served by the rail.
///
/// Handlers are re-entrant: a call that needs input answers [`Outcome::InputRequired`] and is
/// called again, from the start, with [`Call::input_responses`] and the state it gave. The rail
/// carries the question to the client in the way of its era.
pub trait ToolSet: Send + Sync {
    /// The tools this caller may see, in a fixed order.
    fn list(&self, caller: &Caller) -> Arc<[Tool]>;

    /// Whether the list is the same for every caller, so that it may be kept for all of them.
    fn is_public(&self) -> bool {
        false
    }

    /// Follows the list, where it may change while it is served.
    fn changes(&self) -> Option<ListChanges> {
        None
    }

    /// Arguments that every tool takes beside its own, in the same order always. A wrapper that
    /// takes some names them after those of the set it wraps.
    fn extra_arguments(&self) -> Vec<ExtraArgument> {
        Vec::new()
    }

    /// Refuses a call before its arguments are checked, so that who may not call learns nothing
    /// from what is wrong with them. [`call`](Self::call) must refuse it too.
    fn refuse(&self, name: &str, arguments: &Map<String, Value>) -> Option<ToolResult> {
        let _ = (name, arguments);
        None
    }

    /// Whether a tool controls what other calls have begun: cancels, stops, decides. Where all places
    /// for requests are taken a few are left for such calls, so that it can always be done. Asked
    /// only then.
    fn is_control(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Takes out of a text what must not be repeated. The rail asks for what may quote a message.
    fn redact(&self, text: String) -> String {
        text
    }

    /// Calls a tool of the list. The rail has checked the arguments against the tool's input
    /// schema. Failures of the work are results with `is_error`, not errors.
    ///
    /// Over stdio the future is polled for the first time on the thread that reads requests, so
    /// that an answer that is ready leaves at once. Work that blocks belongs in a blocking task:
    /// until the first poll returns, no other request is read.
    ///
    /// # Cancel safety
    /// The rail cancels [`Call::cancel`] and then drops the future; what must not stop half way
    /// runs in a task of its own.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>>;
}

/// One tool as hosts see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name: 1 to 64 characters of `[A-Za-z0-9_.-]`.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// What it does, for the host's model.
    pub description: Cow<'static, str>,
    /// JSON Schema (2020-12) of the arguments, without root `oneOf`.
    pub input_schema: ObjectSchema,
    /// JSON Schema of `structuredContent`. One without members promises nothing and is not listed:
    /// for tools whose results are content alone.
    pub output_schema: ObjectSchema,
    /// Hints for the host.
    pub annotations: Annotations,
}

impl Tool {
    /// Checks a result against the output schema. It compiles the schema every time: for tests of
    /// tool sets, which promise hosts that results satisfy it.
    ///
    /// # Errors
    /// Where the schema cannot be used, or the result does not satisfy it.
    pub fn check_result(&self, result: &ToolResult) -> Result<(), ResultMismatch> {
        let schema = Schema::parse(&self.output_schema.to_string())
            .map_err(|source| ResultMismatch::Schema { tool: self.name, source })?;
        let checked = schema.check(&result.structured);
        checked.map_err(|violations| ResultMismatch::Shape { tool: self.name, violations })
    }
}

/// A result that breaks what its tool promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultMismatch {
    /// The promise itself is broken.
    #[error("the output schema of `{tool}` cannot be used")]
    Schema {
        /// The tool.
        tool: &'static str,
        /// What is wrong with its schema.
        source: SchemaError,
    },
    /// The result is not of the promised shape.
    #[error("a result of `{tool}` does not satisfy its output schema: {violations}")]
    Shape {
        /// The tool.
        tool: &'static str,
        /// Where and how.
        violations: Violations,
    },
}

/// Hints about a tool, not trusted by hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy what is there.
    pub destructive: bool,
    /// Calling it twice is calling it once.
    pub idempotent: bool,
    /// It reaches beyond this machine.
    pub open_world: bool,
}

/// One call of one tool.
#[derive(Debug)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Who calls.
    pub caller: Caller,
    /// What the client can be asked for. A question it cannot be asked is refused by the rail.
    pub capabilities: ClientCapabilities,
    /// Whether the call may be answered with [`Outcome::Task`].
    pub tasks: bool,
    /// Answers to what an earlier [`Outcome::InputRequired`] asked, by its keys.
    pub input_responses: BTreeMap<String, Value>,
    /// The state that outcome carried, verified by the rail.
    pub state: Option<Value>,
    /// Where news of the call goes. It does nothing where the client asked for none.
    pub progress: Progress,
    /// Where lines of the call's log go. It does nothing where the client wants none.
    pub log: Log,
    /// Cancelled when the client cancels the call or goes away.
    pub cancel: CancellationToken,
    /// Tasks that may go on after the reply, until the server ends or the client cancels.
    pub background: Background,
}

/// What a call comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is over.
    Complete(ToolResult),
    /// It cannot go on without input.
    InputRequired {
        /// What to ask, by keys of the handler's choice.
        requests: BTreeMap<String, InputRequest>,
        /// What the handler wants back with the answers. The rail seals it.
        state: Value,
    },
    /// It goes on as a task, which the server's [`TaskSet`](crate::TaskSet) has from now on. Only
    /// where [`Call::tasks`] says so.
    Task(TaskView),
}

/// The result of a call. The same JSON goes out as `structuredContent` and as text.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The result: an object that satisfies the tool's output schema; `null` where there is
    /// [`content`](Self::content) and the tool promises nothing else.
    pub structured: Value,
    /// What a model sees in the place of the JSON: text, pictures, sound, resources.
    pub content: Option<Vec<ContentBlock>>,
    /// Whether the work failed.
    pub is_error: bool,
}

impl ToolResult {
    /// A result of work that succeeded.
    #[must_use]
    pub const fn ok(structured: Value) -> Self {
        Self { structured, content: None, is_error: false }
    }

    /// A result of work that succeeded, which is content alone.
    #[must_use]
    pub const fn content(content: Vec<ContentBlock>) -> Self {
        Self { structured: Value::Null, content: Some(content), is_error: false }
    }

    /// A result of work that failed: `{"error": message}`.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self { structured: serde_json::json!({ "error": message.into() }), content: None, is_error: true }
    }
}

/// A call the tool set cannot even begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no such tool for this caller.
    #[error("unknown tool `{0}`")]
    UnknownTool(String),
    /// The server is at fault. The text is for the host's model; details go to the log.
    #[error("internal error: {0}")]
    Internal(String),
    /// The call goes on as a task or not at all, and [`Call::tasks`] is false.
    #[error("the tool goes on as a task, which this client did not declare")]
    NeedsTasks,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_held_to_what_its_tool_promises() {
        let mut tool = Tool {
            name: "count",
            title: "Count",
            description: "".into(),
            input_schema: ObjectSchema::new("", ""),
            output_schema: ObjectSchema::new(r#""n":{"type":"integer"}"#, r#""required":["n"]"#),
            annotations: Annotations {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: false,
            },
        };
        assert_eq!(tool.check_result(&ToolResult::ok(json!({ "n": 1 }))), Ok(()));
        for wrong in [json!({}), json!({ "n": "1" }), json!([])] {
            let error = tool.check_result(&ToolResult::ok(wrong)).unwrap_err();
            assert!(error.to_string().starts_with("a result of `count`"), "{error}");
        }
        for broken in ["\"required\":7", "\"required\""] {
            tool.output_schema = ObjectSchema::new("", broken);
            let error = tool.check_result(&ToolResult::ok(json!({}))).unwrap_err();
            assert!(matches!(error, ResultMismatch::Schema { tool: "count", .. }), "{error}");
        }
    }
}
