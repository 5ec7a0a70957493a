//! `cyberine cancel`.

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_run_store::{CancelOutcome, RunState};
use serde_json::json;

use crate::args::Cancel;
use crate::commands::{SELF, find, no_run};
use crate::out::Out;

/// Asks a run to stop.
pub(crate) async fn run(args: Cancel, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let id = find(workplace, &args.run).await?;
    let outcome = workplace.supervisor.cancel(id, SELF.to_owned(), args.reason).await?;
    let (state, word, text) = match outcome {
        CancelOutcome::NotFound => return Err(no_run(&args.run)),
        CancelOutcome::Requested => (RunState::Running, "requested", format!("{id} was asked to stop.")),
        CancelOutcome::AlreadyFinished(state) => {
            (state, "already_finished", format!("{id} is over already: {}.", state.name()))
        }
    };
    if out.is_json() {
        out.json(&json!({ "runId": id, "state": state, "outcome": word }));
    } else {
        out.line(text);
    }
    Ok(Exit::Done)
}
