//! What can be said of a configuration only once all of it is there: names of what is not there, and
//! keys that have no effect beside the others.

use super::document::{Document, advice};
use super::offer::Layer;
use super::{Config, ConfigError, ConfigSource};

/// From which files the sections that are checked are.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The file whose `[orchestrate]` is in force.
    pub(super) orchestrate: Option<ConfigSource>,
    /// The files with caps by provider, and whom they name.
    pub(super) caps: Vec<(ConfigSource, Vec<String>)>,
}

impl Said {
    /// Takes down whom the caps of a file are on.
    pub(super) fn take_caps(&mut self, layer: &Layer, source: &ConfigSource) {
        self.caps.push((source.clone(), layer.budget.providers.keys().cloned().collect()));
    }

    /// # Errors
    /// The first key that could not do what it is there for, with its place.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        if let Some(source) = &self.orchestrate {
            self::orchestrate(config, source)?;
        }
        self.caps.iter().try_for_each(|(source, names)| caps(config, source, names))
    }
}

fn orchestrate(config: &Config, source: &ConfigSource) -> Result<(), ConfigError> {
    let invalid = |key: &[&str], message: String| -> Result<(), ConfigError> {
        let at = Document::parse(source)?.place_at(&[&["orchestrate"], key].concat());
        Err(ConfigError::Invalid { at, message })
    };
    if let Err(misfit) = config.orchestrate.check(&config.providers) {
        let key: Vec<&str> = misfit.key.iter().map(String::as_str).collect();
        return invalid(&key, misfit.to_string());
    }
    if config.orchestrate.rubric.is_some() && config.orchestrate.rubric_text.is_some() {
        let message = "`[orchestrate]` has both `rubric` and `rubric_text`; keep one of them";
        return invalid(&["rubric_text"], message.to_owned());
    }
    Ok(())
}

/// A cap on nobody would be taken for one that holds.
fn caps(config: &Config, source: &ConfigSource, names: &[String]) -> Result<(), ConfigError> {
    if config.providers.is_empty() {
        return Ok(());
    }
    let untrusted = config.untrusted.iter().flat_map(|untrusted| &untrusted.providers);
    let known: Vec<&str> = config.providers.keys().chain(untrusted).map(String::as_str).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let at = Document::parse(source)?.place_at(&["budget", "providers", name]);
            let advice = advice(name, &known);
            let message = format!(
                "[budget.providers]: there is no provider `{name}`, so that this cap limits nothing{advice}. A cap on a \
                 provider of one project stands in that project's cyberine.toml"
            );
            Err(ConfigError::Invalid { at, message })
        }
    }
}
