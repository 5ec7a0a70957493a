//! Answers that no model has given are called that.

use cyberine_run_store::Run;
use cyberine_types::Billing;

/// Said wherever a run shows itself, once an answer came from a script.
pub const SCRIPTED_LABEL: &str = "scripted answers, no model was called";

/// Whether a candidate of `run` answers from a script.
#[must_use]
pub fn is_scripted(run: &Run) -> bool {
    let mut candidates = run.steps.iter().flat_map(|step| &step.candidates);
    candidates.any(|candidate| candidate.billing == Billing::Scripted)
}

/// `detail`, with the label where the run is `scripted` and does not say so yet.
#[must_use]
pub fn labelled(detail: String, scripted: bool) -> String {
    if scripted && !detail.contains(SCRIPTED_LABEL) {
        return format!("{detail}; {SCRIPTED_LABEL}");
    }
    detail
}
