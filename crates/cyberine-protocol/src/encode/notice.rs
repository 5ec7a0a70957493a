//! What a server tells without being asked: its log, and what has changed.

use serde_json::Value;

use super::json::Object;
use super::line::{SUBSCRIPTION_ID, line};
use super::request::wanted;
use super::task::task_members;
use crate::jsonrpc::RequestId;
use crate::model::{DetailedTask, ListKind, LogLevel, SubscriptionFilter};
use crate::revision::Revision;

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
        wanted(params.object("notifications"), served);
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

/// `notifications/{tools,prompts,resources}/list_changed`, with the id of the
/// `subscriptions/listen` that wanted to know.
pub(crate) fn list_changed_line(list: ListKind, listen: Option<&RequestId>) -> Vec<u8> {
    line(192, |message| {
        message.raw(
            "method",
            match list {
                ListKind::Tools => "\"notifications/tools/list_changed\"",
                ListKind::Prompts => "\"notifications/prompts/list_changed\"",
                ListKind::Resources => "\"notifications/resources/list_changed\"",
            },
        );
        if let Some(id) = listen {
            let mut params = message.object("params");
            subscription(&mut params, id);
            params.end();
        }
    })
}

/// `notifications/tasks`: how a task stands, as `tasks/get` would say.
pub(crate) fn task_changed_line(task: &DetailedTask, listen: &RequestId, revision: Revision) -> Vec<u8> {
    line(512, |message| {
        message.raw("method", "\"notifications/tasks\"");
        let mut params = message.object("params");
        task_members(&mut params, task, revision);
        subscription(&mut params, listen);
        params.end();
    })
}

/// `notifications/message`: a line of the log.
pub(crate) fn log_line(level: LogLevel, logger: Option<&str>, data: &Value) -> Vec<u8> {
    line(256, |message| {
        message.raw("method", "\"notifications/message\"");
        let mut params = message.object("params");
        params.member("level", level.as_str());
        params.optional("logger", logger.as_ref());
        params.member("data", data);
        params.end();
    })
}
