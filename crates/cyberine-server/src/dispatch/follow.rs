//! What a client wants to follow.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;

use cyberine_protocol::model::{ListKind, SubscriptionFilter};
use cyberine_protocol::{Answer, RpcError};
use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::Request;
use super::read::{resources, rpc_error};
use super::task::tasks;
use crate::connection::follow::{Followed, FollowedTask, Listening};
use crate::connection::{Connection, Reply, log_panic};
use crate::resource_set::{ResourceError, ResourceWatch};
use crate::task_set::TaskError;

/// The longest URI that is followed, in bytes: it is kept as long as it is.
const URI_LIMIT: usize = 4096;

/// Resources of one listen that are looked for at once.
const LOOKED_FOR: usize = 16;

pub(super) fn unsubscribe(connection: &Connection, uri: &str) -> Reply {
    let plain = resources(&connection.server)?.plain_uri(uri);
    connection.unsubscribe(&plain);
    Ok(Answer::Empty)
}

pub(super) async fn subscribe(request: &Request, uri: String) -> Result<Followed, RpcError> {
    if uri.len() <= URI_LIMIT {
        let plain = resources(request.server())?.plain_uri(&uri);
        request.connection().subscribing(request.entry.key, plain);
    }
    let watch = watch(request, uri).await.map_err(rpc_error)?;
    followed(request, watch)
}

/// Begins to follow what can be followed. What cannot, for whatever reason, is left out of the
/// acknowledgement, as are the changes of lists that stay as they are. Where nothing is left the listen stays open all the same, and silent: the client sees what it has, and one that
/// listens again whenever a listen ends would do so without end.
///
/// What can be followed and finds no place is refused, and the whole listen with it: the client hears
/// that it has to end something, as with `resources/subscribe`.
pub(super) async fn listen(request: &Request, filter: SubscriptionFilter) -> Result<Listening, RpcError> {
    let place = request.connection().listen_place()?;
    // First of all, so that no change from now on is missed.
    let lists = request.server().list_changes().filter(|(kind, _)| match kind {
        ListKind::Tools => filter.tools_list_changed,
        ListKind::Prompts => filter.prompts_list_changed,
        ListKind::Resources => filter.resources_list_changed,
    });
    let lists = lists.collect();
    let tasks = followed_tasks(request, filter.task_ids).await?;
    let mut seen = HashSet::new();
    let uris = filter.resource_subscriptions;
    let uris: Vec<String> = uris.into_iter().filter(|uri| seen.insert(uri.clone())).collect();
    let mut looked_for = stream::iter(uris).map(|uri| watch_or_not(request, uri)).buffered(LOOKED_FOR);
    let (mut resources, mut known) = (Vec::new(), HashSet::new());
    while let Some(found) = looked_for.next().await {
        if let Some(watch) = found.filter(|watch| known.insert(watch.uri().to_owned())) {
            resources.push(followed(request, watch)?);
        }
    }
    Ok(Listening { resources, tasks, lists, place })
}

/// The tasks that are there for this caller. The others are left out.
async fn followed_tasks(request: &Request, ids: Vec<String>) -> Result<Vec<FollowedTask>, RpcError> {
    let Ok(set) = tasks(request.server()) else { return Ok(Vec::new()) };
    let (mut seen, mut followed) = (HashSet::new(), Vec::new());
    for id in ids {
        if !seen.insert(id.clone()) {
            continue;
        }
        match set.watch(request.caller.clone(), id.clone()).await {
            Ok(watch) => {
                followed.push(FollowedTask { id, watch, place: request.connection().follow_place()? });
            }
            Err(TaskError::Internal(message)) => tracing::warn!(message, "a task cannot be followed"),
            Err(TaskError::UnknownTask(_) | TaskError::Refused(_)) => {}
        }
    }
    Ok(followed)
}

/// A resource that was found, with a place of the connection.
fn followed(request: &Request, watch: Box<dyn ResourceWatch>) -> Result<Followed, RpcError> {
    let place = request.connection().follow_place()?;
    Ok(Followed { uri: watch.uri().to_owned(), watch, place })
}

async fn watch_or_not(request: &Request, uri: String) -> Option<Box<dyn ResourceWatch>> {
    match AssertUnwindSafe(watch(request, uri)).catch_unwind().await {
        Ok(Ok(watch)) => Some(watch),
        Ok(Err(ResourceError::Internal(message))) => {
            tracing::warn!(message, "a resource cannot be followed");
            None
        }
        Ok(Err(_)) => None,
        Err(panic) => {
            log_panic(&*panic, "a resource set panicked");
            None
        }
    }
}

async fn watch(request: &Request, uri: String) -> Result<Box<dyn ResourceWatch>, ResourceError> {
    let Ok(resources) = resources(request.server()) else { return Err(ResourceError::NotFound { uri }) };
    if uri.len() > URI_LIMIT {
        return Err(ResourceError::NotFound { uri });
    }
    resources.watch(request.caller.clone(), uri).await
}
