//! Questions to a client: as requests of their own, or among `inputRequests`.

use std::collections::BTreeMap;

use super::json::Object;
use super::line::line;
use crate::jsonrpc::RequestId;
use crate::model::{ElicitForm, ElicitUrl, InputRequest};
use crate::revision::Revision;

/// A question to a client that opened a session.
pub(crate) fn ask_line(id: &RequestId, request: &InputRequest, revision: Revision) -> Vec<u8> {
    line(512, |message| {
        message.raw("id", id.token());
        members(message, request, revision, Some(id));
    })
}

/// The questions of a result, by their keys.
pub(super) fn input_requests(
    object: &mut Object<'_>,
    requests: &BTreeMap<String, InputRequest>,
    revision: Revision,
) {
    let mut all = object.object("inputRequests");
    for (key, request) in requests {
        let mut inner = Object::new(all.any_key(key));
        members(&mut inner, request, revision, None);
        inner.end();
    }
    all.end();
}

fn members(object: &mut Object<'_>, request: &InputRequest, revision: Revision, id: Option<&RequestId>) {
    object.raw(
        "method",
        match request {
            InputRequest::Form(_) | InputRequest::Url(_) => "\"elicitation/create\"",
            InputRequest::Sampling(_) => "\"sampling/createMessage\"",
            InputRequest::Roots => "\"roots/list\"",
        },
    );
    match request {
        InputRequest::Form(form) => form_params(object.object("params"), form, revision),
        InputRequest::Url(page) => page_params(object.object("params"), page, revision, id),
        InputRequest::Sampling(params) => object.member("params", params),
        InputRequest::Roots => {}
    }
}

fn form_params(mut params: Object<'_>, form: &ElicitForm, revision: Revision) {
    if revision >= Revision::V2025_11_25 {
        params.raw("mode", "\"form\"");
    }
    params.member("message", &form.message);
    params.member("requestedSchema", &form.requested_schema);
    params.end();
}

/// 2025-11-25 names each page by an id, and the id of the question is one.
fn page_params(mut params: Object<'_>, page: &ElicitUrl, revision: Revision, id: Option<&RequestId>) {
    params.raw("mode", "\"url\"");
    if let Some(id) = id.filter(|_| revision == Revision::V2025_11_25) {
        params.raw("elicitationId", id.token());
    }
    params.member("url", &page.url);
    params.member("message", &page.message);
    params.end();
}
