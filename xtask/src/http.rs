//! HTTP/1.1 on bytes, both ends: what a message begins with, what it carries, and a client that sends
//! exactly what it is told to.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The longest line or body that is taken.
const LONGEST: usize = 80 << 20;

/// The first line of a message and its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// Reads a head; `None` at the end of the stream.
    pub(crate) fn read(reader: &mut impl BufRead) -> Result<Option<Self>> {
        let Some(line) = line(reader)? else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            let header = self::line(reader)?.context("the stream ended within the headers")?;
            if header.is_empty() {
                return Ok(Some(Self { line, headers }));
            }
            let (name, value) = header.split_once(':').with_context(|| format!("no header: {header:?}"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The first header called `name` (in lower case).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The status of a response's head.
    pub(crate) fn status(&self) -> Result<u16> {
        let code = self.line.split(' ').nth(1).with_context(|| format!("no status: {:?}", self.line))?;
        code.parse().with_context(|| format!("no status: {:?}", self.line))
    }

    fn chunked(&self) -> bool {
        self.get("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }

    /// Reads the body that follows this head, whole.
    pub(crate) fn body(&self, reader: &mut impl BufRead) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        if self.chunked() {
            while let Some(chunk) = chunk(reader)? {
                ensure!(body.len() + chunk.len() <= LONGEST, "a body of over {LONGEST} bytes");
                body.extend(chunk);
            }
        } else if let Some(length) = self.get("content-length") {
            let length: usize = length.parse().context("Content-Length")?;
            ensure!(length <= LONGEST, "a body of {length} bytes");
            body.resize(length, 0);
            reader.read_exact(&mut body).context("the stream ended within the body")?;
        }
        Ok(body)
    }
}

fn line(reader: &mut impl BufRead) -> Result<Option<String>> {
    let mut line = Vec::new();
    if reader.take(1 << 16).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    ensure!(line.ends_with(b"\r\n"), "a line without an end: {:?}", String::from_utf8_lossy(&line));
    line.truncate(line.len() - 2);
    Ok(Some(String::from_utf8(line).context("a line that is no UTF-8")?))
}

/// The next chunk of a chunked body; `None` for the last.
fn chunk(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let size = line(reader)?.context("the stream ended between chunks")?;
    let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
        .with_context(|| format!("no size of a chunk: {size:?}"))?;
    ensure!(size <= LONGEST, "a chunk of {size} bytes");
    let mut bytes = vec![0; size];
    reader.read_exact(&mut bytes).context("the stream ended within a chunk")?;
    ensure!(line(reader)?.is_some_and(|end| end.is_empty()), "a chunk without an end");
    Ok((size > 0).then_some(bytes))
}

/// A response, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The messages it carries: one as JSON, or those of an event stream.
    pub(crate) fn messages(&self) -> Result<Vec<Value>> {
        let kind = self.head.get("content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return messages_of(&String::from_utf8_lossy(&self.body));
        }
        ensure!(kind.starts_with("application/json"), "{}: Content-Type is {kind:?}", self.head.line);
        Ok(vec![serde_json::from_slice(&self.body).with_context(|| format!("no JSON: {}", self.text()))?])
    }

    /// The reply to a request: the last message.
    pub(crate) fn reply(&self) -> Result<Value> {
        self.messages()?.pop().with_context(|| format!("{} carries no message", self.head.line))
    }

    /// The body as text, for error messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).chars().take(500).collect()
    }
}

/// The messages of a piece of an event stream; comments and events without data carry none.
fn messages_of(text: &str) -> Result<Vec<Value>> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data:").map(str::trim))
        .filter(|data| !data.is_empty())
        .map(|data| serde_json::from_str(data).with_context(|| format!("an event that is no JSON: {data:?}")))
        .collect()
}

/// One connection of a client.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Connects to `address` (`host:port`); an answer may take `patience`.
    pub(crate) fn open(address: &str, patience: Duration) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.reader.get_mut().write_all(bytes).context("sending")
    }

    /// Reads a response whole.
    pub(crate) fn answer(&mut self) -> Result<Answer> {
        let head = self.head()?;
        let body = head.body(&mut self.reader)?;
        Ok(Answer { status: head.status()?, head, body })
    }

    /// Reads the head of a response.
    pub(crate) fn head(&mut self) -> Result<Head> {
        Head::read(&mut self.reader)?.context("the connection was closed without an answer")
    }

    /// Reads the body of a response whose head has been read.
    pub(crate) fn body(&mut self, head: &Head) -> Result<Vec<u8>> {
        head.body(&mut self.reader)
    }

    /// Whether the other end has closed the connection; waits for it or for a byte.
    pub(crate) fn closed(&mut self) -> bool {
        // A reset is an end, too; only a byte or the end of patience is not.
        match self.reader.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => {
                !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
            }
        }
    }
}

/// The bytes of a request to `/mcp` at `host`, with a body where there is one.
pub(crate) fn request(method: &str, host: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = format!("{method} /mcp HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend(format!("{name}: {value}\r\n").as_bytes());
    }
    if let Some(body) = body {
        bytes.extend(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body.unwrap_or_default());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Head, Vec<u8>)> {
        let mut reader = text.as_bytes();
        let head = Head::read(&mut reader)?.context("a head")?;
        let body = head.body(&mut reader)?;
        Ok((head, body))
    }

    #[test]
    fn a_body_is_as_long_as_its_head_says() {
        let (head, body) = read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}rest").unwrap();
        assert_eq!((head.status().unwrap(), body.as_slice()), (200, &b"{}"[..]));
        let (head, body) =
            read("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\nX: a:b \r\n\r\n2\r\n{}\r\na;x\r\n0123456789\r\n0\r\n\r\n")
                .unwrap();
        assert_eq!((head.get("x"), body.as_slice()), (Some("a:b"), &b"{}0123456789"[..]));
        assert!(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}").is_err());
        assert!(read("HTTP/1.1 200 OK\r\n").is_err());
    }

    #[test]
    fn messages_come_as_json_or_as_events() {
        let stream = ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":1}\n\ndata: {\"b\":2}\n\n";
        assert_eq!(messages_of(stream).unwrap(), [serde_json::json!({"a": 1}), serde_json::json!({"b": 2})]);
        assert!(messages_of("data: {\n\n").is_err());
    }
}
