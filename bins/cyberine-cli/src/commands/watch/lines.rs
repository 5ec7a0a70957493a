//! One event of a run in one line.

use std::collections::BTreeMap;

use cyberine_orchestrator::STEP_ID;
use cyberine_run_store::{Event, Run, RunEvent, RunState};
use cyberine_types::{Billing, RunId, Timestamp};

use crate::decision::{told, waits};
use crate::message::moment;
use crate::plain::{cut, escaped};
use crate::report::{billed, outcome, seconds, why_not};

/// How much of a prompt, an error or a comment is shown.
const TEXT: usize = 160;

/// The candidates of a run by id: whom an event speaks of.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, (String, Billing)>);

/// One line about a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// What happened, as the event's `type` has it, or `standing` of a run as it was found.
    pub(super) event: &'static str,
    /// The same in words.
    pub(super) text: String,
    /// The state the run has from here on, where it changes.
    pub(super) state: Option<RunState>,
}

fn line(event: &'static str, text: impl Into<String>, state: Option<RunState>) -> Option<Line> {
    Some(Line { event, text: text.into(), state })
}

impl Names {
    pub(super) fn of(run: &Run) -> Self {
        let candidates = run.steps.iter().flat_map(|step| &step.candidates);
        Self(candidates.map(|one| (one.id.clone(), (escaped(&one.id), one.billing))).collect())
    }

    fn name(&self, candidate: &str) -> String {
        self.0.get(candidate).map_or_else(|| escaped(candidate), |(name, _)| name.clone())
    }

    fn billing(&self, candidate: &str) -> Billing {
        self.0.get(candidate).map_or(Billing::Free, |(_, billing)| *billing)
    }

    /// What to say of `event` of the run `id`; `None` of what nobody waits for.
    pub(super) fn line(&mut self, id: RunId, event: &Event) -> Option<Line> {
        match &event.body {
            RunEvent::CandidateStarted { candidate, billing, .. } => {
                self.0.insert(candidate.clone(), (escaped(candidate), *billing));
                line("candidateStarted", format!("asks {}", escaped(candidate)), None)
            }
            RunEvent::CandidateFellBack { candidate, model, code, .. } => {
                let text =
                    format!("{}: {}; asks its model {}", self.name(candidate), escaped(code), escaped(model));
                line("candidateFellBack", text, None)
            }
            RunEvent::CandidateKept { candidate, from_step, .. } => {
                let text = format!("{}: keeps its answer of {}", self.name(candidate), escaped(from_step));
                line("candidateKept", text, None)
            }
            RunEvent::CandidateDone { candidate, usage, duration_ms, .. } => {
                let used = billed(usage, self.billing(candidate));
                let text = format!("{}: done, {used}, {}", self.name(candidate), seconds(*duration_ms));
                line("candidateDone", text, None)
            }
            RunEvent::CandidateFailed { candidate, code, message, .. } => {
                let text = format!("{}: {}: {}", self.name(candidate), escaped(code), cut(message, TEXT));
                line("candidateFailed", text, None)
            }
            RunEvent::Judged { verdict, .. } => {
                let winner = verdict.winner.as_ref().map(|winner| format!(", winner {}", self.name(winner)));
                let text = format!(
                    "{}: {}{}{}",
                    escaped(&verdict.kind),
                    outcome(verdict.outcome),
                    winner.unwrap_or_default(),
                    why_not(verdict)
                );
                line("judged", text, None)
            }
            other => of_run(id, other),
        }
    }
}

/// What to say of an event that speaks of no candidate.
fn of_run(id: RunId, event: &RunEvent) -> Option<Line> {
    match event {
        RunEvent::Admitted { prompt, cwd, .. } => line(
            "admitted",
            format!("queued in {}: {}", escaped(cwd), cut(prompt, TEXT)),
            Some(RunState::Queued),
        ),
        RunEvent::StepStarted { step, name } if step != STEP_ID => {
            line("stepStarted", format!("{}: asks again", escaped(name)), None)
        }
        RunEvent::Started { .. } => line("started", "running", Some(RunState::Running)),
        RunEvent::JudgeAsked { judge, .. } => {
            line("judgeAsked", format!("asks the judge {}", escaped(judge)), None)
        }
        RunEvent::JudgeReplied { judge, error: Some(error), .. } => {
            let text =
                format!("judge {}: {}: {}", escaped(judge), escaped(&error.code), cut(&error.message, TEXT));
            line("judgeReplied", text, None)
        }
        RunEvent::CancelRequested { by, reason } => {
            let reason = reason.as_deref().map(|reason| format!(": {}", cut(reason, TEXT)));
            line(
                "cancelRequested",
                format!("asked to stop by {}{}", cut(by, TEXT), reason.unwrap_or_default()),
                None,
            )
        }
        RunEvent::Steered { from, text, .. } => {
            line("steered", format!("steered by {}: {}", cut(from, TEXT), cut(text, TEXT)), None)
        }
        RunEvent::ApprovalRequested { expires_at, on_expiry, .. } => {
            line("approvalRequested", waits(id, *expires_at, *on_expiry), Some(RunState::Suspended))
        }
        RunEvent::Resumed { by } => {
            line("resumed", format!("goes on, after {}", cut(by, TEXT)), Some(RunState::Running))
        }
        RunEvent::Approved { by } => {
            line("approved", format!("goes on without waiting, after {}", cut(by, TEXT)), None)
        }
        RunEvent::Rejected { by } => {
            line("rejected", format!("rejected by {}, and ends", cut(by, TEXT)), Some(RunState::Running))
        }
        RunEvent::Decided { decision } => {
            let step = decision.step_id.as_deref().map(|step| format!("step {} ", cut(step, TEXT)));
            line("decided", format!("{}{}", step.unwrap_or_default(), told(decision)), None)
        }
        RunEvent::ControlIgnored { detail } => {
            line("controlIgnored", format!("ignored a control: {}", cut(detail, TEXT)), None)
        }
        RunEvent::Settled { state, detail, .. } => {
            line("settled", format!("{}: {}", state.name(), cut(detail, TEXT)), Some(*state))
        }
        _ => None,
    }
}

/// How a run stands that is found on the way.
pub(super) fn standing(run: &Run) -> Line {
    let text = match &run.awaiting {
        Some(awaiting) => waits(run.run_id, awaiting.expires_at, awaiting.on_expiry),
        None => format!("{} in {}: {}", run.state.name(), escaped(&run.cwd), cut(&run.task, TEXT)),
    };
    Line { event: "standing", text, state: Some(run.state) }
}

/// The time of day of a moment, in UTC.
pub(super) fn clock(at: Timestamp) -> String {
    moment(at).get(11..19).map(str::to_owned).unwrap_or_default()
}
