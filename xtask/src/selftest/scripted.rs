//! The scripted server as a process, and its control over plain HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::proc::{self, Scratch};

/// A scripted server with a script of its own; killed on drop.
pub(crate) struct Scripted {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) base_url: String,
    _scratch: Scratch,
}

impl Scripted {
    pub(crate) fn start(bins: &Path, script: &str) -> Result<Self> {
        let scratch = Scratch::new("script")?;
        let file = scratch.path().join("script.toml");
        std::fs::write(&file, script)?;
        let mut command = Command::new(bins.join("cyberine-scripted-llm"));
        command
            .arg("serve")
            .arg("--script")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("starting the scripted server")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
        let base_url = line.trim().to_owned();
        ensure!(base_url.starts_with("http://127.0.0.1:"), "the scripted server said {line:?}");
        Ok(Self { child, base_url, _scratch: scratch })
    }

    /// Waits until so many requests are held.
    pub(crate) fn wait_until_held(&self, count: usize) -> Result<()> {
        proc::until("held requests", Duration::from_secs(15), || {
            let state = self.http("GET", "/control/state")?;
            Ok(state["held"].as_array().map_or(0, Vec::len) == count)
        })
    }

    /// Lets everything go on that waits for `name`.
    pub(crate) fn release(&self, name: &str) -> Result<()> {
        self.http("POST", &format!("/control/release/{name}")).map(drop)
    }

    /// How often `model` has been asked.
    pub(crate) fn asked(&self, model: &str) -> Result<usize> {
        let state = self.http("GET", "/control/state")?;
        let model = format!("scripted/{model}");
        let requests = state["requests"].as_array().context("requests")?;
        Ok(requests.iter().filter(|request| request["model"] == *model).count())
    }

    fn http(&self, method: &str, path: &str) -> Result<Value> {
        let address = self.base_url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let (head, body) = response.split_once("\r\n\r\n").context("an HTTP response")?;
        ensure!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {head}");
        Ok(serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
