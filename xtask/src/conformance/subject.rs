//! What the suite is run against, started when it is first needed.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::legs::Subject;
use crate::http::{Connection, request};
use crate::proc::{self, Scratch};
use crate::served::{FIXED, Served};
use crate::wire::Era;
use crate::{bridge, wire};

const BUILD: Duration = Duration::from_secs(1500);
const PATIENCE: Duration = Duration::from_secs(30);
/// Two programs that answer at once.
const PROVIDERS: &str = "\
    [providers.one]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo 42\"]\n\
    [providers.two]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo 42\"]\n";

pub(super) struct Subjects {
    started: Vec<(Subject, Started)>,
}

/// Where a subject is, and what ends with it.
struct Started {
    address: String,
    server: Option<Served>,
    _home: Option<Scratch>,
}

impl Subjects {
    /// `url`: a server that runs already, in the place of the fixture over HTTP.
    pub(super) fn new(url: Option<&str>) -> Self {
        Self { started: url.map(|url| (Subject::Http, at(url.to_owned()))).into_iter().collect() }
    }

    /// The URL of a server, or the command line of a client.
    pub(super) fn get(&mut self, subject: Subject) -> Result<String> {
        if let Some((_, started)) = self.started.iter().find(|(known, _)| *known == subject) {
            return Ok(started.address.clone());
        }
        let started = match subject {
            Subject::Http => {
                let mut command = Command::new(example("cyberine-http", "conformance_server")?);
                command.args(["--port", "0"]);
                served(command, None)?
            }
            Subject::Stdio => {
                let program = example("cyberine-http", "conformance_server")?;
                at(bridge::start(vec![program, "--stdio".to_owned()])?)
            }
            Subject::Client => at(example("cyberine-client", "conformance_client")?),
            Subject::Real => real()?,
        };
        let address = started.address.clone();
        self.started.push((subject, started));
        Ok(address)
    }
}

fn at(address: String) -> Started {
    Started { address, server: None, _home: None }
}

fn served(command: Command, home: Option<Scratch>) -> Result<Started> {
    let server = Served::start(command)?;
    Ok(Started { address: server.url.clone(), server: Some(server), _home: home })
}

/// The product's own server, with a home of its own and a run, so that there is a resource to read.
fn real() -> Result<Started> {
    let bins = proc::build_binaries()?;
    let scratch = Scratch::new("conformance")?;
    let (home, project) = (scratch.dir("home")?, scratch.dir("project")?);
    wire::configure(&home, &format!("{FIXED}{PROVIDERS}"))?;
    let mut command = wire::command(&bins.join("cyberine-mcp"), &home, &project);
    command.args(["--http", "127.0.0.1:0"]);
    let started = served(command, Some(scratch))?;
    let server = started.server.as_ref().context("a server that was started")?;
    let run = call(server.address(), "orchestrate", &json!({"prompt": "six times seven"}))?["runId"].clone();
    let view = call(server.address(), "inspect_run", &json!({"runId": run, "waitMs": 20_000}))?;
    ensure!(view["runId"] == run, "there is no run: {view}");
    Ok(started)
}

/// Calls a tool in the 2026 era and returns what it says.
fn call(address: &str, tool: &str, arguments: &Value) -> Result<Value> {
    let params = Era::Y2026.params(json!({"name": tool, "arguments": arguments}));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let mut connection = Connection::open(address, PATIENCE)?;
    connection.send(&request("POST", address, &headers, Some(message.as_bytes())))?;
    Ok(connection.answer()?.reply()?["result"]["structuredContent"].clone())
}

/// Builds an example and returns its path.
fn example(package: &str, name: &str) -> Result<String> {
    let mut build = proc::cargo();
    build.args(["build", "--quiet", "-p", package, "--example", name]);
    proc::run(&mut build, BUILD)?;
    Ok(proc::bin_dir()?.join("examples").join(name).to_string_lossy().into_owned())
}
