//! Tokens of an issuer: JWTs (RFC 7519), verified by the keys it publishes (RFC 7517).

mod claims;
mod key_set;
mod keys;
mod ring;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use cyberine_types::{Secret, Timestamp};
use futures_util::future::BoxFuture;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::{Admission, Rejection, Resolver, TransportFacts};
use keys::Keys;

pub use claims::Claims;
pub use key_set::{LARGEST_KEY_SET, keys_in};
pub use keys::{KeyError, KeySource};
pub use rules::{JwtRules, RuleError, SignatureAlgorithm, UnknownAlgorithm};

const WRONG_TYPE: &str = "a claim of the token has a wrong type";

/// Tokens of one issuer for one audience.
///
/// What a token says of how it is to be verified is never followed: not its algorithm (it has to be
/// one of a list, and one the key is for), not an address in its header, and its `kid` only names one
/// of the keys that are held.
pub struct Jwt {
    rules: JwtRules,
    keys: Arc<Keys>,
}

impl Jwt {
    /// Tokens that keep `rules`, signed with the keys of `source`. Nothing is fetched yet.
    ///
    /// # Errors
    /// Where the rules would let in what nobody meant to.
    pub fn new(rules: JwtRules, source: Arc<dyn KeySource>) -> Result<Self, RuleError> {
        rules.check()?;
        ring::install();
        Ok(Self { rules, keys: Arc::new(Keys::new(source)) })
    }

    /// Fetches the keys, where that was not done a moment ago.
    ///
    /// # Errors
    /// Why there are none. Tokens are refused until there are, and the next one that comes asks again.
    pub async fn warm(&self) -> Result<(), KeyError> {
        self.keys.refresh().await;
        self.keys.fault().map_or(Ok(()), Err)
    }

    async fn resolved(&self, token: &Secret) -> Result<Admission, Rejection> {
        let token = token.expose();
        let header = decode_header(token)
            .map_err(|_| Rejection::Invalid("the token is no JWT that is signed with a known algorithm"))?;
        let algorithm = SignatureAlgorithm::of(header.alg).filter(|it| self.rules.algorithms.contains(it));
        let algorithm = algorithm
            .ok_or(Rejection::Invalid("the token is signed with an algorithm that does not count here"))?;
        let key = self.keys.find(header.kid.as_deref(), algorithm).await?;
        let claims = decode::<Map<String, Value>>(token, &key.decoding, &self.validation(algorithm))
            .map_err(|error| Rejection::Invalid(fault(error.kind())))?
            .claims;
        // The crate takes a list of issuers for one of them; a token has one.
        if claims.get("iss").and_then(Value::as_str) != Some(self.rules.issuer.as_str()) {
            return Err(Rejection::Invalid("the token is of another issuer"));
        }
        self.rules.require_scopes(&claims)?;
        let identity = self.rules.claims.identity(&claims, &self.rules.tenant)?;
        Ok(Admission { identity: Arc::new(identity), until: Some(self.until(&claims)?) })
    }

    /// When a token expires, by the leeway of the rules.
    fn until(&self, claims: &Map<String, Value>) -> Result<Timestamp, Rejection> {
        let expires = claims.get("exp").and_then(|exp| match exp.as_u64() {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => Duration::try_from_secs_f64(exp.as_f64()?).ok(),
        });
        let until = expires.ok_or(Rejection::Invalid(WRONG_TYPE))?.saturating_add(self.rules.leeway);
        Ok(Timestamp::from_unix_ms(i64::try_from(until.as_millis()).unwrap_or(i64::MAX)))
    }

    fn validation(&self, algorithm: SignatureAlgorithm) -> Validation {
        let mut validation = Validation::new(algorithm.into());
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.rules.issuer]);
        validation.set_audience(&[&self.rules.audience]);
        validation.validate_exp = true;
        validation.validate_nbf = true;
        validation.validate_aud = true;
        validation.leeway = self.rules.leeway.as_secs();
        validation
    }
}

impl Resolver for Jwt {
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>> {
        Box::pin(async move {
            let token = facts.bearer.as_ref().ok_or(Rejection::Missing)?;
            self.resolved(token).await
        })
    }
}

/// What is wrong with a token, in words that repeat nothing of it.
fn fault(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::InvalidIssuer => "the token is of another issuer",
        ErrorKind::InvalidSignature => "the signature of the token does not fit",
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "exp" => "the token does not say when it expires",
            "aud" => "the token does not say whom it is for",
            _ => "the token does not say who issued it",
        },
        ErrorKind::InvalidClaimFormat(_) => WRONG_TYPE,
        _ => "the token cannot be read",
    }
}

#[cfg(test)]
mod tests;
