//! From a request to its reply.

use std::sync::Arc;

use cyberine_protocol::model::ClientCapabilities;
use cyberine_protocol::{Answer, Inbound, InboundBody, Revision, RpcError};
use cyberine_types::Caller;
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::connection::follow::Follower;
use crate::connection::{Connection, Entry, News, Reply, Served};
use crate::progress::{OutlivesReply, Progress};
use crate::server::Server;

mod call;
mod follow;
mod read;

/// One request while it is served.
pub(crate) struct Request {
    revision: Revision,
    capabilities: ClientCapabilities,
    caller: Caller,
    progress: Progress,
    cancel: CancellationToken,
    entry: Arc<Entry>,
}

impl Request {
    pub(crate) fn new(entry: Arc<Entry>, inbound: Inbound, cancel: CancellationToken) -> (Self, InboundBody) {
        let Inbound { revision, client, capabilities, progress, body, .. } = inbound;
        let progress = if progress {
            let outlives = if revision.is_stateless() { OutlivesReply::No } else { OutlivesReply::Yes };
            Progress::to(News(Arc::clone(&entry)), outlives)
        } else {
            Progress::none()
        };
        let caller = entry.connection.server.caller(client);
        (Self { revision, capabilities, caller, progress, cancel, entry }, body)
    }

    fn connection(&self) -> &Connection {
        &self.entry.connection
    }

    fn server(&self) -> &Server {
        &self.entry.connection.server
    }

    fn follower(&self) -> Follower {
        Follower { entry: Arc::clone(&self.entry), cancel: self.cancel.clone() }
    }

    fn background(&self) -> Background {
        let (tasks, entry) = (self.connection().background.clone(), Arc::clone(&self.entry));
        Background::leased(tasks, self.cancel.clone(), entry)
    }
}

/// Serves a request that needs no handler: a list that is there, or the end of a subscription.
/// `None` for the others.
pub(crate) fn at_once(connection: &Connection, inbound: &Inbound) -> Option<Reply> {
    let server = &connection.server;
    match &inbound.body {
        InboundBody::Unsubscribe { uri } => Some(follow::unsubscribe(connection, uri)),
        InboundBody::ListTools { cursor: None } => {
            let caller = server.caller(inbound.client.clone());
            Some(Ok(Answer::Tools(server.catalog(&caller).listing())))
        }
        InboundBody::ListTemplates { cursor: None } => Some(read::templates(server)),
        // Neither list has a second page.
        InboundBody::ListTools { .. } | InboundBody::ListTemplates { .. } => {
            Some(Err(RpcError::invalid_cursor()))
        }
        _ => None,
    }
}

/// Serves any other request to its end.
pub(crate) async fn serve(request: Request, body: InboundBody) -> Served {
    let reply = match body {
        InboundBody::Subscribe { uri } => match follow::subscribe(&request, uri).await {
            Ok(followed) => return Served::Subscribed(request.follower(), followed),
            Err(error) => Err(error),
        },
        InboundBody::Listen { filter } => match follow::listen(&request, filter).await {
            Ok(listening) => return Served::Listening(request.follower(), listening),
            Err(error) => Err(error),
        },
        InboundBody::CallTool { name, arguments, input_responses, request_state } => {
            call::serve(&request, call::Asked { name, arguments, input_responses, request_state }).await
        }
        InboundBody::ListResources { cursor } => read::list(&request, cursor).await,
        // Reads ask nothing yet, so nothing is brought back.
        InboundBody::ReadResource { uri, .. } => read::contents(&request, uri).await,
        // No profile of this rail says that it serves these.
        InboundBody::ListPrompts { .. } | InboundBody::GetPrompt { .. } => {
            Err(RpcError::method_not_found("prompts"))
        }
        InboundBody::Complete { .. } => Err(RpcError::method_not_found("completion/complete")),
        InboundBody::GetTask { .. } | InboundBody::UpdateTask { .. } | InboundBody::CancelTask { .. } => {
            Err(RpcError::method_not_found("tasks"))
        }
        InboundBody::ListTools { .. }
        | InboundBody::ListTemplates { .. }
        | InboundBody::Unsubscribe { .. } => Err(RpcError::internal("this is served at once")),
    };
    Served::Reply(reply)
}
