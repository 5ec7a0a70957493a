//! `cyberine runs`.

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_run_store::{Registry, RunState, RunSummary};
use serde_json::json;

use crate::args::Runs;
use crate::decision::short;
use crate::out::{Out, Style};
use crate::plain::cut;
use crate::report::paint_state;

/// Lists runs, newest first.
pub(crate) async fn run(args: Runs, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    workplace.supervisor.settle_dead_runs().await?;
    let runs = workplace.store.query(args.query.clone(), args.limit).await?;
    if out.is_json() {
        out.json(&json!({ "runs": runs }));
    } else if runs.is_empty() && args.query.is_empty() {
        out.line("No runs.");
    } else if runs.is_empty() {
        out.line(format_args!(
            "No run whose prompt, workflow, directory, state, id or winner contains `{}`.",
            cut(&args.query, 60)
        ));
        out.note("Nothing else is searched: not what others answered, and not how the judges decided.");
    } else {
        runs.iter().for_each(|run| print(out, run));
    }
    Ok(Exit::Done)
}

fn print(out: &Out, run: &RunSummary) {
    let width = out.width().saturating_sub(2);
    let started = run.started_at.to_string();
    let started = started.get(..16).unwrap_or(&started).replace('T', " ");
    out.line(format_args!(
        "{}  {started}Z  {}  {}",
        run.run_id,
        paint_state(out, run.state),
        cut(&run.workflow_name, 20)
    ));
    out.line(format_args!("  {}", cut(&run.task_preview, width)));
    if run.state == RunState::Suspended {
        let (detail, id) = (cut(&run.detail, width), short(run.run_id));
        out.line(out.paint(Style::Strong, format_args!("  {detail}")));
        out.line(format_args!("  `cyberine approve {id}` or `cyberine reject {id}`"));
    }
    if let Some(winner) = &run.winner_preview {
        out.line(out.paint(Style::Faint, format_args!("  → {}", cut(winner, width.saturating_sub(2)))));
    }
}
