//! Servers of a few lines of shell, which write down what they read.

use std::path::PathBuf;
use std::time::Duration;

use cyberine_client::{CallEvent, Client, ClientError, ClientOptions, ToolReply};
use cyberine_process::{ChildEnvironment, Spawn};
use serde_json::{Map, Value, json};

/// How they begin: what is read is written down, and `answer ID RESULT` answers.
const PRELUDE: &str = r#"
hear() { IFS= read -r line || exit 0; printf '%s\n' "$line" >> heard; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
"#;

/// Reads `server/discover` and answers it; the next request has the id 2.
pub(crate) const STATELESS: &str = r#"
hear; answer 1 '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
"#;

/// Knows only `initialize`; the request after it has the id 3.
pub(crate) const LEGACY: &str = r#"
hear; printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}\n'
hear; answer 2 '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}'
hear
"#;

pub(crate) struct Peer {
    directory: tempfile::TempDir,
    script: String,
}

impl Peer {
    /// A server that does `parts`, one after the other.
    pub(crate) fn new(parts: &[&str]) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), script: format!("{PRELUDE}{}", parts.concat()) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn spawn(&self) -> Spawn {
        let environment = ChildEnvironment::allowed(std::env::vars_os());
        let args = vec!["-c".into(), self.script.clone().into()];
        Spawn {
            args,
            grace: Duration::from_millis(50),
            ..Spawn::new("sh", environment, self.directory.path())
        }
    }

    pub(crate) fn start(&self) -> Client {
        Client::start(self.spawn(), ClientOptions::new("test", "0")).unwrap()
    }

    /// What the server has read.
    pub(crate) fn heard(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("heard")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |line: Value| line["method"].as_str().unwrap_or("-").to_owned();
        self.heard().into_iter().map(method).collect()
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(cyberine_testkit::PATIENCE, work).await.unwrap() })
}

pub(crate) fn arguments() -> Map<String, Value> {
    let Value::Object(arguments) = json!({ "text": "é\u{2028}\n" }) else { unreachable!() };
    arguments
}

/// Calls `echo` and waits for its end; what came before is counted.
pub(crate) async fn call(client: &mut Client) -> (usize, Result<ToolReply, ClientError>) {
    let mut call = client.call("echo", &arguments()).unwrap();
    let mut before = 0;
    loop {
        match call.next().await {
            Ok(CallEvent::Done(reply)) => return (before, Ok(reply)),
            Ok(_) => before += 1,
            Err(error) => return (before, Err(error)),
        }
    }
}
