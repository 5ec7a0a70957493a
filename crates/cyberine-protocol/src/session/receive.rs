use super::effect::{Effect, Ignored, Inbound, InboundBody, RequestKey};
use super::flight::{Flight, Method};
use super::params::{Meta, Params};
use super::table::BatchKey;
use super::{LegacyClient, ServerSession, batch};
use crate::encode;
use crate::jsonrpc::{Incoming, RequestId, RpcError, classify, excerpt, request_id};
use crate::model::ClientCapabilities;
use crate::revision::Revision;
use crate::strict::{self, Limits};

const CANCELLED: &str = "notifications/cancelled";

/// What becomes of a request.
pub(super) enum Served {
    /// It is answered.
    Line(Vec<u8>),
    /// It is answered, and has opened a session; the subscriptions of the one before are over.
    Session { line: Vec<u8>, ended: Vec<RequestKey> },
    /// It is in flight.
    Open(Inbound),
}

pub(super) fn receive(session: &mut ServerSession, line: &[u8]) -> Vec<Effect> {
    let json = match strict::check(line, session.limits()) {
        Ok(Some(json)) => json,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let shape = Some(line).filter(|_| error.has_shape());
            let json = shape.and_then(|line| std::str::from_utf8(line).ok());
            let id = json.and_then(|json| request_id(json.trim_start()));
            return vec![Effect::Send(session.refused_line(id.as_ref(), &error))];
        }
    };
    let mut effects = Vec::with_capacity(1);
    if json.starts_with('[') {
        batch::receive(session, json, &mut effects);
        return effects;
    }
    match classify(json) {
        Ok(Incoming::Request { id, method, params }) => {
            let effect = match request(session, &id, &method, params, None) {
                Ok(Served::Line(line)) => Effect::Send(line),
                Ok(Served::Session { line, ended }) => {
                    effects.extend(ended.into_iter().map(Effect::Cancel));
                    Effect::Send(line)
                }
                Ok(Served::Open(inbound)) => Effect::Request(inbound),
                Err(error) => Effect::Send(session.refusal(Some(&id), &error)),
            };
            effects.push(effect);
        }
        Ok(Incoming::Notification { method, params }) => notification(session, &method, params, &mut effects),
        Ok(Incoming::Response { id, answer }) => response(session, id.as_ref(), answer, &mut effects),
        Err(malformed) => {
            let error = RpcError::invalid_request(malformed.reason);
            effects.push(Effect::Send(session.refusal(malformed.id.as_ref(), &error)));
        }
    }
    effects
}

/// Serves one request, by the rules it names or those of the session.
pub(super) fn request(
    session: &mut ServerSession,
    id: &RequestId,
    method: &str,
    params: Option<&str>,
    batch: Option<BatchKey>,
) -> Result<Served, RpcError> {
    if session.table.is_open(id) {
        let message =
            format!("a request with the id {} is in flight; give each its own", excerpt(id.token()));
        return Err(RpcError::invalid_request(message));
    }
    let params = Params::read(params)?;
    let meta = params.meta()?;
    if !meta.is_stateless() {
        return with_session(session, id, method, &params, &meta, batch);
    }
    if batch.is_some() {
        return Err(RpcError::invalid_request("a stateless request cannot be part of a batch"));
    }
    stateless(session, id, method, &params, &meta)
}

fn stateless(
    session: &mut ServerSession,
    id: &RequestId,
    method: &str,
    params: &Params<'_>,
    meta: &Meta<'_>,
) -> Result<Served, RpcError> {
    let envelope = meta.envelope()?;
    let revision = Revision::parse(&envelope.version)
        .filter(|revision| revision.is_stateless())
        .ok_or_else(|| RpcError::unsupported_version(&envelope.version))?;
    let (client, log_level) = (meta.client()?, meta.log_level()?);
    if method == "server/discover" {
        return Ok(Served::Line(encode::discover_line(
            id,
            session.profile.profile(),
            revision,
            session.profile.server_info(),
        )));
    }
    let method = served(session, method, revision)?;
    let capabilities = envelope.capabilities;
    if method.is_of_tasks() && !capabilities.tasks {
        return Err(undeclared_tasks());
    }
    let body = params.body(method, revision)?;
    if matches!(&body, InboundBody::Listen { filter } if !filter.task_ids.is_empty()) && !capabilities.tasks {
        return Err(undeclared_tasks());
    }
    let mut flight = Flight::new(id.clone(), method, revision, capabilities, meta.progress_token()?);
    flight.log_level = log_level;
    let (key, progress) = open(session, flight)?;
    Ok(Served::Open(Inbound { key, revision, client, capabilities, log_level, progress, body }))
}

fn with_session(
    session: &mut ServerSession,
    id: &RequestId,
    method: &str,
    params: &Params<'_>,
    meta: &Meta<'_>,
    batch: Option<BatchKey>,
) -> Result<Served, RpcError> {
    match method {
        "initialize" => return initialize(session, id, params),
        "ping" => return Ok(Served::Line(encode::empty_line(id))),
        _ => {}
    }
    let keeps_log = session.profile.profile().logging;
    let Some(client) = &session.client else { return Err(Meta::missing()) };
    let (revision, capabilities) = (client.revision, client.capabilities);
    let method = match served(session, method, revision) {
        Ok(method) => method,
        Err(_) if method == "logging/setLevel" && keeps_log => return set_level(session, id, params),
        Err(error) => return Err(error),
    };
    let (info, log_level) = (client.info.clone(), keeps_log.then(|| client.wanted_log()));
    let body = params.body(method, revision)?;
    let mut flight = Flight::new(id.clone(), method, revision, capabilities, meta.progress_token()?);
    flight.batch = batch;
    let (key, progress) = open(session, flight)?;
    Ok(Served::Open(Inbound { key, revision, client: Some(info), capabilities, log_level, progress, body }))
}

fn set_level(session: &mut ServerSession, id: &RequestId, params: &Params<'_>) -> Result<Served, RpcError> {
    let level = params.level()?;
    if let Some(client) = &mut session.client {
        client.log_level = Some(level);
    }
    Ok(Served::Line(encode::empty_line(id)))
}

/// Opens the session, or replaces it: requests in flight keep the client they came from, and its
/// subscriptions end.
fn initialize(session: &mut ServerSession, id: &RequestId, params: &Params<'_>) -> Result<Served, RpcError> {
    let asked = params.initialize()?;
    let revision = Revision::negotiate(&asked.version);
    let (info, capabilities) = (asked.info, asked.capabilities);
    session.client = Some(LegacyClient { revision, info, capabilities, log_level: None });
    let line = encode::initialize_line(id, session.profile.profile(), revision);
    Ok(Served::Session { line, ended: session.table.end_subscriptions() })
}

/// The method of that name, if the server has it in that revision. Methods that every session has
/// are not here.
fn served(session: &ServerSession, name: &str, revision: Revision) -> Result<Method, RpcError> {
    let profile = session.profile.profile();
    let stateless = revision.is_stateless();
    let (method, has) = match name {
        "tools/list" => (Method::ListTools, profile.tools),
        "tools/call" => (Method::CallTool, profile.tools),
        "resources/list" => (Method::ListResources, profile.resources),
        "resources/templates/list" => (Method::ListTemplates, profile.resources),
        "resources/read" => (Method::ReadResource, profile.resources),
        "resources/subscribe" => (Method::Subscribe, profile.subscriptions && !stateless),
        "resources/unsubscribe" => (Method::Unsubscribe, profile.subscriptions && !stateless),
        "subscriptions/listen" => (Method::Listen, profile.has_news() && stateless),
        "prompts/list" => (Method::ListPrompts, profile.prompts),
        "prompts/get" => (Method::GetPrompt, profile.prompts),
        "completion/complete" => (Method::Complete, profile.completions),
        "tasks/get" => (Method::GetTask, profile.tasks && stateless),
        "tasks/update" => (Method::UpdateTask, profile.tasks && stateless),
        "tasks/cancel" => (Method::CancelTask, profile.tasks && stateless),
        _ => return Err(RpcError::method_not_found(name)),
    };
    if has { Ok(method) } else { Err(RpcError::method_not_found(name)) }
}

fn undeclared_tasks() -> RpcError {
    RpcError::missing_capability(ClientCapabilities { tasks: true, ..ClientCapabilities::default() })
}

fn open(session: &mut ServerSession, flight: Flight) -> Result<(RequestKey, bool), RpcError> {
    let progress = flight.token.is_some();
    if flight.token.as_ref().is_some_and(|token| session.table.token_is_open(token)) {
        return Err(RpcError::invalid_params(
            "`progressToken` is in use by a request in flight; give each its own",
        ));
    }
    Ok((session.table.open(flight), progress))
}

pub(super) fn notification(
    session: &mut ServerSession,
    method: &str,
    params: Option<&str>,
    effects: &mut Vec<Effect>,
) {
    match method {
        CANCELLED => cancel(session, params, effects),
        // A client may say these; nothing here depends on them.
        "notifications/initialized" | "notifications/roots/list_changed" | "notifications/progress" => {}
        unknown => effects.push(Effect::Ignored(Ignored::UnknownNotification(excerpt(unknown).to_owned()))),
    }
}

/// Cancels by id, whichever era the request is of. Unknown ids are ignored: the answer may have
/// crossed the cancellation.
fn cancel(session: &mut ServerSession, params: Option<&str>, effects: &mut Vec<Effect>) {
    let id = Params::read(params).ok().and_then(|params| params.request_id());
    let Some(cancelled) = id.and_then(|id| session.table.cancel(&id)) else {
        effects.push(Effect::Ignored(Ignored::StrayCancel));
        return;
    };
    effects.push(Effect::Cancel(cancelled.key));
    effects.extend(cancelled.asks.iter().map(|id| Effect::Send(encode::cancelled_line(id))));
    effects.extend(cancelled.batch.map(Effect::Send));
}

/// The id that a line asks to cancel.
pub(super) fn cancelled_id(line: &[u8], limits: Limits) -> Option<RequestId> {
    let json = strict::check(line, limits).ok()??;
    match classify(json) {
        Ok(Incoming::Notification { method, params }) if method == CANCELLED => {
            Params::read(params).ok()?.request_id()
        }
        _ => None,
    }
}

pub(super) fn response(
    session: &mut ServerSession,
    id: Option<&RequestId>,
    answer: Result<&str, &str>,
    effects: &mut Vec<Effect>,
) {
    let Some((key, ask, kind)) = id.and_then(|id| session.table.answer_ask(id)) else {
        effects.push(Effect::Ignored(Ignored::StrayResponse));
        return;
    };
    effects.push(Effect::Answered { key, ask, answer: kind.answer(answer) });
}
