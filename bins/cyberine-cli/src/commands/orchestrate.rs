//! `cyberine orchestrate`.

use std::io::Read;

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_types::RunId;
use serde_json::json;

use crate::args::Orchestrate;
use crate::commands::{SELF, verdict_on};
use crate::follow::{self, OnInterrupt};
use crate::out::{Out, Style};
use crate::report;

/// No prompt is longer than this; one that is, is refused with its own words.
const LONGEST: u64 = (cyberine_orchestrator::MAX_PROMPT as u64) + 1;

/// Puts the prompt to everyone there is, and waits for the winner unless told not to.
pub(crate) async fn run(args: Orchestrate, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let prompt = if args.prompt == "-" { from_stdin()? } else { args.prompt };
    let dispatched = workplace.dispatch(prompt, SELF.to_owned()).await?;
    if args.no_wait {
        announce(dispatched.run, out);
        return Ok(Exit::Done);
    }
    if !out.is_json() {
        out.line(format_args!("run {}", out.paint(Style::Strong, dispatched.run)));
    }
    let run = follow::to_the_end(workplace, dispatched.run, OnInterrupt::Stop, out).await?;
    if out.is_json() {
        out.json(&cyberine_operator::run_view(&run));
    } else {
        out.line("");
        report::print(out, &run);
    }
    Ok(verdict_on(&run))
}

fn announce(id: RunId, out: &Out) {
    if out.is_json() {
        return out.json(&json!({ "runId": id, "status": "dispatched" }));
    }
    out.line(format_args!("run {id}"));
    out.note(format_args!("dispatched; `cyberine inspect {id} --wait` shows how it ends"));
}

fn from_stdin() -> Result<String, Problem> {
    let mut prompt = String::new();
    let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut prompt);
    match read {
        Ok(_) => Ok(prompt),
        Err(error) => Err(Problem::new(
            Exit::Usage,
            format!("the prompt on stdin cannot be read as UTF-8 text: {error}"),
        )),
    }
}
