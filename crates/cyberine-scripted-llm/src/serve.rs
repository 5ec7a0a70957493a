//! From one HTTP request to one response.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::body::ScriptedBody;
use crate::call::{Call, Wire};
use crate::control::{Control, Ticket};
use crate::deliver::{self, Delivery};
use crate::route::{Route, route};
use crate::script::{Script, scripted_id};
use crate::wire::{anthropic, openai};

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
    let delivery = match route(request.method(), request.uri()) {
        Route::Health => deliver::json(200, &json!({"status": "ok"})),
        Route::Models => deliver::json(200, &models(&shared.script, request.headers())),
        Route::Complete(wire) => return Ok(complete(&shared, wire, request).await),
        Route::State => deliver::json(200, &json!(control.state())),
        Route::Wait { least, limit } => {
            let (state, reached) = control.wait(limit, |state| least.reached(state)).await;
            deliver::json(if reached { 200 } else { 408 }, &json!(state))
        }
        Route::Release(name) => deliver::json(200, &json!({"released": control.release(&name)})),
        Route::Hold(name, role) => return Ok(hold(control, &name, &role).await),
        Route::WrongMethod => deliver::refusal(Wire::OpenAi, 405, "this path takes another method"),
        Route::Unknown => deliver::refusal(Wire::OpenAi, 404, "there is nothing at this path"),
    };
    Ok(response(delivery, None))
}

/// Answers a request for a completion from the script.
async fn complete(shared: &Shared, wire: Wire, request: Request<Incoming>) -> Response<ScriptedBody> {
    let (head, body) = request.into_parts();
    let read = Limited::new(body, BODY_BYTES).collect().await.map(|body| body.to_bytes());
    let Ok(bytes) = read else {
        return response(deliver::refusal(wire, 413, "the request is too large"), None);
    };
    let mut call = match understood(&shared.script, wire, &head.headers, &bytes) {
        Ok(call) => call,
        Err(refusal) => return response(refusal, None),
    };
    call.nth = shared.control.count(&call.model);
    let reply = shared.script.pick(&call);
    let mut ticket = shared.control.admit(&call, reply.rule.clone());
    if let Some(name) = &reply.hold {
        ticket.hold(name).await;
    }
    response(deliver::deliver(&call, &reply), Some(ticket))
}

/// The call in a request, or what is answered to a request that is none.
fn understood(script: &Script, wire: Wire, headers: &HeaderMap, body: &Bytes) -> Result<Call, Delivery> {
    let refused = |status: u16, problem: &str| deliver::refusal(wire, status, problem);
    if script.key.as_deref().is_some_and(|key| key_of(headers) != Some(key)) {
        return Err(refused(401, "the key is not the one the script asks for"));
    }
    if wire == Wire::Anthropic && !headers.contains_key("anthropic-version") {
        return Err(refused(400, "anthropic-version: header is required"));
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| refused(400, "the body is not valid JSON"))?;
    let call = match wire {
        Wire::Anthropic => anthropic::call(&body),
        Wire::OpenAi | Wire::Program => openai::call(&body),
    };
    call.map_err(|problem| refused(400, problem))
}

fn key_of(headers: &HeaderMap) -> Option<&str> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    value("authorization").and_then(|value| value.strip_prefix("Bearer ")).or_else(|| value("x-api-key"))
}

fn models(script: &Script, headers: &HeaderMap) -> Value {
    let ids = script.model_ids();
    if headers.contains_key("anthropic-version") { anthropic::models(&ids) } else { openai::models(&ids) }
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
