//! The tool set: from a call to its result.

use std::sync::Arc;

use cyberine_bus::Address;
use cyberine_run_store::Choice;
use cyberine_server::{
    Background, Call, CallError, LogLevel, Outcome, Progress, TaskView, Tool, ToolResult, ToolSet,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::{
    self, Cancel, Decide, Inspect, Orchestrate, Poll, SendMessage, SendToRole, SendToTeam,
};
use crate::once::{Once, Turn};
use crate::send::Writer;
use crate::services::{LazyServices, Services};
use crate::{cancel, catalog, decide, inspect, orchestrate, poll, query, tasks, team};

/// What lines of a call's log come from.
const LOGGER: &str = "cyberine";

/// The operator tools. The gate that asks for a token goes around them.
#[derive(Clone)]
pub struct OperatorTools {
    services: LazyServices,
}

/// A call that changes something.
enum Change {
    Orchestrate(Orchestrate),
    SendMessage(SendMessage),
    SendToTeam(SendToTeam),
    SendToRole(SendToRole),
    Decide(Choice, Decide),
    Cancel(Cancel),
}

impl Change {
    fn read(tool: &str, arguments: Map<String, Value>) -> Result<Self, String> {
        Ok(match tool {
            catalog::ORCHESTRATE => Self::Orchestrate(arguments::read(arguments)?),
            catalog::SEND_MESSAGE => Self::SendMessage(arguments::read(arguments)?),
            catalog::SEND_TO_TEAM => Self::SendToTeam(arguments::read(arguments)?),
            catalog::SEND_TO_ROLE => Self::SendToRole(arguments::read(arguments)?),
            catalog::APPROVE_RUN => Self::Decide(Choice::Approve, arguments::read(arguments)?),
            catalog::REJECT_RUN => Self::Decide(Choice::Reject, arguments::read(arguments)?),
            _ => Self::Cancel(arguments::read(arguments)?),
        })
    }

    /// The mailboxes it writes to.
    async fn mailboxes(&self, services: &Services) -> Vec<Address> {
        match self {
            Self::SendMessage(message) => vec![message.to.clone()],
            Self::SendToTeam(message) => vec![message.to.clone()],
            Self::SendToRole(message) => services.mailboxes_of(message).await,
            Self::Orchestrate(_) | Self::Decide(..) | Self::Cancel(_) => Vec::new(),
        }
    }
}

/// What a call brings beside its arguments.
struct Around {
    caller: Caller,
    progress: Progress,
    background: Background,
    cancel: CancellationToken,
}

impl OperatorTools {
    /// Tools over `services`, which the first call opens.
    #[must_use]
    pub const fn new(services: LazyServices) -> Self {
        Self { services }
    }

    /// The task that a dispatched run is, whichever call has dispatched it.
    async fn task(&self, dispatched: &ToolResult) -> Option<TaskView> {
        let run = dispatched.structured["runId"].as_str()?.parse().ok()?;
        tasks::of_run(self.services.get().await.ok()?, run).await
    }

    async fn answer(&self, call: Call) -> Result<ToolResult, String> {
        let Call { name, arguments, caller, progress, background, cancel, .. } = call;
        match name.as_str() {
            catalog::INSPECT_RUN => {
                let arguments: Inspect = arguments::read(arguments)?;
                let wait = self.services.waits().ask(caller.principal(), arguments.wait_ms);
                inspect::inspect(self.services.get().await?, &arguments, &wait, progress).await
            }
            catalog::QUERY_RUNS => {
                let arguments = arguments::read(arguments)?;
                query::query(self.services.get().await?, arguments).await
            }
            catalog::POLL_INBOX => {
                let arguments: Poll = arguments::read(arguments)?;
                let wait = self.services.waits().ask(caller.principal(), arguments.wait_ms);
                poll::poll(self.services.get().await?, arguments, &wait, caller.attribution()).await
            }
            catalog::LIST_TEAM => {
                let arguments = arguments::read(arguments)?;
                team::list(self.services.get().await?, arguments).await
            }
            _ => self.change(&name, arguments, Around { caller, progress, background, cancel }).await,
        }
    }

    /// Makes a change; once, where the call carries a key.
    async fn change(
        &self,
        tool: &str,
        mut arguments: Map<String, Value>,
        around: Around,
    ) -> Result<ToolResult, String> {
        let key = arguments::take_key(&mut arguments)?.map(|key| Once::key(key, tool, &arguments));
        // Before the key is opened: a call that is put right is another call.
        let change = Change::read(tool, arguments)?;
        let services = self.services.get().await?;
        if let Change::Orchestrate(Orchestrate { prompt, dry_run: true }) = change {
            // Nothing is changed, and its key is not used up.
            return orchestrate::forecast(services, prompt, around.caller.attribution()).await;
        }
        let mailboxes = if key.is_some() { change.mailboxes(services).await } else { Vec::new() };
        let mut once = match Once::begin(services, &around.caller, key, mailboxes).await? {
            Turn::Work(once) => once,
            Turn::Done(first) => return Ok(first),
        };
        let result = self.make(change, around, &mut once).await?;
        Ok(once.finish(result).await)
    }

    async fn make(&self, change: Change, around: Around, once: &mut Once<'_>) -> Result<ToolResult, String> {
        let services = self.services.get().await?;
        let Around { caller, progress, background, cancel } = around;
        let (by, principal) = (caller.attribution(), caller.principal());
        let draft = &once.draft;
        let writer = |by| Writer { services, by, principal, draft };
        match change {
            Change::Orchestrate(arguments) => {
                let asked = orchestrate::Asked { by, progress, background, cancel };
                orchestrate::orchestrate(&self.services, arguments, asked, once).await
            }
            Change::SendMessage(arguments) => writer(by).send_message(arguments).await,
            Change::SendToTeam(arguments) => writer(by).send_to_team(arguments).await,
            Change::SendToRole(arguments) => writer(by).send_to_role(arguments).await,
            Change::Decide(choice, arguments) => {
                decide::decide(services, arguments, choice, services.decider(&caller)).await
            }
            Change::Cancel(arguments) => {
                cancel::cancel(services, &arguments, services.decider(&caller)).await
            }
        }
    }
}

impl ToolSet for OperatorTools {
    fn list(&self, _caller: &Caller) -> Arc<[Tool]> {
        catalog::tools()
    }

    fn is_control(&self, name: &str) -> bool {
        matches!(name, catalog::CANCEL_RUN | catalog::APPROVE_RUN | catalog::REJECT_RUN)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, CallError>> {
        Box::pin(async move {
            if !catalog::tools().iter().any(|tool| tool.name == call.name) {
                return Err(CallError::UnknownTool(call.name));
            }
            let offers_task = call.tasks && call.name == catalog::ORCHESTRATE;
            let log = call.log.clone();
            let result = self.answer(call).await.unwrap_or_else(ToolResult::error);
            if let Some(error) = result.structured["error"].as_str() {
                log.send(LogLevel::Warning, Some(LOGGER), &json!({ "error": error }));
            }
            let task = if offers_task { self.task(&result).await } else { None };
            Ok(task.map_or(Outcome::Complete(result), Outcome::Task))
        })
    }
}
