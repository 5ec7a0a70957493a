//! JSON-RPC 2.0: ids, errors and the shape of a message.

mod error;
mod id;
mod incoming;
mod tokens;

pub(crate) use error::excerpt;
pub use error::{ErrorKind, RpcError};
pub(crate) use id::{IdValue, RequestId};
pub(crate) use incoming::{Incoming, classify};
pub(crate) use tokens::{elements, members, text};
