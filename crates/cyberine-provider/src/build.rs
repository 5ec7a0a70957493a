//! From a configuration to a provider.

use std::sync::Arc;

use cyberine_process::ChildEnvironment;
use cyberine_types::Secret;

use crate::child_provider::{ChildProvider, Program};
use crate::config::{ConfigError, Family, HttpConfig, ProviderConfig};
use crate::http_provider::{Dialect, HttpProvider};
use crate::port::Provider;
use crate::quote::Quoter;

/// The shortest value of a passed variable that counts as a secret; shorter ones are switches, and
/// taking every `1` out of an error would leave nothing to read.
const SECRET_BYTES: usize = 8;

/// What the name of a passed variable holds where its value is a secret. Values of others are
/// ordinary words, such as `production`, which answers must keep.
const SECRET_NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];

/// Why a provider cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Its configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A variable it needs is not set.
    #[error("provider `{name}` needs the environment variable `{variable}`, which is not set or empty")]
    MissingVariable {
        /// The provider.
        name: String,
        /// The variable.
        variable: String,
    },
    /// A variable holds what no HTTP header can carry.
    #[error(
        "provider `{name}` cannot send the value of `{variable}`: it holds line breaks or other controls"
    )]
    BadKey {
        /// The provider.
        name: String,
        /// The variable.
        variable: String,
    },
}

/// Builds the provider `name`. Touches neither the network nor a process: the first turn does.
///
/// `secrets` gives the value of an environment variable. `environment` is where the children of
/// process kinds start from; of it only the allow-list of [`ChildEnvironment::allowed`] is used,
/// so that a key that no configuration names reaches no child.
///
/// # Errors
///
/// Says which key of the configuration is wrong, or which variable is missing.
pub fn build(
    name: &str,
    config: &ProviderConfig,
    secrets: &dyn Fn(&str) -> Option<Secret>,
    environment: &ChildEnvironment,
) -> Result<Arc<dyn Provider>, BuildError> {
    config.validate(name)?;
    let source = Source { name, config, secrets, environment };
    match config.family() {
        Family::Http(dialect, http) => source.http(dialect, http),
        Family::Child(program) => source.child(program),
    }
}

struct Source<'a> {
    name: &'a str,
    config: &'a ProviderConfig,
    secrets: &'a dyn Fn(&str) -> Option<Secret>,
    environment: &'a ChildEnvironment,
}

impl Source<'_> {
    fn http(
        &self,
        dialect: &'static dyn Dialect,
        http: &HttpConfig,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        let variable = self.config.profile().key_env;
        let key = variable.map(|variable| self.secret(variable)).transpose()?;
        match HttpProvider::new(self.name, self.config, dialect, http, key) {
            Some(provider) => Ok(Arc::new(provider)),
            // The address was checked before, so it is the key that no header can carry.
            None => Err(BuildError::BadKey {
                name: self.name.to_owned(),
                variable: variable.unwrap_or_default().to_owned(),
            }),
        }
    }

    fn child(&self, program: &dyn Program) -> Result<Arc<dyn Provider>, BuildError> {
        let profile = program.profile();
        let (mut environment, mut secrets) = self.handed_on(profile.env)?;
        if let (Some(variable), Some(name)) = (profile.key_env, program.key_variable()) {
            let key = self.secret(variable)?;
            environment = environment.set(name, key.expose());
            secrets.push(key);
        }
        let quoter = Quoter::new(secrets);
        Ok(Arc::new(ChildProvider::new(self.name, self.config, environment, quoter)))
    }

    /// The environment of a child that is handed `variables`, and which of them are secrets.
    fn handed_on(&self, variables: &[String]) -> Result<(ChildEnvironment, Vec<Secret>), BuildError> {
        let base = self.environment;
        let pairs = base.names().filter_map(|name| Some((name.to_owned(), base.get(name)?.to_owned())));
        let mut environment = ChildEnvironment::allowed(pairs);
        let mut secrets = Vec::new();
        for variable in variables {
            let value = self.secret(variable)?;
            environment = environment.set(variable, value.expose());
            if names_secret(variable) && value.expose().len() >= SECRET_BYTES {
                secrets.push(value);
            }
        }
        Ok((environment, secrets))
    }

    fn secret(&self, variable: &str) -> Result<Secret, BuildError> {
        (self.secrets)(variable).filter(|value| !value.is_empty()).ok_or_else(|| {
            BuildError::MissingVariable { name: self.name.to_owned(), variable: variable.to_owned() }
        })
    }
}

pub(crate) fn names_secret(variable: &str) -> bool {
    let variable = variable.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| variable.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_secret_by_its_name() {
        for variable in [
            "OPENAI_API_KEY",
            "gh_token",
            "Client_Secret",
            "PGPASSWORD",
            "DB_PASSWD",
            "AWS_CREDENTIALS",
            "BASIC_AUTH",
        ] {
            assert!(names_secret(variable), "{variable}");
        }
        for variable in ["NODE_ENV", "HTTPS_PROXY", "LANG", "AWS_PROFILE", "PASS_THROUGH"] {
            assert!(!names_secret(variable), "{variable}");
        }
    }
}
