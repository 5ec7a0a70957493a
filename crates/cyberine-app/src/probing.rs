//! Looking at providers without asking them anything that costs.

use std::collections::BTreeMap;

use cyberine_orchestrator::{Dispatched, OrchestrateConfig};
use cyberine_provider::{Probe, ProviderConfig};
use cyberine_types::RunId;
use futures_util::future::join_all;

use crate::exit::Exit;
use crate::gates::{Closure, Gates};
use crate::problem::{Problem, chain};
use crate::team;
use crate::workplace::Workplace;

/// One provider, and what became of looking at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// Its name.
    pub name: String,
    /// Its configuration.
    pub config: ProviderConfig,
    /// What was found, or why it could not even be built.
    pub found: Result<Probe, String>,
    /// How long its account is closed, where it is.
    pub closed: Option<Closure>,
}

/// Looks at the providers of these names, or at every one that an orchestration could ask, all at
/// once.
///
/// # Errors
/// Where the configuration is wrong or not trusted, or a name is nobody's.
pub async fn probe(workplace: &Workplace, names: &[String]) -> Result<Vec<Probed>, Problem> {
    let known = workplace.roster().await?.providers;
    let chosen = chosen(known, names)?;
    let base = team::child_environment(&workplace.environment);
    let gates = Gates::of(&workplace.home);
    let looks = chosen.into_iter().map(|(name, config)| {
        let secret = |name: &str| workplace.environment.secret(name);
        let built = cyberine_provider::build(&name, &config, &secret, &base);
        let closed = gates.closure(&config);
        async move {
            let found = match built {
                Ok(provider) => Ok(provider.probe().await),
                Err(error) => Err(chain(&error)),
            };
            Probed { name, config, found, closed }
        }
    });
    Ok(join_all(looks).await)
}

/// What each provider is asked where it may cost something.
const QUESTION: &str = "Reply with the one word: ready";
/// The most tokens it may answer with; some services take no smaller limit.
const TOKENS: u32 = 16;

/// The longest that an answer to it is waited for, in seconds, unless the provider has a limit of its
/// own.
const LONGEST: u64 = 60;

/// Each of `candidates` asked once and judged by nobody, within the limits of `configured`.
fn briefly(configured: &OrchestrateConfig, candidates: Vec<String>) -> OrchestrateConfig {
    OrchestrateConfig {
        candidates,
        judges: Vec::new(),
        quorum: 1,
        retries: 0,
        idle_seconds: configured.idle_seconds,
        wall_seconds: configured.wall_seconds.min(LONGEST),
        ..OrchestrateConfig::default()
    }
}

/// Puts one short question to the providers of these names, or to all, as a run that nobody judges:
/// it counts under the budget, and can be inspected and cancelled as any other.
///
/// # Errors
/// As [`Workplace::dispatch`].
pub async fn ask_briefly(
    workplace: &Workplace,
    names: &[String],
    requested_by: String,
) -> Result<Dispatched, Problem> {
    let candidates = names.to_vec();
    let brief = |orchestrate: &mut OrchestrateConfig| *orchestrate = briefly(orchestrate, candidates);
    let mut planning = workplace.planned(brief).await?;
    planning.plan.limits.max_tokens = TOKENS;
    let (run, prompt) = (RunId::random(), QUESTION.to_owned());
    Ok(workplace.dispatch_planned(planning, run, prompt, requested_by).await?.0)
}

fn chosen(
    mut known: BTreeMap<String, ProviderConfig>,
    names: &[String],
) -> Result<BTreeMap<String, ProviderConfig>, Problem> {
    if names.is_empty() {
        return Ok(known);
    }
    let mut chosen = BTreeMap::new();
    for name in names {
        match known.remove(name) {
            Some(config) => drop(chosen.insert(name.clone(), config)),
            None if chosen.contains_key(name) => {}
            None => {
                let all: Vec<String> = chosen.into_keys().chain(known.into_keys()).collect();
                let there = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                let message = format!("there is no provider `{name}`; there are: {there}");
                return Err(Problem::new(Exit::Unavailable, message));
            }
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_question_keeps_the_configured_limits_and_is_asked_once() {
        let configured = |idle_seconds, wall_seconds| OrchestrateConfig {
            idle_seconds,
            wall_seconds,
            retries: 5,
            ..OrchestrateConfig::default()
        };
        let short = briefly(&configured(3, 4), vec!["a".to_owned()]);
        assert_eq!((short.idle_seconds, short.wall_seconds, short.retries), (3, 4, 0));
        assert_eq!((short.candidates, short.quorum), (vec!["a".to_owned()], 1));
        assert_eq!(briefly(&configured(200, 600), Vec::new()).wall_seconds, LONGEST);
    }
}
