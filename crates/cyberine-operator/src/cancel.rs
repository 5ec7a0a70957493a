//! `cancel_run`: asks a run of this project to stop.

use cyberine_run_store::CancelOutcome;
use cyberine_server::ToolResult;
use cyberine_types::RunId;
use serde_json::json;

use crate::arguments::Cancel;
use crate::services::{Services, no_such_run};

/// Records the request; the runner sees it at once, whichever process it is. Asking again changes
/// nothing.
pub(crate) async fn cancel(
    services: &Services,
    arguments: &Cancel,
    by: String,
) -> Result<ToolResult, String> {
    let id = arguments.run;
    let run = services.load(id).await?.ok_or_else(|| no_such_run(id))?;
    if !services.owns(id).await? {
        return Err(format!(
            "run `{id}` belongs to another project; cancel it from there, or with `cyberine cancel {id}`"
        ));
    }
    let outcome = services.supervisor.cancel(id, by, arguments.reason.clone()).await;
    match outcome.map_err(|error| format!("{error}. {}", error.advice()))? {
        CancelOutcome::NotFound => Err(no_such_run(id)),
        CancelOutcome::AlreadyFinished(state) => Ok(result(id, state.name(), "already_finished")),
        CancelOutcome::Requested => {
            let state = services.load(id).await?.map_or(run.state, |run| run.state);
            Ok(result(id, state.name(), "requested"))
        }
    }
}

fn result(id: RunId, state: &str, outcome: &str) -> ToolResult {
    ToolResult::ok(json!({ "runId": id, "state": state, "outcome": outcome }))
}
