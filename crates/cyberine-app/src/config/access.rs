//! `[identity]` and `[http]`: who calls, and how the server is reached. Only the home's file has them:
//! what a project's directory holds must not say who somebody is.

use std::path::PathBuf;

use cyberine_http::identity::SignatureAlgorithm;
use cyberine_types::{Identity, Principal, Timestamp};
use serde::Deserialize;

use super::document::Document;
use super::names::{Algorithm, Digest, Name, Tenant};
use super::{ConfigError, ConfigSource, http};
use crate::home::Home;

pub(super) const IDENTITY: &str = "identity";
pub(super) const HTTP: &str = "http";

/// The tenant of whoever none is named for.
const LOCAL: &str = "local";

/// What the home's configuration says of who calls and how the server is reached.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AccessConfig {
    /// Who calls.
    pub identity: IdentityConfig,
    /// How the server is reached.
    pub http: HttpConfig,
}

/// `[identity]`: who calls.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityConfig {
    /// The tenant of everybody for whom none is named; `local` where it is not set.
    pub tenant: Option<Tenant>,
    /// Who a host is that starts the server; the user of the system where it is not set.
    pub user: Option<Name>,
    /// The audiences of that user.
    #[serde(default)]
    pub audiences: Vec<Name>,
    /// The part of an organisation that user acts in.
    pub org_scope: Option<Name>,
    /// Who is who over HTTP.
    pub mode: Option<IdentityMode>,
    /// Tokens that were handed out.
    #[serde(default)]
    pub token: Vec<TokenConfig>,
    /// Tokens of an issuer.
    pub jwt: Option<JwtConfig>,
}

/// Who is who over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdentityMode {
    /// Whoever brings a token is whom it names; nobody else is let in.
    #[default]
    Bearer,
    /// Whoever can connect from this machine is `user`.
    Fixed,
}

/// `[[identity.token]]`: a token that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenConfig {
    /// Who brings it.
    pub name: Name,
    /// Its SHA-256.
    pub sha256: Digest,
    /// That one's tenant, where it is not that of `[identity]`.
    pub tenant: Option<Tenant>,
    /// That one's audiences.
    #[serde(default)]
    pub audiences: Vec<Name>,
    /// The part of an organisation that one acts in.
    pub org_scope: Option<Name>,
    /// From when on the token counts no more.
    pub expires: Option<Timestamp>,
}

/// `[identity.jwt]`: tokens of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtConfig {
    /// Their `iss`.
    pub issuer: String,
    /// What their `aud` has to be.
    pub audience: String,
    /// Where the issuer's keys are published.
    pub jwks_url: Option<String>,
    /// The file that holds them instead; beside the configuration where it is relative.
    pub jwks_file: Option<PathBuf>,
    /// The algorithms that count.
    #[serde(default = "algorithms")]
    pub algorithms: Vec<Algorithm>,
    /// The scopes a token needs.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The claim that names the user.
    #[serde(default = "user_claim")]
    pub user_claim: String,
    /// The tenant, where no claim names it and it is not that of `[identity]`.
    pub tenant: Option<Tenant>,
    /// The claim that names the tenant.
    pub tenant_claim: Option<String>,
    /// The claim that names audiences.
    pub audiences_claim: Option<String>,
    /// The claim that names the part of an organisation.
    pub org_scope_claim: Option<String>,
    /// By how many seconds the issuer's clock may differ.
    #[serde(default = "leeway")]
    pub leeway_secs: u64,
}

/// `[http]`: how the server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// The URL of the endpoint as clients know it, where that is not the address it listens at.
    pub public_url: Option<String>,
    /// Further names by which clients may call the server.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Origins of pages that may use it.
    #[serde(default)]
    pub origins: Vec<String>,
    /// Whether it may listen where other machines reach it.
    #[serde(default)]
    pub allow_remote: bool,
    /// Connections at once.
    pub max_connections: Option<usize>,
    /// Event streams at once.
    pub max_streams: Option<usize>,
    /// Sessions at once.
    pub max_sessions: Option<usize>,
    /// How long a session may be idle, in seconds.
    pub session_idle_secs: Option<u64>,
}

fn algorithms() -> Vec<Algorithm> {
    vec![
        Algorithm(SignatureAlgorithm::Rs256),
        Algorithm(SignatureAlgorithm::Es256),
        Algorithm(SignatureAlgorithm::EdDsa),
    ]
}

fn user_claim() -> String {
    "sub".to_owned()
}

const fn leeway() -> u64 {
    60
}

impl AccessConfig {
    /// What the home's file says. Nothing else in it is looked at, so that a mistake elsewhere keeps
    /// nobody from being told who they are.
    ///
    /// # Errors
    /// [`ConfigError`], with the place.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        match ConfigSource::read(&home.config_file())? {
            Some(source) => Self::of(&source),
            None => Ok(Self::default()),
        }
    }

    /// As [`load`](Self::load), of a file that was read.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of(source: &ConfigSource) -> Result<Self, ConfigError> {
        Self::read(&Document::parse(source)?)
    }

    pub(super) fn read(document: &Document<'_>) -> Result<Self, ConfigError> {
        let section = Self {
            identity: document.section(IDENTITY)?.unwrap_or_default(),
            http: document.section(HTTP)?.unwrap_or_default(),
        };
        section.check(document)?;
        http::check(&section.http, document)?;
        Ok(section)
    }

    /// What serde cannot see: keys that do not go together.
    fn check(&self, document: &Document<'_>) -> Result<(), ConfigError> {
        let fault = |key: &str, message: &str| {
            let at = document.place_in(IDENTITY, key).or_else(|| document.place_of_root(IDENTITY));
            let message = format!("[identity]: {message}");
            at.map_or(Ok(()), |at| Err(ConfigError::Invalid { at, message }))
        };
        let IdentityConfig { mode, token, jwt, .. } = &self.identity;
        if *mode == Some(IdentityMode::Fixed) && (!token.is_empty() || jwt.is_some()) {
            return fault(
                "mode",
                "with `mode = \"fixed\"` nobody is asked for a token: take it out, or the tokens",
            );
        }
        let digests = token.iter().map(|token| token.sha256.0.to_string());
        if digests.clone().collect::<std::collections::BTreeSet<_>>().len() < token.len() {
            return fault("token", "two entries of `token` are of the same token");
        }
        match jwt {
            Some(JwtConfig { jwks_url: None, jwks_file: None, .. }) => {
                fault("jwt", "`jwt` needs the keys of its issuer: `jwks_url`, or `jwks_file`")
            }
            Some(JwtConfig { jwks_url: Some(_), jwks_file: Some(_), .. }) => {
                fault("jwt", "`jwt` takes its keys from one place: `jwks_url` or `jwks_file`")
            }
            _ => Ok(()),
        }
    }
}

/// Refuses these sections in a project's file.
pub(super) fn refuse_in_project(source: &ConfigSource) -> Result<(), ConfigError> {
    let document = Document::parse(source)?;
    let found = [IDENTITY, HTTP].into_iter().find_map(|name| Some((name, document.place_of_root(name)?)));
    let Some((name, at)) = found else { return Ok(()) };
    let message = format!("[{name}] stands in the home's config.toml only: a project does not say who calls");
    Err(ConfigError::Invalid { at, message })
}

impl IdentityConfig {
    /// Who a host is that starts the server, where the system calls its user `user`.
    #[must_use]
    pub fn profile(&self, user: &str) -> Identity {
        let name = self.user.as_ref().map_or(user, Name::as_str).to_owned();
        Identity {
            principal: Principal { tenant: self.tenant().to_owned(), name },
            audiences: texts(&self.audiences),
            org_scope: self.org_scope.as_ref().map(|scope| scope.as_str().to_owned()),
        }
    }

    /// The tenant of everybody for whom none is named.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.tenant.as_ref().map_or(LOCAL, Tenant::as_str)
    }
}

impl TokenConfig {
    /// Who brings the token, where `tenant` is that of everybody.
    #[must_use]
    pub fn identity(&self, tenant: &str) -> Identity {
        let tenant = self.tenant.as_ref().map_or(tenant, Tenant::as_str).to_owned();
        Identity {
            principal: Principal { tenant, name: self.name.as_str().to_owned() },
            audiences: texts(&self.audiences),
            org_scope: self.org_scope.as_ref().map(|scope| scope.as_str().to_owned()),
        }
    }
}

fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AccessConfig, String> {
        let source = ConfigSource::of("c.toml", text);
        let document = Document::parse(&source).map_err(|error| error.to_string())?;
        AccessConfig::read(&document).map_err(|error| error.to_string())
    }

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn who_calls_is_read_with_what_is_not_said_filled_in() {
        let config = read(&format!(
            "[identity]\ntenant = \"acme\"\naudiences = [\"qa\"]\n\
             [[identity.token]]\nname = \"ci\"\nsha256 = \"{HASH}\"\nexpires = \"2027-01-01T00:00:00Z\"\n\
             [[identity.token]]\nname = \"ben\"\ntenant = \"other\"\nsha256 = \"{}\"\n\
             [identity.jwt]\nissuer = \"https://login\"\naudience = \"https://mcp\"\njwks_file = \"keys.json\"\n\
             [http]\npublic_url = \"https://mcp\"\nallow_remote = true\n",
            HASH.replace("ba", "ab"),
        ))
        .unwrap();
        let profile = config.identity.profile("ada");
        assert_eq!(profile.principal, Principal { tenant: "acme".into(), name: "ada".into() });
        assert_eq!(profile.audiences, ["qa"]);
        let [ci, ben] = config.identity.token.as_slice() else { unreachable!() };
        assert_eq!(ci.identity("acme").principal.tenant, "acme");
        assert_eq!(ben.identity("acme").principal.tenant, "other");
        let jwt = config.identity.jwt.unwrap();
        assert_eq!((jwt.user_claim.as_str(), jwt.leeway_secs, jwt.algorithms.len()), ("sub", 60, 3));
        assert!(config.http.allow_remote);
        assert_eq!(read("").unwrap().identity.profile("ada"), Identity::local("ada"));
    }

    #[test]
    fn what_cannot_be_is_told_with_its_place_and_a_token_is_never_repeated() {
        let cases = [
            ("[identity]\ntenant = \"a/b\"", "c.toml:2:", "no `/`"),
            ("[identity]\nuser = \"\"", "c.toml:2:", "it is empty"),
            ("[identity]\nmode = \"open\"", "c.toml:2:", "is not a known value"),
            ("[identity]\npassword = \"x\"", "c.toml:2:", "unknown key `password`"),
            ("[[identity.token]]\nname = \"a\"\nsha256 = \"hunter22\"", "c.toml:3:", "cyberine token new"),
            ("[[identity.token]]\nname = \"a\"", "c.toml:1:", "missing field `sha256`"),
            ("[identity.jwt]\nissuer = \"i\"\naudience = \"a\"", "c.toml:1:", "`jwks_url`, or `jwks_file`"),
            (
                "[identity.jwt]\nissuer = \"i\"\naudience = \"a\"\njwks_url = \"u\"\nalgorithms = [\"HS256\"]",
                "c.toml:5:",
                "`HS256` is none of the algorithms",
            ),
            ("[http]\nport = 1", "c.toml:2:", "unknown key `port`"),
        ];
        for (text, place, says) in cases {
            let fault = read(text).unwrap_err();
            assert!(fault.starts_with(place) && fault.contains(says), "{text}\n{fault}");
            assert!(!fault.contains("hunter22"), "{fault}");
        }
        let twice = format!("[[identity.token]]\nname = \"a\"\nsha256 = \"{HASH}\"\n");
        assert!(read(&format!("{twice}{twice}")).unwrap_err().contains("the same token"));
        let both = format!("[identity]\nmode = \"fixed\"\n{twice}");
        assert!(read(&both).unwrap_err().contains("nobody is asked for a token"));
    }

    #[test]
    fn a_project_does_not_say_who_calls() {
        for (text, place) in [("[identity]\nuser = \"root\"", "p.toml:1:2"), ("\n[http]\n", "p.toml:2:2")] {
            let refused = refuse_in_project(&ConfigSource::of("p.toml", text)).unwrap_err().to_string();
            assert!(refused.starts_with(place) && refused.contains("home's config.toml only"), "{refused}");
        }
        assert!(refuse_in_project(&ConfigSource::of("p.toml", "[run]\n")).is_ok());
    }
}
