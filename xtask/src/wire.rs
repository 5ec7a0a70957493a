//! A client on bytes: it starts the real server with real stdio and knows no SDK.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::proc;

/// How long an answer may take before the check fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What a host gives the server as stdin and stdout: Node gives Unix sockets, Python pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdio2 {
    Pipes,
    Sockets,
}

/// A server under test and its two ends.
pub(crate) struct Server {
    child: Child,
    input: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    /// Notifications that came while a response was awaited.
    notified: VecDeque<Value>,
    next_id: i64,
}

impl Server {
    /// Starts `command` with the given kind of stdio; its stderr is as the command says.
    pub(crate) fn start(mut command: Command, kind: Stdio2) -> Result<Self> {
        let (child, input, output): (Child, Box<dyn Write + Send>, Box<dyn Read + Send>) = match kind {
            Stdio2::Pipes => {
                let mut child = command
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .context("starting the server")?;
                let input: ChildStdin = child.stdin.take().context("stdin is piped")?;
                let output: ChildStdout = child.stdout.take().context("stdout is piped")?;
                (child, Box::new(input), Box::new(output))
            }
            Stdio2::Sockets => {
                let (input, theirs_in) = UnixStream::pair()?;
                let (output, theirs_out) = UnixStream::pair()?;
                command.stdin(Stdio::from(OwnedFd::from(theirs_in)));
                command.stdout(Stdio::from(OwnedFd::from(theirs_out)));
                let child = command.spawn().context("starting the server")?;
                // `command` still holds the server's ends; the end of file must not wait for it.
                drop(command);
                (child, Box::new(input), Box::new(output))
            }
        };
        Ok(Self { child, input: Some(input), lines: pump(output), notified: VecDeque::new(), next_id: 0 })
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one line as it is.
    pub(crate) fn send_line(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("stdin is still open")?;
        input.write_all(line.as_bytes())?;
        input.write_all(b"\n")?;
        input.flush()?;
        Ok(())
    }

    /// The next message, whatever it is.
    pub(crate) fn next(&mut self) -> Result<Value> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => bail!("no answer within {} s", PATIENCE.as_secs()),
            Err(RecvTimeoutError::Disconnected) => bail!("the server closed its stdout"),
        };
        serde_json::from_str(&line)
            .with_context(|| format!("stdout carries something else than JSON: {line:?}"))
    }

    /// A notification that was kept or comes within `limit`.
    pub(crate) fn notification_within(&mut self, limit: Duration) -> Option<String> {
        let kept = self.notified.pop_front().map(|notification| notification.to_string());
        kept.or_else(|| self.lines.recv_timeout(limit).ok())
    }

    /// The next notification, or an error where a response comes first.
    pub(crate) fn notification(&mut self) -> Result<Value> {
        match self.notified.pop_front() {
            Some(notification) => Ok(notification),
            None => self.next(),
        }
    }

    /// Sends a request and returns its response; notifications are kept.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.request(method, params)?;
        self.response(id)
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<i64> {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send_line(&message.to_string())?;
        Ok(self.next_id)
    }

    /// Waits for the response to `id`; notifications are kept.
    pub(crate) fn response(&mut self, id: i64) -> Result<Value> {
        loop {
            let message = self.next()?;
            if message.get("id") == Some(&json!(id)) {
                return Ok(message);
            }
            ensure!(message.get("method").is_some(), "an answer to nothing that was asked: {message}");
            self.notified.push_back(message);
        }
    }

    /// Opens a 2025-era session and returns the result of `initialize`.
    pub(crate) fn initialize(&mut self, revision: &str) -> Result<Value> {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "xtask-selftest", "version": "1"},
        });
        let response = self.ask("initialize", &params)?;
        self.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(response["result"].clone())
    }

    /// Calls a tool in the era given and returns the whole response.
    pub(crate) fn call(&mut self, era: Era, tool: &str, arguments: &Value) -> Result<Value> {
        self.ask("tools/call", &era.params(json!({"name": tool, "arguments": arguments})))
    }

    /// Closes stdin and waits for the end: the exit code, and what came after.
    pub(crate) fn close(mut self) -> Result<(i32, Vec<String>)> {
        drop(self.input.take());
        let code =
            proc::wait(&mut self.child, Duration::from_secs(10))?.context("the server outlived its stdin")?;
        Ok((code, self.lines.try_iter().collect()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pump(output: Box<dyn Read + Send>) -> Receiver<String> {
    let (send, lines) = sync_channel(100_000);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The two eras of the protocol, as a client lives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Y2025,
    Y2026,
}

impl Era {
    pub(crate) fn year(self) -> u16 {
        match self {
            Self::Y2025 => 2025,
            Self::Y2026 => 2026,
        }
    }

    /// `params` as this era wants them.
    pub(crate) fn params(self, mut params: Value) -> Value {
        if self == Self::Y2026 {
            params["_meta"] = meta();
        }
        params
    }

    /// `params` with a progress token.
    pub(crate) fn params_with_progress(self, params: Value, token: &str) -> Value {
        let mut params = self.params(params);
        params["_meta"]["progressToken"] = json!(token);
        params
    }
}

/// The `_meta` of a 2026-07-28 request.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "xtask-selftest", "version": "1"},
    })
}

/// A program's command with a home and a project of its own, and nothing else of the environment
/// than what programs need to start.
pub(crate) fn command(program: &Path, home: &Path, project: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("CYBERINE_HOME", home).env("HOME", home).current_dir(project);
    command.env("CYBERINE_DISCOVERY", "off");
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Writes the configuration of a home, readable for its owner only.
pub(crate) fn configure(home: &Path, config: &str) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = home.join("config.toml");
    let mut file =
        std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    Ok(file.write_all(config.as_bytes())?)
}
