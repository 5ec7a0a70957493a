//! The approval that may stand before judging.

use cyberine_run_store::{Choice, RunEvent};

use super::{Action, Closing, Decision, Effects, Input, Machine, Phase};
use crate::text::preview;

/// Who is said to have decided where nobody did in time.
const EXPIRY: &str = "expiry";

impl Machine {
    /// Every candidate is over and one has answered: where the run needs an approval, nothing goes
    /// on without it, also where there turns out to be nothing to judge. An approval that is there
    /// already is as good as one that comes.
    pub(super) fn reach_gate(&mut self, effects: &mut Effects) {
        let Some(gate) = self.setup.gate else { return self.begin_judging(effects) };
        let approval = self.approval.take();
        self.phase = Phase::Waiting { gate, suspended: approval.is_none() };
        match approval {
            Some(decision) => {
                let cause = Input::Decided(decision.clone());
                self.close(decision, cause, effects);
            }
            None => effects.actions.push(Action::Suspend(gate)),
        }
    }

    /// As long as the gate is not closed a rejection ends the run, whatever else was decided.
    pub(super) fn decided(&mut self, decision: Decision, effects: &mut Effects) {
        // It stands before the first judging, and not before that of a later round.
        if self.setup.gate.is_none() || self.round() > 1 {
            return;
        }
        match (&self.phase, decision.choice) {
            (Phase::Asking, Choice::Approve) => {
                self.approval.get_or_insert(decision);
            }
            (Phase::Waiting { .. }, Choice::Approve) => {
                let cause = Input::Decided(decision.clone());
                self.close(decision, cause, effects);
            }
            (Phase::Asking | Phase::Waiting { .. }, Choice::Reject) => {
                effects.append.push(RunEvent::Rejected { by: decision.by.clone() });
                self.rejected(&decision, effects);
            }
            (Phase::Judging { .. } | Phase::Ending { .. } | Phase::Over, _) => {}
        }
    }

    pub(super) fn expired(&self, effects: &mut Effects) {
        let Phase::Waiting { gate, .. } = &self.phase else { return };
        let comment = Some(format!("nobody decided within {} seconds", gate.seconds));
        let decision = Decision { choice: gate.on_expiry, by: EXPIRY.to_owned(), comment };
        self.close(decision, Input::Expired, effects);
    }

    fn close(&self, decision: Decision, cause: Input, effects: &mut Effects) {
        let by = decision.by.clone();
        let event = match (decision.choice, &self.phase) {
            (Choice::Reject, _) => RunEvent::Rejected { by },
            (Choice::Approve, Phase::Waiting { suspended: false, .. }) => RunEvent::Approved { by },
            (Choice::Approve, _) => RunEvent::Resumed { by },
        };
        effects.actions.push(Action::Close(Box::new(Closing { event, decision, cause })));
    }

    pub(super) fn closed(&mut self, decision: &Decision, effects: &mut Effects) {
        match (&self.phase, decision.choice) {
            (Phase::Waiting { .. }, Choice::Approve) => self.begin_judging(effects),
            (Phase::Waiting { .. }, Choice::Reject) => self.rejected(decision, effects),
            _ => {}
        }
    }

    fn rejected(&mut self, decision: &Decision, effects: &mut Effects) {
        let comment = decision.comment.as_deref().map(|comment| preview(comment, 200));
        let why = comment.filter(|comment| !comment.is_empty()).map(|comment| format!(": {comment}"));
        let detail = format!("rejected by {}{}", preview(&decision.by, 120), why.unwrap_or_default());
        self.end(detail, effects);
    }
}
