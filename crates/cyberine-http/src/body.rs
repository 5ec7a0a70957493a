use std::time::Duration;

use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName};
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio_util::sync::CancellationToken;

/// The most bytes of a body over the limit that are read and thrown away, so that a client that
/// writes all of it before it reads sees why it was refused.
const SWALLOWED: u64 = 64 * 1024 * 1024;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// It is longer than the limit.
    TooLong,
    /// It did not come in time.
    TooSlow,
    /// The client went away, or its chunks cannot be read.
    Broken,
    /// It comes in a transfer coding other than `chunked` (RFC 9112, 6.1).
    Coded,
    /// Its content is encoded (RFC 9110, 8.4).
    Encoded,
    /// The server stopped before all of it was there.
    Stopping,
}

/// Reads a body of at most `limit` bytes, within `time`, and until the server stops.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: impl Body<Data = Bytes> + Unpin,
    limit: usize,
    time: Duration,
    closing: &CancellationToken,
) -> Result<Bytes, NoBody> {
    if !all_are(headers, TRANSFER_ENCODING, "chunked") {
        return Err(NoBody::Coded);
    }
    if !all_are(headers, CONTENT_ENCODING, "identity") {
        return Err(NoBody::Encoded);
    }
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let reading = async {
        if declared.is_some_and(|length| length > limit as u64) {
            swallow(&mut body).await;
            return Err(NoBody::TooLong);
        }
        let whole = whole(&mut body, limit).await;
        if whole == Err(NoBody::TooLong) {
            swallow(&mut body).await;
        }
        whole
    };
    tokio::select! {
        biased;
        read = tokio::time::timeout(time, reading) => read.unwrap_or(Err(NoBody::TooSlow)),
        () = closing.cancelled() => Err(NoBody::Stopping),
    }
}

/// Whether a header says nothing but `usual`, where it is there.
fn all_are(headers: &HeaderMap, name: HeaderName, usual: &str) -> bool {
    headers.get_all(name).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(usual.as_bytes()))
}

async fn whole(body: &mut (impl Body<Data = Bytes> + Unpin), limit: usize) -> Result<Bytes, NoBody> {
    let Some(first) = data(body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(NoBody::TooLong);
    }
    // Most bodies come in one piece.
    let Some(second) = data(body).await? else { return Ok(first) };
    let mut whole = BytesMut::with_capacity(first.len() + second.len());
    whole.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(part) = next {
        if whole.len() + part.len() > limit {
            return Err(NoBody::TooLong);
        }
        whole.extend_from_slice(&part);
        next = data(body).await?;
    }
    Ok(whole.freeze())
}

async fn data(body: &mut (impl Body<Data = Bytes> + Unpin)) -> Result<Option<Bytes>, NoBody> {
    while let Some(frame) = body.frame().await {
        // What is no data is a trailer.
        if let Ok(data) = frame.map_err(|_| NoBody::Broken)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

async fn swallow(body: &mut (impl Body<Data = Bytes> + Unpin)) {
    let mut swallowed = 0;
    while let Ok(Some(part)) = data(body).await {
        swallowed += part.len() as u64;
        if swallowed > SWALLOWED {
            return;
        }
    }
}
