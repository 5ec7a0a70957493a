//! The bus against its contract, damaged files, and faults.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, says why it skips, and starts children of its own"
)]

mod child;
mod contract;
mod damage;
mod kills;
mod retention;
mod support;
mod syscalls;
mod times;
