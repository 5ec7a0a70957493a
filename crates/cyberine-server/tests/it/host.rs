//! A host's end of a connection, over the kinds of descriptors that hosts hand over.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use cyberine_server::{Ended, Gate, SealKey, Server, StdioGuard};
use cyberine_types::{Identity, Secret};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{FixtureResources, FixtureTools, Things};

/// Long enough for a loaded machine; reached only by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Wire {
    /// What Node hosts hand over.
    Socket,
    /// What Python hosts hand over.
    Pipe,
}

pub(crate) const WIRES: [Wire; 2] = [Wire::Socket, Wire::Pipe];

impl Wire {
    /// Two ends of one direction: to read from, and to write to.
    pub(crate) fn pair(self) -> (OwnedFd, OwnedFd) {
        match self {
            Self::Socket => {
                let (reader, writer) = UnixStream::pair().unwrap();
                (reader.into(), writer.into())
            }
            Self::Pipe => {
                let (reader, writer) = std::io::pipe().unwrap();
                (reader.into(), writer.into())
            }
        }
    }
}

/// The fixture server behind an open gate.
pub(crate) fn server() -> Server {
    server_of(&Things::default(), None)
}

/// The same over things that a test changes itself, and behind a token.
pub(crate) fn server_of(things: &Things, token: Option<&str>) -> Server {
    let token = token.map(Secret::new);
    let tools = Arc::new(Gate::new(FixtureTools::new(things), token.clone()));
    let resources = Arc::new(Gate::new(FixtureResources::new(things), token));
    Server::new("fixture", "0.1.0", tools, Identity::local("tester"), SealKey::from_bytes([7; 32]))
        .with_resources(resources)
}

/// A host with its server on a thread.
pub(crate) struct Host {
    to: Option<File>,
    lines: Option<Receiver<String>>,
    unread: Option<OwnedFd>,
    ended: Receiver<Ended>,
    pub(crate) stop: CancellationToken,
    next_id: u64,
}

impl Host {
    /// A host that reads what comes.
    pub(crate) fn start(wire: Wire, server: Server) -> Self {
        let mut host = Self::start_unread(wire, server);
        host.read();
        host
    }

    /// A host that does not read until [`read`](Self::read).
    pub(crate) fn start_unread(wire: Wire, server: Server) -> Self {
        Self::over(wire.pair(), wire.pair(), server)
    }

    /// The same over two directions, each with its end to read from and its end to write to.
    pub(crate) fn over(requests: (OwnedFd, OwnedFd), answers: (OwnedFd, OwnedFd), server: Server) -> Self {
        let ((input, to), (from, output)) = (requests, answers);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (over, ended) = sync_channel(1);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let stdio = StdioGuard::from_fds(input, output);
            let why = runtime.block_on(Arc::new(server).serve_stdio(stdio, stopped)).unwrap();
            // A test that is over does not ask any more.
            let _ = over.send(why);
        });
        Self { to: Some(to.into()), lines: None, unread: Some(from), ended, stop, next_id: 1 }
    }

    /// Begins to read.
    pub(crate) fn read(&mut self) {
        let from = File::from(self.unread.take().unwrap());
        let (sender, receiver) = sync_channel(1 << 17);
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(receiver);
    }

    /// Closes the end that answers come to.
    pub(crate) fn stop_reading(&mut self) {
        drop(self.unread.take());
    }

    /// The end that requests go to, to be written from another thread.
    pub(crate) fn writer(&self) -> File {
        self.to.as_ref().unwrap().try_clone().unwrap()
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.to.as_ref().unwrap().write_all(&bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request and gives its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn recv(&self) -> Value {
        let line = self.lines.as_ref().unwrap().recv_timeout(PATIENCE).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request and gives the next message, which must be its answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.recv();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Opens a session of the `initialize` era.
    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let info = json!({ "name": "host", "version": "3.1.0" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        let answer = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// Checks that the server is alive and has said nothing else meanwhile.
    pub(crate) fn is_quiet(&mut self) {
        let answer = self.ask("ping", json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    /// Closes the server's input.
    pub(crate) fn close(&mut self) {
        drop(self.to.take());
    }

    /// Closes the server's input and waits for the end; gives why, how long it took, and what
    /// came before it.
    pub(crate) fn ended(mut self) -> (Ended, Duration, Vec<Value>) {
        self.close();
        self.finished()
    }

    /// As [`ended`](Self::ended), where the server ends by itself.
    pub(crate) fn finished(self) -> (Ended, Duration, Vec<Value>) {
        let began = Instant::now();
        let mut rest = Vec::new();
        if let Some(lines) = &self.lines {
            loop {
                match lines.recv_timeout(PATIENCE) {
                    Ok(line) => rest.push(serde_json::from_str(&line).unwrap()),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => panic!("the server did not end"),
                }
            }
        }
        let ended = self.ended.recv_timeout(PATIENCE).unwrap();
        (ended, began.elapsed(), rest)
    }
}

/// `params` with the `_meta` of the stateless era.
pub(crate) fn stateless(mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "host", "version": "4.0.0" });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}
