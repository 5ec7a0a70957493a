//! The server over HTTP, and a client that says exactly what it is told to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use cyberine_types::Secret;
use serde_json::{Value, json};

use crate::host::{PATIENCE, Place};

/// The server, at an address of its own.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    child: Child,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn at(place: &Place, address: &str) -> Self {
        Self::logging(place, address, "warn")
    }

    /// A server that logs at `level`.
    pub(crate) fn logging(place: &Place, address: &str, level: &str) -> Self {
        let mut command = place.command();
        command.args(["--http", address]).env("CYBERINE_LOG", level);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (log, mut address) = (Arc::new(Mutex::new(String::new())), None);
        while address.is_none() {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {}", log.lock().unwrap()));
            let url = line.strip_prefix("cyberine-mcp: serving http://");
            address = url.map(|url| url.strip_suffix("/mcp").unwrap().parse().unwrap());
            log.lock().unwrap().push_str(&format!("{line}\n"));
        }
        let kept = Arc::clone(&log);
        let reading = std::thread::spawn(move || {
            for line in lines {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        Self { address: address.unwrap(), child, log, reading: Some(reading) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn ask(&self, asked: &Asked) -> Answer {
        asked.send(self.address)
    }

    /// Waits until a call waits in the server, beside the one that asks.
    pub(crate) fn until_in_flight(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.ask(&get("/metrics")).text.contains("cyberine_http_requests_in_flight 2") {
            assert!(Instant::now() < until, "no call came in");
        }
    }

    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// How it ended, and all it logged.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        self.reading.take().unwrap().join().unwrap();
        let log = self.log.lock().unwrap().clone();
        (code, log)
    }

    /// Ends it in order, and returns all it logged.
    pub(crate) fn end(self) -> String {
        self.terminate();
        let (code, log) = self.ended();
        assert_eq!(code, Some(0), "{log}");
        log
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request, as it will be written.
pub(crate) struct Asked {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// A call of a tool in the stateless era.
pub(crate) fn modern(tool: &str, arguments: &Value) -> Asked {
    Asked::modern("tools/call", Some(tool), json!({ "name": tool, "arguments": arguments }))
}

/// A request in the `initialize` era.
pub(crate) fn legacy(method: &str, params: &Value) -> Asked {
    Asked::post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

pub(crate) fn get(path: &str) -> Asked {
    Asked { method: "GET", path: path.to_owned(), headers: Vec::new(), body: String::new() }
}

impl Asked {
    fn post(message: &Value) -> Self {
        let headers =
            [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { method: "POST", path: "/mcp".to_owned(), headers, body: message.to_string() }
    }

    /// A request in the stateless era; `name` is what it is about.
    pub(crate) fn modern(method: &str, name: Option<&str>, mut params: Value) -> Self {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test-client", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let asked =
            Self::post(&message).header("MCP-Protocol-Version", "2026-07-28").header("Mcp-Method", method);
        match name {
            Some(name) => asked.header("Mcp-Name", name),
            None => asked,
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    pub(crate) fn send(&self, address: SocketAddr) -> Answer {
        let Self { method, path, headers, body } = self;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::read(&String::from_utf8(bytes).unwrap())
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) text: String,
    /// The body, or the last message of an event stream; null where it is neither.
    pub(crate) json: Value,
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let head = head.to_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let text = if is_chunked { joined(body) } else { body.to_owned() };
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        let json = serde_json::from_str(last).unwrap_or(Value::Null);
        Self { status, head, text, json }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let of = |line: &'_ str| {
            line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.len()))
        };
        let line = self.head.lines().find(|line| of(line).is_some_and(|(found, _)| found == name));
        line.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value)
    }

    pub(crate) fn result(&self) -> Value {
        self.json.get("result").cloned().unwrap_or_else(|| panic!("no result: {self:?}"))
    }
}

/// A body in chunks (RFC 9112, 7.1), put together.
fn joined(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}

/// A token that was handed out, and its entry.
pub(crate) struct HandedOut {
    pub(crate) name: &'static str,
    pub(crate) token: String,
    pub(crate) entry: String,
}

/// A token for `name`; `more` is what else its entry says.
pub(crate) fn handed_out(name: &'static str, tenant: &str, more: &str) -> HandedOut {
    let token = format!("cyb_test-{name}-{}", "0123456789abcdef");
    let digest = cyberine_http::identity::TokenDigest::of(&Secret::new(token.as_str()));
    let entry = format!(
        "[[identity.token]]\nname = \"{name}\"\ntenant = \"{tenant}\"\nsha256 = \"{digest}\"\n{more}"
    );
    HandedOut { name, token, entry }
}

impl Place {
    /// Whether a file of this place has `text` in it.
    pub(crate) fn holds(&self, text: &str) -> bool {
        holds(&self.path(""), text.as_bytes())
    }
}

fn holds(directory: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(directory).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            return holds(&path, text);
        }
        std::fs::read(&path).unwrap_or_default().windows(text.len()).any(|window| window == text)
    })
}
