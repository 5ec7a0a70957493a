//! Providers, built from a plan and from what the environment holds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cyberine_orchestrator::{Plan, Planned, Team, Unavailable};
use cyberine_process::ChildEnvironment;
use cyberine_provider::{BuildError, Provider, TurnError};

use crate::discovery::executable;
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

/// What keeps the providers of `plan` from answering in `project`, one line each: all of it, not
/// only the first.
pub(crate) fn faults(plan: &Plan, environment: &Environment, project: &Path) -> Vec<String> {
    let base = child_environment(environment);
    let mut faults = Vec::new();
    for planned in plan.candidates.iter().chain(&plan.judge_providers) {
        let unbuilt = build(planned, environment, &base).err().map(|error| error.to_string());
        for fault in unbuilt.into_iter().chain(missing_program(planned, environment, project)) {
            // Whoever answers may judge, too.
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
    faults
}

/// Says so where the program a provider runs is not there. It is looked for where the provider
/// will: in the absolute directories of the `PATH`, or, where it holds a slash, from the directory
/// it works in.
fn missing_program(planned: &Planned, environment: &Environment, project: &Path) -> Option<String> {
    let profile = planned.provider.profile();
    let program = profile.program?;
    let cwd = profile.cwd.map_or_else(|| project.to_owned(), |cwd| project.join(cwd));
    let (shown, name) = (program.display(), &planned.name);
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let there = executable(&cwd.join(program));
        return (!there)
            .then(|| format!("program `{shown}` of provider `{name}` is not there, or is not executable"));
    }
    let path = environment.search_path();
    let there = path.iter().any(|directory| directory.is_absolute() && executable(&directory.join(program)));
    (!there).then(|| format!("program `{shown}` of provider `{name}` is not on the PATH"))
}

/// Builds the providers of `plan`. One that cannot be built answers every turn with the reason.
pub(crate) fn team(plan: &Plan, environment: &Environment) -> Team {
    let base = child_environment(environment);
    let built = |planned: &Planned| {
        build(planned, environment, &base).unwrap_or_else(|error| stand_in(planned, &error))
    };
    let judges: BTreeMap<_, _> =
        plan.judge_providers.iter().map(|one| (one.name.clone(), built(one))).collect();
    Team { candidates: plan.candidates.iter().map(built).collect(), judges, ..Team::default() }
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

    #[test]
    fn every_missing_key_and_program_is_told_once() {
        let project = tempfile::tempdir().unwrap();
        let keyed = |key: &str| {
            format!(r#"{{"kind":"openai","base_url":"https://h/v1","model":"m","api_key_env":"{key}"}}"#)
        };
        let command = |program: &str| format!(r#"{{"kind":"command","command":["{program}"]}}"#);
        let providers = [
            ("a", keyed("ONE")),
            ("b", keyed("TWO")),
            ("c", command("my-agent")),
            ("d", command("./tool")),
            ("e", command("sh")),
            ("f", r#"{"kind":"claude-cli"}"#.to_owned()),
        ]
        .map(|(name, text)| (name.to_owned(), serde_json::from_str(&text).unwrap()));
        let plan = plan(&OrchestrateConfig::default(), &providers.into(), 1).unwrap();
        let environment = Environment::of([("PATH", "/bin:/usr/bin")], "/");
        let mut found = faults(&plan, &environment, project.path());
        found.sort();
        assert_eq!(
            found,
            [
                "program `./tool` of provider `d` is not there, or is not executable",
                "program `claude` of provider `f` is not on the PATH",
                "program `my-agent` of provider `c` is not on the PATH",
                "provider `a` needs the environment variable `ONE`, which is not set or empty",
                "provider `b` needs the environment variable `TWO`, which is not set or empty",
            ]
        );
    }
}
