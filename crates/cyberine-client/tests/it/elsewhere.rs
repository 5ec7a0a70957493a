//! Servers over HTTP of a few lines, which write down what they are asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use cyberine_client::{Client, ClientOptions, HttpServer};
use serde_json::{Value, json};

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) verb: String,
    headers: Vec<(String, String)>,
    /// The message; `null` where there is none.
    pub(crate) body: Value,
}

impl Heard {
    /// The value of a header, by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("-")
    }

    /// A result of this request, as JSON.
    pub(crate) fn answer(&self, result: &Value) -> Reply {
        Reply::json(200, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }

    pub(crate) fn refusal(&self, status: u16, code: i64) -> Reply {
        let error = json!({ "code": code, "message": "no" });
        Reply::json(status, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error }))
    }
}

/// One response.
pub(crate) struct Reply(String);

impl Reply {
    fn new(status: u16, kind: &str, more: &str, body: &str) -> Self {
        let length = body.len();
        Self(format!(
            "HTTP/1.1 {status} -\r\nconnection: close\r\ncontent-type: {kind}\r\n{more}content-length: {length}\r\n\r\n{body}"
        ))
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", "", &body.to_string())
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::new(status, "text/plain", "", body)
    }

    pub(crate) fn stream(events: &str) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", "", events)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::text(status, "")
    }

    pub(crate) fn with_header(mut self, line: &str) -> Self {
        self.0 = self.0.replacen("connection: close\r\n", &format!("connection: close\r\n{line}\r\n"), 1);
        self
    }
}

pub(crate) fn event(id: Option<&str>, message: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}data: {message}\n\n")
}

pub(crate) struct Elsewhere {
    url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Elsewhere {
    /// A server that answers each request with what `serve` says.
    pub(crate) fn new(serve: impl Fn(&Heard) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if let Some(request) = read(&stream) {
                    written.lock().unwrap().push(request.clone());
                    // A client may have gone away.
                    let _ = stream.write_all(serve(&request).0.as_bytes());
                }
            }
        });
        Self { url, heard }
    }

    pub(crate) fn server(&self) -> HttpServer {
        HttpServer { url: self.url.parse().unwrap(), bearer: None }
    }

    pub(crate) fn client(&self, options: ClientOptions) -> Client {
        Client::connect(self.server(), options).unwrap()
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// What was asked by POST.
    pub(crate) fn posted(&self) -> Vec<Heard> {
        self.heard().into_iter().filter(|heard| heard.verb == "POST").collect()
    }
}

fn read(stream: &TcpStream) -> Option<Heard> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let verb = line.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((key, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((key.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(key, _)| key == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Heard { verb, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
