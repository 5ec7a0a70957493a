//! What a run is to do, frozen at dispatch.

use std::collections::BTreeMap;

use cyberine_provider::{Limits, Prices, ProviderConfig};
use cyberine_run_store::Choice;
use cyberine_types::{Billing, Usd};
use serde::{Deserialize, Serialize};

use crate::config::{DEFAULT_RETRIES, JudgeKind, OrchestrateConfig, RoleConfig};
use crate::criteria::Criterion;
use crate::trial::JudgeCommand;

/// The id of an orchestration's first step. Every further round is a step `round-2`, `round-3`, ….
pub const STEP_ID: &str = "dispatch";
/// The name of an orchestration's first step.
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
    /// How often the candidates are asked at most, while there is neither a majority nor a winner;
    /// at least one.
    #[serde(default = "rounds", skip_serializing_if = "is_one")]
    pub rounds: usize,
    /// How often a turn is asked again that failed without having been let in.
    #[serde(default = "retries")]
    pub retries: u32,
    /// Whether the later judges decide also where there is a winner.
    pub judge_always: bool,
    /// Whether a model compares answers that are not equal word for word.
    #[serde(default)]
    pub equivalence: bool,
    /// The criteria of the judges, in place of the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// What of them is scored one by one. A plan from before there were criteria has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// What the judge `command` runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_command: Option<JudgeCommand>,
    /// Bounds on every turn; a provider's own configuration goes before them.
    pub limits: Limits,
    /// Draws the order in which a judge is shown the candidates.
    pub seed: u32,
    /// Where somebody has to approve before anything is judged. A plan from before there were
    /// approvals has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Gate>,
    /// The most that the run may spend, in dollars. A plan from before there was this has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_cap: Option<Usd>,
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
    /// What that model costs, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_prices: Option<Prices>,
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
            fallback_prices: None,
        }
    }

    /// The configured name of its provider.
    #[must_use]
    pub fn provider_name(&self) -> &str {
        self.sample_of.as_deref().unwrap_or(&self.name)
    }

    /// How to build its fallback model.
    #[must_use]
    pub fn fallback(&self) -> Option<ProviderConfig> {
        let mut provider = self.provider.with_model(self.fallback_model.as_deref()?)?;
        provider.set_prices(self.fallback_prices);
        Some(provider)
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

/// The longest rubric, in bytes.
pub const MAX_RUBRIC: usize = 16 << 10;

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
    /// A fallback model where the configuration has no say in the model.
    #[error(
        "`[orchestrate.roles.{name}] fallback_model` cannot be asked for: what kind `{kind}` starts chooses its model itself; leave it out, or configure a second provider"
    )]
    NoOtherModel {
        /// The provider.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The judge `command` has nothing to run.
    #[error(
        "`[orchestrate] judges` names `command`, and there is nothing to run: add `[orchestrate.judge_command]` with `command = [\"program\", \"argument\"]`"
    )]
    NoCommand,
    /// The rubric is empty or too long.
    #[error("the rubric of `[orchestrate]` has {bytes} bytes, and must have from 1 to {MAX_RUBRIC} (16 KiB)")]
    Rubric {
        /// How long it is, white space at its ends aside.
        bytes: usize,
    },
}

/// Freezes the configuration into a plan. `seed` is a number nobody can foretell.
///
/// Without any provider the plan has no candidate, and dispatching it is refused.
///
/// # Errors
/// [`PlanError`] where a provider is named that is not configured, or has a fallback model that it
/// cannot be asked for, fewer answers are to suffice
/// than are judged, the judge `command` has nothing to run, or the rubric is empty or too long.
pub fn plan(
    config: &OrchestrateConfig,
    providers: &BTreeMap<String, ProviderConfig>,
    seed: u32,
) -> Result<Plan, PlanError> {
    let all: Vec<String> = providers.keys().cloned().collect();
    let chosen = if config.candidates.is_empty() { &all } else { &config.candidates };
    let roles: Vec<String> = config.roles.keys().cloned().collect();
    for one in planned("roles", &roles, providers)? {
        let fallback = config.roles[&one.name].fallback_model.as_deref();
        if fallback.is_some_and(|model| one.provider.with_model(model).is_none()) {
            return Err(PlanError::NoOtherModel { kind: one.provider.kind(), name: one.name });
        }
    }
    let asked = planned("candidates", chosen, providers)?.into_iter();
    let candidates: Vec<_> = asked
        .flat_map(|one| {
            let role = config.roles.get(&one.name);
            one.samples(role)
        })
        .collect();
    let judging = if config.judge_providers.is_empty() { chosen } else { &config.judge_providers };
    let quorum = config.quorum.clamp(1, candidates.len().max(1));
    if let Some(first) = config.first.filter(|first| *first < quorum) {
        return Err(PlanError::TooFew { first, quorum });
    }
    if config.judges.contains(&JudgeKind::Command) && config.judge_command.is_none() {
        return Err(PlanError::NoCommand);
    }
    Ok(Plan {
        judges: config.judges.clone(),
        judge_providers: planned("judge_providers", judging, providers)?,
        quorum,
        first: config.first,
        rounds: config.rounds,
        max_parallel: config.max_parallel.max(1),
        retries: config.retries,
        judge_always: config.judge_always,
        equivalence: config.equivalence,
        rubric: config.rubric_text.as_deref().map(rubric).transpose()?,
        criteria: config.criteria.clone(),
        judge_command: config.judge_command.clone(),
        limits: config.limits(),
        approval: config.gate(),
        run_cap: None,
        candidates,
        seed,
    })
}

/// What a plan from before there were retries is carried out with.
const fn retries() -> u32 {
    DEFAULT_RETRIES
}

/// What a plan from before there were rounds is carried out with.
const fn rounds() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_one(rounds: &usize) -> bool {
    *rounds == 1
}

/// The id of the step of a round, from 1.
pub(crate) fn step_id(round: usize) -> String {
    if round < 2 { STEP_ID.to_owned() } else { format!("round-{round}") }
}

/// The name of the step of a round, from 1.
pub(crate) fn step_name(round: usize) -> String {
    if round < 2 { STEP_NAME.to_owned() } else { format!("Round {round}") }
}

fn rubric(text: &str) -> Result<String, PlanError> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_RUBRIC {
        return Err(PlanError::Rubric { bytes: text.len() });
    }
    Ok(text.to_owned())
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
        let provider = providers.get(name).ok_or_else(|| PlanError::Unknown {
            key,
            name: name.clone(),
            known: known(),
        })?;
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
        let free =
            |provider: &ProviderConfig| matches!(provider.billing(), Billing::Free | Billing::Scripted);
        all.all(|planned| free(&planned.provider) && planned.fallback().is_none_or(|other| free(&other)))
    }

    /// How often its candidates are asked at most: once where nobody decides whether they agree.
    #[must_use]
    pub fn most_rounds(&self) -> usize {
        if self.candidates.len() < 2 || self.judges.is_empty() { 1 } else { self.rounds.max(1) }
    }

    /// Whether answers of this plan come from a script, so that no model is called for them.
    #[must_use]
    pub fn is_scripted(&self) -> bool {
        self.candidates.iter().any(|planned| planned.provider.billing() == Billing::Scripted)
    }
}

#[cfg(test)]
mod tests;
