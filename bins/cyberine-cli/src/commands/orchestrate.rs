//! `cyberine orchestrate`.

mod forecast;

use cyberine_app::{Exit, Interrupts, Problem, Workplace};
use cyberine_types::RunId;
use serde_json::json;

use crate::args::Orchestrate;
use crate::commands::{SELF, verdict_on};
use crate::follow::{self, OnInterrupt};
use crate::out::{Out, Style};
use crate::{input, report};

/// Puts the prompt to everyone there is, and waits for the winner unless told not to.
pub(crate) async fn run(args: Orchestrate, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let prompt = input::text(args.prompt, "the prompt", cyberine_orchestrator::MAX_PROMPT)?;
    if args.dry_run {
        let (forecast, exit) = workplace.forecast(&prompt, SELF).await?;
        forecast::print(&forecast, out);
        return Ok(exit);
    }
    let mut interrupts = Interrupts::new();
    let dispatched = workplace.dispatch(prompt, SELF.to_owned()).await?;
    if args.no_wait {
        announce(dispatched.run, out);
        return Ok(Exit::Done);
    }
    if !out.is_json() {
        out.line(format_args!("run {}", out.paint(Style::Strong, dispatched.run)));
    }
    let run = follow::to_the_end(workplace, dispatched.run, OnInterrupt::Stop, &mut interrupts, out).await?;
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
