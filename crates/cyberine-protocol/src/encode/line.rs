use super::json::{Object, put};
use crate::escape::escape_line;
use crate::jsonrpc::{RequestId, RpcError};
use crate::revision::Revision;

/// The member of `_meta` that names the `subscriptions/listen` a message belongs to.
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Starts `{"jsonrpc":"2.0"` and lets `write` add the rest.
pub(super) fn line(capacity: usize, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity);
    let mut object = Object::new(&mut out);
    object.raw("jsonrpc", "\"2.0\"");
    write(&mut object);
    object.end();
    escape_line(out)
}

/// The response with an error. Where the id could not be read there is none: `null` is no id in
/// any revision's schema.
pub(crate) fn error_line(id: Option<&RequestId>, error: &RpcError, revision: Revision) -> Vec<u8> {
    line(256, |message| {
        if let Some(id) = id {
            message.raw("id", id.token());
        }
        error_object(message, error, revision);
    })
}

/// The member `error` of a response, or of a task.
pub(super) fn error_object(object: &mut Object<'_>, error: &RpcError, revision: Revision) {
    let mut body = object.object("error");
    body.member("code", &error.code(revision));
    body.member("message", error.message());
    body.optional("data", error.data());
    body.end();
}

/// The response with an empty result, to `ping`.
pub(crate) fn empty_line(id: &RequestId) -> Vec<u8> {
    line(64, |message| {
        message.raw("id", id.token());
        message.raw("result", "{}");
    })
}

/// `notifications/progress`. The text goes out from 2025-03-26.
pub(crate) fn progress_line(
    token: &RequestId,
    progress: f64,
    total: Option<f64>,
    text: &str,
    revision: Revision,
) -> Vec<u8> {
    line(160 + text.len(), |message| {
        message.raw("method", "\"notifications/progress\"");
        let mut params = message.object("params");
        params.raw("progressToken", token.token());
        number(params.key("progress"), progress);
        if let Some(total) = total {
            number(params.key("total"), total);
        }
        if revision >= Revision::V2025_03_26 && !text.is_empty() {
            params.member("message", text);
        }
        params.end();
    })
}

/// Whole numbers go out without a fraction: `2`, not `2.0`.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before the cast")]
fn number(out: &mut Vec<u8>, value: f64) {
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        put(out, &(value as i64));
    } else {
        put(out, &value);
    }
}

/// `notifications/cancelled` for a question whose request was cancelled.
pub(crate) fn cancelled_line(id: &RequestId) -> Vec<u8> {
    line(160, |message| {
        message.raw("method", "\"notifications/cancelled\"");
        let mut params = message.object("params");
        params.raw("requestId", id.token());
        params.raw("reason", "\"the request it was asked for was cancelled\"");
        params.end();
    })
}
