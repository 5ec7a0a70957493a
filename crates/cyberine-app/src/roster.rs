//! Whom a prompt can be put to: the configured providers, else what costs nothing.

use std::collections::BTreeMap;

use cyberine_provider::{HttpConfig, ProviderConfig};
use cyberine_types::Billing;
use serde::Serialize;

use crate::config::Config;
use crate::discovery::{self, DiscoveryError, ModelServer};
use crate::environment::Environment;

/// How many models are asked where nobody has configured any: a machine that answers them all at
/// once would answer none of them soon.
const FOUND_MODELS: usize = 3;

/// The providers there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Roster {
    /// By name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Where they come from.
    pub source: RosterSource,
}

/// Where providers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RosterSource {
    /// The configuration.
    Configured,
    /// Model servers found on loopback.
    Found,
}

/// The configured providers; where there is none, models of the servers on loopback.
///
/// # Errors
/// Where `CYBERINE_DISCOVERY` is not understood.
pub async fn roster(config: &Config, environment: &Environment) -> Result<Roster, DiscoveryError> {
    if !config.providers.is_empty() {
        return Ok(Roster { providers: config.providers.clone(), source: RosterSource::Configured });
    }
    let servers = discovery::servers(environment).await?;
    Ok(Roster { providers: of_servers(&servers), source: RosterSource::Found })
}

/// Up to three models, one of each server before a second of any.
fn of_servers(servers: &[ModelServer]) -> BTreeMap<String, ProviderConfig> {
    let deepest = servers.iter().map(|server| server.models.len()).max().unwrap_or(0);
    let in_turn = (0..deepest).flat_map(|at| {
        servers.iter().filter_map(move |server| server.models.get(at).map(|model| (server, model)))
    });
    let mut providers = BTreeMap::new();
    for (server, model) in in_turn.take(FOUND_MODELS) {
        let name = free_name(model, &providers);
        providers.insert(name, provider(server, model));
    }
    providers
}

fn provider(server: &ModelServer, model: &str) -> ProviderConfig {
    let config = HttpConfig::new(server.base_url.clone(), model);
    ProviderConfig::Openai(HttpConfig { billing: Some(Billing::Free), ..config })
}

/// A name of letters, digits, `.`, `_` and `-` that is not taken.
fn free_name(model: &str, taken: &BTreeMap<String, ProviderConfig>) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let base: String = model.chars().map(fits).take(56).collect();
    if !taken.contains_key(&base) {
        return base;
    }
    // One more candidate than there are names taken, so one of them is free.
    let mut numbered = (2..=taken.len() + 2).map(|number| format!("{base}-{number}"));
    numbered.find(|name| !taken.contains_key(name)).unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16, models: &[&str]) -> ModelServer {
        ModelServer {
            label: "x".to_owned(),
            base_url: format!("http://127.0.0.1:{port}/v1"),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
        }
    }

    #[test]
    fn every_server_has_its_turn_and_names_do_not_collide() {
        let found = of_servers(&[server(1, &["qwen3:8b", "b", "c"]), server(2, &["qwen3-8b"])]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["b", "qwen3-8b", "qwen3-8b-2"]);
        for (name, provider) in &found {
            provider.validate(name).unwrap();
            assert_eq!(provider.billing(), Billing::Free);
        }
        assert!(of_servers(&[server(1, &[])]).is_empty());
    }
}
