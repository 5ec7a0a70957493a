use std::sync::Arc;

use cyberine_types::Identity;
use futures_util::future::BoxFuture;

use super::{Rejection, Resolver, TransportFacts};

/// Two resolvers: the second is asked about a token that is none of the first's.
pub struct Either(Arc<dyn Resolver>, Arc<dyn Resolver>);

impl Either {
    /// `first`, then `second`.
    #[must_use]
    pub fn new(first: Arc<dyn Resolver>, second: Arc<dyn Resolver>) -> Self {
        Self(first, second)
    }
}

impl Resolver for Either {
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Arc<Identity>, Rejection>> {
        Box::pin(async move {
            match self.0.resolve(facts).await {
                Err(Rejection::Invalid(_)) => self.1.resolve(facts).await,
                resolved => resolved,
            }
        })
    }
}
