//! One file, read: what it says, and what it would put in force.

use std::collections::BTreeMap;

use cyberine_orchestrator::OrchestrateConfig;
use cyberine_provider::ProviderConfig;
use serde::Serialize;

use super::access::{self, AccessConfig};
use super::document::{Document, Place, Value};
use super::{BUDGET, BudgetSection, BusConfig, ConfigError, ConfigSource, PresenceConfig, RunSection, money};
use crate::environment::TOKEN_VARIABLE;

const SECTIONS: [&str; 8] =
    ["providers", "orchestrate", BUDGET, "run", "presence", "bus", access::IDENTITY, access::HTTP];

/// The keys of a provider that its [`Reach`](crate::Reach) tells; the others are told as settings.
const REACH: [&str; 12] = [
    "kind",
    "command",
    "program",
    "args",
    "env",
    "cwd",
    "base_url",
    "model",
    "tools",
    "api_key_env",
    "allow_plain_http",
    "billing",
];

/// One file, read.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// The sections it has, also those that say nothing.
    pub(super) sections: Vec<String>,
    pub(super) providers: BTreeMap<String, ProviderConfig>,
    pub(super) orchestrate: Option<OrchestrateConfig>,
    pub(super) budget: BudgetSection,
    pub(super) run: RunSection,
    pub(super) presence: PresenceConfig,
    pub(super) bus: BusConfig,
}

/// What a configuration file would put in force, for the eyes of whoever is asked to trust it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The providers it defines, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Every key it sets that is not part of what a provider can reach.
    pub settings: Vec<Setting>,
    /// Whether it says more than a budget, which alone needs no trust.
    pub needs_trust: bool,
}

/// A key a configuration file sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The section it stands in, such as `orchestrate` or `providers.local`.
    pub section: String,
    /// The key.
    pub key: String,
    /// The value, as the file spells it.
    pub value: String,
}

/// What `source` would put in force, whether or not it is trusted.
///
/// # Errors
/// Where the configuration is wrong.
pub fn offer_of(source: &ConfigSource) -> Result<Offer, ConfigError> {
    let layer = Layer::parse(source)?;
    let document = Document::parse(source)?;
    let mut settings = Vec::new();
    for (name, value, _) in document.tables("providers")? {
        let mut entries = document.entries_of(value);
        entries.retain(|(key, _)| !REACH.contains(&key.as_str()));
        settings.extend(told(&format!("providers.{name}"), entries));
    }
    for section in layer.sections.iter().filter(|section| *section != "providers") {
        settings.extend(told(section, document.entries(section)));
    }
    Ok(Offer {
        settings,
        needs_trust: layer.sections.iter().any(|section| section != BUDGET),
        providers: layer.providers,
    })
}

fn told(section: &str, entries: Vec<(String, String)>) -> impl Iterator<Item = Setting> {
    entries.into_iter().map(move |(key, value)| Setting { section: section.to_owned(), key, value })
}

impl Layer {
    pub(super) fn parse(source: &ConfigSource) -> Result<Self, ConfigError> {
        let document = Document::parse(source)?;
        document.only(&SECTIONS)?;
        let mut providers = BTreeMap::new();
        for (name, value, at) in document.tables("providers")? {
            let provider: ProviderConfig = document.read(value, &format!("providers.{name}"))?;
            provider.validate(name).map_err(|error| misfit(&document, value, at.clone(), &error))?;
            refuse_own_token(&document, value, &at, name, &provider)?;
            money::check_prices(&document, value, &at, &provider)?;
            providers.insert(name.to_owned(), provider);
        }
        let budget = document.section(BUDGET)?.unwrap_or_default();
        money::check_budget(&document, &budget)?;
        AccessConfig::read(&document)?;
        Ok(Self {
            sections: document.sections(),
            providers,
            orchestrate: document.section("orchestrate")?,
            budget,
            run: document.section("run")?.unwrap_or_default(),
            presence: document.section("presence")?.unwrap_or_default(),
            bus: document.section("bus")?.unwrap_or_default(),
        })
    }
}

/// The token that opens this server is nobody else's: no provider is given it.
fn refuse_own_token(
    document: &Document<'_>,
    value: &Value<'_>,
    table: &Place,
    name: &str,
    provider: &ProviderConfig,
) -> Result<(), ConfigError> {
    if !provider.required_env().contains(&TOKEN_VARIABLE) {
        return Ok(());
    }
    let listed = provider.profile().env.iter().any(|variable| variable == TOKEN_VARIABLE);
    let key = if listed { "env" } else { "api_key_env" };
    let at = document.place_of(value, key).unwrap_or_else(|| table.clone());
    let message = format!(
        "`{key}` of provider `{name}` must not name `{TOKEN_VARIABLE}`: that token opens this server, and \
         no provider is given it"
    );
    Err(ConfigError::Invalid { at, message })
}

/// What the provider's own check finds, with the place of the key it speaks of.
fn misfit(
    document: &Document<'_>,
    value: &Value<'_>,
    table: Place,
    error: &cyberine_provider::ConfigError,
) -> ConfigError {
    let at = match error {
        cyberine_provider::ConfigError::Value { key, .. } => document.place_of(value, key).unwrap_or(table),
        cyberine_provider::ConfigError::Name { .. } => table,
    };
    ConfigError::Invalid { at, message: error.to_string() }
}
