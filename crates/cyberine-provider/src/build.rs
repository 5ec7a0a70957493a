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
    build_among(name, config, secrets, environment, &[])
}

/// As [`build`], for a provider that answers beside others: the secrets of `others` are taken out
/// of what it says as its own are, since a program may find out what was given to another.
///
/// # Errors
///
/// As [`build`].
pub fn build_among(
    name: &str,
    config: &ProviderConfig,
    secrets: &dyn Fn(&str) -> Option<Secret>,
    environment: &ChildEnvironment,
    others: &[Secret],
) -> Result<Arc<dyn Provider>, BuildError> {
    config.validate(name)?;
    let source = Source { name, config, secrets, environment, others };
    match config.family() {
        Family::Http(dialect, http) => source.http(dialect, http),
        Family::Child(program) => source.child(program),
    }
}

/// What of that which a provider of this configuration is given must be in nobody's answer. What
/// is not set is left out.
pub fn secrets_of(config: &ProviderConfig, secrets: &dyn Fn(&str) -> Option<Secret>) -> Vec<Secret> {
    let profile = config.profile();
    let named = profile.env.iter().map(String::as_str).filter(|variable| names_secret(variable));
    let all = profile.key_env.into_iter().chain(named).filter_map(secrets);
    all.filter(|value| value.expose().len() >= SECRET_BYTES).collect()
}

struct Source<'a> {
    name: &'a str,
    config: &'a ProviderConfig,
    secrets: &'a dyn Fn(&str) -> Option<Secret>,
    environment: &'a ChildEnvironment,
    others: &'a [Secret],
}

impl Source<'_> {
    fn http(
        &self,
        dialect: &'static dyn Dialect,
        http: &HttpConfig,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        let variable = self.config.profile().key_env;
        let key = variable.map(|variable| self.secret(variable)).transpose()?;
        match HttpProvider::new(self.name, self.config, dialect, http, key, self.others) {
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
        secrets.extend_from_slice(self.others);
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
    fn the_secrets_of_a_provider_are_its_key_and_what_is_named_like_one() {
        let set = |name: &str| (name != "UNSET_KEY").then(|| Secret::new(format!("value of {name}")));
        let of = |text: &str| {
            let config: ProviderConfig = serde_json::from_str(text).unwrap();
            let all = secrets_of(&config, &set);
            all.iter().map(|secret| secret.expose().to_owned()).collect::<Vec<_>>()
        };
        let keyed = r#"{"kind":"openai","base_url":"https://h/v1","model":"m","api_key_env":"A_KEY"}"#;
        assert_eq!(of(keyed), ["value of A_KEY"]);
        let child = r#"{"kind":"command","command":["x"],"env":["A_TOKEN","NODE_ENV","UNSET_KEY"]}"#;
        assert_eq!(of(child), ["value of A_TOKEN"]);
        let short = |_: &str| Some(Secret::new("ollama"));
        assert!(secrets_of(&serde_json::from_str(keyed).unwrap(), &short).is_empty());
    }

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
