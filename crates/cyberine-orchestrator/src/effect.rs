//! What a decision does to the run it is made on.

use cyberine_run_store::{Choice, Event, FoldError, OperatorDecision, Run, RunEvent, apply, begin};

use crate::plan::{Plan, STEP_ID};
use crate::text::preview;

/// What a decision did to its run when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The run waited for it, and goes on.
    GoesOn,
    /// The run has not come to its gate yet, and will not wait there.
    WillNotWait,
    /// The run ends as rejected, whether or not it waited yet.
    Ends,
    /// It is on record, and changes nothing for the run; why that is so.
    OnRecord(String),
}

impl Effect {
    /// What `decision`, which is in the log `events`, did to its run at that moment.
    ///
    /// # Errors
    /// [`FoldError`] where the log does not fit together.
    pub fn of(decision: &OperatorDecision, events: &[Event]) -> Result<Self, FoldError> {
        let (first, rest) = events.split_first().ok_or(FoldError::Empty)?;
        let mut run = begin(decision.run_id, first)?;
        let is_it = |event: &Event| match &event.body {
            RunEvent::Decided { decision: made } => made.step_id == decision.step_id,
            _ => false,
        };
        for event in rest.iter().take_while(|event| !is_it(event)) {
            apply(&mut run, event)?;
        }
        Ok(Self::on(&run, decision))
    }

    /// What `decision` does to `run`, as the run is right before it.
    fn on(run: &Run, decision: &OperatorDecision) -> Self {
        let nothing = |why: String| Self::OnRecord(why);
        if run.state.is_terminal() {
            return nothing(format!("the run was over ({})", run.state.name()));
        }
        if let Some(gate) = &run.gate {
            let past = match gate.decision {
                Choice::Approve => "approved",
                Choice::Reject => "rejected",
            };
            return nothing(format!(
                "the run did not wait any more: it was {past} by {}",
                preview(&gate.by, 120)
            ));
        }
        if let Some(by) = &run.cancel_requested_by {
            return nothing(format!("the run was about to stop, as {} asked", preview(by, 120)));
        }
        let gated =
            run.awaiting.is_some() || Plan::from_spec(&run.spec).is_ok_and(|plan| plan.approval.is_some());
        if !gated {
            return nothing(format!("the run, which is {}, needs no approval", run.state.name()));
        }
        let counts = |made: &&OperatorDecision| made.step_id.as_deref().is_none_or(|step| step == STEP_ID);
        if !counts(&decision) {
            return nothing("the run waits for another step".to_owned());
        }
        let rejected = run.decisions.iter().filter(counts).find(|made| made.decision == Choice::Reject);
        match (decision.decision, rejected) {
            (Choice::Reject, _) => Self::Ends,
            (Choice::Approve, Some(made)) => {
                nothing(format!("the run ends, since it was rejected by {}", preview(&made.decider(), 120)))
            }
            (Choice::Approve, None) if run.awaiting.is_some() => Self::GoesOn,
            (Choice::Approve, None) => Self::WillNotWait,
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::GoesOn => "goes_on",
            Self::WillNotWait => "will_not_wait",
            Self::Ends => "ends",
            Self::OnRecord(_) => "on_record",
        }
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::GoesOn => out.write_str("The run waited for this, and goes on."),
            Self::WillNotWait => {
                out.write_str("The run did not wait yet, and goes past its gate without waiting.")
            }
            Self::Ends => out.write_str("The run ends as cancelled."),
            Self::OnRecord(why) => write!(out, "It is on record and changes nothing: {why}."),
        }
    }
}
