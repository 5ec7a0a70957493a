//! The 2025 era: one child per session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::reply::Reply;
use super::{Program, Server, lock};

pub(super) struct Legacy {
    program: Program,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    last: u64,
    open: BTreeMap<String, Arc<Session>>,
}

struct Session {
    child: Server,
    streams: Arc<Mutex<Streams>>,
}

/// Where what the child says can go.
#[derive(Default)]
struct Streams {
    /// Requests that wait for their answers, by id.
    pending: Vec<(Value, Arc<Reply>)>,
    /// The stream of a GET.
    standalone: Option<Arc<Reply>>,
}

impl Legacy {
    pub(super) fn new(program: Program) -> Self {
        Self { program, sessions: Mutex::default() }
    }

    pub(super) fn post(&self, session: Option<&str>, message: Value, reply: &Arc<Reply>) {
        let opened = match session {
            None if message["method"] == "initialize" => self.open(),
            None => return reply.refuse(400, message.get("id"), -32600, "a session is needed"),
            Some(name) => match self.find(name) {
                Some(session) => Ok(session),
                None => return reply.refuse(404, message.get("id"), -32600, "there is no such session"),
            },
        };
        let session = match opened {
            Ok(session) => session,
            Err(error) => return reply.refuse(502, message.get("id"), -32603, &format!("{error:#}")),
        };
        match message.get("id") {
            Some(id) if message.get("method").is_some() => {
                lock(&session.streams).pending.push((id.clone(), Arc::clone(reply)));
            }
            _ => reply.accept(),
        }
        session.child.send(&message);
    }

    /// GET: the stream for what belongs to no request.
    pub(super) fn listen(&self, session: Option<&str>, reply: &Arc<Reply>) {
        match session.and_then(|name| self.find(name)) {
            Some(session) => {
                reply.begin();
                lock(&session.streams).standalone = Some(Arc::clone(reply));
            }
            None => reply.refuse(405, None, -32600, "there is no session to listen to"),
        }
    }

    /// DELETE: the end of a session.
    pub(super) fn end(&self, session: Option<&str>, reply: &Arc<Reply>) {
        match session.and_then(|name| lock(&self.sessions).open.remove(name)) {
            Some(_) => reply.close(),
            None => reply.refuse(404, None, -32600, "there is no such session"),
        }
    }

    fn find(&self, name: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).open.get(name).map(Arc::clone)
    }

    fn open(&self) -> anyhow::Result<Arc<Session>> {
        let mut sessions = lock(&self.sessions);
        sessions.last += 1;
        let name = format!("bridged-{}", sessions.last);
        let streams: Arc<Mutex<Streams>> = Arc::default();
        let (hearing, ending) = (Arc::clone(&streams), Arc::clone(&streams));
        let told = name.clone();
        let hear = move |message| lock(&hearing).hear(&message, &told);
        let over = move || lock(&ending).over();
        let session = Arc::new(Session { child: Server::start(&self.program, hear, over)?, streams });
        sessions.open.insert(name, Arc::clone(&session));
        Ok(session)
    }
}

impl Streams {
    fn hear(&mut self, message: &Value, session: &str) {
        if message.get("method").is_none() {
            let answered = self.pending.iter().position(|(id, _)| Some(id) == message.get("id"));
            if let Some(answered) = answered {
                let (_, reply) = self.pending.swap_remove(answered);
                reply.finish(200, message, &[("Mcp-Session-Id", session)]);
            }
            return;
        }
        // What a child says on its own belongs to the newest request, or to nobody.
        if let Some(reply) = self.pending.last().map(|(_, reply)| reply).or(self.standalone.as_ref()) {
            reply.event(message);
        }
    }

    fn over(&mut self) {
        for (id, reply) in self.pending.drain(..) {
            reply.refuse(502, Some(&id), -32603, "the server has ended");
        }
        if let Some(stream) = self.standalone.take() {
            stream.close();
        }
    }
}
