//! The store against its contract, a model, and faults.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails and says why it skips"
)]

mod contract;
mod support;
