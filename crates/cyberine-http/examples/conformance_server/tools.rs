//! The tools: names, arguments and answers as the suite's scenarios want them.

use std::sync::Arc;
use std::time::Duration;

use cyberine_server::{
    Call, CallError, ContentBlock, ListChanges, ListSignal, LogLevel, Outcome, ResourceBody, Tool,
    ToolResult, ToolSet,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::tasks::Tasks;
use crate::{embedded, image};

mod catalog;
mod input;
mod jobs;

/// No sound: a header without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Between two steps of what takes its time.
const STEP: Duration = Duration::from_millis(50);

/// Longer than one stream stays open, and shorter than that and the next one together.
const RECONNECTION: Duration = Duration::from_millis(3_500);

pub(crate) struct Tools {
    tools: Arc<[Tool]>,
    tasks: Arc<Tasks>,
    changes: ListSignal,
    prompt_changes: ListSignal,
}

impl Tools {
    pub(crate) fn new(tasks: Arc<Tasks>, prompt_changes: ListSignal) -> Self {
        Self { tools: catalog::tools(), tasks, changes: ListSignal::new(), prompt_changes }
    }

    async fn answer(&self, call: Call) -> Result<Outcome, CallError> {
        if let Some(asked) = input::answer(&call) {
            return asked;
        }
        match call.name.as_str() {
            "test_simple_text" => said("This is a simple text response for testing."),
            "test_image_content" => done(vec![image()]),
            "test_audio_content" => done(vec![audio()]),
            "test_embedded_resource" => done(vec![embedded(
                "test://embedded-resource",
                "text/plain",
                ResourceBody::Text("This is an embedded resource content.".to_owned()),
            )]),
            "test_multiple_content_types" => done(mixed()),
            "test_error_handling" => Ok(Outcome::Complete(ToolResult {
                is_error: true,
                ..ToolResult::content(vec![ContentBlock::text(
                    "This tool intentionally returns an error for testing",
                )])
            })),
            "test_tool_with_logging" | "test_logging_tool" => logged(&call).await,
            "test_tool_with_progress" => progressed(&call).await,
            "test_reconnection" => {
                tokio::time::sleep(RECONNECTION).await;
                said("Reconnected.")
            }
            "json_schema_2020_12_tool" | "test_x_mcp_header" => {
                said(&format!("Arguments: {}", Value::Object(call.arguments)))
            }
            "test_trigger_tool_change" => {
                self.changes.changed();
                said("The list of tools was said to have changed.")
            }
            "test_trigger_prompt_change" => {
                self.prompt_changes.changed();
                said("The list of prompts was said to have changed.")
            }
            "greet" => said(&format!("Hello, {}!", text_of(&call, "name"))),
            _ => jobs::answer(&self.tasks, call).await,
        }
    }
}

impl ToolSet for Tools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        Arc::clone(&self.tools)
    }

    fn is_public(&self) -> bool {
        true
    }

    fn changes(&self) -> Option<ListChanges> {
        Some(self.changes.changes())
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        Box::pin(self.answer(call))
    }
}

fn done(content: Vec<ContentBlock>) -> Result<Outcome, CallError> {
    Ok(Outcome::Complete(ToolResult::content(content)))
}

fn said(text: &str) -> Result<Outcome, CallError> {
    done(vec![ContentBlock::text(text)])
}

fn text_of<'a>(call: &'a Call, argument: &str) -> &'a str {
    call.arguments.get(argument).and_then(Value::as_str).unwrap_or_default()
}

fn audio() -> ContentBlock {
    ContentBlock::Audio { data: WAV.to_owned(), mime_type: "audio/wav".to_owned(), annotations: None }
}

fn mixed() -> Vec<ContentBlock> {
    let json = json!({ "test": "data", "value": 123 }).to_string();
    vec![
        ContentBlock::text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", ResourceBody::Text(json)),
    ]
}

async fn logged(call: &Call) -> Result<Outcome, CallError> {
    for (at, line) in
        ["Tool execution started", "Tool processing data", "Tool execution completed"].into_iter().enumerate()
    {
        if at > 0 {
            tokio::time::sleep(STEP).await;
        }
        call.log.send(LogLevel::Info, Some("conformance"), &json!(line));
    }
    said("Tool with logging executed.")
}

async fn progressed(call: &Call) -> Result<Outcome, CallError> {
    for percent in [0.0, 50.0, 100.0] {
        if percent > 0.0 {
            tokio::time::sleep(STEP).await;
        }
        call.progress.deliver(percent, Some(100.0), None).await;
    }
    said("Tool with progress executed.")
}
