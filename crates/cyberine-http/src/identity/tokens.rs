use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cyberine_types::{Clock, Identity, Secret, SystemClock, Timestamp};
use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::{Admission, Rejection, Resolver, TransportFacts};

/// The SHA-256 of a token: what is kept instead of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token is kept as its SHA-256, 64 hexadecimal digits: `cyberine token new NAME` makes both")]
pub struct DigestError;

impl TokenDigest {
    /// The digest of `token`.
    #[must_use]
    pub fn of(token: &Secret) -> Self {
        Self(Sha256::digest(token.expose().as_bytes()).into())
    }
}

impl FromStr for TokenDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut digest = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(DigestError);
        }
        for (at, byte) in digest.iter_mut().enumerate() {
            let pair = text.get(2 * at..2 * at + 2).ok_or(DigestError)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| DigestError)?;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for TokenDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A token that was handed out.
#[derive(Debug, Clone)]
pub struct Token {
    /// Its digest.
    pub digest: TokenDigest,
    /// Who brings it.
    pub identity: Arc<Identity>,
    /// From when on it counts no more.
    pub expires: Option<Timestamp>,
}

/// Tokens that were handed out, by their digests.
pub struct TokenTable {
    tokens: Vec<Token>,
    clock: Arc<dyn Clock>,
}

impl TokenTable {
    /// A table of `tokens`.
    #[must_use]
    pub fn new(tokens: Vec<Token>) -> Self {
        Self { tokens, clock: Arc::new(SystemClock) }
    }

    /// Tells the time by `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Looks at every entry, whichever of them it is: the time says nothing of where it stands.
    fn find(&self, bearer: &Secret) -> Option<&Token> {
        let digest = TokenDigest::of(bearer);
        let (mut place, mut found) = (0_u64, Choice::from(0));
        for (at, token) in (0_u64..).zip(&self.tokens) {
            let is_it = token.digest.0.ct_eq(&digest.0);
            place.conditional_assign(&at, is_it);
            found |= is_it;
        }
        bool::from(found).then(|| self.tokens.get(usize::try_from(place).ok()?))?
    }
}

impl Resolver for TokenTable {
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>> {
        let resolved = match &facts.bearer {
            None => Err(Rejection::Missing),
            Some(bearer) => match self.find(bearer) {
                None => Err(Rejection::Unknown),
                Some(token) if token.expires.is_some_and(|at| at <= self.clock.now()) => {
                    Err(Rejection::Invalid("the token has expired"))
                }
                Some(token) => Ok(Admission { identity: Arc::clone(&token.identity), until: token.expires }),
            },
        };
        Box::pin(std::future::ready(resolved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyberine_types::ManualClock;

    fn token(text: &str, expires: Option<i64>) -> Token {
        Token {
            digest: TokenDigest::of(&Secret::new(text)),
            identity: Arc::new(Identity::local(text)),
            expires: expires.map(Timestamp::from_unix_ms),
        }
    }

    async fn who(table: &TokenTable, bearer: Option<&str>) -> Result<String, Rejection> {
        let bearer = bearer.map(Secret::new);
        let facts = TransportFacts { bearer, peer: "10.0.0.1:1".parse().unwrap(), is_forwarded: true };
        table.resolve(&facts).await.map(|admitted| admitted.identity.principal.name.clone())
    }

    #[tokio::test]
    async fn a_token_is_found_wherever_it_stands_and_nothing_near_it_is() {
        let table = TokenTable::new(vec![token("first", None), token("second", None), token("third", None)]);
        for name in ["first", "second", "third"] {
            assert_eq!(who(&table, Some(name)).await, Ok(name.to_owned()));
        }
        let digest = TokenDigest::of(&Secret::new("first")).to_string();
        for near in ["firs", "first ", "First", "firstt", digest.as_str()] {
            assert_eq!(who(&table, Some(near)).await, Err(Rejection::Unknown), "{near}");
        }
        assert_eq!(who(&table, None).await, Err(Rejection::Missing));
        assert!(who(&TokenTable::new(Vec::new()), Some("first")).await.is_err());
    }

    #[tokio::test]
    async fn a_token_ends_at_its_time() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_000)));
        let table = TokenTable::new(vec![token("a", Some(2_000))]).with_clock(clock.clone());
        let bearer = Some(Secret::new("a"));
        let facts = TransportFacts { bearer, peer: "10.0.0.1:1".parse().unwrap(), is_forwarded: false };
        assert_eq!(table.resolve(&facts).await.unwrap().until, Some(Timestamp::from_unix_ms(2_000)));
        clock.step(1_000);
        assert_eq!(who(&table, Some("a")).await, Err(Rejection::Invalid("the token has expired")));
    }

    #[test]
    fn a_digest_is_read_as_it_is_written_and_nothing_else_is_one() {
        let digest = TokenDigest::of(&Secret::new("abc"));
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((digest.to_string().as_str(), text.parse()), (text, Ok(digest)));
        assert_eq!(text.to_uppercase().parse(), Ok(digest));
        for bad in ["", "abc", &text[1..], &format!("+{}", &text[1..]), &"é".repeat(32)] {
            assert_eq!(bad.parse::<TokenDigest>(), Err(DigestError), "{bad}");
        }
    }
}
