//! What the machine is told: whom it has, and how turns have ended.

use cyberine_provider::{ProviderInfo, TurnError};
use cyberine_run_store::{CandidateError, Steer};

use super::{Ended, Seat};
use crate::machine::{Contestant, Input, Setup, Steering};
use crate::plan::{Plan, Planned};
use crate::team::Team;
use crate::turn::Finished;

pub(super) fn setup(plan: &Plan, team: &Team, steers: &[Steer]) -> Setup {
    let candidates = plan.candidates.iter().zip(&team.candidates);
    let judges = plan.judge_providers.iter().map(|planned| (planned, team.judges.get(&planned.name)));
    let contestants = candidates.map(|(planned, provider)| contestant(planned, provider.info()));
    // One that was planned and not built is asked all the same, and fails like any other.
    let jurors = judges.map(|(planned, provider)| match provider {
        Some(provider) => contestant(planned, provider.info()),
        None => contestant(planned, &planned.provider.info(&planned.name)),
    });
    Setup {
        contestants: contestants.collect(),
        judges: plan.judges.clone(),
        jurors: jurors.collect(),
        quorum: plan.quorum,
        first: plan.first,
        rounds: plan.most_rounds(),
        max_parallel: plan.max_parallel,
        judge_always: plan.judge_always,
        equivalence: plan.equivalence,
        rubric: plan.rubric.clone(),
        criteria: plan.criteria.clone(),
        extract: plan.judge_command.as_ref().and_then(|command| command.extract),
        seed: u64::from(plan.seed),
        gate: plan.approval,
        steered: steers.iter().map(|steer| Steering::new(steer.message, &steer.from, &steer.text)).collect(),
    }
}

fn contestant(planned: &Planned, info: &ProviderInfo) -> Contestant {
    Contestant {
        id: planned.name.clone(),
        provider: planned.provider_name().to_owned(),
        kind: info.kind.clone(),
        model: info.model.clone(),
        source: Some(source(planned)),
        billing: info.billing,
        fallback: planned.fallback_model.clone(),
    }
}

/// What is asked in the end, whatever name it has: two of the same program, arguments and model, or
/// of the same address and model, are one.
fn source(planned: &Planned) -> String {
    let profile = planned.provider.profile();
    format!("{:?}", (profile.program, profile.args, profile.url.trim_end_matches('/'), profile.model))
}

pub(super) fn input(ended: Ended) -> Input {
    let (seat, finished) = match ended {
        Ended::Turn(seat, finished) => (seat, finished),
        Ended::Trial(outcome) => return Input::Tried(outcome),
    };
    let Finished { answer, begun, usage, duration_ms } = finished;
    match (seat, answer) {
        (Seat::Candidate(candidate), Ok(text)) => Input::Answered { candidate, text, usage, duration_ms },
        (Seat::Candidate(candidate), Err(error)) => {
            let (code, message) = (error.code(), error.to_string());
            Input::Failed { candidate, code, message, begun, usage, duration_ms }
        }
        (Seat::Judge, answer) => {
            let failure = |error: TurnError| CandidateError {
                code: error.code().to_owned(),
                message: error.to_string(),
            };
            Input::JudgeReplied { reply: answer.map_err(failure), usage, duration_ms }
        }
    }
}
