use std::collections::HashSet;

use super::ServerSession;
use super::effect::Effect;
use super::receive::{self, Served};
use super::table::BatchKey;
use crate::jsonrpc::{IdValue, Incoming, Malformed, RequestId, RpcError, classify, elements};

/// The most messages in one batch: each is served at once, so their number is bounded.
const BATCH_LIMIT: usize = 256;

/// Takes an array of messages (2025-03-26, `basic`, "Batching"). Every part is served or refused
/// by itself, and what is no message has its error among the answers (JSON-RPC 2.0, section 6).
pub(super) fn receive(session: &mut ServerSession, json: &str, effects: &mut Vec<Effect>) {
    let parts = match parts(session, json) {
        Ok(parts) => parts,
        Err(reason) => {
            effects.push(Effect::Send(session.refusal(None, &RpcError::invalid_request(reason))));
            return;
        }
    };
    let batch = session.table.batch();
    let mut ids = HashSet::new();
    for (at, part) in parts.into_iter().enumerate() {
        match classify(part) {
            Ok(Incoming::Request { id, method, params }) => {
                match request(session, &mut ids, &id, &method, params, batch) {
                    // The second kind is refused in a batch.
                    Ok(Served::Line(line) | Served::Session { line, .. }) => {
                        session.table.batch_part(batch, &line);
                    }
                    Ok(Served::Open(inbound)) => effects.push(Effect::Request(inbound)),
                    Err(Refused { id, error }) => refuse(session, batch, id, &error),
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                receive::notification(session, &method, params, effects)
            }
            Ok(Incoming::Response { id, answer }) => receive::response(session, id.as_ref(), answer, effects),
            Err(Malformed { id, reason }) => {
                let id = id.as_ref().filter(|id| ids.insert(id.value().clone()));
                let reason = format!("in part {} of the batch, {reason}", at + 1);
                refuse(session, batch, id, &RpcError::invalid_request(reason));
            }
        }
    }
    effects.extend(session.table.batch_read(batch).map(Effect::Send));
}

/// A request that is not served, with its id where that is its own.
struct Refused<'a> {
    id: Option<&'a RequestId>,
    error: RpcError,
}

fn request<'a>(
    session: &mut ServerSession,
    ids: &mut HashSet<IdValue>,
    id: &'a RequestId,
    method: &str,
    params: Option<&str>,
    batch: BatchKey,
) -> Result<Served, Refused<'a>> {
    // Two answers with one id in one array could not be told apart.
    if !ids.insert(id.value().clone()) {
        let error = RpcError::invalid_request("two parts of the batch have one id; give each its own");
        return Err(Refused { id: None, error });
    }
    if method == "initialize" {
        let error = RpcError::invalid_request("`initialize` must not be part of a batch");
        return Err(Refused { id: Some(id), error });
    }
    receive::request(session, id, method, params, Some(batch))
        .map_err(|error| Refused { id: Some(id), error })
}

fn refuse(session: &mut ServerSession, batch: BatchKey, id: Option<&RequestId>, error: &RpcError) {
    let line = session.refusal(id, error);
    session.table.batch_part(batch, &line);
}

fn parts<'a>(session: &ServerSession, json: &'a str) -> Result<Vec<&'a str>, String> {
    if !session.client.as_ref().is_some_and(|client| client.revision.has_batches()) {
        return Err("an array is a message in revision 2025-03-26 only; send its parts one by one".to_owned());
    }
    let parts: Vec<&str> = elements(json).take(BATCH_LIMIT + 1).collect();
    if parts.is_empty() || parts.len() > BATCH_LIMIT {
        return Err(format!("a batch has 1 to {BATCH_LIMIT} messages"));
    }
    Ok(parts)
}
