//! `cyberine approve` and `cyberine reject`.

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_orchestrator::Effect;
use cyberine_run_store::{Choice, DecideOutcome, DeciderKind, OperatorDecision, RunStore, Wish};
use serde_json::json;

use crate::args::Decide;
use crate::commands::{find, load, no_run};
use crate::decision::{past, told};
use crate::human;
use crate::out::Out;
use crate::plain::escaped;

/// No comment is longer, in characters.
const LONGEST_COMMENT: usize = 4_000;

/// Records what a person decides on a run of any project, or on one of its steps.
pub(crate) async fn run(
    choice: Choice,
    args: Decide,
    workplace: &Workplace,
    out: &Out,
) -> Result<Exit, Problem> {
    if args.comment.as_deref().is_some_and(|comment| comment.chars().count() > LONGEST_COMMENT) {
        return Err(Problem::new(
            Exit::Usage,
            format!("the comment is longer than {LONGEST_COMMENT} characters; nothing was decided"),
        ));
    }
    let run = load(workplace, find(workplace, &args.run).await?).await?;
    let by = human::label(&workplace.environment);
    let kind = DeciderKind::Human;
    let wish = Wish { choice, step: args.step.clone(), comment: args.comment, by, kind };
    match workplace.store.decide(run.run_id, wish).await? {
        DecideOutcome::Recorded(decision) => {
            let log = workplace.store.events(run.run_id, 0).await?;
            let effect = Effect::of(&decision, &log).map_or_else(
                |_| "It is on record; the run's log cannot be read.".to_owned(),
                |effect| escaped(&effect.to_string()),
            );
            tell(out, &decision, "recorded", &effect);
        }
        DecideOutcome::Standing(decision) if decision.decision == choice => {
            tell(out, &decision, "standing", &format!("It stood already: {}.", told(&decision)));
        }
        DecideOutcome::Standing(decision) => return Ok(refuse(out, choice, &decision)),
        DecideOutcome::UnknownStep { known } => return Err(no_step(args.step.as_deref(), &known)),
        DecideOutcome::NotFound => return Err(no_run(&args.run)),
    }
    Ok(Exit::Done)
}

fn tell(out: &Out, decision: &OperatorDecision, outcome: &str, detail: &str) {
    if out.is_json() {
        return out.json(&json!({ "ok": true, "outcome": outcome, "decision": decision, "detail": detail }));
    }
    out.line(format_args!("{} {}", past(decision.decision), target(decision)));
    out.line(format_args!("  {detail}"));
}

/// The first decision stands.
fn refuse(out: &Out, choice: Choice, standing: &OperatorDecision) -> Exit {
    let error = format!(
        "{} was already {}; the first decision stands, and this one was not recorded",
        target(standing),
        told(standing)
    );
    if out.is_json() {
        out.json(
            &json!({ "error": error, "exit": Exit::Failed as u8, "wanted": choice, "decision": standing }),
        );
    }
    out.note(format_args!("cyberine: {error}"));
    Exit::Failed
}

fn no_step(wanted: Option<&str>, known: &[String]) -> Problem {
    let wanted = escaped(wanted.unwrap_or_default());
    let known = match known {
        [] => "it has none yet".to_owned(),
        some => format!(
            "it has {}",
            some.iter().map(|step| format!("`{}`", escaped(step))).collect::<Vec<_>>().join(", ")
        ),
    };
    Problem::new(Exit::Usage, format!("the run has no step `{wanted}`: {known}; nothing was decided"))
}

fn target(decision: &OperatorDecision) -> String {
    match &decision.step_id {
        Some(step) => format!("step `{}` of run {}", escaped(step), decision.run_id),
        None => format!("run {}", decision.run_id),
    }
}
