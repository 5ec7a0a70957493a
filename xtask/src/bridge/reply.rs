//! The answer to one HTTP request: one JSON object, or an event stream that ends with it.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};

use serde_json::{Value, json};

use super::lock;

pub(super) struct Reply {
    state: Mutex<State>,
    over: Condvar,
}

struct State {
    stream: TcpStream,
    streaming: bool,
    ended: bool,
}

impl Reply {
    pub(super) fn new(stream: TcpStream) -> Self {
        let state = State { stream, streaming: false, ended: false };
        Self { state: Mutex::new(state), over: Condvar::new() }
    }

    /// Begins an event stream, if it has not begun.
    pub(super) fn begin(&self) {
        lock(&self.state).begin();
    }

    /// Sends a message that is not the answer.
    pub(super) fn event(&self, message: &Value) {
        lock(&self.state).event(message);
    }

    /// Sends the answer, and that is the end.
    pub(super) fn finish(&self, status: u16, message: &Value, headers: &[(&str, &str)]) {
        let mut state = lock(&self.state);
        if state.streaming {
            state.event(message);
            state.write(b"0\r\n\r\n");
        } else {
            state.whole(status, &message.to_string(), headers);
        }
        self.end(&mut state);
    }

    /// Ends the answer as it is.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        if state.streaming {
            state.write(b"0\r\n\r\n");
        } else {
            state.whole(200, "", &[]);
        }
        self.end(&mut state);
    }

    /// 202, to what wants no answer.
    pub(super) fn accept(&self) {
        let mut state = lock(&self.state);
        state.whole(202, "", &[]);
        self.end(&mut state);
    }

    pub(super) fn refuse(&self, status: u16, id: Option<&Value>, code: i64, why: &str) {
        let mut message = json!({"jsonrpc": "2.0", "error": {"code": code, "message": why}});
        if let Some(id) = id {
            message["id"] = id.clone();
        }
        self.finish(status, &message, &[]);
    }

    /// The client has left: nothing more is sent.
    pub(super) fn abandon(&self) {
        self.end(&mut lock(&self.state));
    }

    pub(super) fn ended(&self) -> bool {
        lock(&self.state).ended
    }

    /// Waits for the end.
    pub(super) fn wait(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            state = self.over.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn end(&self, state: &mut State) {
        state.ended = true;
        self.over.notify_all();
    }
}

impl State {
    fn begin(&mut self) {
        if !self.streaming {
            self.streaming = true;
            self.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
                  X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
        }
    }

    fn event(&mut self, message: &Value) {
        self.begin();
        let event = format!("event: message\ndata: {message}\n\n");
        self.write(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
    }

    fn whole(&mut self, status: u16, body: &str, headers: &[(&str, &str)]) {
        let mut head = format!("HTTP/1.1 {status} Bridged\r\nContent-Length: {}\r\n", body.len());
        if !body.is_empty() {
            head.push_str("Content-Type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(format!("{head}\r\n{body}").as_bytes());
    }

    /// Who cannot be written to has left, which the connection's reader sees.
    fn write(&mut self, bytes: &[u8]) {
        if !self.ended {
            let _ = self.stream.write_all(bytes);
        }
    }
}
