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
    /// The project's file, and whom its caps by provider name. Those of the home may be on providers of
    /// other projects.
    pub(super) caps: Option<(ConfigSource, Vec<String>)>,
    /// The last file that defines providers, and their names.
    pub(super) providers: Option<(ConfigSource, Vec<String>)>,
}

impl Said {
    /// Takes down whom the caps of the project's file are on.
    pub(super) fn take_caps(&mut self, layer: &Layer, source: &ConfigSource) {
        self.caps = Some((source.clone(), layer.budget.providers.keys().cloned().collect()));
    }

    /// Takes down which providers a file defines that is in force.
    pub(super) fn take_providers(&mut self, layer: &Layer, source: &ConfigSource) {
        self.providers = Some((source.clone(), layer.providers.keys().cloned().collect()));
    }

    /// # Errors
    /// The first key that could not do what it is there for, with its place.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        if let Some(source) = &self.orchestrate {
            self.orchestrate(config, source)?;
        }
        self.caps.iter().try_for_each(|(source, names)| caps(config, source, names))
    }

    fn orchestrate(&self, config: &Config, source: &ConfigSource) -> Result<(), ConfigError> {
        let invalid = |key: &[&str], message: String| -> Result<(), ConfigError> {
            let at = Document::parse(source)?.place_at(&[&["orchestrate"], key].concat());
            Err(ConfigError::Invalid { at, message })
        };
        if let Err(misfit) = config.orchestrate.check(&config.providers) {
            let key: Vec<&str> = misfit.key.iter().map(String::as_str).collect();
            if let Some((file, name)) = self.defined_anew(source, &key) {
                let at = Document::parse(file)?.place_at(&["providers", name]);
                let message = format!(
                    "`[providers.{name}]` takes the place of a provider of which the home's config.toml says more: {misfit}. \
                     Or give it another name here, or have an `[orchestrate]` here"
                );
                return Err(ConfigError::Invalid { at, message });
            }
            return invalid(&key, misfit.to_string());
        }
        if config.orchestrate.rubric.is_some() && config.orchestrate.rubric_text.is_some() {
            let message = "`[orchestrate]` has both `rubric` and `rubric_text`; keep one of them";
            return invalid(&["rubric_text"], message.to_owned());
        }
        Ok(())
    }

    /// The file that defines the provider of whose role `key` tells, where that is a later one than
    /// `source`, in which the role stands.
    fn defined_anew<'a>(&self, source: &ConfigSource, key: &[&'a str]) -> Option<(&ConfigSource, &'a str)> {
        let (["roles", name, ..], (file, names)) = (key, self.providers.as_ref()?) else { return None };
        let later = file.path() != source.path() && names.iter().any(|known| known == name);
        later.then_some((file, *name))
    }
}

/// A cap on nobody would be taken for one that holds.
fn caps(config: &Config, source: &ConfigSource, names: &[String]) -> Result<(), ConfigError> {
    if config.providers.is_empty() {
        return Ok(());
    }
    let known = config.known_providers();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let at = Document::parse(source)?.place_at(&["budget", "providers", name]);
            let advice = advice(name, &known);
            let message = format!(
                "[budget.providers]: there is no provider `{name}`, so that this cap limits nothing{advice}"
            );
            Err(ConfigError::Invalid { at, message })
        }
    }
}
