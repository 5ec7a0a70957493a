//! What codex tells of as items, which both of its forms have, each in a spelling of its own.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::port::ToolCall;
use crate::wire::WireEvent;

/// What has been told of items.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The calls that have been told, by the ids of their items.
    calls: BTreeSet<String>,
}

impl Items {
    /// Tells of `item`, which has begun, gone on or ended. Everything that becomes an item is the
    /// model's doing, but for what the program complains of and what it was asked.
    pub(super) fn told(&mut self, item: &Value, out: &mut Vec<WireEvent>) {
        match text(&item["type"]) {
            "" | "error" | "userMessage" | "hookPrompt" => {}
            _ => out.push(WireEvent::Work),
        }
        let Some((name, arguments)) = call(item) else { return };
        let id = text(&item["id"]).to_owned();
        if self.calls.insert(id.clone()) {
            out.push(WireEvent::ToolCall(ToolCall::new(id, name, arguments)));
        }
    }
}

/// The name of the tool that `item` calls, and what with.
fn call(item: &Value) -> Option<(String, Value)> {
    let named = |name: &str, key: &str| Some((name.to_owned(), json!({ key: item[key] })));
    match text(&item["type"]) {
        "command_execution" | "commandExecution" => named("command_execution", "command"),
        "file_change" | "fileChange" => named("file_change", "changes"),
        "web_search" | "webSearch" => named("web_search", "query"),
        "mcp_tool_call" | "mcpToolCall" => {
            let name = format!("{}/{}", text(&item["server"]), text(&item["tool"]));
            Some((name, item["arguments"].clone()))
        }
        _ => None,
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
