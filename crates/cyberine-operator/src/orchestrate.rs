//! `orchestrate`: starts a run and says how to follow and stop it.

use std::time::Duration;

use cyberine_orchestrator::{Plan, labelled};
use cyberine_run_store::{Run, RunState};
use cyberine_server::{Background, Progress, ToolResult};
use cyberine_types::RunId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Orchestrate;
use crate::bounded::cut;
use crate::catalog::{CANCEL_RUN, INSPECT_RUN};
use crate::follow::Follower;
use crate::once::Draft;
use crate::services::{LazyServices, Services, Started};

/// How many providers are named in the reply.
const NAMED: usize = 12;
/// How long a reply may take to leave: who takes the request back before that may not see it.
const LEAVING: Duration = Duration::from_millis(250);
/// The reason of a run whose runner could not be started.
const LAUNCH: &str = "launch";
/// How many characters a note may have.
const NOTE: usize = 600;

/// Who asks for a run, and how they hear of it.
pub(crate) struct Asked {
    pub(crate) by: String,
    pub(crate) progress: Progress,
    pub(crate) background: Background,
    pub(crate) cancel: CancellationToken,
}

/// Starts a run, or finds the one that an earlier call of the same key started. Returns once it is
/// durable; where the client's era allows news after the reply, they go on in the background until
/// the run has settled.
pub(crate) async fn orchestrate(
    lazy: &LazyServices,
    arguments: Orchestrate,
    asked: Asked,
    draft: &Draft,
) -> Result<ToolResult, String> {
    let services = lazy.get().await?;
    let run = draft.run()?;
    if let Some(earlier) = earlier(services, run, draft).await? {
        asked.follow(lazy, run);
        return again(&earlier);
    }
    let Started { run, note } =
        match services.dispatcher.dispatch(run, arguments.prompt, asked.by.clone()).await {
            Ok(started) => started,
            // Another call of the same key may have been faster.
            Err(error) => match earlier(services, run, draft).await? {
                Some(earlier) if earlier.reason.as_deref() != Some(LAUNCH) => {
                    asked.follow(lazy, run);
                    return again(&earlier);
                }
                _ => return Err(error),
            },
        };
    // Where the client takes the request back while the reply is written, it never learns the id.
    let unanswered = services.supervisor.unanswered(run, asked.by.clone());
    asked.follow(lazy, run);
    // The run is durable: whatever fails from here on must not look like a refusal.
    let admitted = services.load(run).await.ok().flatten();
    let reply = ToolResult::ok(envelope(run, admitted.as_ref(), note.as_deref()));
    unanswered.answered_unless(asked.cancel.clone(), LEAVING);
    // As long as a task of the request is there, the client can take the request back.
    asked.background.spawn(tokio::time::sleep(LEAVING));
    Ok(reply)
}

impl Asked {
    /// Tells the client how the run goes on, where it may be told after the reply.
    fn follow(&self, lazy: &LazyServices, run: RunId) {
        if !(self.progress.wanted() && self.progress.may_outlive_reply()) {
            return;
        }
        let (lazy, progress) = (lazy.clone(), self.progress.clone());
        self.background.spawn(async move {
            if let Ok(services) = lazy.get().await {
                tell_to_the_end(services, run, progress).await;
            }
        });
    }
}

/// The run of an earlier call with the same key.
async fn earlier(services: &Services, run: RunId, draft: &Draft) -> Result<Option<Run>, String> {
    if draft.shared { services.load(run).await } else { Ok(None) }
}

/// What the caller of a repeated call gets. A run that was cancelled before anybody heard of it is
/// told as what it is.
fn again(earlier: &Run) -> Result<ToolResult, String> {
    let id = earlier.run_id;
    let refused = |what: &str| {
        let detail = cut(&earlier.detail, NOTE);
        Err(format!("run `{id}` of this `idempotencyKey` {what}: {detail}. Try again with another key."))
    };
    match earlier.reason.as_deref() {
        Some(LAUNCH) => refused("was not started"),
        _ if earlier.state == RunState::Cancelled => refused("was cancelled"),
        _ => Ok(ToolResult::ok(envelope(id, Some(earlier), None))),
    }
}

async fn tell_to_the_end(services: &Services, run: RunId, progress: Progress) {
    Follower::after(services, run, 0, progress).await.until(None, |story| story.settled).await;
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
