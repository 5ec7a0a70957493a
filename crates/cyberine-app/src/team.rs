//! Providers, built from a plan and from what the environment holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_orchestrator::{Plan, Planned, Team, Unavailable};
use cyberine_process::ChildEnvironment;
use cyberine_provider::{BuildError, Provider, TurnError};

use crate::environment::Environment;

/// What children of this process may know of their surroundings.
#[must_use]
pub(crate) fn child_environment(environment: &Environment) -> ChildEnvironment {
    ChildEnvironment::allowed(environment.variables())
}

/// Checks that every provider of `plan` could be built, before a run is recorded.
///
/// # Errors
/// The first provider that cannot, such as one whose key is not set.
pub(crate) fn check(plan: &Plan, environment: &Environment) -> Result<(), BuildError> {
    let base = child_environment(environment);
    let all = plan.candidates.iter().chain(&plan.judge_providers);
    all.map(|planned| build(planned, environment, &base)).try_for_each(|built| built.map(drop))
}

/// Builds the providers of `plan`. One that cannot be built answers every turn with the reason.
pub(crate) fn team(plan: &Plan, environment: &Environment) -> Team {
    let base = child_environment(environment);
    let built = |planned: &Planned| {
        build(planned, environment, &base).unwrap_or_else(|error| stand_in(planned, &error))
    };
    let judges: BTreeMap<_, _> =
        plan.judge_providers.iter().map(|one| (one.name.clone(), built(one))).collect();
    Team { candidates: plan.candidates.iter().map(built).collect(), judges }
}

fn build(
    planned: &Planned,
    environment: &Environment,
    base: &ChildEnvironment,
) -> Result<Arc<dyn Provider>, BuildError> {
    cyberine_provider::build(&planned.name, &planned.provider, &|name| environment.secret(name), base)
}

fn stand_in(planned: &Planned, error: &BuildError) -> Arc<dyn Provider> {
    let why = match error {
        BuildError::MissingVariable { .. } | BuildError::BadKey { .. } => {
            TurnError::Auth { detail: error.to_string() }
        }
        BuildError::Config(_) => TurnError::Rejected { detail: error.to_string() },
    };
    Arc::new(Unavailable::new(planned.provider.info(&planned.name), why))
}

/// The variables whose values the providers of `plan` need.
pub(crate) fn variables(plan: &Plan) -> Vec<String> {
    let all = plan.candidates.iter().chain(&plan.judge_providers);
    all.flat_map(|planned| planned.provider.required_env()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_orchestrator::{OrchestrateConfig, plan};

    fn sample() -> Plan {
        let keyed = r#"{"kind":"openai","base_url":"https://h/v1","model":"m","api_key_env":"THE_KEY"}"#;
        let plain = r#"{"kind":"command","command":["cat"],"env":["EXTRA"]}"#;
        let providers = [("keyed", keyed), ("plain", plain)]
            .map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()));
        plan(&OrchestrateConfig::default(), &providers.into(), 1).unwrap()
    }

    #[test]
    fn a_provider_without_its_key_is_told_before_and_stands_in_after() {
        let plan = sample();
        let without = Environment::of([("EXTRA", "1")], "/");
        let error = check(&plan, &without).unwrap_err().to_string();
        assert!(error.contains("provider `keyed` needs the environment variable `THE_KEY`"), "{error}");
        let team = team(&plan, &without);
        let names: Vec<_> = team.candidates.iter().map(|one| one.info().name.clone()).collect();
        assert_eq!((names, team.judges.len()), (vec!["keyed".to_owned(), "plain".to_owned()], 2));
        check(&plan, &Environment::of([("EXTRA", "1"), ("THE_KEY", "k")], "/")).unwrap();
    }

    #[test]
    fn the_variables_of_a_plan_are_those_of_its_providers() {
        let mut names = variables(&sample());
        names.dedup();
        assert!(names.contains(&"THE_KEY".to_owned()) && names.contains(&"EXTRA".to_owned()), "{names:?}");
    }
}
