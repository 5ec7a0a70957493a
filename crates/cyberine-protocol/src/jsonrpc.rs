//! JSON-RPC 2.0: ids, errors and the shape of a message.

mod error;
mod id;
mod incoming;
mod salvage;
mod tokens;

pub(crate) use error::excerpt;
pub use error::{ErrorKind, RpcError};
pub(crate) use id::{ID_LIMIT, IdValue, RequestId, integral};
pub(crate) use incoming::{Incoming, Malformed, classify};
pub(crate) use salvage::{ENDS, request_id, request_id_of_ends};
pub(crate) use tokens::{elements, members, text};
