//! An HTTP client that keeps every chunk apart and tells an end from a break.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::LIMIT;

/// A request that was sent, and as much of its response as was asked for.
pub(crate) struct Exchange {
    reader: BufReader<TcpStream>,
}

/// The first line and the headers of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    text: String,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    /// What each write of the server carried.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether the body ended as HTTP says it must, and was not cut.
    pub(crate) complete: bool,
}

impl Exchange {
    pub(crate) fn send(base: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let address = base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // One write: a request that arrives in pieces is not what is tested here.
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub(crate) fn get(base: &str, path: &str) -> Self {
        Self::send(base, "GET", path, &[], "")
    }

    pub(crate) fn head(&mut self) -> Option<Head> {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                let status = text.split(' ').nth(1).unwrap().parse().unwrap();
                return Some(Head { status, text });
            }
            text.push_str(&line);
        }
    }

    /// The next chunk; `None` at the end of the body, an error where it breaks.
    pub(crate) fn chunk(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let broken = || std::io::Error::other("the body broke");
        let mut size = String::new();
        self.reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(|_| broken())?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    /// Reads everything; `None` where the connection breaks before there is a status.
    pub(crate) fn response(mut self) -> Option<Response> {
        let head = self.head()?;
        let mut chunks = Vec::new();
        if let Some(length) = head.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            let complete = self.reader.read_exact(&mut body).is_ok();
            return Some(Response { head, chunks: vec![body], complete });
        }
        loop {
            match self.chunk() {
                Ok(Some(chunk)) => chunks.push(chunk),
                ended => return Some(Response { head, chunks, complete: ended.is_ok() }),
            }
        }
    }
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.text.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Response {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    /// The events of a stream, as (name, data). Data that is no JSON is a string. Where the events
    /// are lines, none has a name.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        if self.head.header("content-type") == Some("application/x-ndjson") {
            let line = |line: &str| (String::new(), serde_json::from_str(line).unwrap());
            return self.text().lines().map(line).collect();
        }
        let event = |block: &str| {
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
            };
            let data = field("data: ");
            (field("event: "), serde_json::from_str(&data).unwrap_or(Value::String(data)))
        };
        self.text().split("\n\n").filter(|block| !block.is_empty()).map(event).collect()
    }
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Stream,
}

/// Asks the OpenAI wire.
pub(crate) fn openai(base: &str, model: &str, prompt: &str, form: Form) -> Exchange {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
    if form == Form::Stream {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    let headers = [("content-type", "application/json"), ("authorization", "Bearer key")];
    Exchange::send(base, "POST", "/v1/chat/completions", &headers, &body.to_string())
}

/// Asks the Responses wire.
pub(crate) fn responses(base: &str, model: &str, prompt: &str, form: Form) -> Exchange {
    let body = json!({"model": model, "input": prompt, "stream": form == Form::Stream});
    let headers = [("content-type", "application/json"), ("authorization", "Bearer key")];
    Exchange::send(base, "POST", "/v1/responses", &headers, &body.to_string())
}

/// Asks the Gemini wire.
pub(crate) fn gemini(base: &str, model: &str, prompt: &str, form: Form) -> Exchange {
    let method = if form == Form::Stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    let body = json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]});
    let headers = [("content-type", "application/json"), ("x-goog-api-key", "key")];
    Exchange::send(base, "POST", &format!("/v1beta/models/{model}:{method}"), &headers, &body.to_string())
}

/// Asks the Ollama wire.
pub(crate) fn ollama(base: &str, model: &str, prompt: &str, form: Form) -> Exchange {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
    if form == Form::Whole {
        body["stream"] = json!(false);
    }
    Exchange::send(base, "POST", "/api/chat", &[("authorization", "Bearer key")], &body.to_string())
}

/// Asks the Anthropic wire.
pub(crate) fn anthropic(base: &str, model: &str, prompt: &str, form: Form) -> Exchange {
    let messages = json!([{"role": "user", "content": prompt}]);
    let body =
        json!({"model": model, "max_tokens": 64, "messages": messages, "stream": form == Form::Stream});
    let headers =
        [("content-type", "application/json"), ("anthropic-version", "2023-06-01"), ("x-api-key", "key")];
    Exchange::send(base, "POST", "/v1/messages", &headers, &body.to_string())
}
