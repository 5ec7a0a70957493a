use std::str::FromStr;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};

use super::Claims;
use crate::identity::{NameError, Rejection, checked_tenant};

/// The longest time by which clocks may differ.
const MOST_LEEWAY: Duration = Duration::from_secs(300);

/// What a token has to be to count.
#[derive(Debug, Clone)]
pub struct JwtRules {
    /// Its `iss`, to the letter.
    pub issuer: String,
    /// What its `aud` is, or has among others, to the letter: the URL of this server as clients use it
    /// (RFC 8707), or what the issuer calls it.
    pub audience: String,
    /// The algorithms that count.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// The scopes it needs (`scope` of RFC 8693, or `scp`), all of them.
    pub scopes: Vec<String>,
    /// Which claims name whom.
    pub claims: Claims,
    /// The tenant of whoever brings one, where no claim names it.
    pub tenant: String,
    /// By how much the issuer's clock may differ.
    pub leeway: Duration,
}

/// Rules by which nobody, or everybody, could get in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A text that must not be empty is.
    #[error("`{0}` must not be empty")]
    Empty(&'static str),
    /// Clocks that differ by that much tell no time.
    #[error("`leeway_secs` may be {} at most", MOST_LEEWAY.as_secs())]
    Leeway,
    /// A scope that is several, or none.
    #[error("`{0}` is not one scope: a scope has no white space, quotes or backslashes")]
    Scope(String),
    /// A tenant that cannot be one.
    #[error("the tenant `{name}` cannot be used: {source}")]
    Tenant {
        /// As it was written.
        name: String,
        /// Why.
        source: NameError,
    },
}

impl JwtRules {
    pub(super) fn check(&self) -> Result<(), RuleError> {
        let texts =
            [("issuer", &self.issuer), ("audience", &self.audience), ("user_claim", &self.claims.user)];
        if let Some((name, _)) = texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(RuleError::Empty(name));
        }
        if self.algorithms.is_empty() {
            return Err(RuleError::Empty("algorithms"));
        }
        if self.leeway > MOST_LEEWAY {
            return Err(RuleError::Leeway);
        }
        // RFC 6749, 3.3.
        let is_scope = |text: &String| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        };
        if let Some(bad) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(RuleError::Scope(bad.clone()));
        }
        checked_tenant(&self.tenant)
            .map(drop)
            .map_err(|source| RuleError::Tenant { name: self.tenant.clone(), source })
    }

    /// Refuses a token that lacks one of the scopes.
    pub(super) fn require_scopes(&self, claims: &Map<String, Value>) -> Result<(), Rejection> {
        let mut carried: Vec<&str> = Vec::new();
        for claim in ["scope", "scp"] {
            match claims.get(claim) {
                Some(Value::String(text)) => carried.extend(text.split(' ')),
                Some(Value::Array(list)) => carried.extend(list.iter().filter_map(Value::as_str)),
                _ => {}
            }
        }
        if self.scopes.iter().all(|needed| carried.contains(&needed.as_str())) {
            return Ok(());
        }
        Err(Rejection::Scope(self.scopes.clone()))
    }
}

/// The algorithms a token may be signed with (RFC 7518, 3.1, and RFC 8037): those whose key to verify
/// is public. `none` and `HS*` are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called what the RFCs call them")]
pub enum SignatureAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// An algorithm there is not, or that does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is none of the algorithms a token may be signed with: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA"
)]
pub struct UnknownAlgorithm(String);

impl SignatureAlgorithm {
    const NAMES: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// Those that verify with an RSA key.
    pub(super) const RSA: [Self; 6] =
        [Self::Rs256, Self::Rs384, Self::Rs512, Self::Ps256, Self::Ps384, Self::Ps512];

    pub(super) fn of(algorithm: Algorithm) -> Option<Self> {
        Self::NAMES.iter().map(|(_, it)| *it).find(|it| Algorithm::from(*it) == algorithm)
    }
}

impl FromStr for SignatureAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, it)| *it).ok_or_else(|| UnknownAlgorithm(text.chars().take(32).collect()))
    }
}

impl From<SignatureAlgorithm> for Algorithm {
    fn from(algorithm: SignatureAlgorithm) -> Self {
        match algorithm {
            SignatureAlgorithm::Rs256 => Self::RS256,
            SignatureAlgorithm::Rs384 => Self::RS384,
            SignatureAlgorithm::Rs512 => Self::RS512,
            SignatureAlgorithm::Ps256 => Self::PS256,
            SignatureAlgorithm::Ps384 => Self::PS384,
            SignatureAlgorithm::Ps512 => Self::PS512,
            SignatureAlgorithm::Es256 => Self::ES256,
            SignatureAlgorithm::Es384 => Self::ES384,
            SignatureAlgorithm::EdDsa => Self::EdDSA,
        }
    }
}
