//! What a client wants to follow.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;

use cyberine_protocol::model::SubscriptionFilter;
use cyberine_protocol::{Answer, RpcError};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::sync::OwnedSemaphorePermit;

use super::Request;
use super::read::{resources, rpc_error};
use crate::connection::follow::{Followed, Listening};
use crate::connection::{Connection, Reply, log_panic};
use crate::resource_set::ResourceError;

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
    let place = request.connection().follow_places(1)?;
    if uri.len() <= URI_LIMIT {
        let plain = resources(request.server())?.plain_uri(&uri);
        request.connection().subscribing(request.entry.key, plain);
    }
    watch(request, uri, place).await.map_err(rpc_error)
}

/// Begins to follow what can be followed. What cannot, for whatever reason, is left out of the
/// acknowledgement, as are the changes of lists, which this server does not tell. Where nothing is
/// left the listen stays open all the same, and silent: the client sees what it has, and one that
/// listens again whenever a listen ends would do so without end.
pub(super) async fn listen(request: &Request, filter: SubscriptionFilter) -> Result<Listening, RpcError> {
    let place = request.connection().listen_place()?;
    let mut seen = HashSet::new();
    let uris = filter.resource_subscriptions;
    let uris: Vec<String> = uris.into_iter().filter(|uri| seen.insert(uri.clone())).collect();
    let mut places = request.connection().follow_places(uris.len())?;
    let asked: Vec<_> = uris.into_iter().filter_map(|uri| Some((uri, places.split(1)?))).collect();
    let found: Vec<Option<Followed>> = stream::iter(asked)
        .map(|(uri, place)| watch_or_not(request, uri, place))
        .buffered(LOOKED_FOR)
        .collect()
        .await;
    let mut followed = HashSet::new();
    let resources = found.into_iter().flatten().filter(|found| followed.insert(found.uri.clone())).collect();
    Ok(Listening { resources, place })
}

async fn watch_or_not(request: &Request, uri: String, place: OwnedSemaphorePermit) -> Option<Followed> {
    match AssertUnwindSafe(watch(request, uri, place)).catch_unwind().await {
        Ok(Ok(followed)) => Some(followed),
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

async fn watch(
    request: &Request,
    uri: String,
    place: OwnedSemaphorePermit,
) -> Result<Followed, ResourceError> {
    let Ok(resources) = resources(request.server()) else { return Err(ResourceError::NotFound { uri }) };
    if uri.len() > URI_LIMIT {
        return Err(ResourceError::NotFound { uri });
    }
    let watch = resources.watch(request.caller.clone(), uri).await?;
    Ok(Followed { uri: watch.uri().to_owned(), watch, place })
}
