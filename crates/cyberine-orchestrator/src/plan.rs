//! What a run is to do, frozen at dispatch.

use std::collections::BTreeMap;

use cyberine_provider::{Limits, ProviderConfig};
use cyberine_run_store::Choice;
use cyberine_types::Billing;
use serde::{Deserialize, Serialize};

use crate::config::{JudgeKind, OrchestrateConfig, RoleConfig};

/// The id of an orchestration's one step.
pub const STEP_ID: &str = "dispatch";
/// The name of an orchestration's one step.
pub const STEP_NAME: &str = "Dispatch";
/// The workflow's name in records and views.
pub const WORKFLOW: &str = "mcp-orchestrate";

/// What a run is to do. It is kept in the run's first event, so that its runner needs no
/// configuration; it names environment variables and never holds their values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Whom to ask, in order. Names are unique; a provider of several samples stands here once for
    /// each of them.
    pub candidates: Vec<Planned>,
    /// The judges, in the order they decide.
    pub judges: Vec<JudgeKind>,
    /// The providers that may judge, in order of preference.
    pub judge_providers: Vec<Planned>,
    /// How many answers judging needs; at most the number of candidates.
    pub quorum: usize,
    /// How many answers suffice, at least the quorum: then the other candidates are stopped. None
    /// where every candidate is waited for, as in a plan from before there was this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// How many candidates are asked at once; at least one.
    pub max_parallel: usize,
    /// Whether `llm-judge` decides also where there is a majority.
    pub judge_always: bool,
    /// Bounds on every turn; a provider's own configuration goes before them.
    pub limits: Limits,
    /// Draws the order in which a judge is shown the candidates.
    pub seed: u32,
    /// Where somebody has to approve before anything is judged. A plan from before there were
    /// approvals has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Gate>,
}

/// The wait for a decision that stands before judging: reached once every candidate is over and
/// at least one has answered, whether or not there is anything to compare then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// How long it lasts, in seconds.
    pub seconds: u64,
    /// What is taken for decided then.
    pub on_expiry: Choice,
}

/// A candidate or a judge of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// Its id: the provider's configured name, and for every further sample `NAME#2`, `NAME#3`, ….
    pub name: String,
    /// How to build it.
    pub provider: ProviderConfig,
    /// The provider's configured name, where `name` is that of a further sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_of: Option<String>,
    /// Standing instructions before the task. A judge has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// The model to ask where the provider's own does not answer. A judge has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
}

impl Planned {
    /// `provider` under its configured name, asked for nothing but the task.
    #[must_use]
    pub fn plain(name: &str, provider: &ProviderConfig) -> Self {
        Self {
            name: name.to_owned(),
            provider: provider.clone(),
            sample_of: None,
            persona: None,
            fallback_model: None,
        }
    }

    /// The configured name of its provider.
    #[must_use]
    pub fn provider_name(&self) -> &str {
        self.sample_of.as_deref().unwrap_or(&self.name)
    }

    /// The samples of one provider, in order.
    fn samples(self, role: Option<&RoleConfig>) -> impl Iterator<Item = Self> {
        let RoleConfig { persona, samples, fallback_model } = role.cloned().unwrap_or_default();
        let first = Self { persona, fallback_model, ..self };
        (1..=samples).map(move |number| match number {
            1 => first.clone(),
            _ => Self {
                name: format!("{}#{number}", first.name),
                sample_of: Some(first.name.clone()),
                ..first.clone()
            },
        })
    }
}

/// The configuration asks for what cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A provider that is not there.
    #[error("`[orchestrate] {key}` names the provider `{name}`, which is not configured; known are: {}", .known.join(", "))]
    Unknown {
        /// The key that names it.
        key: &'static str,
        /// The name.
        name: String,
        /// The names that would do.
        known: Vec<String>,
    },
    /// Fewer answers than are judged.
    #[error(
        "`[orchestrate] first` is {first} and `quorum` is {quorum}: so few answers are never judged; lower `quorum`, or raise `first`"
    )]
    TooFew {
        /// How many answers are to suffice.
        first: usize,
        /// How many judging needs.
        quorum: usize,
    },
}

/// Freezes the configuration into a plan. `seed` is a number nobody can foretell.
///
/// Without any provider the plan has no candidate, and dispatching it is refused.
///
/// # Errors
/// [`PlanError`] where a provider is named that is not configured, or fewer answers are to suffice
/// than are judged.
pub fn plan(
    config: &OrchestrateConfig,
    providers: &BTreeMap<String, ProviderConfig>,
    seed: u32,
) -> Result<Plan, PlanError> {
    let all: Vec<String> = providers.keys().cloned().collect();
    let chosen = if config.candidates.is_empty() { &all } else { &config.candidates };
    let roles: Vec<String> = config.roles.keys().cloned().collect();
    planned("roles", &roles, providers)?;
    let asked = planned("candidates", chosen, providers)?.into_iter();
    let candidates: Vec<_> =
        asked.flat_map(|one| { let role = config.roles.get(&one.name); one.samples(role) }).collect();
    let judging = if config.judge_providers.is_empty() { chosen } else { &config.judge_providers };
    let quorum = config.quorum.clamp(1, candidates.len().max(1));
    if let Some(first) = config.first.filter(|first| *first < quorum) {
        return Err(PlanError::TooFew { first, quorum });
    }
    Ok(Plan {
        judges: config.judges.clone(),
        judge_providers: planned("judge_providers", judging, providers)?,
        quorum,
        first: config.first,
        max_parallel: config.max_parallel.max(1),
        judge_always: config.judge_always,
        limits: config.limits(),
        approval: config.gate(),
        candidates,
        seed,
    })
}

/// Each named provider once, in the order of the names.
fn planned(
    key: &'static str,
    names: &[String],
    providers: &BTreeMap<String, ProviderConfig>,
) -> Result<Vec<Planned>, PlanError> {
    let mut chosen: Vec<Planned> = Vec::new();
    for name in names {
        let known = || providers.keys().cloned().collect();
        let provider =
            providers.get(name).ok_or_else(|| PlanError::Unknown { key, name: name.clone(), known: known() })?;
        if chosen.iter().all(|one| one.name != *name) {
            chosen.push(Planned::plain(name, provider));
        }
    }
    Ok(chosen)
}

impl Plan {
    /// The plan as a run's first event keeps it.
    ///
    /// # Errors
    /// Where a path in it is not UTF-8.
    pub fn to_spec(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    /// The plan that a run's first event keeps.
    ///
    /// # Errors
    /// Where `spec` is not an orchestration's.
    pub fn from_spec(spec: &serde_json::Value) -> Result<Self, serde_json::Error> {
        serde::Deserialize::deserialize(spec)
    }

    /// Whether nobody this plan may ask, candidate or judge, can cost money: all are free or
    /// scripted. A subscription counts as what can cost, for a program may fall back to a paid key.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        let mut all = self.candidates.iter().chain(&self.judge_providers);
        all.all(|planned| matches!(planned.provider.billing(), Billing::Free | Billing::Scripted))
    }

    /// Whether answers of this plan come from a script, so that no model is called for them.
    #[must_use]
    pub fn is_scripted(&self) -> bool {
        self.candidates.iter().any(|planned| planned.provider.billing() == Billing::Scripted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(names: &[&str]) -> BTreeMap<String, ProviderConfig> {
        let config = |name: &str| {
            let text = format!(r#"{{"kind":"command","command":["{name}"]}}"#);
            serde_json::from_str(&text).unwrap()
        };
        names.iter().map(|name| ((*name).to_owned(), config(name))).collect()
    }

    fn names(planned: &[Planned]) -> Vec<&str> {
        planned.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn by_default_every_provider_is_asked_and_may_judge() {
        let plan = plan(&OrchestrateConfig::default(), &providers(&["b", "a"]), 7).unwrap();
        assert_eq!((names(&plan.candidates), names(&plan.judge_providers)), (vec!["a", "b"], vec!["a", "b"]));
        assert_eq!((plan.quorum, plan.seed), (2, 7));
        assert_eq!(Plan::from_spec(&plan.to_spec().unwrap()).unwrap(), plan);
    }

    #[test]
    fn an_approval_is_frozen_and_a_plan_from_before_there_were_any_has_none() {
        use crate::config::Approval;

        let config = OrchestrateConfig { approval: Approval::Required, ..OrchestrateConfig::default() };
        let plan = plan(&config, &providers(&["a"]), 7).unwrap();
        assert_eq!(plan.approval, Some(Gate { seconds: 3_600, on_expiry: Choice::Reject }));
        let mut spec = plan.to_spec().unwrap();
        assert_eq!(Plan::from_spec(&spec).unwrap(), plan);
        assert_eq!(spec["approval"], serde_json::json!({ "seconds": 3600, "onExpiry": "reject" }));
        spec.as_object_mut().unwrap().remove("approval");
        assert_eq!(Plan::from_spec(&spec).unwrap(), Plan { approval: None, ..plan });
    }

    fn role(samples: usize) -> RoleConfig {
        RoleConfig { persona: Some("You doubt.".into()), samples, fallback_model: Some("small".into()) }
    }

    #[test]
    fn a_provider_is_a_candidate_for_each_of_its_samples_and_judges_once_without_its_persona() {
        let config = OrchestrateConfig {
            roles: BTreeMap::from([("b".to_owned(), role(3))]),
            ..OrchestrateConfig::default()
        };
        let plan = plan(&config, &providers(&["a", "b"]), 7).unwrap();
        assert_eq!(names(&plan.candidates), ["a", "b", "b#2", "b#3"]);
        assert_eq!(names(&plan.judge_providers), ["a", "b"]);
        let of: Vec<_> = plan.candidates.iter().map(Planned::provider_name).collect();
        assert_eq!(of, ["a", "b", "b", "b"]);
        let persona = |one: &Planned| one.persona.is_some() && one.fallback_model.is_some();
        assert_eq!(plan.candidates.iter().map(persona).collect::<Vec<_>>(), [false, true, true, true]);
        assert!(!plan.judge_providers.iter().any(persona));
        assert_eq!(Plan::from_spec(&plan.to_spec().unwrap()).unwrap(), plan);
    }

    #[test]
    fn a_plan_from_before_there_were_roles_is_read() {
        let plan = plan(&OrchestrateConfig::default(), &providers(&["a"]), 7).unwrap();
        let spec = plan.to_spec().unwrap();
        let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&spec["candidates"][0]), ["name", "provider"]);
        assert!(!keys(&spec).contains(&"first".to_owned()));
        assert_eq!(Plan::from_spec(&spec).unwrap(), plan);
    }

    #[test]
    fn a_role_of_nobody_and_fewer_answers_than_are_judged_are_refused() {
        let refused = |config: OrchestrateConfig| {
            plan(&config, &providers(&["a", "b", "c"]), 0).unwrap_err().to_string()
        };
        let roles = BTreeMap::from([("d".to_owned(), role(2))]);
        assert_eq!(
            refused(OrchestrateConfig { roles, ..OrchestrateConfig::default() }),
            "`[orchestrate] roles` names the provider `d`, which is not configured; known are: a, b, c"
        );
        assert_eq!(
            refused(OrchestrateConfig { first: Some(1), ..OrchestrateConfig::default() }),
            "`[orchestrate] first` is 1 and `quorum` is 2: so few answers are never judged; lower `quorum`, or raise `first`"
        );
        let one = OrchestrateConfig { first: Some(1), quorum: 1, ..OrchestrateConfig::default() };
        assert_eq!(plan(&one, &providers(&["a", "b"]), 0).unwrap().first, Some(1));
    }

    #[test]
    fn the_quorum_is_never_more_than_the_candidates_nor_less_than_one() {
        for (quorum, count, expected) in [(2, 1, 1), (5, 3, 3), (0, 3, 1), (2, 0, 1)] {
            let config = OrchestrateConfig { quorum, ..OrchestrateConfig::default() };
            let plan = plan(&config, &providers(&["a", "b", "c"][..count]), 0).unwrap();
            assert_eq!(plan.quorum, expected, "{quorum} of {count}");
        }
    }

    #[test]
    fn a_plan_costs_nothing_only_where_nobody_it_may_ask_can_cost() {
        let all: BTreeMap<String, ProviderConfig> = [
            ("free", r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m"}"#),
            ("scripted", r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"scripted/a"}"#),
            ("metered", r#"{"kind":"command","command":["x"],"billing":"metered"}"#),
            ("subscription", r#"{"kind":"claude-cli"}"#),
        ]
        .map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()))
        .into();
        let check = |candidates: &[&str], judges: &[&str], want: bool| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let config = OrchestrateConfig {
                candidates: owned(candidates),
                judge_providers: owned(judges),
                ..OrchestrateConfig::default()
            };
            assert_eq!(plan(&config, &all, 0).unwrap().costs_nothing(), want, "{candidates:?} {judges:?}");
        };
        check(&["free", "scripted"], &[], true);
        check(&["free", "metered"], &[], false);
        check(&["free"], &["metered"], false);
        check(&["free", "subscription"], &["free"], false);
    }

    #[test]
    fn names_are_taken_once_in_their_order_and_unknown_ones_refused() {
        let mut config = OrchestrateConfig {
            candidates: vec!["b".into(), "a".into(), "b".into()],
            ..OrchestrateConfig::default()
        };
        config.judge_providers = vec!["c".into()];
        let known = providers(&["a", "b", "c"]);
        let made = plan(&config, &known, 0).unwrap();
        assert_eq!((names(&made.candidates), names(&made.judge_providers)), (vec!["b", "a"], vec!["c"]));
        config.judge_providers = vec!["d".into()];
        let error = plan(&config, &known, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`[orchestrate] judge_providers` names the provider `d`, which is not configured; known are: a, b, c"
        );
    }
}
