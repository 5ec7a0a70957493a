//! `orchestrate`: starts a run and says how to follow and stop it.

use std::sync::Arc;
use std::time::Duration;

use cyberine_orchestrator::{Forecast, Plan, labelled};
use cyberine_run_store::{Run, RunState};
use cyberine_server::{Background, Progress, ToolResult};
use cyberine_types::RunId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Orchestrate;
use crate::bounded::{cut, fit};
use crate::catalog::{CANCEL_RUN, INSPECT_RUN};
use crate::follow::Follower;
use crate::once::{Draft, Once};
use crate::services::{LazyServices, Services, Started};

/// How many providers are named in the reply.
const NAMED: usize = 12;
/// How long a reply may take to leave: who takes the request back before that may not see it.
const LEAVING: Duration = Duration::from_millis(250);
/// How many characters a note may have.
const NOTE: usize = 600;
/// How long a run of an earlier call may take to begin, or to be settled by who finds its server dead.
const BEGINNING: Duration = Duration::from_secs(2);
/// How long it is not looked at meanwhile.
const GLANCE: Duration = Duration::from_millis(50);

/// Who asks for a run, and how they hear of it.
pub(crate) struct Asked {
    pub(crate) by: String,
    pub(crate) progress: Progress,
    pub(crate) background: Background,
    pub(crate) cancel: CancellationToken,
}

/// Starts a run, or finds the one that an earlier call of the same key started. Returns once it is
/// durable; where the client's era allows news after the reply, they go on in the background until
/// the run has settled.
pub(crate) async fn orchestrate(
    lazy: &LazyServices,
    arguments: Orchestrate,
    asked: Asked,
    once: &mut Once<'_>,
) -> Result<ToolResult, String> {
    let services = lazy.get().await?;
    while let Some(earlier) = earlier(services, &once.draft).await? {
        if !came_to_nothing(&earlier) {
            asked.follow(lazy, earlier.run_id);
            return again(&earlier);
        }
        if let Some(first) = once.anew().await? {
            return Ok(first);
        }
    }
    let run = once.draft.run()?;
    let Started { run, note } = match dispatch(services, run, arguments.prompt, &asked, &once.draft).await {
        Ok(started) => started,
        // Another call of the same key may have been faster.
        Err(error) => match earlier(services, &once.draft).await? {
            Some(earlier) if !came_to_nothing(&earlier) => {
                asked.follow(lazy, run);
                return again(&earlier);
            }
            _ => return Err(error),
        },
    };
    asked.follow(lazy, run);
    if once.draft.shared {
        let admitted = services.load(run).await.ok().flatten();
        return Ok(ToolResult::ok(envelope(run, admitted.as_ref(), note.as_deref())));
    }
    // Where the client takes the request back while the reply is written, it never learns the id.
    let unanswered = services.supervisor.unanswered(run, asked.by.clone());
    // The run is durable: whatever fails from here on must not look like a refusal.
    let admitted = services.load(run).await.ok().flatten();
    let reply = ToolResult::ok(envelope(run, admitted.as_ref(), note.as_deref()));
    unanswered.answered_unless(asked.cancel.clone(), LEAVING);
    // As long as a task of the request is there, the client can take the request back.
    asked.background.spawn(tokio::time::sleep(LEAVING));
    Ok(reply)
}

/// What a call would do and cost, without doing it.
pub(crate) async fn forecast(services: &Services, prompt: String, by: String) -> Result<ToolResult, String> {
    let forecast = services.dispatcher.forecast(prompt, by).await?;
    Ok(ToolResult::ok(shown(&forecast)))
}

/// As much of it as fits; where lists were cut it is `truncated` and says how long they are.
fn shown(forecast: &Forecast) -> Value {
    fit(|budget, _| {
        let mut shown = json!(forecast);
        let mut more = Vec::new();
        for name in ["candidates", "judgeProviders", "providers", "caps"] {
            if let Some(list) = shown[name].as_array_mut().filter(|list| list.len() > budget.list) {
                more.push(format!("{} {name}", list.len()));
                list.truncate(budget.list);
            }
        }
        let detail = foretold(forecast, budget.preview);
        if more.is_empty() {
            return json!({ "forecast": shown, "detail": detail });
        }
        shown["truncated"] = json!(true);
        let all = format!("; of {} the first {} are shown", more.join(", "), budget.list);
        json!({ "forecast": shown, "detail": format!("{detail}{all}") })
    })
}

fn foretold(forecast: &Forecast, limit: usize) -> String {
    let unknown: Vec<&str> = forecast
        .providers
        .iter()
        .filter(|one| one.at_most_usd.is_none())
        .map(|one| one.provider.as_str())
        .collect();
    let (likely, at_most) = (forecast.likely_usd, forecast.at_most_usd);
    let cost = match unknown.as_slice() {
        [] => format!("it would cost about {likely}, at most {at_most}"),
        names => {
            let names = cut(&names.join(", "), limit / 2);
            format!("it would cost about {likely} as far as is known; nobody knows the most for {names}")
        }
    };
    let cost = format!("nothing was dispatched; {cost}");
    let refusal = forecast.refusal.as_ref().map(|refusal| format!("; it would be refused: {refusal}"));
    let note = forecast.note.as_ref().map(|note| format!("; {note}"));
    cut(&format!("{cost}{}{}", refusal.unwrap_or_default(), note.unwrap_or_default()), limit)
}

impl Asked {
    /// Tells the client how the run goes on, where it may be told after the reply.
    fn follow(&self, lazy: &LazyServices, run: RunId) {
        if !(self.progress.wanted() && self.progress.may_outlive_reply()) {
            return;
        }
        let (lazy, progress) = (lazy.clone(), self.progress.clone());
        self.background.spawn(async move {
            if let Ok(services) = lazy.get().await {
                tell_to_the_end(services, run, progress).await;
            }
        });
    }
}

/// Starts the run. A request that carries a key is not taken back by being dropped: the key is how
/// its client, or another call of the same key, comes back to the run.
async fn dispatch(
    services: &Services,
    run: RunId,
    prompt: String,
    asked: &Asked,
    draft: &Draft,
) -> Result<Started, String> {
    let (dispatcher, by) = (Arc::clone(&services.dispatcher), asked.by.clone());
    let dispatching = async move { dispatcher.dispatch(run, prompt, by).await };
    if !draft.shared {
        return dispatching.await;
    }
    let stopped = |error| format!("the run could not be started: {error}. Try again with the same key.");
    services.supervisor.kept(dispatching).await.map_err(stopped)?
}

/// The run of an earlier call with the same key, after a look whether its runner is still alive. One
/// that has not begun is about to begin, or somebody else is about to settle it: that is waited for, so
/// that no run is taken for the call's own of which nothing comes.
async fn earlier(services: &Services, draft: &Draft) -> Result<Option<Run>, String> {
    if !draft.shared {
        return Ok(None);
    }
    let id = draft.run()?;
    let until = tokio::time::Instant::now() + BEGINNING;
    loop {
        let run = services.look(id).await?;
        let Some(queued) = run.as_ref().filter(|run| run.state == RunState::Queued) else { return Ok(run) };
        let patience = until.saturating_duration_since(tokio::time::Instant::now());
        if patience.is_zero() {
            return Ok(run);
        }
        services.store.changed(id, queued.next_seq - 1, patience.min(GLANCE)).await;
    }
}

/// Whether the run failed before anybody was asked: nothing was done, and nothing was paid for.
fn came_to_nothing(run: &Run) -> bool {
    run.state == RunState::Error && run.steps.iter().all(|step| step.candidates.is_empty())
}

/// What the caller of a repeated call gets. A run that was cancelled before anybody heard of it is
/// told as what it is.
fn again(earlier: &Run) -> Result<ToolResult, String> {
    let id = earlier.run_id;
    if earlier.state == RunState::Cancelled {
        let detail = cut(&earlier.detail, NOTE);
        return Err(format!(
            "run `{id}` of this `idempotencyKey` was cancelled: {detail}. Try again with another key."
        ));
    }
    Ok(ToolResult::ok(envelope(id, Some(earlier), None)))
}

async fn tell_to_the_end(services: &Services, run: RunId, progress: Progress) {
    Follower::after(services, run, 0, progress).await.until(None, |story| story.settled).await;
}

/// What the caller gets: the run's id, and the exact calls that follow and stop it.
pub(crate) fn envelope(run: RunId, admitted: Option<&Run>, note: Option<&str>) -> Value {
    let plan = admitted.and_then(|run| Plan::from_spec(&run.spec).ok());
    json!({
        "runId": run,
        "status": "dispatched",
        "detail": detail(run, plan.as_ref(), note),
        "pollWith": { "tool": INSPECT_RUN, "arguments": { "runId": run } },
        "cancelWith": {
            "tool": CANCEL_RUN,
            "arguments": { "runId": run },
            "description": "call the tool, or write `body` to `controlFile` in the project's directory",
            "controlFile": format!(".local/runs/{run}/control.json"),
            "body": { "action": "stop", "target": { "type": "run" } },
        },
    })
}

fn detail(run: RunId, plan: Option<&Plan>, note: Option<&str>) -> String {
    let whom = plan.map_or_else(|| "configured providers".to_owned(), names);
    let note = note.map_or_else(String::new, |note| format!("; {}", cut(note, NOTE)));
    let detail = format!(
        "dispatched to {whom}; poll {INSPECT_RUN}(runId=\"{run}\") or query_runs() for the outcome{note}"
    );
    labelled(detail, plan.is_some_and(Plan::is_scripted))
}

fn names(plan: &Plan) -> String {
    let named: Vec<String> =
        plan.candidates.iter().take(NAMED).map(|planned| cut(&planned.name, 64)).collect();
    let more = plan.candidates.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} providers ({}{rest})", plan.candidates.len(), named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::{MAX_RESULT, size};
    use cyberine_orchestrator::ProviderForecast;
    use cyberine_types::{Billing, Usd};

    fn forecast(providers: usize, at_most: Option<Usd>) -> Forecast {
        let name = |n: usize| format!("provider-with-a-long-name-{n}-{}", "x".repeat(60));
        Forecast {
            candidates: (0..providers).map(name).collect(),
            judges: vec!["consensus"],
            judge_providers: (0..providers).map(name).collect(),
            providers: (0..providers)
                .map(|n| ProviderForecast {
                    provider: name(n),
                    model: None,
                    billing: Billing::Metered,
                    candidate_turns: 1,
                    judge_turns: 0,
                    at_most_usd: at_most,
                    likely_usd: Some(Usd::from_micros(20_000)),
                })
                .collect(),
            at_most_usd: Usd::from_micros(20_000),
            likely_usd: Usd::from_micros(20_000),
            complete: at_most.is_some(),
            holds_usd: Usd::ZERO,
            caps: Vec::new(),
            refusal: None,
            note: None,
        }
    }

    #[test]
    fn lists_that_are_cut_are_said_to_be() {
        let few = shown(&forecast(2, Some(Usd::ZERO)));
        assert_eq!((few["forecast"].get("truncated"), size(&few) <= MAX_RESULT), (None, true));
        let many = shown(&forecast(150, Some(Usd::ZERO)));
        assert!(many["forecast"]["truncated"] == true && size(&many) <= MAX_RESULT);
        let detail = many["detail"].as_str().unwrap();
        assert!(
            detail.contains("; of 150 candidates, 150 judgeProviders, 150 providers the first"),
            "{detail}"
        );
    }

    #[test]
    fn nobody_knows_the_most_is_said_where_it_is_so() {
        let told = foretold(&forecast(1, None), 2_000);
        assert!(
            !told.contains("at most") && told.contains("nobody knows the most for provider-with"),
            "{told}"
        );
    }
}
