//! `query_runs`: the runs of all projects, newest first.

use cyberine_run_store::RunSummary;
use cyberine_server::ToolResult;
use serde_json::{Value, json};

use crate::arguments::Query;
use crate::bounded::{MAX_RESULT, cut, size};
use crate::services::Services;

/// How many characters of each text are shown, from generous to sparse.
const LEVELS: [usize; 3] = [200, 80, 30];

/// Lists runs.
pub(crate) async fn query(services: &Services, arguments: Query) -> Result<ToolResult, String> {
    let Query { query: text, limit } = arguments;
    let found = services.listed(|| services.registry.query(text.clone(), limit)).await;
    let runs = found.map_err(|error| format!("{error}. {}", error.advice()))?;
    Ok(ToolResult::ok(bounded(&runs)))
}

/// As much as fits: shorter texts first, then fewer runs, the oldest left out.
fn bounded(runs: &[RunSummary]) -> Value {
    let shown = |level: usize| -> Vec<Value> { runs.iter().map(|run| row(run, level)).collect() };
    for level in LEVELS {
        let value = json!({ "runs": shown(level) });
        if size(&value) <= MAX_RESULT {
            return value;
        }
    }
    let mut left = MAX_RESULT - 64;
    let fits = shown(LEVELS[LEVELS.len() - 1]).into_iter().take_while(|row| {
        let needed = size(row) + 1;
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    json!({ "runs": fits.collect::<Vec<_>>(), "truncated": true })
}

fn row(run: &RunSummary, level: usize) -> Value {
    let short = RunSummary {
        workflow_name: cut(&run.workflow_name, 64),
        detail: cut(&run.detail, level),
        task_preview: cut(&run.task_preview, level),
        cwd: cut(&run.cwd, level * 4),
        winner_preview: run.winner_preview.as_deref().map(|preview| cut(preview, level)),
        ..run.clone()
    };
    json!(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_run_store::RunState;
    use cyberine_types::{RunId, Timestamp};

    #[test]
    fn two_hundred_long_rows_fit_with_a_mark() {
        let run = RunSummary {
            run_id: RunId::random(),
            workflow_name: "mcp-orchestrate".into(),
            state: RunState::Done,
            detail: "\u{1}".repeat(4_000),
            task_preview: "\u{1}".repeat(200),
            cwd: "/d".repeat(2_000),
            winner_preview: Some("w".repeat(200)),
            started_at: Timestamp::from_unix_ms(0),
            updated_at: Timestamp::from_unix_ms(0),
        };
        let value = bounded(&vec![run.clone(); 200]);
        assert!(size(&value) <= MAX_RESULT && value["truncated"] == true);
        assert!(value["runs"].as_array().unwrap().len() > 20);
        let few = bounded(&[RunSummary { detail: "d".into(), ..run }]);
        assert_eq!((few["runs"].as_array().unwrap().len(), few.get("truncated")), (1, None));
    }
}
