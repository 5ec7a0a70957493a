//! Providers, built from a plan and from what the environment holds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cyberine_orchestrator::{Plan, Planned, Team, Unavailable};
use cyberine_process::ChildEnvironment;
use cyberine_provider::{
    BuildError, Provider, ProviderConfig, ProviderInfo, TurnError, build_among, retrying, secrets_of,
};
use cyberine_types::Secret;

use crate::discovery::executable;
use crate::environment::Environment;
use crate::gates::Gates;
use crate::problem::chain;

/// What children of this process may know of their surroundings.
#[must_use]
pub(crate) fn child_environment(environment: &Environment) -> ChildEnvironment {
    ChildEnvironment::allowed(environment.variables())
}

/// Why providers of `plan` cannot be built, such as a key that is not set: all of them, not only the
/// first.
pub(crate) fn unbuilt(plan: &Plan, environment: &Environment) -> Vec<String> {
    let base = child_environment(environment);
    let mut faults = Vec::new();
    for planned in plan.candidates.iter().chain(&plan.judge_providers) {
        let built = build(planned.provider_name(), &planned.provider, environment, &base, &[]);
        let fault = built.err().map(|error| chain(&error));
        faults.extend(fault.filter(|fault| !faults.contains(fault)));
    }
    faults
}

/// What keeps the providers of `plan` from answering in `project`, one line each: all of it, not
/// only the first.
pub(crate) fn faults(plan: &Plan, environment: &Environment, project: &Path) -> Vec<String> {
    let base = child_environment(environment);
    let mut faults = Vec::new();
    for planned in plan.candidates.iter().chain(&plan.judge_providers) {
        let built = build(planned.provider_name(), &planned.provider, environment, &base, &[]);
        let unbuilt = built.err().map(|error| error.to_string());
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
    let (shown, name) = (program.display(), planned.provider_name());
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let there = executable(&cwd.join(program));
        return (!there)
            .then(|| format!("program `{shown}` of provider `{name}` is not there, or is not executable"));
    }
    let path = environment.search_path();
    let there = path.iter().any(|directory| directory.is_absolute() && executable(&directory.join(program)));
    (!there).then(|| format!("program `{shown}` of provider `{name}` is not on the PATH"))
}

/// Builds the providers of `plan`, each once, behind the gate of its account. One that cannot be
/// built answers every turn with the reason.
pub(crate) fn team(plan: &Plan, environment: &Environment, gates: &Gates) -> Team {
    let workshop = Workshop {
        environment,
        base: child_environment(environment),
        secrets: secrets(plan, environment),
        gates,
        retries: plan.retries,
    };
    let mut built: BTreeMap<String, Arc<dyn Provider>> = BTreeMap::new();
    let mut by_name = |planned: &Planned| {
        let name = planned.provider_name().to_owned();
        Arc::clone(built.entry(name).or_insert_with(|| workshop.make(planned, &planned.provider)))
    };
    let candidates = plan.candidates.iter().map(&mut by_name).collect();
    let judges = plan.judge_providers.iter().map(|one| (one.name.clone(), by_name(one))).collect();
    let fallbacks = plan.candidates.iter().filter_map(|planned| {
        let fallback = workshop.make(planned, &planned.fallback()?);
        Some((planned.name.clone(), fallback))
    });
    Team { candidates, judges, fallbacks: fallbacks.collect() }
}

/// What providers are built with.
struct Workshop<'a> {
    environment: &'a Environment,
    base: ChildEnvironment,
    /// Of all of them: none may be in the answer of any.
    secrets: Vec<Secret>,
    gates: &'a Gates,
    retries: u32,
}

impl Workshop<'_> {
    fn make(&self, planned: &Planned, config: &ProviderConfig) -> Arc<dyn Provider> {
        match build(planned.provider_name(), config, self.environment, &self.base, &self.secrets) {
            Ok(provider) => retrying(provider, config, self.retries, self.gates.gate(config)),
            Err(error) => stand_in(config.info(planned.provider_name()), &error),
        }
    }
}

fn build(
    name: &str,
    config: &ProviderConfig,
    environment: &Environment,
    base: &ChildEnvironment,
    others: &[Secret],
) -> Result<Arc<dyn Provider>, BuildError> {
    build_among(name, config, &|name| environment.secret(name), base, others)
}

/// What the providers of `plan` are given and nobody may say, each once.
fn secrets(plan: &Plan, environment: &Environment) -> Vec<Secret> {
    let mut secrets: Vec<Secret> = Vec::new();
    for planned in plan.candidates.iter().chain(&plan.judge_providers) {
        for secret in secrets_of(&planned.provider, &|name| environment.secret(name)) {
            if secrets.iter().all(|known| known.expose() != secret.expose()) {
                secrets.push(secret);
            }
        }
    }
    secrets
}

fn stand_in(info: ProviderInfo, error: &BuildError) -> Arc<dyn Provider> {
    let why = match error {
        BuildError::MissingVariable { .. } | BuildError::BadKey { .. } => {
            TurnError::NoCredential { detail: error.to_string() }
        }
        BuildError::Config(_) => TurnError::Rejected { detail: error.to_string() },
    };
    Arc::new(Unavailable::new(info, why))
}

/// The variables whose values the providers of `plan` need.
pub(crate) fn variables(plan: &Plan) -> Vec<String> {
    let all = plan.candidates.iter().chain(&plan.judge_providers);
    all.flat_map(|planned| planned.provider.required_env()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;
    use cyberine_orchestrator::{OrchestrateConfig, RoleConfig, plan};
    use cyberine_types::RunId;
    use tokio_util::sync::CancellationToken;

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
        let error = unbuilt(&plan, &without).join("; ");
        assert!(error.contains("provider `keyed` needs the environment variable `THE_KEY`"), "{error}");
        let home = tempfile::tempdir().unwrap();
        let team = team(&plan, &without, &Gates::of(&Home::at(home.path())));
        let names: Vec<_> = team.candidates.iter().map(|one| one.info().name.clone()).collect();
        assert_eq!((names, team.judges.len()), (vec!["keyed".to_owned(), "plain".to_owned()], 2));
        assert_eq!(unbuilt(&plan, &Environment::of([("EXTRA", "1"), ("THE_KEY", "k")], "/")), [""; 0]);
    }

    #[test]
    fn samples_of_a_provider_are_one_provider_and_a_fallback_model_is_built_beside_it() {
        let text = r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m"}"#;
        let providers = BTreeMap::from([("a".to_owned(), serde_json::from_str(text).unwrap())]);
        let role =
            RoleConfig { samples: 2, fallback_model: Some("small".to_owned()), ..RoleConfig::default() };
        let roles = BTreeMap::from([("a".to_owned(), role)]);
        let plan = plan(&OrchestrateConfig { roles, ..OrchestrateConfig::default() }, &providers, 1).unwrap();
        let (home, environment) = (tempfile::tempdir().unwrap(), Environment::of([], "/"));
        assert_eq!(unbuilt(&plan, &environment), [""; 0]);
        let team = team(&plan, &environment, &Gates::of(&Home::at(home.path())));
        assert!(Arc::ptr_eq(&team.candidates[0], &team.candidates[1]));
        assert!(Arc::ptr_eq(&team.candidates[0], &team.judges["a"]));
        let models: Vec<_> =
            team.fallbacks.iter().map(|(id, one)| (id.as_str(), one.info().model.as_deref())).collect();
        assert_eq!(models, [("a", Some("small")), ("a#2", Some("small"))]);
        assert_eq!(team.candidates[1].info().name, "a");
    }

    #[test]
    fn no_provider_says_the_key_of_another() {
        use cyberine_provider::{Limits, Turn, TurnEvent};
        use futures_util::StreamExt as _;
        let keyed =
            r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m","api_key_env":"A_KEY"}"#;
        let thief = r#"{"kind":"command","command":["printf","sk-%s and sk-%s","of-another","of-nobody"]}"#;
        let providers = [("keyed", keyed), ("thief", thief)]
            .map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()));
        let plan = plan(&OrchestrateConfig::default(), &providers.into(), 1).unwrap();
        let environment = Environment::of([("PATH", "/bin:/usr/bin"), ("A_KEY", "sk-of-another")], "/");
        let home = tempfile::tempdir().unwrap();
        let team = team(&plan, &environment, &Gates::of(&Home::at(home.path())));
        let thief = team.candidates.iter().find(|one| one.info().name == "thief").unwrap();
        let turn = Turn {
            messages: Vec::new(),
            tools: Vec::new(),
            output_schema: None,
            limits: Limits::default(),
            cwd: home.path().to_owned(),
            mark: RunId::random().to_string(),
        };
        let said = crate::block_on(async {
            let events: Vec<_> = thief.turn(turn, CancellationToken::new()).collect().await;
            let text = events.into_iter().filter_map(|event| match event {
                Ok(TurnEvent::Text(text)) => Some(text),
                _ => None,
            });
            text.collect::<String>()
        });
        assert_eq!(said.unwrap(), "[redacted] and sk-of-nobody");
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
