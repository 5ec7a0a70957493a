//! The rail from the outside: bytes in, bytes out, over sockets, pipes and async streams.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and fixture tools print and panic on purpose"
)]

mod abilities;
mod eras;
mod faults;
mod fixture;
mod gate;
mod host;
mod news;
mod process;
mod sets;
mod streams;
mod subscriptions;
