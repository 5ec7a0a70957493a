//! A place to run in, and a host that speaks to the server over pipes.

use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

pub(crate) use cyberine_testkit::{PATIENCE, gated, held, shell, wait_until, write_private};
use serde_json::{Value, json};

/// A home and a project of a test's own, and the server under test.
pub(crate) struct Place(cyberine_testkit::Place);

impl Deref for Place {
    type Target = cyberine_testkit::Place;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(cyberine_testkit::Place::new())
    }

    /// A place whose home has this configuration.
    pub(crate) fn with(config: &str) -> Self {
        Self(cyberine_testkit::Place::with(config))
    }

    /// The server's command line and environment: nothing of the test's own but the PATH.
    pub(crate) fn command(&self) -> Command {
        self.program(env!("CARGO_BIN_EXE_cyberine-mcp"))
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    pub(crate) fn host(&self) -> Host {
        Host::start(self.command())
    }
}

/// An MCP host of the 2025 era.
pub(crate) struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next_id: u64,
    pub(crate) notes: Vec<Value>,
}

impl Host {
    pub(crate) fn start(command: Command) -> Self {
        Self::start_as(command, &json!({ "name": "test-host", "version": "1" }))
    }

    /// A host that says this of itself.
    pub(crate) fn start_as(mut command: Command, client: &Value) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut host = Self { child, input, lines, next_id: 1, notes: Vec::new() };
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": client,
        });
        let hello = host.request("initialize", &params);
        assert_eq!(hello["result"]["serverInfo"]["name"], "cyberine", "{hello}");
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a line as it is and returns the next answer.
    pub(crate) fn raw(&mut self, line: &str) -> Value {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Calls a tool and does not wait for its result.
    pub(crate) fn post(&mut self, tool: &str, arguments: &Value) {
        let id = self.next_id;
        self.next_id += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.lines.recv_timeout(PATIENCE).unwrap();
            if message["id"] == id {
                return message;
            }
            self.notes.push(message);
        }
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        answer.get("result").cloned().unwrap_or_else(|| panic!("no result: {answer}"))
    }

    /// Calls a tool that must succeed and returns what it says.
    pub(crate) fn ok(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail and returns the error it gives.
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let content = &result["structuredContent"];
        assert!(content.get("status").is_none(), "{content}");
        content["error"].as_str().unwrap().to_owned()
    }

    /// Dispatches `prompt` and returns the run's id.
    pub(crate) fn orchestrate(&mut self, prompt: &str) -> String {
        let dispatched = self.ok("orchestrate", &json!({ "prompt": prompt }));
        assert_eq!(dispatched["status"], "dispatched", "{dispatched}");
        dispatched["runId"].as_str().unwrap().to_owned()
    }

    /// The run as soon as `done` says so.
    pub(crate) fn inspect_until(&mut self, run: &str, done: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let view = self.ok("inspect_run", &json!({ "runId": run }));
            if done(&view) {
                return view;
            }
            assert!(Instant::now() < until, "{view}");
            let since = &view["nextSeq"];
            self.ok("inspect_run", &json!({ "runId": run, "sinceSeq": since, "waitMs": 500 }));
        }
    }

    pub(crate) fn settled(&mut self, run: &str) -> Value {
        self.inspect_until(run, is_over)
    }

    /// Closes the server's input and returns how and how soon it ended.
    pub(crate) fn hang_up(mut self) -> (ExitStatus, Duration) {
        drop(self.input.take());
        let begun = Instant::now();
        (self.child.wait().unwrap(), begun.elapsed())
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn is_over(view: &Value) -> bool {
    ["done", "error", "cancelled"].contains(&view["state"].as_str().unwrap())
}

/// Processes that carry the mark of `run`.
pub(crate) fn marked(run: &str) -> Vec<u32> {
    let mark = format!("CYBERINE_RUN={run}");
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| environment(*pid).contains(&mark)).collect()
}

/// The environment of a process, as the system shows it.
pub(crate) fn environment(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()
}

pub(crate) fn kill_nine(pid: u64) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
