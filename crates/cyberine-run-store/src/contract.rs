//! The contract of the ports, as a suite that any implementation can run.
//!
//! Call [`every_check`] with a factory; each check gets a fresh, empty store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cyberine_types::{Billing, CostBasis, ManualClock, RunId, Usage, Usd};
use serde_json::json;

use crate::claim::Claim;
use crate::event::{ProcessCount, RunEvent, RunState, Verdict, VerdictOutcome};
use crate::money::{Ledger, Reserve};
use crate::port::{Idempotency, NewRun, Registry, RunStore};

mod decisions;
mod keys;
mod lifecycle;
mod listing;
mod money;

/// A fresh store to be checked.
pub struct Subject<S> {
    /// The store.
    pub store: S,
    /// Another handle on the same runs, as a second process would have one.
    pub other: S,
    /// The clock both of them tell the time by.
    pub clock: Arc<ManualClock>,
    /// A directory that can serve as a project, absolute and canonical.
    pub project: String,
}

type Check<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs every check, one after the other.
///
/// # Panics
/// Where the implementation breaks the contract.
pub async fn every_check<S: RunStore + Registry + Ledger + Idempotency>(make: impl Fn() -> Subject<S>) {
    for check in checks::<S>() {
        check(&make()).await;
    }
}

fn checks<S: RunStore + Registry + Ledger + Idempotency>() -> Vec<for<'a> fn(&'a Subject<S>) -> Check<'a>> {
    vec![
        |subject| Box::pin(lifecycle::an_admitted_run_is_queued_with_one_event(subject)),
        |subject| Box::pin(lifecycle::an_id_is_admitted_once(subject)),
        |subject| Box::pin(lifecycle::events_are_numbered_without_holes_and_fold_to_the_run(subject)),
        |subject| Box::pin(lifecycle::an_event_that_does_not_fit_records_nothing(subject)),
        |subject| Box::pin(lifecycle::a_run_is_adopted_only_when_its_holder_is_gone(subject)),
        |subject| Box::pin(lifecycle::an_old_claim_is_fenced(subject)),
        |subject| Box::pin(lifecycle::nothing_follows_the_end(subject)),
        |subject| Box::pin(lifecycle::a_request_to_stop_is_recorded_once(subject)),
        |subject| Box::pin(lifecycle::open_runs_are_listed_oldest_first(subject)),
        |subject| Box::pin(lifecycle::a_change_ends_the_wait_for_it(subject)),
        |subject| Box::pin(lifecycle::a_wait_without_a_change_ends_in_time(subject)),
        |subject| Box::pin(lifecycle::a_run_belongs_to_the_directory_it_was_admitted_for(subject)),
        |subject| Box::pin(money::the_cap_counts_what_is_held_and_what_was_spent(subject)),
        |subject| Box::pin(money::a_refused_run_leaves_nothing(subject)),
        |subject| Box::pin(money::each_day_has_a_cap_of_its_own(subject)),
        |subject| Box::pin(money::unknown_metered_cost_is_charged_in_full(subject)),
        |subject| Box::pin(money::a_provider_has_a_cap_of_its_own(subject)),
        |subject| Box::pin(money::a_caller_has_a_cap_of_its_own(subject)),
        |subject| Box::pin(money::unknown_cost_is_charged_at_the_share(subject)),
        |subject| Box::pin(money::what_was_spent_is_told_by_day_provider_and_caller(subject)),
        |subject| Box::pin(money::a_key_behind_a_subscription_is_charged(subject)),
        |subject| Box::pin(decisions::the_first_decision_on_a_target_stands(subject)),
        |subject| Box::pin(decisions::a_run_that_is_over_can_be_decided_on(subject)),
        |subject| Box::pin(decisions::a_run_that_waits_can_be_stopped_and_its_answers_stay(subject)),
        |subject| Box::pin(decisions::a_run_that_waits_goes_on(subject)),
        |subject| Box::pin(decisions::what_rests_on_a_log_that_has_gone_on_is_not_appended(subject)),
        |subject| Box::pin(decisions::a_log_does_not_go_back_in_time(subject)),
        |subject| Box::pin(keys::the_first_draft_and_the_first_result_of_a_key_stand(subject)),
        |subject| Box::pin(keys::a_key_that_was_given_for_something_else_is_a_conflict(subject)),
        |subject| Box::pin(keys::a_key_of_another_scope_is_another_key(subject)),
        |subject| Box::pin(keys::a_key_is_known_for_thirty_days(subject)),
        |subject| Box::pin(keys::work_that_came_to_nothing_is_named_anew_once(subject)),
        |subject| Box::pin(keys::what_is_kept_of_a_key_is_bounded(subject)),
        |subject| Box::pin(listing::the_newest_run_comes_first(subject)),
        |subject| Box::pin(listing::every_listed_field_is_searched(subject)),
        |subject| Box::pin(listing::a_search_is_literal(subject)),
        |subject| Box::pin(listing::short_texts_are_found(subject)),
        |subject| Box::pin(listing::recent_runs_are_ordered_by_their_last_change(subject)),
        |subject| Box::pin(listing::a_change_between_two_pages_moves_no_other_run(subject)),
    ]
}

impl<S> Subject<S> {
    fn run(&self, prompt: &str) -> NewRun {
        NewRun {
            id: RunId::random(),
            workflow: "mcp-orchestrate".to_owned(),
            prompt: prompt.to_owned(),
            cwd: self.project.clone(),
            requested_by: "contract@1".to_owned(),
            spec: json!({"providers": ["a", "b"]}),
        }
    }
}

impl<S: RunStore + Registry + Ledger> Subject<S> {
    /// A run that costs nothing.
    async fn admitted(&self, prompt: &str) -> Claim {
        let reserve = Reserve::of(Usd::ZERO, None);
        self.store.admit(self.run(prompt), reserve).await.expect("a run without a cap is admitted")
    }

    async fn append(&self, claim: &Claim, events: Vec<RunEvent>) -> u64 {
        self.store.append(claim, events).await.expect("the claim holds and the events fit")
    }

    async fn titles(&self, text: &str, limit: u32) -> Vec<String> {
        let found = self.other.query(text.to_owned(), limit).await.expect("a search is answered");
        found.into_iter().map(|summary| summary.task_preview).collect()
    }
}

/// A step with one candidate that is asked.
fn asked(billing: Billing) -> Vec<RunEvent> {
    vec![
        RunEvent::Started { pid: 7 },
        RunEvent::StepStarted { step: "dispatch".to_owned(), name: "Dispatch".to_owned() },
        RunEvent::CandidateStarted {
            step: "dispatch".to_owned(),
            candidate: "a".to_owned(),
            provider: "a".to_owned(),
            kind: "openai".to_owned(),
            model: Some("m".to_owned()),
            billing,
        },
    ]
}

fn answered(output: &str, usd: Option<f64>) -> RunEvent {
    let basis = if usd.is_some() { CostBasis::Reported } else { CostBasis::Unknown };
    RunEvent::CandidateDone {
        step: "dispatch".to_owned(),
        candidate: "a".to_owned(),
        output: output.to_owned(),
        usage: Usage { input: 3, output: 5, usd: usd.map(Usd::from_dollars), basis, ..Usage::default() },
        duration_ms: 12,
    }
}

fn won() -> RunEvent {
    let verdict = Verdict {
        kind: "consensus".to_owned(),
        outcome: VerdictOutcome::Majority,
        winner: Some("a".to_owned()),
        rationale: "all agree".to_owned(),
        votes: Vec::new(),
        attacks: Vec::new(),
        usage: Usage::default(),
    };
    RunEvent::Judged { step: "dispatch".to_owned(), verdict }
}

fn settled(state: RunState) -> RunEvent {
    let processes = ProcessCount::default();
    RunEvent::Settled { state, detail: "over".to_owned(), reason: None, processes }
}
