//! An HTTP server that says exactly what it is told, byte by byte.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// One thing to do to a connection.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Send this at once.
    Send(Vec<u8>),
    /// Send this in chunks of one byte each.
    OneByOne(Vec<u8>),
    /// Send this again and again, every millisecond.
    Drip(Vec<u8>),
    /// Send this again and again, as fast as it goes.
    Flood(Vec<u8>),
    /// Say nothing until the other side leaves.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    left: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// A server that answers every request with `steps`.
    pub(crate) async fn start(steps: Vec<Step>) -> Self {
        Self::answering(vec![steps]).await
    }

    /// A server that answers one request after the other with each of `answers`, and all that follow
    /// with the last.
    pub(crate) async fn answering(answers: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let left = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let (seen, leaving) = (Arc::clone(&requests), Arc::clone(&left));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            let mut rest = answers.into_iter();
            let mut steps = rest.next().unwrap_or_default();
            while let Ok((socket, _)) = listener.accept().await {
                let next = rest.next().unwrap_or_else(|| steps.clone());
                let steps = std::mem::replace(&mut steps, next);
                let (seen, leaving) = (Arc::clone(&seen), Arc::clone(&leaving));
                connections.spawn(async move {
                    // An error means that the other side has left, which is how some tests end.
                    let _ = serve(socket, steps, &seen).await;
                    leaving.notify_one();
                });
            }
        });
        Self { address, requests, left, _tasks: tasks }
    }

    /// A server that answers with this status, these headers and this body.
    pub(crate) async fn saying(status: u16, headers: &str, body: &str) -> Self {
        Self::start(vec![Step::Send(response(status, headers, body))]).await
    }

    /// A server that begins an event stream and goes on with `steps`.
    pub(crate) async fn streaming(steps: Vec<Step>) -> Self {
        let head = Step::Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_vec());
        Self::start([vec![head], steps].concat()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a connection is over.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }
}

pub(crate) fn response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}")
        .into_bytes()
}

async fn serve(mut socket: TcpStream, steps: Vec<Step>, seen: &Mutex<Vec<Request>>) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let request = read(&mut socket).await?;
    seen.lock().unwrap().push(request);
    for step in steps {
        match step {
            Step::Send(bytes) => socket.write_all(&bytes).await?,
            Step::OneByOne(bytes) => {
                for byte in bytes {
                    socket.write_all(&[byte]).await?;
                    tokio::task::yield_now().await;
                }
            }
            Step::Drip(bytes) => {
                let mut beat = tokio::time::interval(Duration::from_millis(1));
                loop {
                    beat.tick().await;
                    socket.write_all(&bytes).await?;
                }
            }
            Step::Flood(bytes) => loop {
                socket.write_all(&bytes).await?;
            },
            Step::Hang => {
                let mut rest = [0; 64];
                while socket.read(&mut rest).await? > 0 {}
            }
        }
    }
    socket.shutdown().await
}

async fn read(socket: &mut TcpStream) -> std::io::Result<Request> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let count = socket.read(&mut chunk).await?;
        // Not HTTP, or nothing at all.
        if count == 0 || !chunk.starts_with(b"P") && bytes.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            return Ok(Request { head, body });
        }
    }
}
