//! Tokens for callers over HTTP: made here, kept as digests.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cyberine_fs::{LockFile, PrivateDir};
use cyberine_http::identity::TokenDigest;
use cyberine_types::{Secret, Timestamp};

use crate::config::{ConfigSource, Name, Overwrite, Tenant, offer_of, write_config};
use crate::exit::Exit;
use crate::home::Home;
use crate::problem::Problem;

/// What tokens begin with, for whoever finds one where it should not be.
const PREFIX: &str = "cyb_";
/// The lock over adding to the home's configuration, in the home.
const LOCK: &str = "config.lock";
/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(5);

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
    /// Where the configuration is wrong, would be wrong with it, is a link, is being changed by somebody
    /// else, or cannot be written.
    pub fn keep(&self, home: &Home) -> Result<PathBuf, Problem> {
        let directory = home.open().map_err(|error| Problem::of(Exit::Configuration, &error))?;
        let path = home.config_file();
        let _held = hold(&directory, &path)?;
        if path.is_symlink() {
            return Err(Problem::new(
                Exit::Configuration,
                format!(
                    "`{}` is a link, and would not be one any more: leave `--write` out, and put the entry \
                     into the file it leads to yourself",
                    path.display()
                ),
            ));
        }
        let there = ConfigSource::read(&path)?;
        let text = match there.as_ref().map(ConfigSource::text) {
            None | Some("") => self.entry.clone(),
            Some(text) => format!("{}\n\n{}", text.trim_end_matches('\n'), self.entry),
        };
        offer_of(&ConfigSource::of(&path, &text))?;
        replace(&path, there.as_ref(), &text)?;
        Ok(path)
    }
}

/// Takes the lock over changing the configuration by adding to it.
fn hold(directory: &PrivateDir, path: &Path) -> Result<LockFile, Problem> {
    let until = Instant::now() + PATIENCE;
    loop {
        let held = directory.try_lock(LOCK).map_err(|error| Problem::of(Exit::Unavailable, &error))?;
        match held {
            Some(held) => return Ok(held),
            None if Instant::now() < until => std::thread::sleep(PAUSE),
            None => return Err(busy(path)),
        }
    }
}

/// Puts `text` in the place of what was `there`, unless somebody has put something else there since: an
/// editor takes no lock.
fn replace(path: &Path, there: Option<&ConfigSource>, text: &str) -> Result<(), Problem> {
    if ConfigSource::read(path)?.as_ref() != there {
        return Err(busy(path));
    }
    let written = write_config(path, text, Overwrite::Allow);
    written.map(drop).map_err(|error| Problem::of(Exit::Unavailable, &error))
}

fn busy(path: &Path) -> Problem {
    let message = format!("somebody else is changing `{}`: try again", path.display());
    Problem::new(Exit::Unavailable, message)
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

    fn plain(text: &str) -> HandedOut {
        let new = NewToken {
            name: name(text),
            tenant: None,
            audiences: Vec::new(),
            org_scope: None,
            expires: None,
        };
        new.hand_out().unwrap()
    }

    #[test]
    fn tokens_that_are_made_side_by_side_are_all_kept() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("home"));
        std::thread::scope(|scope| {
            for number in 0..12 {
                let home = &home;
                scope.spawn(move || plain(&format!("caller {number}")).keep(home).unwrap());
            }
        });
        assert_eq!(AccessConfig::load(&home).unwrap().identity.token.len(), 12);
    }

    #[test]
    fn what_somebody_else_has_written_since_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.toml");
        let since = |there, text| replace(&path, there, text).map_err(|problem| problem.message);
        since(None, "# one\n").unwrap();
        let one = ConfigSource::of(&path, "# one\n");
        assert!(since(None, "# two\n").unwrap_err().contains("try again"));
        since(Some(&one), "# two\n").unwrap();
        assert!(since(Some(&one), "# three\n").unwrap_err().contains("try again"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# two\n");
    }

    #[test]
    fn a_link_stays_one() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("home"));
        home.open().unwrap();
        let elsewhere = root.path().join("dotfile.toml");
        write_config(&elsewhere, "# mine\n", Overwrite::Allow).unwrap();
        std::os::unix::fs::symlink(&elsewhere, home.config_file()).unwrap();
        let refused = plain("ada").keep(&home).unwrap_err();
        assert!(refused.exit == Exit::Configuration && refused.message.contains("is a link"));
        assert!(home.config_file().is_symlink());
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "# mine\n");
    }
}
