//! How a run is shown: the bounded view of `inspect_run` and the whole one of the resource.

use cyberine_orchestrator::{SCRIPTED_LABEL, is_scripted, labelled};
use cyberine_run_store::{Attack, Awaiting, Candidate, OperatorDecision, Run, Steer, Step, Verdict, Vote};
use serde_json::{Map, Value, json};

use crate::bounded::{Budget, cut, fit, size};
use crate::catalog::{APPROVE_RUN, REJECT_RUN};

/// Longest preview, in characters.
const PREVIEW: usize = 2_000;
const WINNER_PREVIEW: usize = 200;
/// The most bytes the whole view may have.
pub(crate) const MAX_WHOLE: usize = 4 << 20;

/// Everything there is, without any cut.
const WHOLE: Budget =
    Budget { preview: usize::MAX, winner: usize::MAX, line: usize::MAX, list: usize::MAX, steps: usize::MAX };

/// The URI of a run's resource.
pub(crate) fn uri(run: &Run) -> String {
    format!("cyberine://runs/{}", run.run_id)
}

/// The bounded view. It says `truncated` where something was cut, and always where the whole is. Of
/// several rounds the latest are shown: the last has the winner.
pub(crate) fn bounded(run: &Run) -> Value {
    fit(|budget, less| one(run, budget, less))
}

fn one(run: &Run, budget: Budget, less: bool) -> Value {
    let cut_somewhere = less || exceeds(run, budget);
    let earlier = run.steps.len().saturating_sub(budget.steps);
    let steps = run.steps.iter().skip(earlier).map(|step| bounded_step(step, budget)).collect();
    frame(run, budget, steps, cut_somewhere)
}

/// `around` with the bounded view of a run in it, as `run`.
pub(crate) fn within(around: Value, run: &Run) -> Value {
    fit(|budget, less| {
        let mut whole = around.clone();
        whole["run"] = one(run, budget, less);
        whole
    })
}

/// The whole view of a run, as its resource has it: what `inspect_run` shows, with every text
/// uncut and every verdict. It has at most about 4 MiB: beyond that answers are cut, the longest
/// first, and the directory in the project that has them whole is named.
#[must_use]
pub fn run_view(run: &Run) -> Value {
    let mut view = frame(run, WHOLE, run.steps.iter().map(whole_step).collect(), false);
    let mut excess = size(&view).saturating_sub(MAX_WHOLE);
    if excess > 0 {
        view["truncated"] = json!(true);
        // The task and the winner's answer are in `run.json` and among the outputs as well.
        for (at, step) in run.steps.iter().enumerate() {
            excess = excess.saturating_sub(shorten(&mut view["steps"][at], "winnerOutput"));
            let mut order: Vec<usize> = (0..step.candidates.len()).collect();
            order.sort_by_key(|at| std::cmp::Reverse(step.candidates[*at].output.len()));
            for candidate in order {
                if excess > 0 {
                    excess = excess
                        .saturating_sub(shorten(&mut view["steps"][at]["candidates"][candidate], "output"));
                    view["steps"][at]["candidates"][candidate]["outputIn"] =
                        json!(format!(".local/runs/{}/outputs/", run.run_id));
                }
            }
        }
    }
    view
}

/// Cuts a text to a preview and returns how many bytes that saved.
fn shorten(parent: &mut Value, key: &str) -> usize {
    let Some(text) = parent.get(key).and_then(Value::as_str) else {
        return 0;
    };
    let before = text.len();
    let short = cut(text, PREVIEW);
    let saved = before.saturating_sub(short.len());
    parent[key] = json!(short);
    saved
}

/// What both views have in common around the steps.
fn frame(run: &Run, budget: Budget, steps: Vec<Value>, truncated: bool) -> Value {
    let mut view = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            view.insert(key.to_owned(), value);
        }
    };
    put("runId", json!(run.run_id));
    put("workflowName", json!(cut(&run.workflow_name, budget.line)));
    put("state", json!(run.state.name()));
    put("detail", json!(cut(&labelled(run.detail.clone(), is_scripted(run)), budget.line)));
    put("reason", json!(run.reason.as_deref().map(|reason| cut(reason, budget.line))));
    put("label", if is_scripted(run) { json!(SCRIPTED_LABEL) } else { Value::Null });
    put("task", json!(cut(&run.task, budget.preview)));
    put("cwd", json!(cut(&run.cwd, budget.line)));
    put("requestedBy", json!(cut(&run.requested_by, budget.line)));
    put("enginePid", json!(run.engine_pid));
    put("startedAt", json!(run.started_at));
    put("updatedAt", json!(run.updated_at));
    put(
        "awaiting",
        run.awaiting.as_ref().map_or(Value::Null, |awaiting| show_awaiting(run, awaiting, budget)),
    );
    put("decision", run.decision().map_or(Value::Null, |decision| show_decision(decision, budget)));
    put("decisions", shown(&run.decisions, budget, show_decision));
    put("steers", shown(&run.steers, budget, show_steer));
    put("steps", Value::Array(steps));
    put("usage", json!(run.usage));
    put("processes", json!(run.processes));
    put("nextSeq", json!(run.next_seq));
    put("resource", json!(uri(run)));
    put("truncated", if truncated { json!(true) } else { Value::Null });
    Value::Object(view)
}

/// A list, where it holds something.
fn shown<T>(all: &[T], budget: Budget, show: impl Fn(&T, Budget) -> Value) -> Value {
    if all.is_empty() {
        return Value::Null;
    }
    all.iter().take(budget.list).map(|one| show(one, budget)).collect()
}

/// What a run waits for, and the calls that end the waiting.
fn show_awaiting(run: &Run, awaiting: &Awaiting, budget: Budget) -> Value {
    let with = |tool| json!({ "tool": tool, "arguments": { "runId": run.run_id } });
    json!({
        "step": cut(&awaiting.step, budget.line),
        "expiresAt": awaiting.expires_at,
        "onExpiry": awaiting.on_expiry,
        "approveWith": with(APPROVE_RUN),
        "rejectWith": with(REJECT_RUN),
    })
}

fn show_decision(decision: &OperatorDecision, budget: Budget) -> Value {
    json!(OperatorDecision {
        step_id: decision.step_id.as_deref().map(|step| cut(step, budget.line)),
        comment: decision.comment.as_deref().map(|comment| cut(comment, budget.preview)),
        decided_by: cut(&decision.decided_by, budget.line.min(400)),
        ..decision.clone()
    })
}

fn show_steer(steer: &Steer, budget: Budget) -> Value {
    json!(Steer {
        from: cut(&steer.from, budget.line.min(400)),
        text: cut(&steer.text, budget.preview),
        ..steer.clone()
    })
}

fn bounded_step(step: &Step, budget: Budget) -> Value {
    let candidates =
        step.candidates.iter().take(budget.list).map(|candidate| show_candidate(candidate, budget)).collect();
    show_step(step, candidates, budget)
}

fn whole_step(step: &Step) -> Value {
    let candidates = step.candidates.iter().map(|candidate| {
        let mut shown = show_candidate(candidate, Budget { preview: PREVIEW, ..WHOLE });
        shown["id"] = json!(candidate.id);
        shown["kind"] = json!(candidate.kind);
        shown["billing"] = json!(candidate.billing);
        shown["output"] = json!(candidate.output);
        shown["usage"] = json!(candidate.usage);
        shown
    });
    let mut shown = show_step(step, candidates.collect(), WHOLE);
    shown["verdicts"] = step.verdicts.iter().map(|verdict| show_verdict(verdict, WHOLE)).collect();
    shown
}

fn show_step(step: &Step, candidates: Vec<Value>, budget: Budget) -> Value {
    let mut shown = json!({
        "id": cut(&step.id, budget.line),
        "name": cut(&step.name, budget.line),
        "state": step.state.name(),
        "candidates": candidates,
    });
    if let Some(verdict) = &step.verdict {
        shown["verdict"] = show_verdict(verdict, budget);
    }
    if let Some(winner) = step.winner() {
        shown["winnerPreview"] = json!(cut(&winner.output, WINNER_PREVIEW.min(budget.winner)));
        shown["winnerOutput"] = json!(cut(&winner.output, budget.winner));
    }
    shown
}

fn show_candidate(candidate: &Candidate, budget: Budget) -> Value {
    let mut shown = json!({
        "provider": cut(&candidate.provider, budget.line),
        "state": candidate.state.name(),
        "outputPreview": cut(&candidate.output, budget.preview.min(PREVIEW)),
        "tokens": candidate.usage.tokens(),
    });
    if candidate.id != candidate.provider {
        shown["id"] = json!(cut(&candidate.id, budget.line));
    }
    if let Some(first) = &candidate.fell_back {
        shown["fellBack"] = json!({ "code": first.error.code });
        if let Some(model) = &first.model {
            shown["fellBack"]["model"] = json!(cut(model, budget.line));
        }
    }
    if let Some(step) = &candidate.kept_from {
        shown["keptFrom"] = json!(cut(step, budget.line));
    }
    if let Some(model) = &candidate.model {
        shown["model"] = json!(cut(model, budget.line));
    }
    if let Some(usd) = candidate.usage.usd {
        shown["usd"] = json!(usd);
    }
    if let Some(duration) = candidate.duration_ms {
        shown["durationMs"] = json!(duration);
    }
    if let Some(error) = &candidate.error {
        shown["error"] = json!({ "code": error.code, "message": cut(&error.message, budget.line.min(budget.preview.max(36))) });
    }
    shown
}

fn show_verdict(verdict: &Verdict, budget: Budget) -> Value {
    let votes: Vec<Vote> =
        verdict.votes.iter().take(budget.list).map(|vote| show_vote(vote, budget)).collect();
    let mut shown = json!({
        "kind": verdict.kind,
        "outcome": verdict.outcome,
        "rationale": cut(&verdict.rationale, budget.preview),
        "votes": votes,
    });
    if let Some(winner) = &verdict.winner {
        shown["winner"] = json!(winner);
    }
    if !verdict.attacks.is_empty() {
        let attacks = verdict.attacks.iter().take(budget.list).map(|attack| show_attack(attack, budget));
        shown["attacks"] = attacks.collect();
    }
    shown
}

fn show_attack(attack: &Attack, budget: Budget) -> Value {
    json!(Attack { claim: cut(&attack.claim, budget.preview.min(200)), ..attack.clone() })
}

fn show_vote(vote: &Vote, budget: Budget) -> Vote {
    Vote {
        voter: cut(&vote.voter, budget.line.min(400)),
        candidate: vote.candidate.clone(),
        score: vote.score,
        criteria: vote.criteria.iter().take(budget.list).cloned().collect(),
        reason: vote.reason.as_deref().map(|reason| cut(reason, budget.preview.min(200))),
    }
}

/// Whether `budget` cuts a text that a reader may want whole.
fn exceeds(run: &Run, budget: Budget) -> bool {
    let longer = |text: &str, limit: usize| text.chars().nth(limit).is_some();
    longer(&run.task, budget.preview)
        || run.steers.len() > budget.list
        || run.steers.iter().any(|steer| longer(&steer.text, budget.preview))
        || run.decisions.iter().filter_map(|one| one.comment.as_ref()).any(|one| longer(one, budget.preview))
        || run.steps.iter().any(|step| {
            step.candidates.iter().any(|candidate| longer(&candidate.output, budget.preview.min(PREVIEW)))
                || step.verdict.as_ref().is_some_and(|verdict| longer(&verdict.rationale, budget.preview))
        })
}

#[cfg(test)]
mod tests;
