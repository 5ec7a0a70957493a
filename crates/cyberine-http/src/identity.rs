//! Who is calling: from facts of the transport to an identity, or to a refusal.
//!
//! A [`Resolver`] sees [`TransportFacts`] and nothing else: not what a message says, not what a client
//! calls itself. A [`Door`] stands in front of every request, the ones of a session too: it reads the
//! facts, asks the resolver, and words the refusal as RFC 6750 and RFC 9728 want it.
//!
//! Three resolvers are here: [`Fixed`] (whoever connects from this machine is one user), [`TokenTable`]
//! (tokens that were handed out, kept as digests) and [`Jwt`] (tokens of an issuer, by its published
//! keys). [`Either`] asks two in turn.

mod admission;
mod door;
mod either;
mod facts;
mod fixed;
mod jwt;
mod name;
mod query;
mod rejection;
mod resource;
mod storm;
mod tokens;

use futures_util::future::BoxFuture;

pub use admission::Admission;
pub use door::{Door, Refusal};
pub use either::Either;
pub use facts::TransportFacts;
pub use fixed::Fixed;
pub use jwt::{
    Claims, Jwt, JwtRules, KeyError, KeySource, LARGEST_KEY_SET, RuleError, SignatureAlgorithm,
    UnknownAlgorithm, keys_in,
};
pub use name::{NameError, checked_name, checked_tenant};
pub use query::has_parameter;
pub use rejection::Rejection;
pub use resource::{ProtectedResource, ResourceError};
pub use tokens::{DigestError, Token, TokenDigest, TokenTable};

/// Says who is calling.
///
/// It is asked for every request and must answer the same facts the same way until something outside
/// of them changes (a token expires, keys are rotated). It must not keep or log a token.
pub trait Resolver: Send + Sync {
    /// The identity behind `facts`, and how long what was brought counts.
    ///
    /// # Errors
    /// Why there is none.
    fn resolve<'a>(&'a self, facts: &'a TransportFacts) -> BoxFuture<'a, Result<Admission, Rejection>>;
}
