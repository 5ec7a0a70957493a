//! The server from the outside: bytes in, bytes out, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod client;
mod drain;
mod expiry;
mod guards;
mod limits;
mod sessions;
mod site;
mod stateless;
mod streams;
