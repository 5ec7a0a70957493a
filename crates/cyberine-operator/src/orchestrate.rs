//! `orchestrate`: starts a run and says how to follow and stop it.

use cyberine_orchestrator::{Plan, labelled};
use cyberine_run_store::Run;
use cyberine_server::{Background, Progress, ToolResult};
use cyberine_types::RunId;
use serde_json::{Value, json};

use crate::arguments::Orchestrate;
use crate::bounded::cut;
use crate::catalog::{CANCEL_RUN, INSPECT_RUN};
use crate::follow::Follower;
use crate::services::{LazyServices, Services};

/// How many providers are named in the reply.
const NAMED: usize = 12;

/// Starts a run. Returns once it is durable; where the client's era allows news after the reply,
/// they go on in `background` until the run has settled.
pub(crate) async fn orchestrate(
    lazy: &LazyServices,
    arguments: Orchestrate,
    requested_by: String,
    progress: Progress,
    background: &Background,
) -> Result<ToolResult, String> {
    let services = lazy.get().await?;
    let run = services.dispatcher.dispatch(arguments.prompt, requested_by).await?.run;
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
    Ok(ToolResult::ok(envelope(run, admitted.as_ref())))
}

async fn tell_to_the_end(services: &Services, run: RunId, progress: Progress) {
    Follower::after(services, run, 0, progress).await.until(None, |_, settled| settled).await;
}

/// What the caller gets: the run's id, and the exact calls that follow and stop it.
fn envelope(run: RunId, admitted: Option<&Run>) -> Value {
    json!({
        "runId": run,
        "status": "dispatched",
        "detail": detail(run, admitted.and_then(|run| Plan::from_spec(&run.spec).ok()).as_ref()),
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

fn detail(run: RunId, plan: Option<&Plan>) -> String {
    let whom = plan.map_or_else(|| "configured providers".to_owned(), names);
    let detail =
        format!("dispatched to {whom}; poll {INSPECT_RUN}(runId=\"{run}\") or query_runs() for the outcome");
    labelled(detail, plan.is_some_and(Plan::is_scripted))
}

fn names(plan: &Plan) -> String {
    let named: Vec<String> =
        plan.candidates.iter().take(NAMED).map(|planned| cut(&planned.name, 64)).collect();
    let more = plan.candidates.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} providers ({}{rest})", plan.candidates.len(), named.join(", "))
}
