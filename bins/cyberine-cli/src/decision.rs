//! What a run waits for and what was decided on it, in words.

use cyberine_run_store::{Choice, OperatorDecision};
use cyberine_types::{RunId, Timestamp};

use crate::message::moment;
use crate::plain::{cut, escaped};

/// `approved by human alice at 2026-01-31 09:00:00Z ("looks right")`; a client is `mcp name@version`.
pub(crate) fn told(decision: &OperatorDecision) -> String {
    let comment = decision.comment.as_deref().map(|text| format!(" (\"{}\")", cut(&escaped(text), 160)));
    format!(
        "{} by {} at {}{}",
        past(decision.decision),
        cut(&escaped(&decision.decider()), 80),
        moment(decision.decided_at),
        comment.unwrap_or_default()
    )
}

pub(crate) const fn past(choice: Choice) -> &'static str {
    match choice {
        Choice::Approve => "approved",
        Choice::Reject => "rejected",
    }
}

/// What a run waits for, with the commands that end the waiting.
pub(crate) fn waits(id: RunId, until: Timestamp, then: Choice) -> String {
    let (id, until, then) = (short(id), moment(until), then.name());
    format!("waits for you until {until} (then: {then}): `cyberine approve {id}` or `cyberine reject {id}`")
}

/// As much of a run's id as tells it apart, and as every command takes.
pub(crate) fn short(id: RunId) -> String {
    id.to_string().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_run_store::DeciderKind;

    #[test]
    fn a_client_does_not_pass_for_a_person() {
        let by = |decider_kind| {
            told(&OperatorDecision {
                decision: Choice::Approve,
                run_id: RunId::random(),
                step_id: None,
                comment: None,
                decided_by: "human boss".to_owned(),
                decider_kind,
                decided_at: Timestamp::from_unix_ms(0),
            })
        };
        assert!(by(DeciderKind::Human).starts_with("approved by human boss at "));
        assert!(by(DeciderKind::Mcp).starts_with("approved by mcp human boss at "));
    }
}
