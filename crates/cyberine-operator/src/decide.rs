//! `approve_run` and `reject_run`: what somebody decided on a run of this project.

use cyberine_orchestrator::Effect;
use cyberine_run_store::{Choice, DecideOutcome, OperatorDecision};
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
    services.look(id).await?.ok_or_else(|| no_such_run(id))?;
    if !services.owns(id).await? {
        return Err(format!(
            "run `{id}` belongs to another project; decide on it from there, or with `cyberine {} {id}`",
            choice.name()
        ));
    }
    let step = arguments.step.clone();
    let outcome = services.store.decide(id, arguments.wish(choice, by)).await;
    match outcome.map_err(|error| format!("{error}. {}", error.advice()))? {
        DecideOutcome::Recorded(decision) => Ok(answer(services, &decision).await),
        DecideOutcome::Standing(standing) if standing.decision == choice => {
            Ok(answer(services, &standing).await)
        }
        DecideOutcome::Standing(standing) => {
            let what = standing.step_id.as_deref().map_or_else(
                || format!("run `{id}`"),
                |step| format!("step `{}` of run `{id}`", cut(step, 100)),
            );
            let choice = match standing.decision {
                Choice::Approve => "approved",
                Choice::Reject => "rejected",
            };
            Err(format!(
                "{what} was {choice} by {} at {}, and the first decision stands",
                standing.decider(),
                standing.decided_at
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

/// The decision, and what it did to its run when it was recorded.
async fn answer(services: &Services, decision: &OperatorDecision) -> ToolResult {
    let mut shown = json!(decision);
    match services.store.events(decision.run_id, 0).await.map(|log| Effect::of(decision, &log)) {
        Ok(Ok(effect)) => {
            shown["effect"] = json!(effect.name());
            shown["detail"] = json!(effect.to_string());
        }
        Ok(Err(error)) => tracing::warn!(run = %decision.run_id, %error, "a decision's effect is not known"),
        Err(error) => tracing::warn!(run = %decision.run_id, %error, "a decision's effect is not known"),
    }
    ToolResult::ok(shown)
}
