//! The shell of the HTTP kinds: one request, one stream of events, and the limits on both.

mod client;
mod json_client;
pub(crate) mod models;

use std::time::Duration;

use cyberine_types::{Clock, SystemClock};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use self::client::{Endpoint, headers};
pub use self::json_client::JsonClient;
use crate::error::TurnError;
use crate::fault;
use crate::port::{Limits, StopReason};
use crate::quote::Quoter;
use crate::stream::Emitter;
use crate::wire::{End, Session};

/// How much of a body that is no event stream is read.
const BODY_BYTES: usize = 64 << 10;
/// How long it is read: the failure is known without it.
const BODY_PATIENCE: Duration = Duration::from_secs(3);

/// The longest line or event for an answer of `answer_bytes`: JSON escapes, and what stands around
/// the text, within reason.
pub(crate) fn event_limit(answer_bytes: usize) -> usize {
    answer_bytes.saturating_mul(2).saturating_add(256 << 10)
}

/// Takes one turn: sends `body` and reads the answer into `session`. Dropping the connection is
/// what ends the turn on the other side.
pub(crate) async fn drive(
    endpoint: &Endpoint,
    body: Vec<u8>,
    session: Session,
    limits: Limits,
    cancel: CancellationToken,
    out: Emitter,
) -> Result<StopReason, TurnError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(TurnError::Cancelled),
        () = tokio::time::sleep(limits.wall) => Err(TurnError::WallTimeout { limit: limits.wall }),
        outcome = exchange(endpoint, body, session, limits.idle, out) => outcome,
    }
}

async fn exchange(
    endpoint: &Endpoint,
    body: Vec<u8>,
    session: Session,
    idle: Duration,
    out: Emitter,
) -> Result<StopReason, TurnError> {
    let silence = |_| TurnError::IdleTimeout { limit: idle };
    let response = timeout(idle, endpoint.post(body)).await.map_err(silence)??;
    if !response.status().is_success() {
        return Err(refused(response, endpoint, idle).await);
    }
    if is_foreign(&response) {
        return Err(fault::foreign_fault(
            &start_of(response, idle, endpoint.quoter()).await,
            endpoint.quoter(),
        ));
    }
    read(response, session, idle, out).await
}

async fn read(
    mut response: Response,
    mut session: Session,
    idle: Duration,
    out: Emitter,
) -> Result<StopReason, TurnError> {
    let mut events = Vec::new();
    while !session.is_over() {
        let next =
            timeout(idle, response.chunk()).await.map_err(|_| TurnError::IdleTimeout { limit: idle })?;
        let bytes = match next {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(error = %error.without_url(), "the connection broke within an answer");
                break;
            }
        };
        let pushed = session.push(&bytes, &mut events);
        out.send(&mut events).await;
        pushed?;
    }
    let outcome = session.finish(End::Closed, &mut events);
    out.send(&mut events).await;
    outcome
}

/// The failure behind a status that is no success.
async fn refused(response: Response, endpoint: &Endpoint, idle: Duration) -> TurnError {
    let status = response.status().as_u16();
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wait = header.and_then(|value| fault::retry_after(value, SystemClock.now()));
    let body = start_of(response, idle, endpoint.quoter()).await;
    endpoint.explain(status, fault::http_fault(status, wait, &body, endpoint.quoter()))
}

/// Whether a success comes as something that cannot be an event stream.
fn is_foreign(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(kind.as_str(), "application/json" | "text/html" | "application/xhtml+xml")
}

/// As much of a body as comes in time, at most 64 KiB.
async fn start_of(mut response: Response, idle: Duration, quoter: &Quoter) -> String {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < BODY_BYTES
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(BODY_BYTES - body.len())]);
        }
    };
    // What has come until then is enough.
    let _ = timeout(idle.min(BODY_PATIENCE), reading).await;
    let text = String::from_utf8_lossy(&body);
    // A secret may have been cut with it.
    if body.len() < BODY_BYTES { text.into_owned() } else { quoter.begun(&text) }
}
