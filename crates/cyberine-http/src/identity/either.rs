use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Admission, Rejection, Resolver, TransportFacts};

/// Two resolvers: the second is asked about a token the first does not know. One that it knows and that
/// counts no more is its matter.
pub struct Either(Arc<dyn Resolver>, Arc<dyn Resolver>);

impl Either {
    /// `first`, then `second`.
    #[must_use]
    pub fn new(first: Arc<dyn Resolver>, second: Arc<dyn Resolver>) -> Self {
        Self(first, second)
    }
}

impl Resolver for Either {
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>> {
        Box::pin(async move {
            match self.0.resolve(facts).await {
                Err(Rejection::Unknown) => self.1.resolve(facts).await,
                resolved => resolved,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use cyberine_types::{Clock as _, Identity, Secret, SystemClock};

    use super::*;
    use crate::identity::{Fixed, Token, TokenDigest, TokenTable};

    #[tokio::test]
    async fn the_second_is_asked_about_what_the_first_does_not_know_and_about_nothing_else() {
        let token = |text: &str, expires| Token {
            digest: TokenDigest::of(&Secret::new(text)),
            identity: Arc::new(Identity::local(text)),
            expires,
        };
        let table = TokenTable::new(vec![token("here", None), token("over", Some(SystemClock.now()))]);
        let either = Either::new(Arc::new(table), Arc::new(Fixed::new(Identity::local("second"))));
        let who = async |bearer: Option<&str>| {
            let (bearer, peer) = (bearer.map(Secret::new), "127.0.0.1:1".parse().unwrap());
            let facts = TransportFacts { bearer, peer, is_forwarded: false };
            either.resolve(&facts).await.map(|admitted| admitted.identity.principal.name.clone())
        };
        assert_eq!(who(Some("here")).await, Ok("here".to_owned()));
        assert_eq!(who(Some("elsewhere")).await, Ok("second".to_owned()));
        assert_eq!(who(Some("over")).await, Err(Rejection::Invalid("the token has expired")));
        assert_eq!(who(None).await, Err(Rejection::Missing));
    }
}
