//! A client of which every byte is known.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than anything here takes, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Fails the test instead of hanging it.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("this hangs")
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
}

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The code of the JSON-RPC error, and whether it has an id.
    pub(crate) fn error(&self) -> (i64, Option<Value>) {
        let json = self.json();
        (
            json["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {json}")),
            json.get("id").cloned(),
        )
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) is_comment: bool,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}

impl Client {
    pub(crate) async fn new(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), read: Vec::new() }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        in_time(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Sends a request with these headers beside `Host` and the length.
    pub(crate) async fn request(&mut self, method: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.send([head.as_bytes(), body].concat()).await;
    }

    async fn fill(&mut self) -> usize {
        in_time(self.stream.read_buf(&mut self.read)).await.unwrap_or(0)
    }

    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                let rest = self.read.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.read, rest));
            }
            if self.fill().await == 0 {
                return None;
            }
        }
    }

    pub(crate) async fn head(&mut self) -> Head {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await.expect("closed before the head")).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Head { status, headers }
    }

    /// One chunk of a body; empty at its end, `None` where it is cut off.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.until(b"\r\n").await?).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        while self.read.len() < size + 2 {
            if self.fill().await == 0 {
                return None;
            }
        }
        let rest = self.read.split_off(size + 2);
        let mut chunk = std::mem::replace(&mut self.read, rest);
        chunk.truncate(size);
        Some(chunk)
    }

    pub(crate) async fn response(&mut self) -> Response {
        let head = self.head().await;
        let mut body = Vec::new();
        match head.get("content-length") {
            Some(length) => {
                let length: usize = length.parse().unwrap();
                while self.read.len() < length {
                    assert_ne!(self.fill().await, 0, "closed within the body");
                }
                let rest = self.read.split_off(length);
                body = std::mem::replace(&mut self.read, rest);
            }
            None if head.get("transfer-encoding").is_some() => loop {
                let chunk = self.chunk().await.expect("closed within the body");
                if chunk.is_empty() {
                    break;
                }
                body.extend(chunk);
            },
            None => {}
        }
        Response { head, body }
    }

    /// The next event of a stream; `None` at its end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        let chunk = self.chunk().await?;
        if chunk.is_empty() {
            return None;
        }
        let text = String::from_utf8(chunk).unwrap();
        let (first, rest) = text.split_once("\n\n").expect("a whole event");
        if !rest.is_empty() {
            // Events that went out together: the others are the next ones.
            let again = format!("{:x}\r\n{rest}\r\n", rest.len()).into_bytes();
            self.read.splice(0..0, again);
        }
        let mut event = Event::default();
        for line in first.split('\n') {
            match line.split_once(':') {
                Some(("", _)) => event.is_comment = true,
                Some(("id", value)) => event.id = Some(value.trim_start().to_owned()),
                Some(("retry", value)) => event.retry = Some(value.trim_start().to_owned()),
                Some(("data", value)) => event.data = Some(value.trim_start().to_owned()),
                other => panic!("{other:?}"),
            }
        }
        Some(event)
    }

    /// The next message of a stream; `None` at its end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if event.data.as_deref().is_some_and(|data| !data.is_empty()) {
                return Some(event.json());
            }
        }
    }

    /// Whether the server has closed the connection and nothing more is to be read.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && self.fill().await == 0
    }
}

pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");
pub(crate) const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
const STATELESS: &str = "2026-07-28";

/// A stateless request: its headers and its body.
pub(crate) fn stateless(
    id: impl Into<Value>,
    method: &str,
    mut params: Value,
) -> (Vec<(String, String)>, Vec<u8>) {
    let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).map(str::to_owned);
    let meta = params.as_object_mut().unwrap().entry("_meta").or_insert(json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut headers =
        vec![own(JSON), own(ACCEPT), own(("MCP-Protocol-Version", STATELESS)), own(("Mcp-Method", method))];
    headers.extend(name.map(|name| ("Mcp-Name".to_owned(), name)));
    let body = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params });
    (headers, body.to_string().into_bytes())
}

pub(crate) fn borrowed(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

impl Client {
    /// Sends a stateless request.
    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let (headers, body) = stateless(id, method, params);
        self.request("POST", &borrowed(&headers), &body).await;
    }

    /// Calls a tool statelessly.
    pub(crate) async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    }

    /// Sends a message of a session.
    pub(crate) async fn say(&mut self, session: &Session, message: &Value) {
        let headers = session.headers();
        let mut headers = borrowed(&headers);
        headers.extend([JSON, ACCEPT]);
        self.request("POST", &headers, message.to_string().as_bytes()).await;
    }

    /// Calls a tool within a session.
    pub(crate) async fn call_in(
        &mut self,
        session: &Session,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
    ) {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "t" } });
        self.say(
            session,
            &json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params }),
        )
        .await;
    }

    /// Opens the stream of a session, or takes one up.
    pub(crate) async fn get(&mut self, session: &Session, last: Option<&str>) {
        let mut headers = session.headers();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        headers.extend(last.map(|last| ("Last-Event-ID".to_owned(), last.to_owned())));
        self.request("GET", &borrowed(&headers), b"").await;
    }
}

/// A session as its client knows it.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) version: &'static str,
}

impl Session {
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        vec![
            ("Mcp-Session-Id".to_owned(), self.id.clone()),
            ("MCP-Protocol-Version".to_owned(), self.version.to_owned()),
        ]
    }
}

pub(crate) fn initialize(version: &str) -> Vec<u8> {
    let capabilities = json!({ "elicitation": {} });
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string().into_bytes()
}

/// Opens a session.
pub(crate) async fn open(address: SocketAddr, version: &'static str, extra: &[(&str, &str)]) -> Session {
    let mut client = Client::new(address).await;
    let headers = [&[JSON, ACCEPT][..], extra].concat();
    client.request("POST", &headers, &initialize(version)).await;
    let response = client.response().await;
    assert_eq!(
        (response.status(), &response.json()["result"]["protocolVersion"]),
        (200, &json!(version)),
        "{response:?}"
    );
    let id = response.head.get("mcp-session-id").unwrap().to_owned();
    Session { id, version }
}
