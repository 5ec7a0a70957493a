use super::json::{Object, put};
use crate::escape::escape_line;
use crate::jsonrpc::{RequestId, RpcError};
use crate::model::{ElicitForm, SubscriptionFilter};
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
        let mut body = message.object("error");
        body.member("code", &error.code(revision));
        body.member("message", error.message());
        body.optional("data", error.data());
        body.end();
    })
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

/// `elicitation/create` to a client that opened a session.
pub(crate) fn elicit_line(id: &RequestId, form: &ElicitForm, revision: Revision) -> Vec<u8> {
    line(512, |message| {
        message.raw("id", id.token());
        message.raw("method", "\"elicitation/create\"");
        form_params(message.object("params"), form, revision);
    })
}

/// The parameters of a form, inside a request or among `inputRequests`.
pub(super) fn form_params(mut params: Object<'_>, form: &ElicitForm, revision: Revision) {
    if revision >= Revision::V2025_11_25 {
        params.raw("mode", "\"form\"");
    }
    params.member("message", &form.message);
    params.member("requestedSchema", &form.requested_schema);
    params.end();
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

fn subscription(params: &mut Object<'_>, id: &RequestId) {
    let mut meta = params.object("_meta");
    meta.raw(SUBSCRIPTION_ID, id.token());
    meta.end();
}

/// `notifications/subscriptions/acknowledged`: what of a client's wishes is served. What is not, is
/// left out.
pub(crate) fn acknowledged_line(id: &RequestId, served: &SubscriptionFilter) -> Vec<u8> {
    line(256, |message| {
        message.raw("method", "\"notifications/subscriptions/acknowledged\"");
        let mut params = message.object("params");
        let mut filter = params.object("notifications");
        for (key, wanted) in [
            ("toolsListChanged", served.tools_list_changed),
            ("promptsListChanged", served.prompts_list_changed),
            ("resourcesListChanged", served.resources_list_changed),
        ] {
            if wanted {
                filter.raw(key, "true");
            }
        }
        if !served.resource_subscriptions.is_empty() {
            filter.member("resourceSubscriptions", &served.resource_subscriptions);
        }
        filter.end();
        subscription(&mut params, id);
        params.end();
    })
}

/// `notifications/resources/updated`, with the id of the `subscriptions/listen` that wanted to know.
pub(crate) fn updated_line(uri: &str, listen: Option<&RequestId>) -> Vec<u8> {
    line(192 + uri.len(), |message| {
        message.raw("method", "\"notifications/resources/updated\"");
        let mut params = message.object("params");
        params.member("uri", uri);
        if let Some(id) = listen {
            subscription(&mut params, id);
        }
        params.end();
    })
}
