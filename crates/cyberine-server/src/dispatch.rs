//! From a request to its reply.

use std::sync::Arc;

use cyberine_protocol::model::{ClientCapabilities, LogLevel};
use cyberine_protocol::{Answer, Inbound, InboundBody, Revision, RpcError};
use cyberine_types::Caller;
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::completion_set::CompletionCall;
use crate::connection::follow::Follower;
use crate::connection::{Connection, Entry, News, Reply, Served};
use crate::log::{Log, LogSink};
use crate::progress::{OutlivesReply, Progress};
use crate::server::Server;

mod call;
mod follow;
mod input;
mod prompt;
mod read;
pub(crate) mod task;

/// Characters of an unknown name that its refusal repeats.
const NAME_SHOWN: usize = 200;

/// One request while it is served.
pub(crate) struct Request {
    revision: Revision,
    capabilities: ClientCapabilities,
    caller: Caller,
    progress: Progress,
    log_level: Option<LogLevel>,
    cancel: CancellationToken,
    entry: Arc<Entry>,
}

impl Request {
    pub(crate) fn new(entry: Arc<Entry>, inbound: Inbound, cancel: CancellationToken) -> (Self, InboundBody) {
        let Inbound { revision, client, capabilities, log_level, progress, body, .. } = inbound;
        let progress = if progress {
            let outlives = if revision.is_stateless() { OutlivesReply::No } else { OutlivesReply::Yes };
            Progress::to(News(Arc::clone(&entry)), outlives)
        } else {
            Progress::none()
        };
        let caller = entry.connection.caller(client);
        (Self { revision, capabilities, caller, progress, log_level, cancel, entry }, body)
    }

    fn connection(&self) -> &Arc<Connection> {
        &self.entry.connection
    }

    fn server(&self) -> &Server {
        &self.entry.connection.server
    }

    fn follower(&self) -> Follower {
        Follower { entry: Arc::clone(&self.entry), cancel: self.cancel.clone() }
    }

    /// The log of a call, where its client wants one.
    fn log(&self) -> Log {
        match self.log_level {
            Some(least) => Log::to(Arc::clone(&self.entry) as Arc<dyn LogSink>, least),
            None => Log::none(),
        }
    }

    /// Whether a call may be answered with a task.
    fn takes_tasks(&self) -> bool {
        self.revision.is_stateless() && self.capabilities.tasks && self.server().tasks.is_some()
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
            let caller = connection.caller(inbound.client.clone());
            Some(Ok(Answer::Tools(server.catalog(&caller).listing())))
        }
        InboundBody::ListTemplates { cursor: None } => Some(read::templates(server)),
        InboundBody::ListPrompts { cursor: None } => {
            Some(prompt::list(server, &connection.caller(inbound.client.clone())))
        }
        // None of these lists has a second page.
        InboundBody::ListTools { .. }
        | InboundBody::ListTemplates { .. }
        | InboundBody::ListPrompts { .. } => Some(Err(RpcError::invalid_cursor())),
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
        InboundBody::ReadResource { uri, input_responses, request_state } => {
            read::contents(&request, read::Asked { uri, input_responses, request_state }).await
        }
        InboundBody::GetPrompt { name, arguments, input_responses, request_state } => {
            let asked = prompt::Asked { name, arguments, input_responses, request_state };
            prompt::get(&request, asked).await
        }
        InboundBody::Complete { reference, name, value, context } => {
            let caller = request.caller.clone();
            let call = CompletionCall { reference, argument: name, value, context, caller };
            prompt::complete(&request, call).await
        }
        InboundBody::GetTask { task_id } => task::get(&request, task_id).await,
        InboundBody::UpdateTask { task_id, input_responses } => {
            task::update(&request, task_id, input_responses).await
        }
        InboundBody::CancelTask { task_id } => task::cancel(&request, task_id).await,
        InboundBody::ListTools { .. }
        | InboundBody::ListTemplates { .. }
        | InboundBody::ListPrompts { .. }
        | InboundBody::Unsubscribe { .. } => Err(RpcError::internal("this is served at once")),
    };
    Served::Reply(reply)
}

/// The answer to a request for something that is not there. What a client wrote may be long, and may
/// have a secret in it.
fn unknown(server: &Server, what: &str, name: String) -> RpcError {
    let name = server.tools.redact(name);
    let shown = name.char_indices().nth(NAME_SHOWN).map_or(&*name, |(end, _)| &name[..end]);
    RpcError::invalid_params(format!("unknown {what} `{shown}`"))
}
