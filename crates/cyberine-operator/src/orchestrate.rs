//! `orchestrate`: starts a run and says how to follow and stop it.

use std::time::Duration;

use cyberine_orchestrator::{Plan, labelled};
use cyberine_run_store::Run;
use cyberine_server::{Background, Progress, ToolResult};
use cyberine_types::RunId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Orchestrate;
use crate::bounded::cut;
use crate::catalog::{CANCEL_RUN, INSPECT_RUN};
use crate::follow::Follower;
use crate::services::{LazyServices, Services, Started};

/// How many providers are named in the reply.
const NAMED: usize = 12;
/// How long a reply may take to leave: who takes the request back before that may not see it.
const LEAVING: Duration = Duration::from_millis(250);
/// How many characters a note may have.
const NOTE: usize = 600;

/// Starts a run. Returns once it is durable; where the client's era allows news after the reply,
/// they go on in `background` until the run has settled.
pub(crate) async fn orchestrate(
    lazy: &LazyServices,
    arguments: Orchestrate,
    requested_by: String,
    progress: Progress,
    background: &Background,
    cancel: &CancellationToken,
) -> Result<ToolResult, String> {
    let services = lazy.get().await?;
    let Started { run, note } = services.dispatcher.dispatch(arguments.prompt, requested_by.clone()).await?;
    // Where the client takes the request back while the reply is written, it never learns the id.
    let unanswered = services.supervisor.unanswered(run, requested_by);
    if progress.wanted() && progress.may_outlive_reply() {
        let lazy = lazy.clone();
        background.spawn(async move {
            if let Ok(services) = lazy.get().await {
                tell_to_the_end(services, run, progress).await;
            }
        });
    }
    // The run is durable: whatever fails from here on must not look like a refusal.
    let admitted = services.load(run).await.ok().flatten();
    let reply = ToolResult::ok(envelope(run, admitted.as_ref(), note.as_deref()));
    unanswered.answered_unless(cancel.clone(), LEAVING);
    // As long as a task of the request is there, the client can take the request back.
    background.spawn(tokio::time::sleep(LEAVING));
    Ok(reply)
}

async fn tell_to_the_end(services: &Services, run: RunId, progress: Progress) {
    Follower::after(services, run, 0, progress).await.until(None, |_, settled| settled).await;
}

/// What the caller gets: the run's id, and the exact calls that follow and stop it.
fn envelope(run: RunId, admitted: Option<&Run>, note: Option<&str>) -> Value {
    let plan = admitted.and_then(|run| Plan::from_spec(&run.spec).ok());
    json!({
        "runId": run,
        "status": "dispatched",
        "detail": detail(run, plan.as_ref(), note),
        "pollWith": { "tool": INSPECT_RUN, "arguments": { "runId": run } },
        "cancelWith": {
            "tool": CANCEL_RUN,
            "arguments": { "runId": run },
            "description": "call the tool, or write `body` to `controlFile` in the project's directory",
            "controlFile": format!(".local/runs/{run}/control.json"),
            "body": { "action": "stop", "target": { "type": "run" } },
        },
    })
}

fn detail(run: RunId, plan: Option<&Plan>, note: Option<&str>) -> String {
    let whom = plan.map_or_else(|| "configured providers".to_owned(), names);
    let note = note.map_or_else(String::new, |note| format!("; {}", cut(note, NOTE)));
    let detail = format!(
        "dispatched to {whom}; poll {INSPECT_RUN}(runId=\"{run}\") or query_runs() for the outcome{note}"
    );
    labelled(detail, plan.is_some_and(Plan::is_scripted))
}

fn names(plan: &Plan) -> String {
    let named: Vec<String> =
        plan.candidates.iter().take(NAMED).map(|planned| cut(&planned.name, 64)).collect();
    let more = plan.candidates.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} providers ({}{rest})", plan.candidates.len(), named.join(", "))
}
