//! The fold: events in, a [`Run`] out. Pure, and the only place that says what an event means.

use cyberine_types::{RunId, Timestamp, Usage, is_blank};

use crate::charge::{bounded, bounded_share, bounded_use, total};
use crate::event::{Choice, Event, RunEvent, RunState, Verdict, VerdictOutcome};
use crate::run::{Awaiting, Candidate, CandidateError, FellBack, GateOutcome, JudgeCall, Run, Steer, Step};

/// How many characters of a text a preview keeps.
pub const PREVIEW_CHARS: usize = 200;

/// An event that does not fit the log before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The log has no first event.
    #[error("the log is empty")]
    Empty,
    /// A sequence number is missing or out of order.
    #[error("event {expected} was expected and {found} was found")]
    Gap {
        /// The number that had to follow.
        expected: u64,
        /// The number that was there.
        found: u64,
    },
    /// The first event is not `admitted`, or a later one is.
    #[error("`admitted` must be the first event and the only one of its kind")]
    MisplacedAdmission,
    /// Something follows `settled`.
    #[error("the run is over")]
    Over,
    /// `settled` names a state that is not an end.
    #[error("`{0}` is not a state to settle in")]
    NotTerminal(&'static str),
    /// Work begins, ends or is judged while the run waits for a decision.
    #[error("the run waits for a decision")]
    Suspended,
    /// The run goes on though it does not wait.
    #[error("the run does not wait for a decision")]
    NotSuspended,
    /// The event names a step, candidate or judge that has not begun, or is over.
    #[error("there is no running {what} `{id}`")]
    Unknown {
        /// `step`, `candidate` or `judge`.
        what: &'static str,
        /// The id it was given.
        id: String,
    },
    /// The event begins a step or candidate that exists, or a judge that is still asked, or
    /// decides what is decided.
    #[error("there is a {what} `{id}` already")]
    Duplicate {
        /// `step`, `candidate`, `fallback`, `answer`, `judge` or `decision`.
        what: &'static str,
        /// The id it was given.
        id: String,
    },
}

/// Folds a whole log.
///
/// # Errors
/// [`FoldError`] for the first event that does not fit.
pub fn fold(id: RunId, events: &[Event]) -> Result<Run, FoldError> {
    let (first, rest) = events.split_first().ok_or(FoldError::Empty)?;
    let mut run = begin(id, first)?;
    for event in rest {
        apply(&mut run, event)?;
    }
    Ok(run)
}

/// The run as its first event makes it.
///
/// # Errors
/// [`FoldError`] where that event is not `admitted` with sequence number 1.
pub fn begin(id: RunId, first: &Event) -> Result<Run, FoldError> {
    let RunEvent::Admitted { workflow, prompt, cwd, requested_by, spec, reserved, shares } = &first.body
    else {
        return Err(FoldError::MisplacedAdmission);
    };
    if first.seq != 1 {
        return Err(FoldError::Gap { expected: 1, found: first.seq });
    }
    Ok(Run {
        run_id: id,
        workflow_name: workflow.clone(),
        state: RunState::Queued,
        detail: "waiting for its runner".to_owned(),
        reason: None,
        task: prompt.clone(),
        cwd: cwd.clone(),
        requested_by: requested_by.clone(),
        engine_pid: None,
        started_at: first.at,
        updated_at: first.at,
        steps: Vec::new(),
        usage: Usage::default(),
        reserved: bounded(*reserved),
        shares: shares.iter().map(bounded_share).collect(),
        processes: None,
        cancel_requested_by: None,
        awaiting: None,
        gate: None,
        decisions: Vec::new(),
        steers: Vec::new(),
        spec: spec.clone(),
        next_seq: 2,
    })
}

/// Adds one event to a run. On an error the run is unchanged.
///
/// # Errors
/// [`FoldError`] where the event does not fit.
pub fn apply(run: &mut Run, event: &Event) -> Result<(), FoldError> {
    if event.seq != run.next_seq {
        return Err(FoldError::Gap { expected: run.next_seq, found: event.seq });
    }
    if run.state.is_terminal() && !matches!(event.body, RunEvent::Decided { .. }) {
        return Err(FoldError::Over);
    }
    if run.state == RunState::Suspended && is_work(&event.body) {
        return Err(FoldError::Suspended);
    }
    change(run, event)?;
    run.next_seq += 1;
    run.updated_at = event.at;
    Ok(())
}

/// Whether the event is a part of what the run is for. Every candidate is over when a run begins
/// to wait, and no judge is asked before it goes on.
const fn is_work(event: &RunEvent) -> bool {
    match event {
        RunEvent::StepStarted { .. }
        | RunEvent::CandidateStarted { .. }
        | RunEvent::CandidateDone { .. }
        | RunEvent::CandidateFailed { .. }
        | RunEvent::CandidateFellBack { .. }
        | RunEvent::CandidateKept { .. }
        | RunEvent::JudgeAsked { .. }
        | RunEvent::JudgeReplied { .. }
        | RunEvent::Judged { .. }
        | RunEvent::ApprovalRequested { .. } => true,
        RunEvent::Admitted { .. }
        | RunEvent::Started { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::Steered { .. }
        | RunEvent::Resumed { .. }
        | RunEvent::Approved { .. }
        | RunEvent::Rejected { .. }
        | RunEvent::Decided { .. }
        | RunEvent::ControlIgnored { .. }
        | RunEvent::Settled { .. } => false,
    }
}

fn change(run: &mut Run, Event { body: event, at, .. }: &Event) -> Result<(), FoldError> {
    match event {
        RunEvent::Admitted { .. } => return Err(FoldError::MisplacedAdmission),
        RunEvent::Started { pid } => {
            // A new runner of a run that waited begins anew, and asks again where it has to.
            run.awaiting = None;
            run.engine_pid = Some(*pid);
            run.state = RunState::Running;
            run.detail = progress(run);
        }
        RunEvent::StepStarted { .. } | RunEvent::CandidateStarted { .. } => begin_part(run, event)?,
        RunEvent::CandidateDone { .. } | RunEvent::CandidateFailed { .. } => end_candidate(run, event)?,
        RunEvent::CandidateFellBack { .. } => fall_back(run, event)?,
        RunEvent::CandidateKept { step, candidate, from_step } => keep(run, step, candidate, from_step)?,
        RunEvent::JudgeAsked { .. } | RunEvent::JudgeReplied { .. } => judging(run, event)?,
        RunEvent::Judged { step, verdict } => {
            let step = running_step(run, step)?;
            step.verdicts.push(verdict.clone());
            step.verdict = choose_verdict(step);
            run.detail = progress(run);
        }
        RunEvent::CancelRequested { by, .. } => {
            run.cancel_requested_by.get_or_insert_with(|| by.clone());
            run.detail = format!("asked to stop by {by}");
        }
        RunEvent::Steered { message, from, text } => {
            let (from, text) = (from.clone(), text.clone());
            run.steers.push(Steer { message: *message, from, text, at: *at });
        }
        RunEvent::ApprovalRequested { step, expires_at, on_expiry } => {
            running_step(run, step)?;
            run.state = RunState::Suspended;
            let (step, expires_at, on_expiry) = (step.clone(), *expires_at, *on_expiry);
            run.detail = format!("waits until {expires_at} for an approval, then: {}", on_expiry.name());
            run.awaiting = Some(Awaiting { step, expires_at, on_expiry });
            run.gate = None;
        }
        RunEvent::Resumed { by } => {
            if run.state != RunState::Suspended {
                return Err(FoldError::NotSuspended);
            }
            close_gate(run, Choice::Approve, by, *at);
        }
        RunEvent::Approved { by } => {
            if run.state == RunState::Suspended {
                return Err(FoldError::Suspended);
            }
            close_gate(run, Choice::Approve, by, *at);
        }
        RunEvent::Rejected { by } => close_gate(run, Choice::Reject, by, *at),
        RunEvent::Decided { decision } => {
            if let Some(step) = &decision.step_id {
                running_step(run, step)?;
            }
            if run.decisions.iter().any(|known| known.step_id == decision.step_id) {
                let id = decision.step_id.clone().unwrap_or_else(|| "the run".to_owned());
                return Err(FoldError::Duplicate { what: "decision", id });
            }
            run.decisions.push(decision.clone());
        }
        RunEvent::ControlIgnored { .. } => {}
        RunEvent::Settled { state, detail, reason, processes } => {
            if !state.is_terminal() {
                return Err(FoldError::NotTerminal(state.name()));
            }
            settle(run, *state, detail, reason.as_deref());
            run.processes = Some(*processes);
            run.awaiting = None;
        }
    }
    Ok(())
}

/// What is decided from here on is on record, and changes nothing for the run.
fn close_gate(run: &mut Run, decision: Choice, by: &str, at: Timestamp) {
    run.awaiting = None;
    run.gate = Some(GateOutcome { decision, by: by.to_owned(), at });
    if run.state == RunState::Suspended {
        run.state = RunState::Running;
    }
    run.detail = progress(run);
}

fn begin_part(run: &mut Run, event: &RunEvent) -> Result<(), FoldError> {
    match event {
        RunEvent::StepStarted { step, name } => {
            if run.steps.iter().any(|known| known.id == *step) {
                return Err(FoldError::Duplicate { what: "step", id: step.clone() });
            }
            run.steps
                .iter_mut()
                .filter(|known| is_over(known))
                .for_each(|known| known.state = RunState::Done);
            run.steps.push(Step {
                id: step.clone(),
                name: name.clone(),
                state: RunState::Running,
                candidates: Vec::new(),
                judge_calls: Vec::new(),
                verdicts: Vec::new(),
                verdict: None,
            });
        }
        RunEvent::CandidateStarted { step, candidate, provider, kind, model, billing } => {
            let step = running_step(run, step)?;
            if step.candidates.iter().any(|known| known.id == *candidate) {
                return Err(FoldError::Duplicate { what: "candidate", id: candidate.clone() });
            }
            step.candidates.push(Candidate {
                id: candidate.clone(),
                provider: provider.clone(),
                kind: kind.clone(),
                model: model.clone(),
                fell_back: None,
                billing: *billing,
                state: RunState::Running,
                output: String::new(),
                kept_from: None,
                usage: Usage::default(),
                duration_ms: None,
                error: None,
            });
        }
        _ => {}
    }
    run.detail = progress(run);
    Ok(())
}

fn end_candidate(run: &mut Run, event: &RunEvent) -> Result<(), FoldError> {
    let (step, id, ending, used, took) = match event {
        RunEvent::CandidateDone { step, candidate, output, usage, duration_ms } => {
            (step, candidate, Ok(output), usage, *duration_ms)
        }
        RunEvent::CandidateFailed { step, candidate, code, message, usage, duration_ms } => {
            (step, candidate, Err((code, message)), usage, *duration_ms)
        }
        _ => return Ok(()),
    };
    let candidate = running_candidate(run, step, id)?;
    candidate.usage = bounded_use(used);
    candidate.duration_ms = Some(took);
    match ending {
        Ok(output) if !is_blank(output) => {
            candidate.state = RunState::Done;
            candidate.output.clone_from(output);
        }
        Ok(_) => fail(candidate, "empty", "the provider reported success and gave no answer"),
        Err((code, message)) => fail(candidate, code, message),
    }
    run.usage = total(run);
    run.detail = progress(run);
    Ok(())
}

fn fall_back(run: &mut Run, event: &RunEvent) -> Result<(), FoldError> {
    let RunEvent::CandidateFellBack { step, candidate, model, code, message, usage, duration_ms } = event
    else {
        return Ok(());
    };
    let candidate = running_candidate(run, step, candidate)?;
    if candidate.fell_back.is_some() {
        return Err(FoldError::Duplicate { what: "fallback", id: candidate.id.clone() });
    }
    candidate.fell_back = Some(FellBack {
        model: candidate.model.replace(model.clone()),
        error: CandidateError { code: code.clone(), message: message.clone() },
        usage: bounded_use(usage),
        duration_ms: *duration_ms,
    });
    run.usage = total(run);
    Ok(())
}

/// Lets the answer of a step before stand for the one that did not come. What was used for that
/// one, and how it failed, stays.
fn keep(run: &mut Run, step: &str, id: &str, from: &str) -> Result<(), FoldError> {
    let unknown = || FoldError::Unknown { what: "candidate", id: id.to_owned() };
    let answered = |known: &&Candidate| known.id == id && known.state == RunState::Done;
    let before = running_step(run, from)?.candidates.iter().find(answered).ok_or_else(unknown)?;
    let output = before.output.clone();
    let failed = |known: &&mut Candidate| known.id == id && known.error.is_some();
    let candidate = running_step(run, step)?.candidates.iter_mut().find(failed).ok_or_else(unknown)?;
    if candidate.state == RunState::Done {
        return Err(FoldError::Duplicate { what: "answer", id: id.to_owned() });
    }
    candidate.state = RunState::Done;
    candidate.output = output;
    candidate.kept_from = Some(from.to_owned());
    run.detail = progress(run);
    Ok(())
}

/// Whether a step was judged and nothing of it runs: it is over when the next one begins.
fn is_over(step: &Step) -> bool {
    let runs = |state: RunState| !state.is_terminal();
    step.state == RunState::Running
        && !step.verdicts.is_empty()
        && !step.candidates.iter().any(|candidate| runs(candidate.state))
        && !step.judge_calls.iter().any(|call| runs(call.state))
}

fn running_candidate<'run>(
    run: &'run mut Run,
    step: &str,
    id: &str,
) -> Result<&'run mut Candidate, FoldError> {
    running_step(run, step)?
        .candidates
        .iter_mut()
        .find(|known| known.id == id && known.state == RunState::Running)
        .ok_or_else(|| FoldError::Unknown { what: "candidate", id: id.to_owned() })
}

fn judging(run: &mut Run, event: &RunEvent) -> Result<(), FoldError> {
    match event {
        RunEvent::JudgeAsked { step, judge, kind, model, billing } => {
            let step = running_step(run, step)?;
            if open_call(step, judge).is_some() {
                return Err(FoldError::Duplicate { what: "judge", id: judge.clone() });
            }
            step.judge_calls.push(JudgeCall {
                judge: judge.clone(),
                kind: kind.clone(),
                model: model.clone(),
                billing: *billing,
                state: RunState::Running,
                usage: Usage::default(),
                duration_ms: None,
                error: None,
            });
        }
        RunEvent::JudgeReplied { step, judge, error, usage, duration_ms } => {
            let call = open_call(running_step(run, step)?, judge)
                .ok_or_else(|| FoldError::Unknown { what: "judge", id: judge.clone() })?;
            call.state = error.as_ref().map_or(RunState::Done, |error| failed_state(&error.code));
            call.error.clone_from(error);
            call.usage = bounded_use(usage);
            call.duration_ms = Some(*duration_ms);
            run.usage = total(run);
        }
        _ => {}
    }
    run.detail = progress(run);
    Ok(())
}

fn open_call<'step>(step: &'step mut Step, judge: &str) -> Option<&'step mut JudgeCall> {
    step.judge_calls.iter_mut().find(|call| call.judge == judge && call.state == RunState::Running)
}

fn failed_state(code: &str) -> RunState {
    if matches!(code, "cancelled" | "superseded") { RunState::Cancelled } else { RunState::Error }
}

fn fail(candidate: &mut Candidate, code: &str, message: &str) {
    candidate.state = failed_state(code);
    candidate.error = Some(CandidateError { code: code.to_owned(), message: message.to_owned() });
}

/// Ends everything that still runs in the way the run ends: after `done` and `cancelled` what
/// was left over was stopped; after `error` it shares the run's failure.
fn settle(run: &mut Run, state: RunState, detail: &str, reason: Option<&str>) {
    for step in &mut run.steps {
        for candidate in step.candidates.iter_mut().filter(|known| known.state == RunState::Running) {
            match state {
                RunState::Error => fail(candidate, reason.unwrap_or("error"), detail),
                _ => candidate.state = RunState::Cancelled,
            }
        }
        for call in step.judge_calls.iter_mut().filter(|call| call.state == RunState::Running) {
            let code = reason.unwrap_or("error").to_owned();
            call.error =
                (state == RunState::Error).then(|| CandidateError { code, message: detail.to_owned() });
            call.state = if state == RunState::Error { state } else { RunState::Cancelled };
        }
        if step.state == RunState::Running {
            step.state = state;
        }
    }
    run.usage = total(run);
    run.state = state;
    run.detail = detail.to_owned();
    run.reason = reason.map(str::to_owned);
}

fn running_step<'run>(run: &'run mut Run, id: &str) -> Result<&'run mut Step, FoldError> {
    run.steps
        .iter_mut()
        .find(|step| step.id == id)
        .ok_or_else(|| FoldError::Unknown { what: "step", id: id.to_owned() })
}

fn progress(run: &Run) -> String {
    if let Some(by) = &run.cancel_requested_by {
        return format!("asked to stop by {by}");
    }
    if let Some(GateOutcome { decision: Choice::Reject, by, .. }) = &run.gate {
        return format!("rejected by {by}, and ends");
    }
    let Some(step) = run.steps.last() else { return "its runner has started".to_owned() };
    let ended = step.candidates.iter().filter(|known| known.state != RunState::Running).count();
    let asked = step.candidates.len();
    if !step.verdicts.is_empty() {
        return format!("{}: judged {} times, {ended} of {asked} ended", step.name, step.verdicts.len());
    }
    format!("{}: {ended} of {asked} ended", step.name)
}

/// The verdict that counts: the first majority with a winner, else the first other verdict with
/// one, else the last. A winner that has no answer is none: such a verdict becomes `unjudged`.
#[must_use]
pub fn choose_verdict(step: &Step) -> Option<Verdict> {
    let wins = |verdict: &&Verdict| {
        let Some(winner) = verdict.winner.as_deref() else { return false };
        matches!(verdict.outcome, VerdictOutcome::Majority | VerdictOutcome::Winner)
            && step.candidates.iter().any(|known| known.id == winner && known.state == RunState::Done)
    };
    let majority = |verdict: &&Verdict| verdict.outcome == VerdictOutcome::Majority && wins(verdict);
    if let Some(chosen) = step.verdicts.iter().find(majority).or_else(|| step.verdicts.iter().find(wins)) {
        return Some(chosen.clone());
    }
    let mut last = step.verdicts.last()?.clone();
    if last.winner.take().is_some()
        || matches!(last.outcome, VerdictOutcome::Majority | VerdictOutcome::Winner)
    {
        last.outcome = VerdictOutcome::Unjudged;
    }
    Some(last)
}

/// The first [`PREVIEW_CHARS`] characters of `text`.
#[must_use]
pub fn preview(text: &str) -> String {
    text.chars().take(PREVIEW_CHARS).collect()
}

#[cfg(test)]
mod tests;
