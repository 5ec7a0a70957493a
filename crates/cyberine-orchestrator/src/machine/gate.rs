//! The approval that may stand before judging.

use cyberine_run_store::{Choice, RunEvent, RunState};

use super::{Action, Decision, Effects, Machine, Phase, Settlement};
use crate::text::preview;

/// Who is said to have decided where nobody did in time.
const EXPIRY: &str = "expiry";

impl Machine {
    /// Every candidate is over and one has answered: where the run needs an approval, nothing goes
    /// on without it, also where there turns out to be nothing to judge. A decision that is there
    /// already is as good as one that comes.
    pub(super) fn reach_gate(&mut self, effects: &mut Effects) {
        let Some(gate) = self.setup.gate else { return self.begin_judging(effects) };
        match self.decision.take() {
            Some(Decision { choice: Choice::Approve, .. }) => self.begin_judging(effects),
            Some(decision) => self.rejected(&decision, effects),
            None => {
                self.phase = Phase::Waiting(gate);
                effects.actions.push(Action::Suspend(gate));
            }
        }
    }

    pub(super) fn decided(&mut self, decision: Decision, effects: &mut Effects) {
        match &self.phase {
            Phase::Asking => {
                self.decision.get_or_insert(decision);
            }
            Phase::Waiting(_) => self.pass(&decision, effects),
            Phase::Judging { .. } | Phase::Ending { .. } | Phase::Over => {}
        }
    }

    pub(super) fn expired(&mut self, effects: &mut Effects) {
        let Phase::Waiting(gate) = &self.phase else { return };
        let comment = Some(format!("nobody decided within {} seconds", gate.seconds));
        self.pass(&Decision { choice: gate.on_expiry, by: EXPIRY.to_owned(), comment }, effects);
    }

    /// Ends the wait.
    fn pass(&mut self, decision: &Decision, effects: &mut Effects) {
        match decision.choice {
            Choice::Approve => {
                effects.append.push(RunEvent::Resumed { by: decision.by.clone() });
                self.begin_judging(effects);
            }
            Choice::Reject => self.rejected(decision, effects),
        }
    }

    fn rejected(&mut self, decision: &Decision, effects: &mut Effects) {
        let comment = decision.comment.as_deref().map(|comment| preview(comment, 200));
        let why = comment.filter(|comment| !comment.is_empty()).map(|comment| format!(": {comment}"));
        let detail = format!("rejected by {}{}", preview(&decision.by, 120), why.unwrap_or_default());
        self.settle(Settlement { state: RunState::Cancelled, detail, reason: None }, effects);
    }
}
