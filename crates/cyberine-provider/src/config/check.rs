//! What a configuration must hold to work.

use std::path::Path;

use reqwest::Url;

/// A provider's configuration that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The name cannot be one.
    #[error("`{name}` cannot be a provider's name: use 1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`")]
    Name {
        /// The name given.
        name: String,
    },
    /// A value is missing, empty or not of its form.
    #[error("`{key}` of provider `{name}` {problem}")]
    Value {
        /// The provider.
        name: String,
        /// The key.
        key: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
}

/// Whether `url` leads to this machine.
pub(crate) fn is_loopback_url(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_loopback(&url))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn check_name(name: &str) -> Result<(), ConfigError> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=64).contains(&name.len()) && name.chars().all(good) {
        return Ok(());
    }
    let name = name.chars().filter(|c| !c.is_control()).take(64).collect();
    Err(ConfigError::Name { name })
}

/// Checks the values of one provider.
pub(crate) struct Check<'a> {
    name: &'a str,
}

impl<'a> Check<'a> {
    /// Checks the name itself.
    pub(crate) fn new(name: &'a str) -> Result<Self, ConfigError> {
        check_name(name).map(|()| Self { name })
    }

    /// A key that pays must be named where its billing follows from it.
    pub(crate) fn no_key_in(&self, env: &[String], key: &str) -> Result<(), ConfigError> {
        if env.iter().any(|variable| variable == key) {
            let problem =
                format!("must not list `{key}`: set `api_key_env = \"{key}\"`, which says that a key pays");
            return Err(self.value("env", problem));
        }
        Ok(())
    }

    pub(crate) fn value(&self, key: &'static str, problem: String) -> ConfigError {
        ConfigError::Value { name: self.name.to_owned(), key, problem }
    }

    pub(crate) fn filled(&self, key: &'static str, value: &str) -> Result<(), ConfigError> {
        if value.trim().is_empty() {
            return Err(self.value(key, "is empty".to_owned()));
        }
        self.plain(key, value)
    }

    pub(crate) fn option(&self, key: &'static str, value: Option<&str>) -> Result<(), ConfigError> {
        value.map_or(Ok(()), |value| self.filled(key, value))
    }

    pub(crate) fn path(&self, key: &'static str, value: Option<&Path>) -> Result<(), ConfigError> {
        value.map_or(Ok(()), |path| self.filled(key, &path.to_string_lossy()))
    }

    /// A program and its arguments.
    pub(crate) fn command(&self, command: &[String]) -> Result<(), ConfigError> {
        self.filled("command", command.first().map_or("", String::as_str))?;
        command.iter().try_for_each(|arg| self.plain("command", arg))
    }

    pub(crate) fn plain(&self, key: &'static str, value: &str) -> Result<(), ConfigError> {
        if value.contains('\0') {
            return Err(self.value(key, "holds a NUL character".to_owned()));
        }
        Ok(())
    }

    pub(crate) fn variable(&self, key: &'static str, variable: &str) -> Result<(), ConfigError> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts && variable.chars().all(good) {
            return Ok(());
        }
        // The value is not quoted: it may be a key that was written where its name belongs.
        Err(self.value(key, "must name an environment variable, not hold its value".to_owned()))
    }

    pub(crate) fn url(&self, text: &str, keyed: bool, plain_allowed: bool) -> Result<(), ConfigError> {
        let value = |problem: String| self.value("base_url", problem);
        if text.is_empty() {
            let problem =
                "is missing: name the address of the server, such as `https://openrouter.ai/api/v1`";
            return Err(value(problem.to_owned()));
        }
        let url = Url::parse(text)
            .map_err(|error| value(format!("is not a URL such as `http://127.0.0.1:11434/v1`: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(value("must begin with `http://` or `https://`".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(value(
                "must not hold a user or a password; name the key in `api_key_env`".to_owned(),
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(value("must not hold a query or a fragment".to_owned()));
        }
        if keyed && url.scheme() == "http" && !is_loopback(&url) && !plain_allowed {
            let problem = "would send the key unencrypted: use `https`, or set `allow_plain_http = true`";
            return Err(value(problem.to_owned()));
        }
        Ok(())
    }
}
