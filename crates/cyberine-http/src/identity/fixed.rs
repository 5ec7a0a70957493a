use std::sync::Arc;

use cyberine_types::Identity;
use futures_util::future::BoxFuture;

use super::{Admission, Rejection, Resolver, TransportFacts};

/// Whoever connects from this machine is one user. Who connects from elsewhere, or by way of a
/// proxy, is nobody.
#[derive(Debug, Clone)]
pub struct Fixed(Arc<Identity>);

impl Fixed {
    /// Everybody on this machine is `identity`.
    #[must_use]
    pub fn new(identity: impl Into<Arc<Identity>>) -> Self {
        Self(identity.into())
    }
}

impl Resolver for Fixed {
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>> {
        let resolved = if facts.is_local() {
            Ok(Arc::clone(&self.0).into())
        } else {
            Err(Rejection::Denied(
                "this server serves processes of its own machine only, and none by way of a proxy",
            ))
        };
        Box::pin(std::future::ready(resolved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fixed_profile_is_for_this_machine_only() {
        let fixed = Fixed::new(Identity::local("ada"));
        let facts = |peer: &str, is_forwarded| TransportFacts {
            bearer: None,
            peer: peer.parse().unwrap(),
            is_forwarded,
        };
        let resolved = fixed.resolve(&facts("127.0.0.1:1", false)).await.unwrap();
        assert_eq!(resolved.identity.principal.name, "ada");
        for elsewhere in [facts("10.0.0.1:1", false), facts("127.0.0.1:1", true)] {
            assert!(matches!(fixed.resolve(&elsewhere).await, Err(Rejection::Denied(_))), "{elsewhere:?}");
        }
    }
}
