//! `approve_run` and `reject_run`: what somebody decided on a run of this project.

use cyberine_run_store::{Choice, DecideOutcome};
use cyberine_server::ToolResult;
use serde_json::json;

use crate::arguments::Decide;
use crate::bounded::cut;
use crate::services::{Services, no_such_run};

/// How many steps are named.
const NAMED: usize = 20;

/// Records a decision. The first one on a run, or on a step, stands: the same again is answered
/// with it, another one is refused.
pub(crate) async fn decide(
    services: &Services,
    arguments: Decide,
    choice: Choice,
    by: String,
) -> Result<ToolResult, String> {
    let id = arguments.run;
    let run = services.look(id).await?.ok_or_else(|| no_such_run(id))?;
    if !services.project.owns(&run.cwd) {
        return Err(format!(
            "run `{id}` belongs to another project; decide on it from there, or with `cyberine {} {id}`",
            choice.name()
        ));
    }
    let step = arguments.step.clone();
    let outcome = services.store.decide(id, arguments.wish(choice, by)).await;
    match outcome.map_err(|error| format!("{error}. {}", error.advice()))? {
        DecideOutcome::Recorded(decision) => Ok(ToolResult::ok(json!(decision))),
        DecideOutcome::Standing(standing) if standing.decision == choice => {
            Ok(ToolResult::ok(json!(standing)))
        }
        DecideOutcome::Standing(standing) => {
            let what = standing.step_id.map_or_else(
                || format!("run `{id}`"),
                |step| format!("step `{}` of run `{id}`", cut(&step, 100)),
            );
            let choice = match standing.decision {
                Choice::Approve => "approved",
                Choice::Reject => "rejected",
            };
            Err(format!(
                "{what} was {choice} by {} at {}, and the first decision stands",
                standing.decided_by, standing.decided_at
            ))
        }
        DecideOutcome::UnknownStep { known } => {
            let named: Vec<String> =
                known.iter().take(NAMED).map(|step| format!("`{}`", cut(step, 100))).collect();
            let named = if named.is_empty() { "none yet".to_owned() } else { named.join(", ") };
            let step = cut(&step.unwrap_or_default(), 100);
            Err(format!("bad arguments: `stepId`: run `{id}` has no step `{step}`; its steps: {named}"))
        }
        DecideOutcome::NotFound => Err(no_such_run(id)),
    }
}
