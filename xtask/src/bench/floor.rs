//! The floor: what reads a message, parses it, builds an answer and writes it. It checks nothing and
//! knows a few tools. Over stdio it is a command of this program, over HTTP an example.

use std::io::{BufRead as _, Write as _};

use anyhow::Result;
use serde_json::{Value, json};

/// Serves until the end of stdin.
pub(crate) fn serve() -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let floor = Floor::new();
    let (mut line, mut answer) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        answer.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if floor.answer(&line, &mut answer)? {
            answer.push(b'\n');
            output.write_all(&answer)?;
            output.flush()?;
        }
    }
}

pub(crate) struct Floor {
    tools: Value,
}

impl Floor {
    pub(crate) fn new() -> Self {
        Self { tools: tools() }
    }

    /// Writes the answer to a message, if it wants one.
    pub(crate) fn answer(&self, message: &[u8], answer: &mut Vec<u8>) -> Result<bool> {
        let Ok(request) = serde_json::from_slice::<Value>(message) else { return Ok(false) };
        let Some(id) = request.get("id") else { return Ok(false) };
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "floor", "version": "0"},
            }),
            "tools/list" => {
                json!({ "tools": self.tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public" })
            }
            "tools/call" => {
                let echoed = json!({"text": request["params"]["arguments"]["text"]});
                json!({
                    "content": [{"type": "text", "text": echoed.to_string()}],
                    "structuredContent": echoed,
                    "resultType": "complete",
                })
            }
            _ => json!({}),
        };
        serde_json::to_writer(answer, &json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        Ok(true)
    }
}

fn tools() -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let tool = |name: &str| {
        json!({
            "name": name,
            "title": "A tool",
            "description": "Gives back what it was given.",
            "inputSchema": schema,
            "outputSchema": schema,
            "annotations": {"readOnlyHint": true},
        })
    };
    Value::Array(["echo", "a", "b", "c"].map(tool).to_vec())
}
