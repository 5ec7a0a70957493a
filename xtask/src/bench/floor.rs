//! The floor: a process that reads a line, parses it, builds an answer and prints it. It checks
//! nothing and knows two tools.

use std::io::{BufRead as _, Write as _};

use anyhow::Result;
use serde_json::{Value, json};

/// Serves until the end of stdin.
pub(crate) fn serve() -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let tools = tools();
    let (mut line, mut answer) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        answer.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let Ok(request) = serde_json::from_slice::<Value>(&line) else { continue };
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "floor", "version": "0"},
            }),
            "tools/list" => {
                json!({ "tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public" })
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
        serde_json::to_writer(&mut answer, &json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
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
