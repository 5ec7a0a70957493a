use std::collections::HashSet;

use super::ServerSession;
use super::effect::Effect;
use super::receive::{self, Served};
use crate::jsonrpc::{Incoming, RpcError, classify, elements};

/// The most messages in one batch: each is served at once, so their number is bounded.
const BATCH_LIMIT: usize = 256;

/// Takes an array of messages (2025-03-26, `basic`, "Batching"). It is refused whole, before any
/// of it is served, unless every part is a message with an id of its own.
pub(super) fn receive(session: &mut ServerSession, json: &str, effects: &mut Vec<Effect>) {
    let parts = match read(session, json) {
        Ok(parts) => parts,
        Err(reason) => {
            effects.push(Effect::Send(session.refusal(None, &RpcError::invalid_request(reason))));
            return;
        }
    };
    let batch = session.table.batch();
    for part in parts {
        match part {
            Incoming::Request { id, method, params } => {
                match receive::request(session, &id, &method, params, Some(batch)) {
                    Ok(Served::Line(line)) => session.table.batch_part(batch, line),
                    Ok(Served::Open(inbound)) => effects.push(Effect::Request(inbound)),
                    Err(error) => {
                        let line = session.refusal(Some(&id), &error);
                        session.table.batch_part(batch, line);
                    }
                }
            }
            Incoming::Notification { method, params } => {
                receive::notification(session, &method, params, effects)
            }
            Incoming::Response { id, answer } => receive::response(session, id.as_ref(), answer, effects),
        }
    }
    effects.extend(session.table.batch_read(batch).map(Effect::Send));
}

fn read<'a>(session: &ServerSession, json: &'a str) -> Result<Vec<Incoming<'a>>, String> {
    if !session.client.as_ref().is_some_and(|client| client.revision.has_batches()) {
        return Err("an array is a message in revision 2025-03-26 only; send its parts one by one".to_owned());
    }
    let parts: Vec<&str> = elements(json).collect();
    if parts.is_empty() || parts.len() > BATCH_LIMIT {
        return Err(format!("a batch has 1 to {BATCH_LIMIT} messages, this one {}", parts.len()));
    }
    let mut ids = HashSet::new();
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        let message = classify(part).map_err(|malformed| format!("in the batch, {}", malformed.reason))?;
        if let Incoming::Request { id, method, .. } = &message {
            if method == "initialize" {
                return Err("`initialize` must not be part of a batch".to_owned());
            }
            if session.table.is_open(id) || !ids.insert(id.value().clone()) {
                return Err(format!("the id {id} is in use by another request; give each its own"));
            }
        }
        messages.push(message);
    }
    Ok(messages)
}
