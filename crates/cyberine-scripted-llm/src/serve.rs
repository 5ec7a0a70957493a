//! From one HTTP request to one response.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::body::ScriptedBody;
use crate::call::{Call, Wire};
use crate::control::{Control, Ticket};
use crate::deliver::{self, Delivery};
use crate::route::{Route, Target, query, route};
use crate::script::{Script, scripted_id};
use crate::wire::{anthropic, gemini, ollama, openai, responses};

/// The largest request body that is read.
const BODY_BYTES: usize = 64 << 20;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) control: Arc<Control>,
}

/// Answers one request.
///
/// # Cancel safety
///
/// hyper drops the future when the client goes away; the ticket in it notes that.
pub(crate) async fn respond(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<ScriptedBody>, Infallible> {
    let control = &shared.control;
    let (head, body) = request.into_parts();
    let delivery = match route(&head.method, &head.uri) {
        Route::Health => deliver::json(200, &json!({"status": "ok"})),
        Route::Models => listed(&shared.script, spoken(&head.headers), &head, None),
        Route::Model(model) => listed(&shared.script, spoken(&head.headers), &head, Some(&model)),
        Route::ModelsOf(wire) => listed(&shared.script, wire, &head, None),
        Route::ModelOf(wire, model) => listed(&shared.script, wire, &head, Some(&model)),
        Route::Version => deliver::json(200, &ollama::version()),
        Route::Complete(target) => return Ok(complete(&shared, &target, &head, body).await),
        Route::Count(wire) => count(&shared.script, wire, &head, body).await,
        Route::State => deliver::json(200, &json!(control.state())),
        Route::Wait { least, limit } => {
            let (state, reached) = control.wait(limit, |state| least.reached(state)).await;
            deliver::json(if reached { 200 } else { 408 }, &json!(state))
        }
        Route::Release(name) => deliver::json(200, &json!({"released": control.release(&name)})),
        Route::Hold(name, role) => return Ok(hold(control, &name, &role).await),
        Route::WrongMethod => deliver::refusal(Wire::OpenAi, 405, "this path takes another method"),
        Route::NotEvents => deliver::refusal(
            Wire::Gemini,
            400,
            "streams of this server are server-sent events: ask with `alt=sse`",
        ),
        Route::Unknown => deliver::refusal(Wire::OpenAi, 404, "there is nothing at this path"),
    };
    Ok(response(delivery, None))
}

/// Answers a request for a completion from the script.
async fn complete(shared: &Shared, target: &Target, head: &Parts, body: Incoming) -> Response<ScriptedBody> {
    let mut call = match read(target.wire, body).await {
        Err(refusal) => return response(refusal, None),
        Ok(bytes) => match understood(&shared.script, target, head, &bytes) {
            Ok(call) => call,
            Err(refusal) => return response(refusal, None),
        },
    };
    call.nth = shared.control.count(&call.model);
    let reply = shared.script.pick(&call);
    let mut ticket = shared.control.admit(&call, reply.rule.clone());
    if let Some(name) = &reply.hold {
        ticket.hold(name).await;
    }
    response(deliver::deliver(&call, &reply), Some(ticket))
}

async fn read(wire: Wire, body: Incoming) -> Result<Bytes, Delivery> {
    let read = Limited::new(body, BODY_BYTES).collect().await;
    read.map(|body| body.to_bytes()).map_err(|_| deliver::refusal(wire, 413, "the request is too large"))
}

/// The call in a request, or what is answered to a request that is none.
fn understood(script: &Script, target: &Target, head: &Parts, body: &Bytes) -> Result<Call, Delivery> {
    let wire = target.wire;
    let refused = |status: u16, problem: &str| deliver::refusal(wire, status, problem);
    admitted(script, wire, head)?;
    if wire == Wire::Anthropic && !head.headers.contains_key("anthropic-version") {
        return Err(refused(400, "anthropic-version: header is required"));
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| refused(400, "the body is not valid JSON"))?;
    let call = match wire {
        Wire::Anthropic => anthropic::call(&body),
        Wire::Responses => responses::call(&body),
        Wire::Gemini => gemini::call(&target.model, target.stream, &body),
        Wire::Ollama => ollama::call(&body),
        Wire::OpenAi | Wire::Program => openai::call(&body),
    };
    call.map_err(|problem| refused(400, problem))
}

/// Whether the key is the script's.
fn admitted(script: &Script, wire: Wire, head: &Parts) -> Result<(), Delivery> {
    let Some(key) = &script.key else { return Ok(()) };
    if key_of(head) == Some(key) {
        return Ok(());
    }
    Err(match wire {
        Wire::Gemini => deliver::json(400, &gemini::key_refused()),
        _ => deliver::refusal(wire, 401, "the key is not the one the script asks for"),
    })
}

fn key_of(head: &Parts) -> Option<&str> {
    let value = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let own = || ["x-api-key", "x-goog-api-key"].into_iter().find_map(value);
    let shown = || query(head.uri.query(), "key");
    value("authorization").and_then(|value| value.strip_prefix("Bearer ")).or_else(own).or_else(shown)
}

/// The wire whose headers a request carries, where several share a path.
fn spoken(headers: &HeaderMap) -> Wire {
    match () {
        () if headers.contains_key("anthropic-version") => Wire::Anthropic,
        () if headers.contains_key("x-goog-api-key") => Wire::Gemini,
        () => Wire::OpenAi,
    }
}

/// All models, or the one that is asked for: any, since a rule need not name those it answers for.
fn listed(script: &Script, wire: Wire, head: &Parts, one: Option<&str>) -> Delivery {
    if let Err(refusal) = admitted(script, wire, head) {
        return refusal;
    }
    let (ids, one) = (script.model_ids(), one.map(scripted_id));
    let body = match (wire, one) {
        (Wire::Anthropic, None) => anthropic::models(&ids),
        (Wire::Anthropic, Some(id)) => anthropic::model(&id),
        (Wire::Gemini, None) => gemini::models(&ids),
        (Wire::Gemini, Some(id)) => gemini::model(&id),
        (Wire::Ollama, _) => ollama::models(&ids),
        (Wire::OpenAi | Wire::Responses | Wire::Program, None) => openai::models(&ids),
        (Wire::OpenAi | Wire::Responses | Wire::Program, Some(id)) => openai::model(&id),
    };
    deliver::json(200, &body)
}

/// Counts the words of a request, as everywhere here.
async fn count(script: &Script, wire: Wire, head: &Parts, body: Incoming) -> Delivery {
    if let Err(refusal) = admitted(script, wire, head) {
        return refusal;
    }
    let words = match read(wire, body).await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).split_whitespace().count(),
        Err(refusal) => return refusal,
    };
    deliver::json(200, &if wire == Wire::Gemini { gemini::count(words) } else { anthropic::count(words) })
}

/// Holds a program until `name` is released.
async fn hold(control: &Arc<Control>, name: &str, role: &str) -> Response<ScriptedBody> {
    let call = Call::program(scripted_id(role), String::new());
    let mut ticket = control.admit(&call, format!("hold {name}"));
    ticket.hold(name).await;
    response(deliver::json(200, &json!({"released": name})), Some(ticket))
}

/// The response of a delivery, with the label every response carries.
fn response(delivery: Delivery, ticket: Option<Ticket>) -> Response<ScriptedBody> {
    let mut response = Response::new(ScriptedBody::new(delivery.frames, ticket));
    *response.status_mut() =
        StatusCode::from_u16(delivery.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(delivery.content_type));
    headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    headers.insert("request-id", HeaderValue::from_static(anthropic::REQUEST_ID));
    headers.insert("x-request-id", HeaderValue::from_static(anthropic::REQUEST_ID));
    headers.insert("x-scripted", HeaderValue::from_static("no model was called"));
    if let Some(wait) = delivery.retry_after.and_then(|wait| HeaderValue::from_str(&wait).ok()) {
        headers.insert(RETRY_AFTER, wait);
    }
    response
}
