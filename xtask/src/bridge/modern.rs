//! The 2026 era: one child for everybody. Ids are rewritten, since two clients may use the same.
//!
//! Over stdio a log message names no request, so requests go one at a time; subscriptions, whose
//! notifications carry their id, stay open beside them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use serde_json::{Value, json};

use super::reply::Reply;
use super::{Program, Server, cancelled, lock, status_of};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(super) struct Modern {
    me: Weak<Self>,
    program: Program,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    child: Option<Server>,
    last_id: u64,
    current: Option<Exchange>,
    waiting: VecDeque<Exchange>,
    listens: BTreeMap<u64, Exchange>,
}

/// A request, under its id towards the child.
struct Exchange {
    id: u64,
    original: Value,
    message: Value,
    reply: Arc<Reply>,
}

impl Modern {
    pub(super) fn new(program: Program) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { me: Weak::clone(me), program, state: Mutex::default() })
    }

    /// Takes a request and returns its id towards the child.
    pub(super) fn post(&self, mut message: Value, reply: &Arc<Reply>) -> u64 {
        let mut state = lock(&self.state);
        state.last_id += 1;
        let id = state.last_id;
        let original = std::mem::replace(&mut message["id"], json!(id));
        let exchange = Exchange { id, original, message, reply: Arc::clone(reply) };
        if state.child.is_none()
            && let Err(error) = self.spawn(&mut state)
        {
            reply.refuse(502, Some(&exchange.original), -32603, &format!("{error:#}"));
            return id;
        }
        if exchange.message["method"] == "subscriptions/listen" {
            state.send(&exchange.message);
            state.listens.insert(id, exchange);
        } else {
            state.waiting.push_back(exchange);
            state.next();
        }
        id
    }

    /// The client of a request has left, which cancels it.
    pub(super) fn gone(&self, id: u64) {
        let mut state = lock(&self.state);
        let current = state.current.take_if(|current| current.id == id).is_some();
        if current || state.listens.remove(&id).is_some() {
            state.send(&cancelled(id));
        }
        state.waiting.retain(|waiting| waiting.id != id);
        state.next();
    }

    fn spawn(&self, state: &mut State) -> anyhow::Result<()> {
        let (hearing, ending) = (Weak::clone(&self.me), Weak::clone(&self.me));
        let hear = move |message| {
            if let Some(me) = hearing.upgrade() {
                lock(&me.state).hear(message);
            }
        };
        let over = move || {
            if let Some(me) = ending.upgrade() {
                lock(&me.state).over();
            }
        };
        state.child = Some(Server::start(&self.program, hear, over)?);
        Ok(())
    }
}

impl State {
    fn send(&self, message: &Value) {
        if let Some(child) = &self.child {
            child.send(message);
        }
    }

    /// Sends the next request, if none is in flight.
    fn next(&mut self) {
        if self.current.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            self.send(&next.message);
            self.current = Some(next);
        }
    }

    fn hear(&mut self, mut message: Value) {
        if message.get("method").is_none() {
            let answered = message["id"].as_u64();
            let listen = answered.and_then(|id| self.listens.remove(&id));
            let current = || self.current.take_if(|current| answered.is_none_or(|id| id == current.id));
            if let Some(exchange) = listen.or_else(current) {
                exchange.finish(message);
            }
            self.next();
            return;
        }
        if message.get("id").is_some() {
            eprintln!("bridge: a request to a client of the 2026 era: {message}");
            return;
        }
        if let Some(subscription) = message["params"]["_meta"].get(SUBSCRIPTION) {
            if let Some(listen) = subscription.as_u64().and_then(|id| self.listens.get(&id)) {
                message["params"]["_meta"][SUBSCRIPTION] = listen.original.clone();
                listen.reply.event(&message);
            }
            return;
        }
        if let Some(current) = &self.current {
            current.reply.event(&message);
        }
    }

    /// The child has ended: whoever waits is told, and the next request starts another.
    fn over(&mut self) {
        self.child = None;
        let left = self.current.take().into_iter().chain(std::mem::take(&mut self.waiting));
        for exchange in left.chain(std::mem::take(&mut self.listens).into_values()) {
            exchange.reply.refuse(502, Some(&exchange.original), -32603, "the server has ended");
        }
    }
}

impl Exchange {
    /// Sends the answer under the id the client knows.
    fn finish(self, mut message: Value) {
        if message.get("id").is_some() {
            message["id"] = self.original.clone();
        }
        if let Some(subscription) = message.pointer_mut(&format!("/result/_meta/{}", escaped(SUBSCRIPTION))) {
            *subscription = self.original.clone();
        }
        self.reply.finish(status_of(&self.message, &message), &message, &[]);
    }
}

/// A key as it stands in a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('/', "~1")
}
