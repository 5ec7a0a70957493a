//! Tokens for callers over HTTP: made here, kept as digests.

use std::fmt::Write as _;
use std::path::PathBuf;

use cyberine_http::identity::TokenDigest;
use cyberine_types::{Secret, Timestamp};

use crate::config::{ConfigSource, Name, Overwrite, Tenant, offer_of, write_config};
use crate::exit::Exit;
use crate::home::Home;
use crate::problem::Problem;

/// What tokens begin with, for whoever finds one where it should not be.
const PREFIX: &str = "cyb_";

/// A token that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Who will bring it.
    pub name: Name,
    /// That one's tenant, where it is not that of `[identity]`.
    pub tenant: Option<Tenant>,
    /// That one's audiences.
    pub audiences: Vec<Name>,
    /// The part of an organisation that one acts in.
    pub org_scope: Option<Name>,
    /// From when on it counts no more.
    pub expires: Option<Timestamp>,
}

/// A token that was made. Nothing else has it.
#[derive(Debug)]
pub struct HandedOut {
    /// The token.
    pub token: Secret,
    /// Its digest.
    pub digest: TokenDigest,
    /// Its entry in the home's configuration.
    pub entry: String,
}

impl NewToken {
    /// Makes the token: 256 random bits.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn hand_out(&self) -> Result<HandedOut, Problem> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| Problem::of(Exit::Internal, &error))?;
        let mut text = PREFIX.to_owned();
        for byte in bytes {
            // A String takes everything that is written to it.
            let _ = write!(text, "{byte:02x}");
        }
        let token = Secret::new(text);
        let digest = TokenDigest::of(&token);
        Ok(HandedOut { token, digest, entry: self.entry(digest) })
    }

    fn entry(&self, digest: TokenDigest) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut lines = vec![
            "[[identity.token]]".to_owned(),
            format!("name = {}", quoted(self.name.as_str())),
            format!("sha256 = {}", quoted(&digest.to_string())),
        ];
        if let Some(tenant) = &self.tenant {
            lines.push(format!("tenant = {}", quoted(tenant.as_str())));
        }
        if !self.audiences.is_empty() {
            let names: Vec<String> = self.audiences.iter().map(|name| quoted(name.as_str())).collect();
            lines.push(format!("audiences = [{}]", names.join(", ")));
        }
        if let Some(scope) = &self.org_scope {
            lines.push(format!("org_scope = {}", quoted(scope.as_str())));
        }
        if let Some(expires) = self.expires {
            lines.push(format!("expires = {}", quoted(&expires.to_string())));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl HandedOut {
    /// Puts the entry at the end of the home's configuration, which is made where there is none, and
    /// returns the file.
    ///
    /// # Errors
    /// Where the configuration is wrong, would be wrong with it, or cannot be written.
    pub fn keep(&self, home: &Home) -> Result<PathBuf, Problem> {
        home.open().map_err(|error| Problem::of(Exit::Configuration, &error))?;
        let path = home.config_file();
        let there = ConfigSource::read(&path)?;
        let text = match there.as_ref().map(ConfigSource::text) {
            None | Some("") => self.entry.clone(),
            Some(text) => format!("{}\n\n{}", text.trim_end_matches('\n'), self.entry),
        };
        offer_of(&ConfigSource::of(&path, &text))?;
        write_config(&path, &text, Overwrite::Allow)
            .map_err(|error| Problem::of(Exit::Unavailable, &error))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AccessConfig;

    fn name(text: &str) -> Name {
        Name::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_token_is_kept_as_its_digest_beside_what_was_there() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("home"));
        let new = NewToken {
            name: name("o\"brien"),
            tenant: Some(Tenant::try_from("acme".to_owned()).unwrap()),
            audiences: vec![name("qa"), name("ops")],
            org_scope: Some(name("emea")),
            expires: Some(Timestamp::from_unix_ms(1_800_000_000_000)),
        };
        let first = new.hand_out().unwrap();
        let path = first.keep(&home).unwrap();
        std::fs::write(&path, format!("# mine\n[run]\n{}", std::fs::read_to_string(&path).unwrap())).unwrap();
        let second = NewToken {
            name: name("ben"),
            tenant: None,
            audiences: Vec::new(),
            org_scope: None,
            expires: None,
        };
        let second = second.hand_out().unwrap();
        second.keep(&home).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# mine\n[run]\n") && !text.contains(first.token.expose()), "{text}");
        let config = AccessConfig::load(&home).unwrap().identity;
        let [one, other] = config.token.as_slice() else { panic!("{text}") };
        let identity = one.identity("local");
        assert_eq!(
            (identity.principal.tenant.as_str(), identity.principal.name.as_str()),
            ("acme", "o\"brien")
        );
        assert_eq!(
            (identity.audiences.len(), identity.org_scope.as_deref(), one.expires),
            (2, Some("emea"), new.expires)
        );
        assert_eq!((one.sha256.0, other.sha256.0), (first.digest, second.digest));
        assert_eq!(TokenDigest::of(&first.token), first.digest);
        assert_ne!(first.token.expose(), second.token.expose());
    }

    #[test]
    fn a_configuration_that_would_be_wrong_is_left_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("home"));
        home.open().unwrap();
        let fixed = "[identity]\nmode = \"fixed\"\n";
        write_config(&home.config_file(), fixed, Overwrite::Allow).unwrap();
        let new =
            NewToken { name: name("a"), tenant: None, audiences: Vec::new(), org_scope: None, expires: None };
        assert!(new.hand_out().unwrap().keep(&home).unwrap_err().message.contains("fixed"));
        assert_eq!(std::fs::read_to_string(home.config_file()).unwrap(), fixed);
    }
}
