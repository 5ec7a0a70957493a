//! What a run does with the money it holds.

use std::collections::BTreeMap;

use cyberine_provider::ProviderConfig;
use cyberine_types::{CostBasis, Usd};

use super::*;
use crate::config::OrchestrateConfig;
use crate::plan::{Plan, plan};

/// A token of an answer costs a cent, and an answer has at most ten.
const PRICED: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m","max_tokens":10,
    "prices":{"input_usd_per_mtok":0.0,"output_usd_per_mtok":10000.0}}"#;
const FREE: &str = r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m"}"#;

fn planned(providers: &[(&str, &str)]) -> Plan {
    let all: BTreeMap<String, ProviderConfig> = providers
        .iter()
        .map(|(name, text)| ((*name).to_owned(), serde_json::from_str(text).unwrap()))
        .collect();
    plan(&OrchestrateConfig::default(), &all, 7).unwrap()
}

fn machine(providers: &[(&str, &str)], held: f64) -> Machine {
    let names: Vec<&str> = providers.iter().map(|(name, _)| *name).collect();
    let purse = Purse::new(&planned(providers), 10, Usd::from_dollars(held), &[]);
    Machine::new(setup(&names)).with_purse(purse)
}

fn paid(candidate: usize, text: &str, dollars: f64) -> Input {
    let usd = Some(Usd::from_dollars(dollars));
    let usage = Usage { output: 1, usd, basis: CostBasis::Computed, ..Usage::default() };
    Input::Answered { candidate, text: text.to_owned(), usage, duration_ms: 1 }
}

fn codes(events: &[RunEvent]) -> Vec<(&str, &str)> {
    let failed = events.iter().filter_map(|event| match event {
        RunEvent::CandidateFailed { candidate, code, .. } => Some((candidate.as_str(), code.as_str())),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_candidate_waits_for_those_that_may_come_out_cheaper() {
    let mut machine = machine(&[("a", PRICED), ("b", PRICED), ("c", PRICED)], 0.25);
    assert_eq!(asks(&machine.step(Input::Begin).actions), [0, 1]);
    assert_eq!(asks(&machine.step(paid(0, "x", 0.05)).actions), [2]);
}

#[test]
fn candidates_of_unknown_cost_are_asked_one_after_another_and_no_more_once_the_money_is_spent() {
    const UNPRICED: &str = r#"{"kind":"openai","base_url":"https://x.example/v1","model":"m"}"#;
    let mut machine = machine(&[("a", UNPRICED), ("b", UNPRICED), ("c", UNPRICED), ("d", FREE)], 0.15);
    assert_eq!(asks(&machine.step(Input::Begin).actions), [0, 3]);
    assert_eq!(asks(&machine.step(paid(0, "x", 0.10)).actions), [1]);
    let effects = machine.step(paid(1, "y", 0.10));
    assert_eq!((codes(&effects.append), asks(&effects.actions)), (vec![("c", "budget")], vec![]));
}

#[test]
fn a_candidate_that_cannot_be_paid_for_is_not_asked_and_fails_with_budget() {
    let mut machine = machine(&[("a", PRICED), ("b", PRICED), ("c", FREE)], 0.15);
    let begun = machine.step(Input::Begin);
    assert_eq!(asks(&begun.actions), [0, 2], "what is free is asked at once");
    let effects = machine.step(paid(0, "x", 0.10));
    assert_eq!((codes(&effects.append), asks(&effects.actions)), (vec![("b", "budget")], vec![]));
    let said = effects.append.iter().find_map(|event| match event {
        RunEvent::CandidateFailed { message, .. } => Some(message.as_str()),
        _ => None,
    });
    let want = "the next request can cost $0.10, and $0.05 of the $0.15 that this run holds are left";
    assert!(said.unwrap().starts_with(want), "{said:?}");
}

#[test]
fn a_judge_that_cannot_be_paid_for_is_not_asked_and_the_verdict_says_so() {
    let mut machine = machine(&[("a", PRICED), ("b", PRICED)], 0.25);
    machine.step(Input::Begin);
    machine.step(paid(0, "x", 0.10));
    let effects = machine.step(paid(1, "y", 0.10));
    assert!(!effects.actions.iter().any(|action| matches!(action, Action::AskJudge(_))), "{effects:?}");
    assert!(!effects.append.iter().any(|event| matches!(event, RunEvent::JudgeAsked { .. })));
    let judged = verdicts(&effects.append);
    assert_eq!(judged[1], ("llm-judge".to_owned(), VerdictOutcome::Unjudged, None));
    let rationale = effects.append.iter().rev().find_map(|event| match event {
        RunEvent::Judged { verdict, .. } => Some(verdict.rationale.as_str()),
        _ => None,
    });
    assert!(rationale.unwrap().contains("budget: the next request can cost $0.10"), "{rationale:?}");
    assert_eq!(settlement(&effects.actions).state, RunState::Done);
}

#[test]
fn a_judge_that_is_free_takes_the_place_of_one_that_cannot_be_paid_for() {
    let mut machine = machine(&[("a", PRICED), ("b", FREE)], 0.15);
    machine.step(Input::Begin);
    machine.step(answered(1, "y"));
    let effects = machine.step(paid(0, "x", 0.10));
    let asked = effects.actions.iter().find_map(|action| match action {
        Action::AskJudge(question) => Some(question.provider.as_str()),
        _ => None,
    });
    assert_eq!(asked, Some("b"));
}

#[test]
fn a_fallback_that_cannot_be_paid_for_is_not_asked() {
    let providers = [("a", PRICED), ("b", FREE)];
    let mut plan = planned(&providers);
    plan.candidates[0].fallback_model = Some("n".to_owned());
    plan.candidates[0].fallback_prices = plan.candidates[0].provider.profile().prices;
    for (held, falls_back) in [(0.25, true), (0.15, false)] {
        let mut setup = setup(&["a", "b"]);
        setup.contestants[0].fallback = Some("n".to_owned());
        let purse = Purse::new(&plan, 10, Usd::from_dollars(held), &[]);
        let mut machine = Machine::new(setup).with_purse(purse);
        machine.step(Input::Begin);
        // A turn that went over its time told no use: it counts for the most it can have cost.
        let effects = machine.step(failed(0, "timeout-wall"));
        let fell = effects.append.iter().any(|event| matches!(event, RunEvent::CandidateFellBack { .. }));
        assert_eq!(fell, falls_back, "{held}: {effects:?}");
    }
}
